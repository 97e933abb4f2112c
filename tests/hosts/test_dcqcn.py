# SPDX-License-Identifier: Apache-2.0
"""The transport dcqcn: exact times of frames, CNPs on the wire, and flows that share a link."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib.roce import BTH, CNPPadding, cnp
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from tailrace.codec.layers.dscp import DSCP_SHIFT, Dscp
from tailrace.codec.layers.pfc import pfc_frame
from tailrace.codec.numbers import Opcode
from tailrace.codec.templates import HostAddress, cnp_frame, ip_number
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.options.dcqcn import DcqcnConfig
from tailrace.hosts.options.nic import DCQCN, NicConfig
from tailrace.hosts.transport.dcqcn.pacer import Pacer
from tailrace.spec.scale import scaled
from tests.codec.frames import Cnp, Data, parse
from tests.hosts.bottleneck import Bottleneck
from tests.hosts.network import RATE_BPS, VirtualNetwork, flow, make_nic
from tests.hosts.steering.fabric import Paths

MTU = 1000
FRAME = 54 + MTU + 4  # in the middle of a message
RETH = 16
ACK_BYTES = 54 + 4 + 4
MS = 1_000_000


def config(**changes: Any) -> NicConfig:
    return NicConfig(
        **{
            "transport": DCQCN,
            "mtu_bytes": MTU,
            "window_bytes": 0,
            "link_rate_bps": RATE_BPS,
            "virtual_payload": True,
            "rto_ns": 100 * MS,
            **changes,
        }
    )


def two_nics(**changes: Any) -> VirtualNetwork:
    return VirtualNetwork([make_nic(number, config(**changes)) for number in (1, 2)])


def sent_ns(network: VirtualNetwork, number: int = 1) -> list[int]:
    ip = network.nics[number - 1].ip
    return [
        arrival.now_ns
        for arrival in network.sent
        if arrival.nic.ip == ip and isinstance(arrival.parsed, Data)
    ]


# ---- the pace ----


@settings(max_examples=80)
@given(
    rate_bps=st.integers(1_000_000, 400_000_000_000),
    lengths=st.lists(st.integers(60, 9100), min_size=2, max_size=40),
    start_ns=st.integers(0, 10**12),
)
def test_the_nth_frame_goes_when_all_before_it_have_had_their_time(rate_bps, lengths, start_ns):
    """To the nanosecond, however long it goes on: what is rounded up is not lost."""
    pacer = Pacer()
    pacer.set_rate(rate_bps)
    now_ns, due = start_ns, Fraction(start_ns)
    for length in lengths:
        pacer.on_sent(now_ns, length)
        due += Fraction(length * 8 * 10**9, rate_bps)
        now_ns = pacer.ready_ns
        assert -(-due.numerator // due.denominator) == now_ns


def test_a_late_frame_begins_anew():
    """No burst follows a pause."""
    pacer = Pacer()
    pacer.set_rate(3_000_000_000)  # 1000 bytes take 2666 2/3 ns
    pacer.on_sent(0, 1000)
    assert 2667 == pacer.ready_ns
    pacer.on_sent(2668, 1000)
    assert 2668 + 2667 == pacer.ready_ns
    pacer.on_sent(50_000, 1000)
    assert 52_667 == pacer.ready_ns
    pacer.on_sent(52_667, 1000)
    assert 50_000 + 5334 == pacer.ready_ns


def test_a_new_rate_counts_for_the_frame_that_was_sent_last():
    """A slower one makes the next frame later, a faster one earlier, none lets it go at once."""
    pacer = Pacer()
    pacer.on_sent(100, 1000)
    assert 0 == pacer.ready_ns
    pacer.set_rate(1_000_000_000)
    assert 8100 == pacer.ready_ns
    pacer.set_rate(2_000_000_000)
    assert 4100 == pacer.ready_ns
    pacer.set_rate(0)
    assert 0 == pacer.ready_ns


def test_without_cnps_a_flow_goes_at_line_rate():
    """Frame after frame, and no timer but that of retransmissions."""
    network = two_nics()
    network.add(flow(1, 20 * MTU))
    network.run()
    first = FRAME + RETH
    assert [0] + [first + number * FRAME for number in range(19)] == sent_ns(network)
    assert 0 == network.senders()[0].congestion_notifications


def test_one_cnp_halves_the_pace():
    """Frames go twice as far from each other, until the timer halves the way back: exact times."""
    network = two_nics()
    network.add(flow(1, 150 * MTU))
    nic = network.nics[0]
    cnp_ns = 10_000
    network.at(cnp_ns, lambda: nic.on_cnp(cnp_ns, ip_number("10.0.0.2") << 24 | 101))
    network.run()
    times = sent_ns(network)
    before = [time for time in times if time <= cnp_ns]
    assert [0] + [FRAME + RETH + number * FRAME for number in range(len(before) - 1)] == before
    last, rise_ns = before[-1], cnp_ns + DcqcnConfig().timer_ns
    halved = [time for time in times if cnp_ns < time <= rise_ns]
    assert [last + 2 * FRAME * number for number in range(1, len(halved) + 1)] == halved
    # at 3/4 of the line, which is 6 Gb/s, from the last frame on; rounded up once
    after = [time for time in times if rise_ns < time <= rise_ns + DcqcnConfig().timer_ns]
    assert [-(-(3 * halved[-1] + 4 * FRAME * number) // 3) for number in range(1, len(after) + 1)] == after
    assert 1 == network.senders()[0].congestion_notifications


def test_a_flow_of_its_own_rate_never_exceeds_it():
    """NicConfig.flow_rate_bps is its line rate, then."""
    network = two_nics(flow_rate_bps=RATE_BPS // 4)
    network.add(flow(1, 8 * MTU))
    network.run()
    assert [0] + [4 * (FRAME + RETH + number * FRAME) for number in range(7)] == sent_ns(network)


def test_a_window_holds_it_back():
    """If one is given."""
    network = two_nics(window_bytes=2 * MTU)
    network.add(flow(1, 12 * MTU))
    network.run()
    # the first acknowledgment is there after both ways of 1000 ns each
    answered = FRAME + RETH + 1000 + ACK_BYTES + 1000
    assert [0, FRAME + RETH, answered, answered + FRAME] == sent_ns(network)[:4]


def test_no_window_is_for_dcqcn_only():
    """0 says that there is none."""
    assert 1 << 22 == config().window_packets
    with pytest.raises(ConfigError, match="window_bytes is 0, expected more than 0"):
        NicConfig(window_bytes=0)


def test_pfc_stops_it():
    """And afterwards it does not catch up."""
    network = two_nics()
    network.add(flow(1, 60 * MTU))
    pause = bytes(pfc_frame("02:00:00:00:00:fe", {0: 100}))
    network.at(5000, lambda: network.hand_in(network.nics[0], pause))
    network.run()
    times = sent_ns(network)
    until_ns = 5000 + 100 * 512 // 8
    assert [] == [time for time in times if 5000 < time < until_ns]
    after = [time for time in times if time >= until_ns]
    assert [until_ns + FRAME * number for number in range(len(after))] == after


def test_two_flows_of_a_nic_take_turns_at_line_rate():
    """DCQCN does not know of the other one; the link is shared by turns, and full."""
    network = two_nics()
    network.add(flow(1, 30 * MTU), flow(2, 30 * MTU))
    network.run()
    turns = [packet.qpn for packet in network.data_sent()]
    assert [101, 102] * 30 == turns
    assert 2 * RETH + 59 * FRAME == sent_ns(network)[-1]


# ---- CNPs ----

HERE = HostAddress("02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.1", "10.0.0.2")


@pytest.mark.parametrize("dscp", [Dscp.DEFAULT, Dscp.STEERED])
def test_a_cnp_is_what_scapy_builds(dscp):
    """Opcode 0x81, BECN, 16 bytes of zeros, and an ICRC over all of it; not ECN-capable."""
    frame = cnp_frame(HERE, sport=777, qpn=0x123456, dscp=dscp)
    expected = (
        Ether(src=HERE.src_mac, dst=HERE.dst_mac)
        / IP(src=HERE.src, dst=HERE.dst, tos=dscp << DSCP_SHIFT, flags="DF", id=0)
        / UDP(sport=777, dport=4791, chksum=0)
        / cnp(0x123456)
    )
    assert bytes(expected) == frame
    assert 0x81 == frame[42] == Opcode.CNP
    read = Ether(frame)
    assert (1, 0x123456, 0, 0) == (
        read[BTH].becn,
        read[BTH].dqpn,
        read[CNPPadding].reserved1,
        read[CNPPadding].reserved2,
    )
    assert Cnp(ip_number(HERE.src), ip_number(HERE.dst), 0x123456) == parse(frame)


def test_marked_packets_make_cnps():
    """The first one at once, then one in 50 us; the source counts them and slows down."""
    paths = Paths([1000], marks={0: 1.0})
    network = paths.network(config())
    network.add(flow(1, 200 * MTU))
    network.run()
    cnps = [arrival.now_ns for arrival in network.sent if isinstance(arrival.parsed, Cnp)]
    first_ns = network.arrivals[0].now_ns
    assert first_ns == cnps[0]
    assert all(later - earlier >= 50_000 for earlier, later in itertools.pairwise(cnps))
    assert len(cnps) - 1 <= network.senders()[0].congestion_notifications <= len(cnps)
    (record,) = network.records()
    assert (len(cnps), network.senders()[0].congestion_notifications) == (
        record.cnps_sent,
        record.cnps_received,
    )
    assert sent_ns(network)[-1] > 5 * 200 * FRAME


def test_other_transports_send_none():
    """Marks go back in acknowledgments only."""
    network = Paths([1000], marks={0: 1.0}).network(NicConfig(mtu_bytes=MTU))
    network.add(flow(1, 20 * MTU))
    network.run()
    assert [] == [arrival for arrival in network.sent if isinstance(arrival.parsed, Cnp)]


def test_a_cnp_for_a_flow_that_is_complete_changes_nothing():
    """It is counted."""
    network = two_nics()
    network.add(flow(1, 5 * MTU))
    network.run()
    nic = network.nics[0]
    nic.on_cnp(network.now_ns + 1, ip_number("10.0.0.2") << 24 | 101)
    assert 1 == network.senders()[0].congestion_notifications
    assert nic.next_packet(network.now_ns + 2) is None


# ---- flows that share a link ----


SLOWER = 5  # than 40 Gb/s, which the published settings are for


def test_two_flows_come_to_share_a_link():
    """One begins at half of 40 Gb/s, the other at an eighth: soon the link is full, and they approach each other."""
    bottleneck = Bottleneck(RATE_BPS, 2000 * SLOWER, random.Random(3))
    settings = config(mtu_bytes=8192, dcqcn=scaled(DcqcnConfig(), SLOWER))
    network = bottleneck.network(settings, senders=2)
    ms = SLOWER * MS
    network.add(flow(1, 240_000_000, src=1, dst=3), flow(2, 240_000_000, src=2, dst=3))
    peers = [ip_number("10.0.0.3") << 24 | qpn for qpn in (101, 102)]
    for number, peer in ((0, peers[0]), (1, peers[1]), (1, peers[1]), (1, peers[1])):
        network.at(10, partial(network.nics[number].on_cnp, 10, peer))
    network.run(until_ns=40 * ms)
    whole = RATE_BPS // 8 * SLOWER // 100  # in 10 ms of 40 Gb/s
    early, middle, late = (bottleneck.carried(at * ms, (at + 10) * ms) for at in (0, 20, 30))
    assert early[101] > 2 * early[102]
    assert middle[101] < 1.8 * middle[102]
    assert middle[102] < late[101] < 1.5 * late[102]
    assert 0.9 * whole < sum(late.values()) <= 1.001 * whole
    # marking begins long before a queue is full; two bursts at line rate were there first
    assert bottleneck.most_bytes < 400_000


# ---- settings ----


def test_a_rate_s_timer_ends_with_its_flow():
    """A NIC that is done wants to be asked nothing, once the times have passed at which it wanted to be."""
    network = Paths([1000], marks={0: 1.0}).network(config())
    network.add(flow(1, 3 * MTU))
    network.run()
    nic = network.nics[0]
    assert (True, 0) == (nic.idle, nic.connections)
    time_ns = network.now_ns
    for _ in range(5):
        wanted = nic.next_packet(time_ns)
        if wanted is None:
            break
        assert isinstance(wanted, int)
        time_ns = wanted
    assert wanted is None
