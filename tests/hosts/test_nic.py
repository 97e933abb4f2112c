# SPDX-License-Identifier: Apache-2.0
"""What a NIC does with many flows, with strange frames, and with settings that cannot be."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tailrace.codec.calls import ACK, SPORT_SHIFT
from tailrace.codec.nic import port
from tailrace.codec.templates import HostAddress, ack_headers
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.nic.message import PATTERN_PERIOD, RdmaMessage
from tailrace.hosts.nic.nic import Nic
from tailrace.hosts.options.nic import FlowcutNicConfig, NicConfig
from tests.codec.frames import Data, build
from tests.hosts.network import VirtualNetwork, address, flow, make_nic


def test_many_flows_between_many_nics():
    """All pairs of five NICs, three flows each, all at once."""
    config = NicConfig(mtu_bytes=500, window_bytes=4_000)
    network = VirtualNetwork([make_nic(number, config) for number in range(1, 6)])
    pairs = [(src, dst) for src in range(1, 6) for dst in range(1, 6) if src != dst] * 3
    flows = [flow(number, 100 + 77 * number, src=src, dst=dst) for number, (src, dst) in enumerate(pairs)]
    network.add(*flows)
    network.run()
    assert all(nic.idle and not nic.counters for nic in network.nics)
    assert [spec.id for spec in flows] == [record.id for record in network.records()]
    assert [12] * 5 == [sum(seen.end_ns is not None for seen in nic.received()) for nic in network.nics]
    assert all(record.end_ns for record in network.records())


def test_a_flow_starts_at_its_time():
    """Not a ns earlier or later."""
    network = VirtualNetwork([make_nic(1, NicConfig()), make_nic(2, NicConfig())])
    network.add(flow(1, 100, start_ns=12_345))
    network.run()
    assert 12_345 == network.sent[0].now_ns


def test_completion_is_the_receiver_s():
    """The end is the moment when the last byte in order arrived, not when that was acknowledged."""
    network = VirtualNetwork([make_nic(1, NicConfig()), make_nic(2, NicConfig())])
    network.add(flow(1, 5_000))
    network.run()
    last = [arrival.now_ns for arrival in network.arrivals if isinstance(arrival.parsed, Data)][-1]
    assert last == network.records()[0].end_ns


def test_path_tags_are_counted_when_they_change():
    """Consecutive arrivals with different tags in the BTH are a change of the path."""
    tags = [5, 5, 9, 9, 9, 5, 7]
    network = VirtualNetwork([make_nic(1, NicConfig(mtu_bytes=100)), make_nic(2, NicConfig(mtu_bytes=100))])
    network.add(flow(1, 700))

    def tagging(frame, parsed):
        if not isinstance(parsed, Data):
            return frame
        data = bytearray(frame.data)
        data[46] = tags[parsed.psn]
        return frame._replace(data=bytes(data))

    network.change = tagging
    network.run()
    assert 3 == network.records()[0].path_changes


def test_packets_left_are_told_to_switches():
    """resv7 counts down to 1, from at most 127 (Flowcut §IV-C)."""
    network = VirtualNetwork([make_nic(1, NicConfig(mtu_bytes=10)), make_nic(2, NicConfig(mtu_bytes=10))])
    network.add(flow(1, 2_000))
    network.run()
    left = [arrival.frame.data[50] & 0x7F for arrival in network.sent if isinstance(arrival.parsed, Data)]
    assert [min(127, 200 - number) for number in range(200)] == left


@settings(max_examples=100)
@given(
    st.lists(
        st.one_of(st.binary(max_size=90), st.tuples(st.integers(0, 2000), st.integers(0, 255))), max_size=20
    )
)
def test_no_frame_disturbs_a_flow(noise):
    """Noise and broken copies of the NIC's own frames never raise, and flows complete all the same."""
    config = NicConfig(mtu_bytes=200, rto_ns=50_000)
    network = VirtualNetwork([make_nic(1, config), make_nic(2, config)])
    network.add(flow(1, 3_000))

    def disturb(index: int, nic: Nic, what: bytes | tuple[int, int]) -> None:
        if isinstance(what, bytes):
            frame = what
        else:
            frame_bytes = bytearray(network.sent[index % len(network.sent)].frame.data)
            frame_bytes[what[0] % len(frame_bytes)] ^= what[1]
            frame = bytes(frame_bytes)
        network.hand_in(nic, frame)

    for number, what in enumerate(noise):
        for nic in network.nics:
            network.at(1_000 + 200 * number, functools.partial(disturb, number, nic, what))
    network.run()
    assert all(nic.idle for nic in network.nics)
    assert [3_000] == [seen.bytes for seen in network.receivers()]


def acknowledgment(address_: HostAddress, qpn: int, psn: int, aeth: int) -> bytes:
    return build((ACK, 1 << SPORT_SHIFT | psn, aeth), (ack_headers(address_, sport=1, qpn=qpn), b"")).data


def test_frames_of_others_are_counted():
    """Another host's packet, an unknown queue pair, an ACK of nothing, and ARP."""
    nic = make_nic(2, NicConfig())
    its_port = port(nic)
    there = HostAddress("02:00:0a:00:00:01", "02:00:0a:00:00:02", "10.0.0.1", "10.0.0.2")
    elsewhere = structs.replace(there, dst="10.0.0.3")
    for where in (there, elsewhere):
        its_port.arrive(0, acknowledgment(where, 1, 0, 0))
    its_port.arrive(0, bytes(12) + b"\x08\x06" + bytes(46))
    its_port.arrive(0, b"short")
    assert {"unexpected": 1, "not_ours": 1, "other": 1, "malformed": 1} == dict(nic.counters)


def test_acknowledgments_of_what_was_never_sent_change_nothing():
    """However the PSN is chosen."""
    nic = make_nic(1, NicConfig())
    nic.add_flow(flow(1, 5_000))
    back = HostAddress("02:00:0a:00:00:02", "02:00:0a:00:00:01", "10.0.0.2", "10.0.0.1")
    for psn in (0, 4, 5, 2**23, 2**24 - 1):
        for syndrome in (0x1F, 0x60):
            port(nic).arrive(0, acknowledgment(back, 101, psn, syndrome << 24 | psn))
    assert not nic.idle
    assert isinstance(nic.next_packet(0), tuple)
    assert [1] == [seen.packets for seen in nic.records()]


@given(st.integers(1, 100_000), st.integers(1, 4000))
@settings(max_examples=50)
def test_a_message_is_cut_without_gap_or_overlap(length, mtu):
    """The payloads in order are the message."""
    message = RdmaMessage(length, mtu, first_psn=2**24 - 1)
    payload = b"".join(message.payload(index) for index in range(message.packets))
    assert payload == bytes(number % PATTERN_PERIOD for number in range(length))
    for index in {0, message.packets // 2, message.packets - 1}:
        assert index == message.index(message.psn(index), near=max(0, index - 7))


def test_records_wait_for_both_ends():
    """A flow whose receiver is elsewhere is not finished."""
    nic = make_nic(1, NicConfig())
    nic.add_flow(flow(1, 10))
    (record,) = Nic.merge(nic)
    assert (None, 0, 0) == (record.end_ns, record.received, record.packets)


def test_flows_that_cannot_be_are_refused():
    """One clear line each."""
    nic = make_nic(1, NicConfig(flowcut_nic=FlowcutNicConfig()))
    nic.add_flow(flow(1, 10))
    with pytest.raises(ConfigError, match=r"flow 2: queue pair 101 to 10.0.0.2 is taken"):
        nic.add_flow(structs.replace(flow(2, 10), qpn=101))
    with pytest.raises(ConfigError, match=r"flow 2: source port 2001 to 10.0.0.2 is taken"):
        nic.add_flow(structs.replace(flow(2, 10), sport=2001))
    with pytest.raises(ConfigError, match=r"flow 3: its source 10.0.0.2 is not this host, 10.0.0.1"):
        nic.add_flow(flow(3, 10, src=2, dst=1))
    with pytest.raises(ConfigError, match=r"flow 3: its destination 10.0.0.2 is not this host"):
        nic.expect_flow(flow(3, 10))
    with pytest.raises(ConfigError, match=r"flow 4: bytes is 0, expected 1..4294967295"):
        flow(4, 0)
    with pytest.raises(ConfigError, match=r"source and destination are both 10.0.0.1"):
        FlowSpec(1, address(1)[0], address(1)[0], 1, 0, 1, 1)


def test_a_broken_ack_of_a_wrapped_window_is_told_from_progress():
    """PSNs are compared around the window, so a flow across 2^24 is like any other."""
    config = NicConfig(mtu_bytes=100, first_psn=2**24 - 5)
    network = VirtualNetwork([make_nic(1, config), make_nic(2, config)])
    network.add(flow(1, 1_000))
    network.run()
    assert [2**24 - 5 + number if number < 5 else number - 5 for number in range(10)] == [
        data.psn for data in network.data_sent()
    ]
    assert all(nic.idle for nic in network.nics)
