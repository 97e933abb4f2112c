# SPDX-License-Identifier: Apache-2.0
"""A frame of TR_MAX_FRAME bytes passes whole; a longer one is counted, in whatever way it has become so long."""

from __future__ import annotations

import json

import pytest

from tailrace.spec.constants import MAX_FRAME_BYTES
from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.core import Replica, V1ModelSwitch
from tailrace.switch.core.lib import C
from tailrace.switch.trace import dry_run_packet, events
from tests.switch.bmv2_builder import Builder, Json, call, const

HEADER_BYTES = 64


def program(*egress: Json) -> SwitchProgram:
    """Puts a header of HEADER_BYTES in front of every packet, whose first byte is 1."""
    b = Builder([("a", 8)])
    action = b.action("more", [call("add_header", {"type": "header", "value": "more"}), *egress])
    b.table("e", [], "exact", [action], default=(action, []), const_default=True, egress=True)
    program = b.json()
    fields = [["first", 8, False], ["rest", 8 * (HEADER_BYTES - 1), False]]
    program["header_types"].append({"name": "more_t", "id": 3, "fields": fields})
    program["headers"].append({"name": "more", "id": 3, "header_type": "more_t", "metadata": False})
    program["deparsers"][0]["order"] = ["more", "in", "out"]
    program["field_lists"] = [{"id": 1, "name": "none", "elements": []}]
    return load_program(json.dumps(program).encode())


def test_the_number_is_one() -> None:
    assert C.TR_MAX_FRAME == MAX_FRAME_BYTES


@pytest.mark.parametrize("virtual_bytes", [0, 60_000])
def test_what_comes_in(virtual_bytes: int) -> None:
    """Bytes that are a length only count, too."""
    with V1ModelSwitch(load_program(Builder([("a", 8)]).text())) as switch:
        longest = bytes(MAX_FRAME_BYTES - virtual_bytes)
        switch.inject(1, longest, 0, virtual_bytes=virtual_bytes)
        (out,) = switch.outputs()
        assert (out.data, out.virtual_bytes) == (longest, virtual_bytes)
        switch.inject(1, longest + b"\0", 0, virtual_bytes=virtual_bytes)
        assert (switch.outputs(), switch.drops()) == ([], {"too_long": 1})


def test_what_leaves_with_more_headers_is_what_the_trace_says() -> None:
    with V1ModelSwitch(program()) as switch:
        for length, sent in ((MAX_FRAME_BYTES - HEADER_BYTES, 1), (MAX_FRAME_BYTES - HEADER_BYTES + 1, 0)):
            frame = bytes(length)
            traced = [
                step for step in dry_run_packet(switch, 1, frame).steps if isinstance(step, events.SentEvent)
            ]
            switch.inject(1, frame, 0)
            left = [out.data.hex() for out in switch.outputs()]
            assert left == [step.frame for step in traced] == [(bytes(HEADER_BYTES) + frame).hex()] * sent
        assert switch.drops() == {"too_long": 1}
        last = dry_run_packet(switch, 1, bytes(MAX_FRAME_BYTES)).steps[-1]
        assert last == events.DropEvent(reason="too_long")


def test_what_goes_round_and_grows() -> None:
    """By a header each time, until it is too long; a clone that is cut off is not."""
    with V1ModelSwitch(program(call("recirculate", const(1)))) as switch:
        switch.inject(1, bytes(MAX_FRAME_BYTES - 2 * HEADER_BYTES - 1), 0)
        assert (switch.outputs(), switch.drops()) == ([], {"too_long": 1})
        assert switch.account().made_frames == 0
    with V1ModelSwitch(
        program(call("clone_egress_pkt_to_egress", const(1), const(0)), call("truncate", const(100)))
    ) as switch:
        switch.clone_set(2, [Replica(2, 1)])
        switch.inject(1, bytes(MAX_FRAME_BYTES - HEADER_BYTES // 2), 0)
        assert [len(out.data) for out in switch.outputs()] == [100]
