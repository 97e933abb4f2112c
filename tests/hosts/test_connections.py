# SPDX-License-Identifier: Apache-2.0
"""A flow has state in NICs from its start to its end; what comes late is answered all the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tailrace.cbuild.artifacts import ROOT
from tailrace.codec.layers.pfc import pfc_frame
from tailrace.codec.templates import HostAddress, ip_number
from tailrace.hosts.compiled import INTERPRETED, VARIABLE
from tailrace.hosts.nic.queue_pairs import QueuePairs
from tailrace.hosts.nic.receiver import FlowReceiver
from tailrace.hosts.options.nic import NicConfig
from tests.codec.frames import Ack, Data, Frame
from tests.hosts.network import VirtualNetwork, flow, make_nic
from tests.hosts.trimming import trim

MTU = 1000
TRANSPORTS: dict[str, dict[str, Any]] = {
    "gbn": {},
    "sr": {"transport": "sr"},
    "mp-rdma": {"transport": "mp-rdma"},
    "dctcp": {"transport": "dctcp"},
    "dcqcn": {"transport": "dcqcn"},
    "tcp": {"transport": "tcp", "ack_every": 4, "ack_delay_ns": 15_000},
}


def network(hosts: int = 2, **settings: Any) -> VirtualNetwork:
    config = NicConfig(**{"mtu_bytes": MTU, "virtual_payload": True, "rto_ns": 300_000, **settings})
    return VirtualNetwork([make_nic(number, config) for number in range(1, hosts + 1)])


def connections(joined: VirtualNetwork) -> list[int]:
    return [nic.connections for nic in joined.nics]


def late(joined: VirtualNetwork, frame: bytes, virtual_bytes: int) -> list[Frame]:
    """Hands a frame to the second NIC and runs on; what that NIC sends then."""
    before = len(joined.sent)
    joined.hand_in(joined.nics[1], frame, virtual_bytes)
    joined.run()
    return [arrival.frame for arrival in joined.sent[before:] if arrival.nic is joined.nics[1]]


def last_data(joined: VirtualNetwork) -> Frame:
    return next(arrival.frame for arrival in reversed(joined.sent) if isinstance(arrival.parsed, Data))


def test_nothing_is_there_before_a_flow_starts():
    """Neither at the source nor at the destination, however many flows there are."""
    joined = network()
    joined.add(*(flow(number, 5 * MTU, start_ns=100_000) for number in range(1, 50)))
    joined.nics[0].next_packet(99_999)
    assert [0, 0] == connections(joined)
    assert all(
        (0, 0, None) == (record.packets, record.received, record.end_ns) for record in joined.records()
    )
    joined.nics[0].next_packet(100_000)
    assert [49, 0] == connections(joined)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_only_flows_under_way_have_state(transport):
    """Of chains of flows, one of a chain at a time at its source, one more at most at its destination."""
    joined = network(**TRANSPORTS[transport])
    for number in range(1, 31):
        joined.add(replace(flow(number, 7 * MTU), after=(number - 3,) if number > 3 else ()))
    seen = []
    for time_ns in range(5_000, 600_000, 5_000):
        joined.at(time_ns, lambda: seen.append(connections(joined)))
    joined.run()
    assert all(record.end_ns for record in joined.records())
    assert 3 == max(source for source, _ in seen)
    assert 1 <= max(destination for _, destination in seen) <= 6
    assert [0, 0] == connections(joined)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_packet_that_comes_after_the_end_gets_the_same_answer(transport):
    """Its acknowledgment, and it counts as received; then the state is gone again."""
    joined = network(**TRANSPORTS[transport])
    joined.add(flow(1, 4 * MTU))
    joined.run()
    ended = joined.records()[0]
    acknowledged = [arrival.frame for arrival in joined.sent if isinstance(arrival.parsed, Ack)][-1]
    copy = last_data(joined)
    for copies in range(1, 4):
        assert [acknowledged] == late(joined, *copy)
        again = joined.records()[0]
        assert (ended.received + copies, ended.end_ns) == (again.received, again.end_ns)
        assert [0, 0] == connections(joined)


@pytest.mark.parametrize(("transport", "answers"), [("dctcp", 1), ("gbn", 0)])
def test_a_trimmed_packet_after_the_end(transport, answers):
    """dctcp acknowledges what it has; others take it for lost. Either counts it."""
    joined = network(**TRANSPORTS[transport])
    joined.add(flow(1, 4 * MTU))
    joined.run()
    frames = late(joined, trim(last_data(joined).data), 0)
    assert answers == len(frames)
    assert (1, 0) == (joined.records()[0].trimmed, joined.records()[0].nacks)
    assert [0, 0] == connections(joined)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_lost_last_acknowledgment_is_given_again(transport):
    """The destination has let go of the flow when its source times out, and ends it all the same."""
    joined = network(**TRANSPORTS[transport])
    lost = []

    def fate(now_ns: int, frame: Frame, parsed: object) -> int | None:
        if isinstance(parsed, Ack) and now_ns < 200_000:
            lost.append(now_ns)
            return None
        return 1000

    joined.fate = fate
    joined.add(flow(1, 3 * MTU))
    joined.run(until_ns=200_000)
    assert (True, [1, 0]) == (bool(lost), connections(joined))
    joined.run()
    (record,) = joined.records()
    assert record.end_ns is not None
    assert record.end_ns < 200_000
    assert record.retransmitted > 0
    assert [0, 0] == connections(joined)
    assert all(nic.idle for nic in joined.nics)


def test_nonsense_after_the_end_changes_nothing():
    """A packet that the flow never had is unexpected, and nobody answers it."""
    joined = network()
    joined.add(flow(1, 4 * MTU))
    joined.run()
    before = joined.receivers()
    joined.nics[1].on_data(joined.now_ns, ip_number(joined.nics[0].ip) << 24 | 101, 77, 0, -1)
    assert ({"unexpected": 1}, before) == (dict(joined.nics[1].counters), joined.receivers())
    assert [0, 0] == connections(joined)


def test_answers_that_wait_are_those_of_their_flows():
    """While PFC holds acknowledgments back, flows end and others take their places; each answer is its own."""
    joined = network()
    joined.at(500, lambda: joined.hand_in(joined.nics[1], bytes(pfc_frame("02:00:00:00:00:01", {7: 0xFFFF}))))
    joined.add(*(flow(number, MTU, start_ns=1_000 * number) for number in range(1, 9)))
    joined.run(until_ns=100_000)
    assert [8, 0] == connections(joined)
    assert not [arrival for arrival in joined.sent if isinstance(arrival.parsed, Ack)]
    joined.run()
    answers = [arrival.parsed for arrival in joined.sent if isinstance(arrival.parsed, Ack)]
    assert {number + 100 for number in range(1, 9)} == {ack.qpn for ack in answers}
    assert all(ack.sport == ack.qpn + 1900 for ack in answers)
    assert [0, 0] == connections(joined)
    # the places are free now, and the next ones have templates of their own
    joined.add(*(flow(number, MTU, start_ns=joined.now_ns) for number in range(9, 12)))
    joined.run()
    assert all(record.end_ns for record in joined.records())


def test_a_flow_of_a_place_that_others_had_sends_its_own_headers():
    """The codec in C keeps a template for each place, no longer than the flow has it."""
    joined = network()
    joined.add(
        *(
            replace(flow(number, 2 * MTU), after=(number - 1,) if number > 1 else ())
            for number in range(1, 20)
        )
    )
    joined.run()
    sent = [packet for packet in joined.data_sent() if not packet.retransmission]
    assert [(100 + number, 2000 + number) for number in range(1, 20) for _ in range(2)] == [
        (packet.qpn, packet.sport) for packet in sent
    ]


def end(handle: int) -> FlowReceiver:
    nic = make_nic(2, NicConfig())
    address = HostAddress(nic.mac, nic.mac, nic.ip, "10.0.0.1")
    return FlowReceiver(flow(1, 100), NicConfig(), address, handle, deque())


@settings(max_examples=100)
@given(st.lists(st.integers(0, 5), max_size=60))
def test_no_two_ends_ever_have_one_handle(steps):
    """Ends are put, are dropped, or leave after their last answers; the handle of a gone end gives None."""
    ends, answers = QueuePairs(), 0
    here: list[FlowReceiver] = []
    gone: list[FlowReceiver] = []
    leaving: list[tuple[int, FlowReceiver]] = []
    for step in steps:
        if step < 3 or not here:
            here.append(end(ends.new_handle()))
            ends.put(here[-1])
        elif step == 3:
            gone.append(here.pop(len(here) // 2))
            ends.drop(gone[-1])
        elif step == 4:
            answers += 1
            leaving.append((answers, here.pop(0)))
            ends.drop_after(leaving[-1][1], answers)
        else:
            ends.on_responses_sent(answers - 1)
            gone += [receiver for number, receiver in leaving if number < answers]
            leaving = [(number, receiver) for number, receiver in leaving if number >= answers]
        assert len(here) == len(ends)
        assert all(
            ends.get(receiver.handle) is receiver
            for receiver in (*here, *(receiver for _, receiver in leaving))
        )
        assert all(ends.get(receiver.handle) is None for receiver in gone)
    handles = [receiver.handle for receiver in (*here, *gone, *(receiver for _, receiver in leaving))]
    assert len(handles) == len(set(handles))


def test_letting_go_changes_nothing():
    """With losses and late frames NICs of all kinds send the same frames as NICs that let go of nothing."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.hosts.late_story"],
        cwd=ROOT,
        env={**os.environ, VARIABLE: INTERPRETED},
        capture_output=True,
        check=True,
        text=True,
    )
    for story in json.loads(run.stdout):
        let_go, kept = story["let_go"], story["kept"]
        case = (story["kind"], story["seed"])
        assert (case, kept["frames"]) == (case, let_go["frames"])
        assert (case, kept["records"]) == (case, let_go["records"])
        assert (case, 0) == (case, let_go["left"])
        assert let_go["most"] < kept["most"]
