# SPDX-License-Identifier: Apache-2.0
"""Answers to questions by packets against the compiled programs' headers."""

from __future__ import annotations

import json

import pytest

from tailrace.cbuild.artifacts import P4_BUILD
from tailrace.controller.inband.responses import (
    BUCKET,
    FLOW_ENTRY,
    PATH_STATE,
    PORT_QUEUES,
    RLB_PORT,
    Layout,
    PathState,
    RlbPort,
    parse_bucket,
    parse_path,
    parse_queues,
    parse_rlb_port,
)
from tailrace.p4rt.errors import SwitchError


@pytest.mark.parametrize(
    ("header", "layout"),
    [
        ("bucket_t", BUCKET),
        ("flow_entry_t", FLOW_ENTRY),
        ("port_queues_t", PORT_QUEUES),
        ("path_state_t", PATH_STATE),
        ("rlb_port_t", RLB_PORT),
    ],
)
def test_layouts_are_those_of_the_program(header: str, layout: Layout) -> None:
    compiled = json.loads((P4_BUILD / "rlb_drill.json").read_bytes())
    (header_type,) = [item for item in compiled["header_types"] if item["name"] == header]
    assert [(name, width) for name, width, *_ in header_type["fields"]] == list(layout.items())


def packed(layout: Layout, **values: int) -> bytes:
    return b"".join(values.get(name, 0).to_bytes(width // 8, "big") for name, width in layout.items())


FLOW = {
    "src": 0x0A000102,
    "dst": 0x0A000202,
    "sport": 1000,
    "dport": 4791,
    "protocol": 17,
    "state": 1,
    "in_port": 1,
    "out_port": 3,
    "in_flight_bytes": 5000,
    "last_data_ticks": 70,
    "rtt_avg": 0x0180,
    "rtt_last": 0x0240,
    "rtt_growth": 0xFF80,
    "left": 9,
    "samples": 4,
}


def test_a_bucket() -> None:
    free = packed(FLOW_ENTRY, src=5)
    head = packed(BUCKET, now_ticks=100, untracked_bytes=7, untracked_last_ticks=90)
    bucket = parse_bucket(head + free + packed(FLOW_ENTRY, **FLOW) + free + free, "s1")
    assert (bucket.untracked_bytes, bucket.untracked_idle_ticks) == (7, 10)
    expected = {**FLOW, "way": 1, "idle_ticks": 30, "rtt_growth": -0x80}
    del expected["last_data_ticks"]
    assert bucket.flows == (expected,)


def test_a_clock_that_has_wrapped() -> None:
    head = packed(BUCKET, now_ticks=5)
    entry = packed(FLOW_ENTRY, **{**FLOW, "last_data_ticks": (1 << 48) - 5})
    (flow,) = parse_bucket(head + entry, "s1").flows
    assert flow["idle_ticks"] == 10


def test_queues() -> None:
    queues = {"egress_queue_bytes": 1, "ingress_queue_bytes": 2}
    assert parse_queues(packed(PORT_QUEUES, **queues), "s1") == queues


@pytest.mark.parametrize("size", [0, 1, 17])
def test_answers_that_are_cut_off(size: int) -> None:
    with pytest.raises(SwitchError, match="s1"):
        parse_bucket(bytes(size), "s1") if size else parse_queues(bytes(size), "s1")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"now_ticks": 100}, PathState(0, None, None)),
        ({"now_ticks": 100, "warned_until_ticks": 100}, PathState(0, None, None)),
        (
            {"now_ticks": 100, "warned_until_ticks": 110, "port_warned_until_ticks": 140},
            PathState(40, None, None),
        ),
        ({"now_ticks": 100, "rtt_ticks": 7, "rtt_seen_ticks": 90}, PathState(0, 7, 10)),
    ],
)
def test_paths(values: dict[str, int], expected: PathState) -> None:
    """What holds longer counts, of the leaf's warning and that of all leaves."""
    assert parse_path(packed(PATH_STATE, **values), "s") == expected


def test_ports_of_rlb() -> None:
    """A warning of its own, and the delay of going round: none before the first one."""
    assert parse_rlb_port(packed(RLB_PORT, now_ticks=9), "s") == RlbPort(None, None, 0)
    full = packed(
        RLB_PORT,
        now_ticks=9,
        own_warning_ticks=5,
        recirculation_seen_ticks=8,
        recirculation_ticks=3,
        recirculating=2,
    )
    assert parse_rlb_port(full, "s") == RlbPort(4, 3, 2)
    with pytest.raises(SwitchError, match="s: the switch's answer is cut off"):
        parse_rlb_port(full[:-1], "s")
