# SPDX-License-Identifier: Apache-2.0
"""tcp in small networks: it fills a link, shares it, survives losses, and leaves a NIC in whole bursts."""

from __future__ import annotations

import random
from itertools import groupby, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.options.tcp import TcpConfig
from tests.codec.frames import Data, Frame, Parsed
from tests.hosts.bottleneck import Bottleneck
from tests.hosts.network import VirtualNetwork, flow, make_nic

SLOW_BPS = 4_000_000_000
DELAY_NS = 5_000
QUEUE_BYTES = 60_000
MS_NS = 1_000_000
FRAME_NS = 1058  # a full packet with its headers on a link of the network
RETH_NS = 16  # which the first one has besides


def config(**changes: Any) -> NicConfig:
    return NicConfig(
        **{
            "transport": "tcp",
            "mtu_bytes": 1000,
            "window_bytes": 0,
            "ack_every": 32,
            "ack_delay_ns": 16_000,
            "rto_ns": 400_000,
            "virtual_payload": True,
            "ecn": False,
            **changes,
        }
    )


class DropTail(Bottleneck):
    """A queue that is bounded instead of marking; dropped: how many packets it had no room for."""

    def __init__(self) -> None:
        super().__init__(SLOW_BPS, DELAY_NS, random.Random(1))
        self.dropped = 0

    def fate(self, now_ns: int, frame: Frame, parsed: Parsed) -> int | None:
        if isinstance(parsed, Data) and self.waiting_bytes(now_ns + frame.length_bytes) > QUEUE_BYTES:
            self.dropped += 1
            return None
        return super().fate(now_ns, frame, parsed)

    def waiting_bytes(self, now_ns: int) -> int:
        return max(0, self._free_ns - now_ns) * SLOW_BPS // 8_000_000_000

    def _marks(self, queue_bytes: int) -> bool:
        return False


def complete(network: VirtualNetwork) -> bool:
    """Whether every flow was acknowledged and has arrived."""
    return all(seen.done for seen in network.senders()) and all(
        seen.bytes == seen.flow.bytes and seen.end_ns is not None for seen in network.receivers()
    )


def test_two_flows_share_a_link():
    """Over many of their windows (Jain's index), the later one as well; together they fill it."""
    link = DropTail()
    network = link.network(config(), 2)
    network.add(flow(1, 60_000_000, src=1, dst=3), flow(2, 60_000_000, src=2, dst=3, start_ns=2 * MS_NS))
    network.run(110 * MS_NS)
    shares = list(link.carried(10 * MS_NS, 110 * MS_NS).values())
    assert 2 == len(shares)
    assert sum(shares) > 0.95 * SLOW_BPS * 100 * MS_NS // 8_000_000_000
    assert sum(shares) ** 2 / (2 * sum(share**2 for share in shares)) > 0.9


@pytest.mark.parametrize("loss", [0.01, 0.1, 0.3])
def test_it_survives_losses(loss):
    """Of data and of answers; in a network that keeps the order, what is sent again is what was lost."""
    rng = random.Random(5)
    lost = 0

    def fate(now_ns: int, frame: Frame, parsed: Parsed) -> int | None:
        nonlocal lost
        if rng.random() < loss:
            lost += isinstance(parsed, Data)
            return None
        return DELAY_NS

    network = VirtualNetwork([make_nic(1, config()), make_nic(2, config())], fate)
    network.add(flow(1, 700_000), flow(2, 300_000))
    network.run()
    assert complete(network)
    (first, second) = network.records()
    assert 0 == first.overtaken == second.overtaken
    assert first.retransmitted + second.retransmitted >= lost > 0


def test_without_losses_nothing_goes_twice():
    """As fast as the link is, and with no timeout."""
    network = VirtualNetwork([make_nic(1, config()), make_nic(2, config())])
    network.add(flow(1, 3_000_000))
    network.run()
    (record,) = network.records()
    assert (3000, 0, 0) == (record.packets, record.retransmitted, record.timeouts)
    # ten packets, then twice as many a round trip of batching and propagation until the link is full
    assert record.end_ns is not None
    assert record.end_ns < 1.2 * 3_000_000


@settings(max_examples=40)
@given(
    sizes=st.lists(st.integers(1, 90_000), min_size=1, max_size=5),
    loss=st.sampled_from([0.0, 0.02, 0.2]),
    jitter_ns=st.sampled_from([0, 3_000, 30_000]),
    ack_every=st.sampled_from([1, 2, 32]),
    burst=st.sampled_from([1, 3, 64]),
    window=st.sampled_from([0, 1, 9_000]),
    ecn=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_every_flow_ends(sizes, loss, jitter_ns, ack_every, burst, window, ecn, seed):
    """Each byte is taken once, whatever is lost, overtaken or marked."""
    rng = random.Random(seed)

    def fate(now_ns: int, frame: Frame, parsed: Parsed) -> int | None:
        return None if rng.random() < loss else 1000 + rng.randint(0, jitter_ns)

    settings_ = config(
        ack_every=ack_every, window_bytes=window, ecn=ecn, tcp=TcpConfig(burst_bytes=1000 * burst)
    )
    network = VirtualNetwork([make_nic(number, settings_) for number in (1, 2, 3)], fate)
    network.add(
        *(flow(i, size, src=1 + i % 3, dst=1 + (i + 1) % 3, start_ns=700 * i) for i, size in enumerate(sizes))
    )
    network.run()
    assert complete(network)
    assert sum(sizes) == sum(seen.bytes for seen in network.receivers())


def test_marks_hold_the_window():
    """With ECN a queue that marks stays short enough to drop nothing, and the link full."""
    link = Bottleneck(SLOW_BPS, DELAY_NS, random.Random(2))
    network = link.network(config(ecn=True), 2)
    network.add(flow(1, 20_000_000, src=1, dst=3), flow(2, 20_000_000, src=2, dst=3))
    network.run(40 * MS_NS)
    assert sum(seen.ce_marked for seen in network.receivers()) > 0
    assert 0 == sum(seen.retransmitted for seen in network.senders())
    assert sum(link.carried(10 * MS_NS, 40 * MS_NS).values()) > 0.9 * SLOW_BPS * 30 * MS_NS // 8_000_000_000
    assert link.most_bytes < 4 * 200_000


@pytest.mark.parametrize(("burst", "longest"), [(1, 1), (8, 8)])
def test_bursts_of_two_flows_do_not_mix(burst, longest):
    """A burst leaves at the rate of the link, and then it is the other flow's turn."""
    two = config(tcp=TcpConfig(initial_packets=32, burst_bytes=1000 * burst))
    network = VirtualNetwork([make_nic(1, two), make_nic(2, two)])
    network.add(flow(1, 32_000), flow(2, 32_000))
    network.run()
    sent = [
        (arrival.now_ns, arrival.parsed.qpn) for arrival in network.sent if isinstance(arrival.parsed, Data)
    ]
    runs = [len(list(run)) for _, run in groupby(qpn for _, qpn in sent)]
    assert [longest] * (64 // longest) == runs
    # of each flow the first packet is longer
    assert {FRAME_NS, FRAME_NS + RETH_NS} == {later - now for (now, _), (later, _) in pairwise(sent)}


def test_gaps_are_as_long_as_answers_take():
    """Between the windows of slow start nothing leaves until the batched answer is there (HF²T §3)."""
    network = VirtualNetwork([make_nic(1, config()), make_nic(2, config())])
    network.add(flow(1, 200_000))
    network.run()
    sent = [arrival.now_ns for arrival in network.sent if isinstance(arrival.parsed, Data)]
    gaps = [later - now for now, later in pairwise(sent)]
    # ten packets leave at once, and their answer comes after the delay
    assert {FRAME_NS, FRAME_NS + RETH_NS} >= set(gaps[:9])
    assert gaps[9] > 5 * FRAME_NS
    assert sent[10] > FRAME_NS + 16_000 + 2_000
    assert 199 == len(gaps)
