# SPDX-License-Identifier: Apache-2.0
"""When a flow table counts as empty, and is not read bucket by bucket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from finsy.proto import p4i, p4r

from tailrace.controller.inspect import flows
from tailrace.controller.inspect.flows import read_flows
from tailrace.controller.inspect.node import Node
from tailrace.controller.listing.listing import Listing
from tailrace.p4rt import programs
from tailrace.p4rt.connection import Connection


class Counting(Connection):
    """A switch with counters: `ended` flows of `ended` + `tracked` that began, `turns` more at each Read."""

    name = "leaf1"

    def __init__(self, tracked: int, turns: int, without: str = "") -> None:
        self._info = p4i.P4Info()
        self._info.CopyFrom(programs.load("flowcut").p4info)
        for counter in self._info.counters:
            if counter.preamble.alias == without:
                counter.preamble.alias = "other"
        self._tracked, self._turns, self._ended = tracked, turns, 4

    def p4info(self) -> p4i.P4Info:
        return self._info

    def read(self, entities: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        (number,) = (entity.counter_entry.counter_id for entity in entities)
        names = {counter.preamble.id: counter.preamble.alias for counter in self._info.counters}
        counts = {"flowcut_created": self._ended + self._tracked, "flowcut_deleted": self._ended}
        self._ended += self._turns
        entry = p4r.CounterEntry(counter_id=number)
        entry.data.packet_count = counts.get(names[number], 0)
        return [p4r.Entity(counter_entry=entry)]


class AskedError(Exception):
    """A bucket was asked for."""


class Asking:
    def ask(self, switch: str, op: str, indices: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        raise AskedError


@pytest.fixture(autouse=True)
def sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "_config", lambda _node: (8, 1000))


def read(connection: Counting) -> Listing:
    return read_flows(Node("leaf1", connection), Asking())


def test_a_table_whose_flows_have_ended_is_empty() -> None:
    assert read(Counting(tracked=0, turns=0)).rows == ()


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_a_table_that_always_holds_a_flow_is_not_empty(turns: int) -> None:
    """However many flows end and begin between two Reads of counters."""
    with pytest.raises(AskedError):
        read(Counting(tracked=1, turns=turns))


@pytest.mark.parametrize("name", ["created", "deleted", "expired", "overflow"])
def test_without_a_counter_the_table_is_read(name: str) -> None:
    with pytest.raises(AskedError):
        read(Counting(tracked=0, turns=0, without=f"flowcut_{name}"))
