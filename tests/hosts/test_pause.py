# SPDX-License-Identifier: Apache-2.0
"""XOFF, XOFF with credit, XON, the source's timeout, and PFC."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.l2 import Ether

from tailrace.codec.layers.local import FlowPause, LocalHeader
from tailrace.codec.layers.pfc import pfc_frame
from tailrace.codec.numbers import PauseOp, Subtype
from tailrace.hosts.options.nic import NicConfig
from tests.codec.frames import Ack, Data
from tests.hosts.network import VirtualNetwork, flow, make_nic

FLOW = flow(1, 60_000)
FRAME_BYTES = 1000 + 58
MS = 1_000_000


def pause(op: PauseOp, credit_bytes: int = 0, sport: int = FLOW.sport) -> bytes:
    key = {"src": FLOW.src, "dst": FLOW.dst, "sport": sport, "dport": 4791, "protocol": 17}
    return bytes(
        Ether() / LocalHeader(subtype=Subtype.FLOW_PAUSE) / FlowPause(**key, op=op, credit_bytes=credit_bytes)
    )


def network(**settings_: Any) -> VirtualNetwork:
    config = NicConfig(
        mtu_bytes=1000, window_bytes=20_000, rto_ns=500 * MS, **{"pause_timeout_ns": MS, **settings_}
    )
    joined = VirtualNetwork([make_nic(1, config), make_nic(2, config)])
    joined.add(FLOW)
    return joined


def tell(joined: VirtualNetwork, time_ns: int, frame: bytes, nic: int = 0) -> None:
    joined.at(time_ns, lambda: joined.hand_in(joined.nics[nic], frame))


def sending_times(joined: VirtualNetwork, kind: type = Data) -> list[int]:
    return [arrival.now_ns for arrival in joined.sent if isinstance(arrival.parsed, kind)]


@settings(max_examples=30)
@given(st.integers(0, 70_000), st.integers(1, 400_000))
def test_xoff_stops_a_flow_within_one_packet(off_ns, length_ns):
    """No packet begins after an XOFF until the XON; the one on the wire ends."""
    joined = network()
    tell(joined, off_ns, pause(PauseOp.XOFF))
    tell(joined, off_ns + length_ns, pause(PauseOp.XON))
    joined.run()
    # at the very moment of the XOFF the wire may already have taken a packet
    assert not [time for time in sending_times(joined) if off_ns < time < off_ns + length_ns]
    record = joined.records()[0]
    assert record.end_ns is not None
    assert record.drains <= 1
    assert record.drained_ns in (0, length_ns) or record.end_ns < off_ns + length_ns
    assert 0 == record.retransmitted


@settings(max_examples=40)
@given(st.integers(0, 12_000))
def test_credit_is_kept_to_the_byte(credit_bytes):
    """A paused flow sends as many whole frames as fit into its credit, not a byte more."""
    joined = network(pause_timeout_ns=100 * MS)
    tell(joined, 20_500, pause(PauseOp.XOFF_CREDIT, credit_bytes))
    joined.run(until_ns=90 * MS)
    sent_bytes = sum(
        arrival.frame.length_bytes
        for arrival in joined.sent
        if isinstance(arrival.parsed, Data) and arrival.now_ns > 20_500
    )
    assert sent_bytes == credit_bytes // FRAME_BYTES * FRAME_BYTES


def test_a_new_xoff_takes_the_credit_away():
    """The last word counts."""
    joined = network(pause_timeout_ns=100 * MS)
    tell(joined, 20_500, pause(PauseOp.XOFF_CREDIT, 100_000))
    tell(joined, 25_500, pause(PauseOp.XOFF))
    joined.run(until_ns=90 * MS)
    times = sending_times(joined)
    assert [time for time in times if 20_500 < time <= 25_500]
    assert max(times) <= 25_500
    assert 1 == joined.records()[0].drains


def test_a_flow_goes_on_by_itself_after_the_timeout():
    """Flowcut §IV-A: to the ns, and counted."""
    joined = network(pause_timeout_ns=700_000)
    tell(joined, 20_500, pause(PauseOp.XOFF))
    joined.run()
    gap = [later for earlier, later in zip(sending_times(joined), sending_times(joined)[1:], strict=False)
           if later - earlier > 100_000]  # fmt: skip
    assert [20_500 + 700_000] == gap
    assert 1 == joined.senders()[0].pause_timeouts
    assert 700_000 == joined.records()[0].drained_ns


def test_other_flows_go_on():
    """A pause is one flow's."""
    joined = network(pause_timeout_ns=100 * MS)
    other = flow(2, 60_000)
    joined.add(other)
    tell(joined, 500, pause(PauseOp.XOFF))
    joined.run(until_ns=90 * MS)
    assert [False, True] == [record.end_ns is not None for record in joined.records()]


def test_a_pause_of_no_flow_is_counted():
    """A key that is nobody's pauses nobody."""
    joined = network()
    tell(joined, 500, pause(PauseOp.XOFF, sport=9))
    joined.run()
    assert {"unexpected": 1} == dict(joined.nics[0].counters)
    assert 0 == joined.records()[0].drains


@settings(max_examples=40)
@given(st.integers(0, 0xFFFF), st.integers(1_000_000_000, 400_000_000_000), st.integers(0, 60_000))
def test_pfc_pauses_its_priority_for_its_quanta(quanta, rate_bps, start_ns):
    """512 bit times of the link a quantum, to the ns; nothing begins meanwhile."""
    joined = network(link_rate_bps=rate_bps)
    tell(joined, start_ns, bytes(pfc_frame("02:00:00:00:00:01", {0: quanta})))
    joined.run()
    end_ns = start_ns - (-quanta * 512 * 1_000_000_000 // rate_bps)
    times = sending_times(joined)
    assert not [time for time in times if start_ns < time < end_ns]
    # with time to spare for the wire and the window, the first packet begins at the very end
    if end_ns - start_ns > 30_000:
        assert end_ns in times
    assert 0 == joined.records()[0].drains


def test_pfc_of_zero_quanta_ends_a_pause():
    """And the other priorities never stopped."""
    joined = network()
    back = flow(3, 5_000, src=2, dst=1, start_ns=40_000)
    joined.add(back)
    tell(joined, 30_000, bytes(pfc_frame("02:00:00:00:00:01", {0: 0xFFFF})))
    tell(joined, 300_000, bytes(pfc_frame("02:00:00:00:00:01", {0: 0})))
    joined.run()
    times = sending_times(joined)
    assert not [arrival for arrival in joined.sent
                if isinstance(arrival.parsed, Data) and arrival.nic is joined.nics[0] and 30_000 < arrival.now_ns < 300_000]  # fmt: skip
    assert 300_000 in times
    assert [time for time in sending_times(joined, Ack) if 40_000 < time < 60_000]


def test_pfc_of_the_control_priority_holds_acknowledgments_back():
    """Priority 7 carries what switches hurry."""
    joined = network()
    tell(joined, 500, bytes(pfc_frame("02:00:00:00:00:01", {7: 0xFFFF})), nic=1)
    joined.run()
    assert 500 + 0xFFFF * 512 // 10 == min(sending_times(joined, Ack))


@pytest.mark.parametrize("op", [0, 4, 255])
def test_an_unknown_operation_is_malformed(op):
    """Neither a pause nor an error."""
    joined = network()
    frame = bytearray(pause(PauseOp.XOFF))
    frame[-5] = op
    tell(joined, 500, bytes(frame))
    joined.run()
    assert {"malformed": 1} == dict(joined.nics[0].counters)
