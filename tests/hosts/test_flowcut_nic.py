# SPDX-License-Identifier: Apache-2.0
"""Flowcut on the NIC alone: the order is kept on any paths, under loss; and a careless variant is found out."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.codec.numbers import FIRST_PORT
from tailrace.hosts.options.nic import FlowcutNicConfig, NicConfig
from tailrace.hosts.steering.flowcut import FlowcutSender, MinRtt
from tests.codec.frames import Data, Frame, NicAcked, Parsed
from tests.hosts.network import VirtualNetwork, flow, make_nic

US = 1000
MS = 1_000_000


class Paths:
    """A network of parallel paths: the path is a hash of the source port, each has its delays and keeps its order.

    Args:
        delays_ns: least delay of each path.
        jitter_ns: added by chance; a packet never overtakes an earlier one of its path.
        loss: share of data, ACKs and NIC ACKs that are lost.
    """

    def __init__(self, delays_ns: list[int], jitter_ns: int, loss: float, seed: int) -> None:
        self.delays_ns = delays_ns
        self.jitter_ns = jitter_ns
        self.loss = loss
        self.rng = random.Random(seed)
        self.last_ns: dict[tuple[int, int], int] = {}

    def __call__(self, now_ns: int, frame: Frame, parsed: Parsed) -> int | None:
        sport = int.from_bytes(frame.data[34:36], "big")
        if not isinstance(parsed, Data):
            # answers have a higher priority: their paths do not matter (Flowcut §II-D)
            return None if self.rng.random() < self.loss else min(self.delays_ns)
        path = sport * 2654435761 % 2**32 * len(self.delays_ns) >> 32
        out_ns = now_ns + frame.length_bytes
        arrival_ns: int = max(
            out_ns + self.delays_ns[path] + self.rng.randint(0, self.jitter_ns),
            self.last_ns.get((parsed.src, path), 0) + frame.length_bytes,
        )
        if self.rng.random() < self.loss:
            return None
        self.last_ns[parsed.src, path] = arrival_ns
        return arrival_ns - out_ns


def overtaking(network: VirtualNetwork) -> int:
    """Data packets, retransmissions included, that arrived after one of their flow that was sent later."""
    position = {id(arrival.frame): number for number, arrival in enumerate(network.sent)}
    latest: dict[int, int] = {}
    count = 0
    for arrival in network.arrivals:
        if isinstance(arrival.parsed, Data):
            number, qpn = position[id(arrival.frame)], arrival.parsed.qpn
            count += number < latest.get(qpn, -1)
            latest[qpn] = max(number, latest.get(qpn, -1))
    return count


def config(**changes) -> NicConfig:
    flowcut: dict[str, Any] = {
        "rtt_threshold": 1.3,
        "alpha": 0.5,
        "min_left": 0,
        "age_ns": 3 * MS,
        "ns_per_byte": 1.0,
    }
    flowcut |= {name: changes.pop(name) for name in list(changes) if name in FlowcutNicConfig.__slots__}
    nic: dict[str, Any] = {
        "mtu_bytes": 1000,
        "window_bytes": 16_000,
        "rto_ns": 4 * MS,
        "pause_timeout_ns": 10 * MS,
        "rto_backoff": 1,
    }
    return NicConfig(**{**nic, **changes}, flowcut_nic=FlowcutNicConfig(**flowcut))


def run(settings_: NicConfig, paths, *flows, seed: int = 0) -> VirtualNetwork:
    network = VirtualNetwork([make_nic(1, settings_, seed), make_nic(2, settings_, seed)], paths)
    network.add(*flows)
    network.run()
    return network


@settings(max_examples=60)
@given(
    delays=st.lists(st.integers(0, 300 * US), min_size=1, max_size=6),
    jitter=st.sampled_from([0, 2 * US, 100 * US]),
    loss=st.sampled_from([0.0, 0.01, 0.1]),
    transport=st.sampled_from(["gbn", "sr"]),
    rtt_threshold=st.sampled_from([1.0, 1.2, 4.0]),
    growth_threshold=st.sampled_from([None, 0.05]),
    min_left=st.integers(0, 20),
    pause_timeout_ns=st.sampled_from([200 * US, 10 * MS]),
    window=st.sampled_from([4_000, 30_000]),
    ack_every=st.sampled_from([1, 2, 5, 100]),
    seed=st.integers(0, 1000),
)
def test_no_packet_overtakes_another(
    delays,
    jitter,
    loss,
    transport,
    rtt_threshold,
    growth_threshold,
    min_left,
    pause_timeout_ns,
    window,
    ack_every,
    seed,
):
    """Whatever the paths do, and whatever is lost; and every flow completes."""
    settings_ = config(
        transport=transport,
        rtt_threshold=rtt_threshold,
        growth_threshold=growth_threshold,
        min_left=min_left,
        pause_timeout_ns=pause_timeout_ns,
        window_bytes=window,
        ack_every=ack_every,
        ack_delay_ns=50 * US,
    )
    flows = (flow(1, 40_000), flow(2, 25_000, start_ns=7 * US), flow(3, 10_000, src=2, dst=1))
    network = run(settings_, Paths(delays, jitter, loss, seed), *flows, seed=seed)
    assert 0 == overtaking(network)
    assert all(nic.idle for nic in network.nics)
    assert [0, 0, 0] == [seen.overtaken for seen in network.receivers()]
    assert [0, 0, 0] == [record.out_of_order for record in network.records()]
    assert {spec.id: spec.bytes for spec in flows} == {
        seen.flow.id: seen.bytes for seen in network.receivers()
    }


UNEQUAL = [1 * US, 90 * US, 20 * US, 160 * US]


def test_a_congested_flow_changes_its_path():
    """By a new source port; the original one arrives at the receiver's transport."""
    network = run(config(), Paths(UNEQUAL, 40 * US, 0.0, 1), flow(1, 200_000))
    arrived = [arrival.parsed for arrival in network.arrivals if isinstance(arrival.parsed, Data)]
    ports = {data.wire_sport for data in arrived}
    assert len(ports) > 2
    assert {2001} == {data.sport for data in arrived}
    assert all(port >= FIRST_PORT for port in ports - {2001})
    record, sender = network.records()[0], network.senders()[0]
    assert len(ports) == sender.reroutes + 1
    assert record.drains == sender.reroutes
    assert record.drained_ns > 0
    assert 0 == overtaking(network)


def test_drains_without_a_new_path_only_throttle():
    """move=off: the flow drains as often as it is congested, and resumes on its path, in order."""
    network = run(config(move=False), Paths(UNEQUAL, 40 * US, 0.0, 1), flow(1, 200_000))
    arrived = [arrival.parsed for arrival in network.arrivals if isinstance(arrival.parsed, Data)]
    record, sender = network.records()[0], network.senders()[0]
    assert {2001} == {data.wire_sport for data in arrived}
    assert record.drains > 0
    assert record.drained_ns > 0
    assert sender.reroutes == 0
    assert 0 == overtaking(network)


def test_changing_the_path_without_draining_is_found_out():
    """The same check, the same network, one careless NIC: it goes on whatever is in flight."""
    good = run(config(), Paths(UNEQUAL, 40 * US, 0.0, 1), flow(1, 200_000))
    bad = run(config(resume_bytes=1 << 40), Paths(UNEQUAL, 40 * US, 0.0, 1), flow(1, 200_000))
    assert 0 == overtaking(good)
    assert overtaking(bad) > 0
    assert sum(seen.overtaken for seen in bad.receivers()) > 0
    assert bad.records()[0].out_of_order > 0
    assert bad.records()[0].ood_max > 0


def test_early_resume_bounds_how_many_are_overtaken():
    """Flowcut §IV-C: no more packets than fit into resume_bytes are overtaken at each change of the path."""
    frame_bytes = 1000 + 58 + 8
    resumed = config(resume_bytes=10 * frame_bytes, transport="sr")
    network = run(resumed, Paths(UNEQUAL, 40 * US, 0.0, 3), flow(1, 400_000))
    receiver, sender = network.receivers()[0], network.senders()[0]
    assert 0 < receiver.overtaken <= 10 * sender.reroutes
    patient = run(config(transport="sr"), Paths(UNEQUAL, 40 * US, 0.0, 3), flow(1, 400_000))
    assert patient.receivers()[0].overtaken == 0


def test_no_drain_for_a_few_packets():
    """Flowcut §IV-C: a flow with less than min_left packets to go stays where it is."""
    network = run(config(min_left=190), Paths(UNEQUAL, 40 * US, 0.0, 1), flow(1, 200_000))
    draining = network.records()[0].drains
    assert draining <= 2
    network = run(config(min_left=201), Paths(UNEQUAL, 40 * US, 0.0, 1), flow(1, 200_000))
    assert 0 == network.records()[0].drains


def lossy_until(start_ns: int, end_ns: int, paths: Paths):
    """Loses all NIC ACKs for some time."""

    def fate(now_ns, frame, parsed):
        if isinstance(parsed, NicAcked) and start_ns <= now_ns < end_ns:
            return None
        return paths(now_ns, frame, parsed)

    return fate


def sender(**changes) -> FlowcutSender:
    nic = config(**changes)
    assert nic.flowcut_nic is not None
    return FlowcutSender(
        nic.flowcut_nic, MinRtt(nic.flowcut_nic.ns_per_byte), nic.pause_timeout_ns, 77, random.Random(1)
    )


def congest(flowcut: FlowcutSender) -> None:
    """Two packets sent at 0 and 10 us; the first one's NIC ACK tells of congestion at 100 us."""
    flowcut.on_sent(0, 1000)
    flowcut.on_nic_ack(2 * US, data_bytes=1000, hops=2, ticks=0, left=100)
    flowcut.on_sent(10 * US, 1000)
    flowcut.on_sent(11 * US, 1000)
    flowcut.on_nic_ack(100 * US, data_bytes=1000, hops=2, ticks=10 * US, left=100)


def test_after_the_pause_timeout_the_old_path_is_kept():
    """Flowcut §IV-A: a lost NIC ACK does not stop a flow for ever, nor does it break the order."""
    flowcut = sender(pause_timeout_ns=500 * US, age_ns=5 * MS)
    congest(flowcut)
    assert (True, 600 * US) == (flowcut.draining, flowcut.deadline_ns())
    flowcut.on_time(600 * US)
    assert (False, 77) == (flowcut.draining, flowcut.wire_sport)
    assert (1, 0, 1, 500 * US) == (flowcut.drains, flowcut.reroutes, flowcut.timeouts, flowcut.drained_ns)
    assert 1000 == flowcut.in_flight_bytes


def test_lost_bytes_are_forgotten_when_nothing_can_be_under_way():
    """By age, counted from the last packet sent; then the path changes after all."""
    flowcut = sender(pause_timeout_ns=50 * MS, age_ns=5 * MS)
    congest(flowcut)
    assert 5 * MS + 11 * US == flowcut.deadline_ns()
    flowcut.on_time(5 * MS + 11 * US - 1)
    assert (True, 77) == (flowcut.draining, flowcut.wire_sport)
    flowcut.on_time(5 * MS + 11 * US)
    assert (False, False) == (flowcut.draining, flowcut.wire_sport == 77)
    assert 0 == flowcut.in_flight_bytes
    # a NIC ACK of the forgotten packet that comes even so does not count for the packets sent since
    flowcut.on_sent(6 * MS, 500)
    flowcut.on_nic_ack(6 * MS + 1, data_bytes=1000, hops=2, ticks=11 * US, left=100)
    assert 500 == flowcut.in_flight_bytes


def test_forgetting_too_early_is_found_out():
    """An age that is shorter than the network is long breaks the order, and the check sees it."""
    network = run(config(age_ns=20 * US), Paths(UNEQUAL, 40 * US, 0.0, 1), flow(1, 200_000))
    assert overtaking(network) > 0


def test_a_new_source_port_always_differs():
    """Even if the random numbers repeat."""

    class Stuck(random.Random):
        numbers = iter([60_000, 60_000, 60_000, 60_001])

        def randint(self, a, b):
            return next(self.numbers)

    nic = config()
    assert nic.flowcut_nic is not None
    flowcut = FlowcutSender(nic.flowcut_nic, MinRtt(1.0), nic.pause_timeout_ns, 77, Stuck())
    ports = []
    for start in (0, MS):
        flowcut.on_sent(start, 1000)
        flowcut.on_nic_ack(start + 1 * US, data_bytes=1000, hops=2, ticks=start, left=100)
        flowcut.on_sent(start + 10 * US, 1000)
        flowcut.on_nic_ack(start + 400 * US, data_bytes=1000, hops=2, ticks=start + 10 * US, left=100)
        ports.append(flowcut.wire_sport)
    assert [60_000, 60_001] == ports


def test_round_trip_times_are_normalised_by_hops_and_size():
    """Flowcut §II-B: r over r_min(h) + p·h·t, never below 1; each hop count has its own minimum."""
    rtt = MinRtt(2.0)
    assert 1.0 == rtt.normalise(10_000, 1000, 3)  # r_min(3) = 10000 - 6000
    assert 1.0 == rtt.normalise(4_600, 100, 3)
    assert pytest.approx(20_000 / (4_000 + 6_000)) == rtt.normalise(20_000, 1000, 3)
    assert 1.0 == rtt.normalise(50_000, 1000, 5)
    assert 1.0 == rtt.normalise(1_000, 1000, 5)


def test_round_trip_times_over_a_known_baseline():
    """Where r_min(h) is known it is not learnt; where it is not, the smallest one counts as ever."""
    rtt = MinRtt(2.0, (0, 0, 0, 4_000))
    assert pytest.approx(20_000 / (4_000 + 6_000)) == rtt.normalise(20_000, 1000, 3)
    assert pytest.approx(15_000 / (4_000 + 6_000)) == rtt.normalise(15_000, 1000, 3)
    assert 1.0 == rtt.normalise(9_000, 1000, 3)
    assert 1.0 == rtt.normalise(50_000, 1000, 5)


@pytest.mark.parametrize(("growth_threshold", "drains"), [(None, 0), (0.5, 1)])
def test_growth_alone_triggers_a_drain(growth_threshold, drains):
    """Flowcut §II-B: the second trigger looks at how fast the normalised time grows."""
    flowcut = sender(rtt_threshold=50.0, growth_threshold=growth_threshold)
    for number, rtt_us in enumerate((10, 12, 18, 30, 60)):
        now_ns = number * MS
        flowcut.on_sent(now_ns, 1000)
        flowcut.on_nic_ack(now_ns + rtt_us * US, data_bytes=1000, hops=1, ticks=now_ns, left=100)
    assert drains == min(1, flowcut.drains)


def test_losing_all_nic_acks_for_a_while_keeps_the_order():
    """Drains end by age or by timeout; the flow completes in order."""
    paths = Paths(UNEQUAL, 40 * US, 0.0, 5)
    for pause_timeout_ns in (1 * MS, 10 * MS):
        network = run(
            config(pause_timeout_ns=pause_timeout_ns), lossy_until(200 * US, 9 * MS, paths), flow(1, 300_000)
        )
        assert 0 == overtaking(network)
        assert network.nics[0].idle
