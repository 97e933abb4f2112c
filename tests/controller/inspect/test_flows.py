# SPDX-License-Identifier: Apache-2.0
"""Which buckets of a flow table are asked for: those that hold something, where a register can be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest
from finsy.proto import p4i, p4r

from tailrace.controller.inspect import flows
from tailrace.controller.inspect.flows import read_flows
from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.p4rt import programs
from tailrace.p4rt.connection import Connection
from tailrace.p4rt.errors import ReadError

BUCKETS, WAYS = 8, 4
EMPTY = bytes(16)
"""An answer with nothing in flight."""


def cells(in_flight: Mapping[int, int], untracked: Mapping[int, int]) -> dict[str, list[int]]:
    """The two registers, with these cells."""
    return {
        "flow_in_flight_bytes": [in_flight.get(index, 0) for index in range(2 * BUCKETS * WAYS)],
        "untracked_bytes": [untracked.get(index, 0) for index in range(2 * BUCKETS)],
    }


class Registers(Connection):
    """A switch that shows registers over P4Runtime, or refuses them as BMv2 does; the largest index comes first."""

    name = "leaf1"

    def __init__(self, shown: Mapping[str, Sequence[int]] | None) -> None:
        self._info = programs.load("flowcut").p4info
        self._shown = shown
        self.reads = 0

    def p4info(self) -> p4i.P4Info:
        return self._info

    def read(self, entities: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        self.reads += 1
        if self._shown is None:
            raise ReadError(self.name, "Register reads are not supported yet", "UNIMPLEMENTED")
        (number,) = (entity.register_entry.register_id for entity in entities)
        names = {register.preamble.id: register.preamble.alias for register in self._info.registers}
        answer = []
        for index, value in enumerate(self._shown[names[number]]):
            entity = p4r.Entity()
            entity.register_entry.index.index = index
            entity.register_entry.data.bitstring = value.to_bytes(4, "big").lstrip(b"\0") or b"\0"
            answer.append(entity)
        return answer[::-1]


class Asking:
    """Answers every question, and notes it; `side` is what the controller reads by another way than P4Runtime."""

    def __init__(self, side: Mapping[str, list[int]]) -> None:
        self._side = side
        self.asked: list[int] = []

    def ask(self, _switch: str, op: str, indices: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        assert op == "READ_FLOWS"
        self.asked += indices
        return ((index, EMPTY) for index in indices)

    def cells(self, _switch: str, register: str, /) -> list[int]:
        return self._side.get(register, [])


@pytest.fixture(autouse=True)
def sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The switch uses half of its table."""
    monkeypatch.setattr(flows, "_config", lambda _node: (BUCKETS, 1000))


CASES = [
    (cells({}, {}), []),
    (cells({0: 1}, {}), [0]),
    (cells({4 * 3 + 3: 9000, 4 * 7: 1}, {}), [3, 7]),
    (cells({}, {5: 1}), [5]),
    (cells({4 * 2: 1}, {2: 7, 6: 1}), [2, 6]),
    (cells({4 * BUCKETS: 1}, {BUCKETS: 1}), []),
    (cells(dict.fromkeys(range(BUCKETS * WAYS), 1), {}), list(range(BUCKETS))),
    # a mask beyond the table, which the program cuts off
    ({"flow_in_flight_bytes": [0] * 7 + [1], "untracked_bytes": [0, 0]}, [1]),
]


@pytest.mark.parametrize(("registers", "buckets"), CASES)
def test_buckets_that_hold_something_are_asked_for(
    registers: dict[str, list[int]], buckets: list[int]
) -> None:
    """By one Read of each register, or none where the controller reads them for a switch that refuses them."""
    for switch, asking, reads in (
        (Registers(registers), Asking({}), 2),
        (Registers(None), Asking(registers), 0),
    ):
        assert read_flows(InspectedSwitch("leaf1", switch), asking).rows == ()
        assert asking.asked == buckets
        assert switch.reads == reads


@pytest.mark.parametrize("missing", [(), ("untracked_bytes",), ("flow_in_flight_bytes",)])
def test_every_bucket_is_asked_for_where_a_register_cannot_be_read(missing: tuple[str, ...]) -> None:
    """BMv2 without the controller's fabric."""
    side = {name: values for name, values in cells({}, {}).items() if missing and name not in missing}
    asking = Asking(side)
    assert read_flows(InspectedSwitch("leaf1", Registers(None)), asking).rows == ()
    assert asking.asked == list(range(BUCKETS))
