# SPDX-License-Identifier: Apache-2.0
"""HF2T in NICs: what leaves them, with every transport, pacing, losses, pauses and other flows on the link."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.codec.layers.pfc import pfc_frame
from tailrace.codec.numbers import PauseOp
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.gaps.histogram import bin_of, low_ns
from tailrace.hosts.nic.nic import Nic
from tailrace.hosts.options.dcqcn import DcqcnConfig
from tailrace.hosts.options.hf2t import Hf2tConfig
from tailrace.hosts.options.nic import NicConfig
from tests.codec.frames import Data, Frame, Parsed
from tests.hosts.network import RATE_BPS, Arrival, VirtualNetwork, flow, make_nic
from tests.hosts.same_story import KINDS, unruly
from tests.hosts.steering.fabric import Paths
from tests.hosts.test_pause import pause

THRESHOLD_NS = 9_000
FRAME_BYTES = 558
STRETCHED_NS = THRESHOLD_NS + 2
HF2T = Hf2tConfig(THRESHOLD_NS, 9_900, 20, 80, 100, t_ns=FRAME_BYTES + 1)


def config(kind: str, hf2t: Hf2tConfig | None = HF2T, **more: Any) -> NicConfig:
    usual = {
        "mtu_bytes": 500,
        "window_bytes": 16_000,
        "rto_ns": 300_000,
        "rto_backoff": 2,
        "virtual_payload": True,
        "link_rate_bps": RATE_BPS,
        "hf2t": hf2t,
        "measure_gaps": True,
    }
    return NicConfig(**{**usual, **KINDS[kind], **more})


def two(config_: NicConfig, *lengths: int) -> VirtualNetwork:
    """Two NICs, and flows from the first one to the second."""
    network = VirtualNetwork([make_nic(1, config_), make_nic(2, config_)])
    network.add(*(flow(number, length) for number, length in enumerate(lengths, 1)))
    return network


def pfc(quanta: int) -> bytes:
    """Data waits for so many quanta."""
    return bytes(pfc_frame("02:00:00:00:00:fe", {0: quanta}))


def tell(network: VirtualNetwork, time_ns: int, frame: bytes, nic: Nic) -> None:
    """A frame arrives at a NIC."""
    network.at(time_ns, lambda: network.hand_in(nic, frame))


def departures(network: VirtualNetwork) -> dict[int, list[Arrival]]:
    """The data packets of each flow, by its queue pair, as they leave."""
    by_queue_pair: dict[int, list[Arrival]] = {}
    for arrival in network.sent:
        if isinstance(arrival.parsed, Data):
            by_queue_pair.setdefault(arrival.parsed.qpn, []).append(arrival)
    return by_queue_pair


def pairs(packets: list[Arrival]) -> Iterator[tuple[Arrival, Arrival]]:
    return itertools.pairwise(packets)


def between_last_bits_ns(before: Arrival, after: Arrival) -> int:
    """At a ns for each byte."""
    return after.now_ns + after.frame.length_bytes - before.now_ns - before.frame.length_bytes


def check_what_a_switch_sees(network: VirtualNetwork) -> None:
    """Every gap beyond the threshold is one that the NIC has counted, and none else is; so are all gaps."""
    seen = {record.id: record for record in network.records()}
    gaps: dict[str, Counter[int]] = {nic.ip: Counter() for nic in network.nics}
    for qpn, packets in departures(network).items():
        record = seen[qpn - 100]
        long = sum(between_last_bits_ns(*pair) > THRESHOLD_NS for pair in pairs(packets))
        assert record.stretched + record.natural == long
        for before, after in pairs(packets):
            gaps[after.nic.ip][low_ns(bin_of(after.now_ns - before.now_ns))] += 1
    for nic in network.nics:
        assert nic.gaps is not None
        assert dict(nic.gaps.bins()) == gaps[nic.ip]


# ---- with everything ----


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(KINDS)),
    st.sampled_from([0.0, 0.02]),
    st.booleans(),
    st.sampled_from([None, 1, 600, 2_000]),
    st.integers(0, 1_000),
)
def test_flowlets_are_what_nics_meant_in_unruly_networks(kind, loss, dynamic, t_ns, seed):
    """With all transports, steering, losses, and pauses by PFC and of flows: every flow ends, and whoever looks at
    the wire counts as many new flowlets as the NICs.
    """
    hf2t = dataclasses.replace(HF2T, dynamic=dynamic, t_ns=t_ns, percentile=9_000)
    rng = random.Random(seed)
    paths = Paths([3000, 4000, 5000], marks={0: loss, 2: 0.5}, trims={1: loss}, seed=seed)
    network = paths.network(config(kind, hf2t), 3)
    network.fate = unruly(rng, loss)
    for number in range(8):
        network.add(
            flow(
                number,
                600 * number + 8_000,
                src=1 + number % 3,
                dst=1 + (number + 1) % 3,
                start_ns=number * 700,
            )
        )
    for _ in range(6):
        nic, time_ns = rng.choice(network.nics), rng.randrange(300_000)
        held = pfc(rng.choice([0, 40, 400]))
        tell(network, time_ns, held, nic)
        sport = 2000 + rng.randrange(8)
        op = rng.choice([PauseOp.XOFF, PauseOp.XON, PauseOp.XOFF_CREDIT])
        tell(network, time_ns, pause(op, 2_000, sport), nic)
    network.run()
    assert all(nic.idle for nic in network.nics)
    check_what_a_switch_sees(network)


@settings(max_examples=40)
@given(
    st.sampled_from(["gbn", "dcqcn", "tcp", "sr"]),
    st.integers(1, 3_000),
    st.lists(st.integers(1, 40_000), max_size=5),
)
def test_the_order_stays(kind, t_ns, lengths):
    """Nothing of a flow passes a packet that is held, and without losses nothing is sent twice."""
    network = two(config(kind, dataclasses.replace(HF2T, t_ns=t_ns)), *lengths)
    network.run()
    assert all(nic.idle for nic in network.nics)
    for packets in departures(network).values():
        numbers = [arrival.parsed.psn for arrival in packets if isinstance(arrival.parsed, Data)]
        assert numbers == list(range(len(packets)))
    check_what_a_switch_sees(network)


# ---- paths without waiting ----


@pytest.mark.parametrize("kind", ["gbn", "dcqcn", "sr"])
def test_without_holding_the_path_changes_at_once(kind):
    """delay=off: no packet is later than without HF2T, and the source port changes as often as a gap is chosen."""
    network = two(config(kind, dataclasses.replace(HF2T, delay=False)), 300_000)
    plain = two(config(kind, None), 300_000)
    network.run()
    plain.run()
    sent, unchanged = departures(network)[101], departures(plain)[101]
    assert [each.now_ns for each in sent] == [each.now_ns for each in unchanged]
    ports = [each.parsed.sport for each in sent if isinstance(each.parsed, Data)]
    record = network.records()[0]
    assert record.stretched > 0
    assert record.stretched_ns == 0
    assert record.stretched == sum(before != after for before, after in itertools.pairwise(ports))
    assert len({each.parsed.sport for each in unchanged if isinstance(each.parsed, Data)}) == 1


@pytest.mark.parametrize("kind", ["tcp", "mp-rdma", "ops"])
def test_others_choose_the_port_themselves(kind):
    with pytest.raises(ConfigError, match="delay=off changes the source port"):
        config(kind, dataclasses.replace(HF2T, delay=False))


# ---- beside the link ----


def test_a_held_flow_does_not_block_others():
    """While one is held the others have the link, and it is never idle as long as one of them may send."""
    small, large = 40_000, 400_000
    network = two(
        config("gbn", dataclasses.replace(HF2T, spare_bytes=large - 1), window_bytes=10**6), small, large
    )
    network.run()
    packets = departures(network)
    held = [pair for pair in pairs(packets[102]) if between_last_bits_ns(*pair) == STRETCHED_NS]
    assert held, "the large one is stretched"
    assert 0 == network.records()[0].stretched
    first, last = packets[101][0], packets[101][-1]
    everything = [
        arrival
        for arrival in network.sent
        if isinstance(arrival.parsed, Data) and arrival.now_ns <= last.now_ns
    ]
    assert (
        last.now_ns - first.now_ns
        == sum(arrival.frame.length_bytes for arrival in everything) - last.frame.length_bytes
    )


def test_a_flow_at_the_link_s_rate():
    """Gaps as long as a frame, T just beyond: alpha has every 81st or so stretched, 80 * 559 / 558 rounded up."""
    network = two(config("gbn", window_bytes=10**6), 300_000)
    network.run()
    gaps = [between_last_bits_ns(*pair) for pair in pairs(departures(network)[101])]
    # the first packet is longer; what is in the last bits' gap is the second packet's length
    assert {FRAME_BYTES, STRETCHED_NS} == set(gaps[:-1])
    places = [number for number, gap in enumerate(gaps, 1) if gap == STRETCHED_NS]
    assert [81 * number for number in range(1, 8)] == places
    record = network.records()[0]
    assert (7, 7 * (STRETCHED_NS - FRAME_BYTES)) == (record.stretched, record.stretched_ns)
    plain = two(config("gbn", None, window_bytes=10**6), 300_000)
    plain.run()
    slow_ns, fast_ns = record.end_ns, plain.records()[0].end_ns
    assert slow_ns is not None
    assert fast_ns is not None
    assert record.stretched_ns == slow_ns - fast_ns, "throughput lost is what was added"


@pytest.mark.parametrize("kind", ["gbn", "dcqcn"])
def test_a_pace_starts_anew_behind_a_stretched_gap(kind):
    """Nothing is saved up for a burst: a packet that follows comes a pace later, also by dcqcn's own pacer."""
    pace_ns = FRAME_BYTES * 4
    hf2t = dataclasses.replace(HF2T, t_ns=pace_ns, min_thr=5, max_thr=5)
    slow = DcqcnConfig(least_bps=RATE_BPS // 4, additive_bps=0, hyper_bps=0, recovery_steps=10**6, gain=1)
    network = two(config(kind, hf2t, flow_rate_bps=RATE_BPS // 4, dcqcn=slow), 20_000)
    network.run()
    gaps = [after.now_ns - before.now_ns for before, after in pairs(departures(network)[101])][1:-1]
    assert {pace_ns, STRETCHED_NS} == set(gaps)
    assert [4, 9, 14] == [number for number, gap in enumerate(gaps, 1) if gap == STRETCHED_NS][:3]


def test_pfc_s_pauses_are_gaps_like_others():
    """What PFC holds for longer than the threshold is a flowlet by itself; a shorter pause may be stretched."""
    for quanta, kind in ((16, "stretched"), (400, "natural")):
        network = two(config("gbn", dataclasses.replace(HF2T, t_ns=600, dynamic=False)), 8_000)
        # of 64 ns each
        tell(network, 2_000, pfc(quanta), network.nics[0])
        network.run()
        record = network.records()[0]
        assert 1 <= getattr(record, kind)
        check_what_a_switch_sees(network)


def test_an_xoff_while_a_packet_is_held():
    """It goes after the XON, and not before its own time; the shaper answers for its own share of the delay."""
    for until_ns, extra_ns in ((4_000, 0), (40_000, 1)):
        network = two(
            config("gbn", dataclasses.replace(HF2T, t_ns=500, dynamic=False), window_bytes=10**6), 1_500
        )
        tell(network, 2_000, pause(PauseOp.XOFF, sport=2001), network.nics[0])
        tell(network, until_ns, pause(PauseOp.XON, sport=2001), network.nics[0])
        network.run()
        first, second = departures(network)[101][:2]
        due_ns = first.now_ns + STRETCHED_NS + 16  # the first packet has the RETH
        assert max(due_ns, until_ns * extra_ns) == second.now_ns
        record = network.records()[0]
        assert 2 == record.stretched
        assert record.stretched_ns < 2 * STRETCHED_NS


def test_what_is_held_and_acknowledged_is_not_sent():
    """A retransmission that proves needless: nothing leaves, and nothing counts as stretched."""
    network = two(config("gbn", dataclasses.replace(HF2T, t_ns=1, dynamic=False), rto_ns=4_000), 400)
    network.fate = lambda now_ns, frame, parsed: 7_000 if isinstance(parsed, Data) else 100
    network.run()
    assert [1] == [len(packets) for packets in departures(network).values()]
    record = network.records()[0]
    assert (1, 0, 0) == (record.timeouts, record.stretched, record.natural)


def test_a_gap_stays_open_when_what_was_held_need_not_be_sent():
    """Taken for lost, held, and acknowledged: the next retransmission, much later, has a gap of its own."""
    hf2t = dataclasses.replace(HF2T, t_ns=600, dynamic=False)
    network = two(config("sr", hf2t, rto_ns=20_000, reorder_packets=1), 1_500)
    delays: dict[int, list[int | None]] = {
        0: [4_000],
        1: [500],
        2: [None, 500],
    }  # of each transmission; None: lost

    def fate(now_ns: int, frame: Frame, parsed: Parsed) -> int | None:
        return delays[parsed.psn].pop(0) if isinstance(parsed, Data) else 100

    network.fate = fate
    network.run()
    assert [0, 1, 2, 2] == [packet.psn for packet in network.data_sent()]
    record = network.records()[0]
    assert (1, 0, 1) == (record.timeouts, record.stretched, record.natural)


# ---- and where it is not wanted ----


def story(network: VirtualNetwork) -> list[tuple[int, str, bytes]]:
    network.run()
    return [(arrival.now_ns, arrival.nic.ip, arrival.frame.data) for arrival in network.sent]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_measuring_changes_nothing(kind):
    """Frame by frame."""
    stories = []
    for measured in (False, True):
        network = Paths([3000, 4000], marks={0: 0.1}).network(config(kind, None, measure_gaps=measured))
        network.add(*(flow(number, length) for number, length in enumerate((9_000, 20_000, 700), 1)))
        stories.append(story(network))
    assert stories[0] == stories[1]


def test_small_flows_are_spared():
    """Those of at most the size are as they would be without it, and teach nothing."""
    hf2t = dataclasses.replace(HF2T, t_ns=1, dynamic=False, spare_bytes=4_000)
    spared = two(config("gbn", hf2t), 4_000)
    assert story(two(config("gbn", None), 4_000)) == story(spared)
    assert (0, 0, 0) == tuple(
        getattr(spared.records()[0], name) for name in ("stretched", "stretched_ns", "natural")
    )
    held = two(config("gbn", hf2t), 4_001)
    held.run()
    assert 8 == held.records()[0].stretched
    learning = two(config("gbn", dataclasses.replace(hf2t, t_ns=None, spare_bytes=10**6)), 200_000)
    learning.run()
    learner = learning.nics[0].learner
    assert learner is not None
    assert (0, 0) == (learner.t_ns, learner.trainings)


def test_a_nic_learns_from_all_its_flows():
    """Together they have sent enough; each alone had not."""
    hf2t = dataclasses.replace(HF2T, t_ns=None)
    network = two(config("gbn", hf2t), *[20_000] * 3)
    network.run()
    learner = network.nics[0].learner
    assert learner is not None
    assert 1 == learner.trainings
    assert learner.t_ns > FRAME_BYTES
    assert network.nics[1].learner is not None
    assert 0 == network.nics[1].learner.trainings
    alone = two(config("gbn", hf2t), 20_000)
    alone.run()
    assert alone.nics[0].learner is not None
    assert 0 == alone.nics[0].learner.trainings


def test_nothing_is_measured_unless_asked():
    """Neither gaps nor T."""
    network = two(config("gbn", None, measure_gaps=False), 3_000)
    network.run()
    assert (None, None) == (network.nics[0].gaps, network.nics[0].learner)
    learning = make_nic(1, config("gbn", measure_gaps=False))
    assert learning.gaps is None
    assert learning.learner is not None


def test_gaps_are_those_on_the_link_although_it_asks_late():
    """A real-time link makes up for being late: frames count as sent when it took them."""
    nic = make_nic(1, config("gbn", dataclasses.replace(HF2T, t_ns=700, dynamic=False)))
    nic.add_flow(flow(1, 5_000))
    for now_ns, late_ns, goes in ((5_000, 0, True), (6_000, 310, True), (7_000, 0, False)):
        nic.set_lateness(late_ns)
        sent = nic.next_packet(now_ns)
        assert goes == isinstance(sent, tuple)
    assert nic.gaps is not None
    # 690 ns after the first one; the third could go after 1310 ns, and is held
    assert [(low_ns(bin_of(690)), 1)] == nic.gaps.bins()
    assert 5_690 + STRETCHED_NS == sent
