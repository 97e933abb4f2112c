# SPDX-License-Identifier: Apache-2.0
"""The traffic manager in virtual time: rates, delays, depths, priorities, re-entry; PFC is in test_pfc_frames.py and test_pfc_buffer.py."""

from __future__ import annotations

import functools

import pytest

from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.core import ActionCall, PfcConfig, StateError, SwitchConfig, V1ModelSwitch
from tests.switch.bmv2_builder import STANDARD, Builder, call, const, field, pack

INPUTS = [("port", 9), ("priority", 3), ("_fill", 4)]
OUTPUTS = [("qdepth", 19), ("_fill", 5)]


@functools.cache
def program(keep_bytes: int | None = None) -> SwitchProgram:
    """Sends to the port, and with the priority, that the packet asks for; cut to a length if one is given."""
    b = Builder(INPUTS, OUTPUTS)
    std = "standard_metadata"
    steps = [
        call("assign", field(std, "egress_spec"), field("in", "port")),
        call("assign", field(std, "priority"), field("in", "priority")),
    ]
    b.run(steps if keep_bytes is None else [*steps, call("truncate", const(keep_bytes))])
    body = b.action("stamp", [call("assign", field("out", "qdepth"), field(std, "enq_qdepth"))])
    b.table("e", [], "exact", [body], default=(body, []), const_default=True, egress=True)
    return load_program(b.text())


def frame(port: int, priority: int = 0, size: int = 100) -> bytes:
    head = pack(INPUTS, [port, priority, 0]) + pack(OUTPUTS, [0, 0])
    return head + bytes(size - len(head))


def times(switch: V1ModelSwitch) -> list[tuple[int, int]]:
    return [(o.port, o.time_ns) for o in switch.outputs()]


def test_a_port_without_rate_sends_at_once() -> None:
    with V1ModelSwitch(program()) as switch:
        switch.inject(1, frame(2), 500)
        assert [(2, 500)] == times(switch)


def test_a_rate_spaces_packets_by_their_length() -> None:
    """100 B at 8 Mbit/s take 100 us each, back to back; the port delay comes on top."""
    with V1ModelSwitch(program(), SwitchConfig(port_rate_bps=8_000_000, port_delay_ns=7)) as switch:
        for _ in range(3):
            switch.inject(1, frame(2), 0)
        assert 100_000 == switch.run(99_999)
        assert [(2, 100_007)] == times(switch)
        assert switch.run(1_000_000) is None
        assert [(2, 200_007), (2, 300_007)] == times(switch)


def test_rounding_of_serialisation_never_adds_up() -> None:
    """1000 packets of 100 B at 3 bit/ns end at exactly 1000 * 800 / 3 ns, rounded down once."""
    config = SwitchConfig(port_rate_bps=3_000_000_000, queue_depth_packets=0)
    with V1ModelSwitch(program(), config) as switch:
        for _ in range(1000):
            switch.inject(1, frame(2), 0)
        switch.run(10**9)
        assert 1000 * 800 // 3 == switch.outputs()[-1].time_ns


def test_higher_priorities_leave_first() -> None:
    """Strict priority among what waits; the packet on the wire is not interrupted."""
    with V1ModelSwitch(program(), SwitchConfig(port_rate_bps=8_000_000, priority_queues=8)) as switch:
        for priority in (0, 0, 5, 7):
            switch.inject(1, frame(2, priority), 0)
        switch.run(10**9)
        order = [o.data[1] >> 4 & 7 for o in switch.outputs()]
        assert [0, 7, 5, 0] == order


def test_a_priority_without_queue_is_dropped() -> None:
    with V1ModelSwitch(program(), SwitchConfig(priority_queues=2)) as switch:
        switch.inject(1, frame(2, 2), 0)
        assert [] == times(switch)
        assert {"priority": 1} == switch.drops()


def test_queue_depth_in_packets_is_per_priority() -> None:
    """One packet is on the wire, `depth` wait in each queue, the rest is dropped."""
    config = SwitchConfig(port_rate_bps=8_000, priority_queues=2, queue_depth_packets=4)
    with V1ModelSwitch(program(), config) as switch:
        for _ in range(10):
            switch.inject(1, frame(2, 0), 0)
            switch.inject(1, frame(2, 1), 0)
        assert 20 - 1 - 8 == switch.drops()["queue_packets"]
        assert (4, 400) == switch.queue_depth(2, 0)
        assert 11 == switch.port_stats(2).dropped


def test_queue_depth_in_bytes() -> None:
    config = SwitchConfig(port_rate_bps=8_000, queue_depth_packets=0, queue_depth_bytes=250)
    with V1ModelSwitch(program(), config) as switch:
        for _ in range(5):
            switch.inject(1, frame(2), 0)
        assert {"queue_bytes": 2} == switch.drops()


def test_enq_qdepth_is_read_before_the_packet_is_queued() -> None:
    """SEMANTICS §1 row 7."""
    with V1ModelSwitch(program(), SwitchConfig(port_rate_bps=8_000_000)) as switch:
        for _ in range(4):
            switch.inject(1, frame(2), 0)
        switch.run(10**9)
        depths = [int.from_bytes(o.data[2:5], "big") >> 5 for o in switch.outputs()]
        assert [0, 0, 1, 2] == depths


def test_packets_per_second_limit_is_per_queue() -> None:
    with V1ModelSwitch(program()) as switch:
        switch.queue_config(2, 0, rate_pps=1_000)
        for _ in range(3):
            switch.inject(1, frame(2), 0)
        switch.run(10**9)
        assert [(2, 0), (2, 1_000_000), (2, 2_000_000)] == times(switch)


def test_a_port_that_is_down_drops() -> None:
    with V1ModelSwitch(program()) as switch:
        switch.port_set(2, up=False)
        switch.inject(1, frame(2), 0)
        assert [] == times(switch)
        assert {"port_down": 1} == switch.drops()
        switch.port_set(2, up=True)
        switch.inject(1, frame(2), 1)
        assert [(2, 1)] == times(switch)


def test_a_port_that_goes_down_empties_its_queue_through_egress() -> None:
    """What waits is dropped behind egress, where a program has taken it off its accounts; nothing stays queued."""
    with V1ModelSwitch(program()) as switch:
        switch.queue_config(2, 0, rate_pps=1_000)
        for _ in range(3):
            switch.inject(1, frame(2), 0)
        switch.run(0)
        assert 2 == switch.queue_depth(2, 0)[0]
        switch.port_set(2, up=False)
        switch.run(10**9)
        assert (0, 0) == switch.queue_depth(2, 0)
        assert {"port_down": 2} == switch.drops()


def test_virtual_payload_counts_as_bytes_on_the_wire() -> None:
    with V1ModelSwitch(program(), SwitchConfig(port_rate_bps=8_000_000)) as switch:
        switch.inject(1, frame(2, size=50), 0, virtual_bytes=950)
        switch.run(10**9)
        (out,) = switch.outputs()
        assert (50, 950, 1_000_000) == (len(out.data), out.virtual_bytes, out.time_ns)


@pytest.mark.parametrize("virtual_bytes", [0, 900, 950])
def test_what_is_truncated_takes_the_room_that_it_has_on_the_wire(virtual_bytes: int) -> None:
    """A queue of 300 B holds three packets of 80 B, and one of them is on the wire; no byte stays behind."""
    config = SwitchConfig(port_rate_bps=8_000_000, queue_depth_packets=0, queue_depth_bytes=300)
    with V1ModelSwitch(program(80), config) as switch:
        for _ in range(6):
            switch.inject(1, frame(2, size=1000 - virtual_bytes), 0, virtual_bytes=virtual_bytes)
        assert {"queue_bytes": 2} == switch.drops()
        assert (3, 240) == switch.queue_depth(2, 0)
        switch.run(10**9)
        assert (0, 0) == switch.queue_depth(2, 0)
        outputs = switch.outputs()
        assert 4 * [80] == [len(out.data) + out.virtual_bytes for out in outputs]
        assert [80_000 * number for number in (1, 2, 3, 4)] == [out.time_ns for out in outputs]
        account = switch.account()
        assert account.balanced
        assert 4 * virtual_bytes == account.cut_virt + account.tx_virt


def test_what_is_shorter_than_asked_for_stays_whole() -> None:
    """In the queue and on the wire."""
    with V1ModelSwitch(program(80), SwitchConfig(port_rate_bps=8_000_000)) as switch:
        for _ in range(2):
            switch.inject(1, frame(2, size=50), 0, virtual_bytes=20)
        assert (1, 70) == switch.queue_depth(2, 0)
        switch.run(10**9)
        assert 2 * [(50, 20)] == [(len(out.data), out.virtual_bytes) for out in switch.outputs()]
        assert 0 == switch.account().cut_virt


def test_pfc_charges_what_is_left_of_truncated_packets() -> None:
    """1000 B cut to 80 B: one is on the wire, twelve wait in less than 1 kB, and the next one makes a pause."""
    pfc = PfcConfig([0], xoff_bytes=1000, xon_bytes=500, headroom_bytes=500, quanta=100)
    with V1ModelSwitch(
        program(80), SwitchConfig(port_rate_bps=8_000, queue_depth_packets=0, pfc=pfc)
    ) as switch:
        for _ in range(1 + 12):
            switch.inject(1, frame(2, size=1000), 0)
        assert 0 == switch.port_stats(1).pfc_sent
        switch.inject(1, frame(2, size=1000), 0)
        assert 1 == switch.port_stats(1).pfc_sent


@functools.cache
def circling(kind: str) -> SwitchProgram:
    """Every packet is resubmitted, or recirculated, for ever."""
    b = Builder(INPUTS, OUTPUTS)
    field_list = {"type": "hexstr", "value": "0x1"}
    b.extra["field_lists"] = [{"id": 1, "name": "fl", "elements": []}]
    if kind == "resubmit":
        b.run([call("resubmit", field_list)])
    else:
        body = b.action("again", [call("recirculate", field_list)])
        b.table("e", [], "exact", [body], default=(body, []), const_default=True, egress=True)
    return load_program(b.text())


@pytest.mark.parametrize("kind", ["resubmit", "recirculate"])
def test_a_packet_that_circles_for_ever_does_not_hang_the_switch(kind: str) -> None:
    with V1ModelSwitch(circling(kind)) as switch:
        switch.inject(1, frame(2), 0)
        with pytest.raises(StateError, match="without time passing"):
            switch.run(0)


def test_the_recirculation_port_has_a_rate() -> None:
    """100 B at 8 Mbit/s: one round each 100 us."""
    with V1ModelSwitch(circling("recirculate"), SwitchConfig(recirc_rate_bps=8_000_000)) as switch:
        switch.inject(1, frame(2), 0)
        assert 100_000 == switch.run(0)
        assert 1_000_000 == switch.run(950_000)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("ingress_global_timestamp", 500),
        ("enq_timestamp", 500),
        ("deq_timedelta", 100),
        ("egress_global_timestamp", 600),
    ],
)
def test_a_program_that_only_looks_a_time_up_is_told_it(name: str, wanted: int) -> None:
    """The clock is not read for programs that ask for no time: a key asks, too."""
    b = Builder(INPUTS, OUTPUTS)
    b.run([call("assign", field("standard_metadata", "egress_spec"), field("in", "port"))])
    none = b.action("none", [])
    set_qdepth = b.action("found", [call("assign", field("out", "qdepth"), const(1))])
    key = [("exact", "standard_metadata", name)]
    b.table("e", key, "exact", [none, set_qdepth], default=(none, []), const_default=True, egress=True)
    bits = dict(STANDARD)[name]
    # 100 B at 8 Gbit/s: the second packet waits for 100 ns
    with V1ModelSwitch(
        load_program(b.text()), SwitchConfig(tick_ns=1, port_rate_bps=8_000_000_000)
    ) as switch:
        table = switch.model.table("e").index
        switch.table_insert(
            table, wanted.to_bytes(bits // 8, "big"), b"\xff" * (bits // 8), target=ActionCall(set_qdepth, ())
        )
        for _ in range(2):
            switch.inject(1, frame(2), 500)
        switch.run(600)
        assert [wanted == 500, True] == [o.data[2:5] != bytes(3) for o in switch.outputs()]
