# SPDX-License-Identifier: Apache-2.0
"""Workloads of RLB: pairs beside a congested receiver, bursts beside Poisson arrivals, load of the fabric."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from tailrace.experiments.workloads.classes import BACKGROUND, MONITORED
from tailrace.experiments.workloads.workload import Traffic, parse_workload
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.spec import SpecError
from tailrace.topology import Topology, parse_topology

NARROW = parse_topology("leaf-spine:leaves=2,spines=4,hosts=8,rate=40Gbps,delay=2us,restricted=h13/2")
"""Four pairs: h1-h9 .. h4-h12, then h5 and h13, then servers from h14 on."""

WIDE = parse_topology("leaf-spine:leaves=2,spines=4,hosts=8,rate=40Gbps,delay=2us")
PAUSED = "paused:size=64KiB,load=0.5,duration=1ms,pairs=4,servers=3,burst=2"
OVERSUBSCRIBED = parse_topology("leaf-spine:leaves=4,spines=2,hosts=4,rate=40Gbps,delay=2us")
BURSTY = "poisson:size=10KB,load=0.2,duration=500us"


def traffic(words: str, topology: Topology, seed: int = 1) -> Traffic:
    return parse_workload(words).traffic(topology, random.Random(seed))


def of_class(generated: Traffic, name: str) -> list[FlowSpec]:
    return [flow for flow in generated.flows if generated.classes.get(flow.id, "") == name]


def names(topology: Topology, flow: FlowSpec) -> tuple[str, str]:
    return topology.host_by_ip(flow.src).name, topology.host_by_ip(flow.dst).name


def test_pairs_send_to_each_other_only() -> None:
    """H_i sends to R_i, in the other leaf; only these flows are measured, and they are within the duration."""
    flows = of_class(traffic(PAUSED, NARROW), MONITORED)
    assert {names(NARROW, flow) for flow in flows} == {(f"h{i}", f"h{8 + i}") for i in range(1, 5)}
    assert all(0 <= flow.start_ns < 1_000_000 for flow in flows)


def test_pairs_load_the_uplinks() -> None:
    """Half of four uplinks at 40 Gb/s for 20 ms are 200 MB; the pairs' own links could carry twice that."""
    words = PAUSED.replace("1ms", "20ms")
    total = sum(flow.bytes for flow in of_class(traffic(words, NARROW), MONITORED))
    assert 0.9 < total / 200e6 < 1.1


def test_bursts_follow_each_other_at_line_rate() -> None:
    """Every server starts all its flows at once, and again when the first ones could have been sent."""
    flows = of_class(traffic(f"{PAUSED},bytes=64KB,bursts=3,at=10us,long=1MB,from=7us", NARROW), BACKGROUND)
    [long] = [flow for flow in flows if flow.bytes == 1_000_000]
    assert (*names(NARROW, long), long.start_ns) == ("h5", "h13", 7_000)
    bursts = Counter((*names(NARROW, flow), flow.start_ns) for flow in flows if flow is not long)
    sending_ns = 2 * 64_000 * 8 // 40
    expected = {
        (f"h{server}", "h13", 10_000 + burst * sending_ns): 2 for server in (14, 15, 16) for burst in range(3)
    }
    assert bursts == expected


SPOTS = f"{BURSTY},bursts=3,burst=2,every=20us,spots=2,long=1MB"
HOT = parse_topology("leaf-spine:leaves=3,spines=4,hosts=6,rate=40Gbps,delay=2us,restricted=h3/1+h14/2")


def test_trains_overload_the_receiver_for_their_share_of_the_time() -> None:
    """The other leaf and the servers send as much; flows of a train follow each other at line rate."""
    flows = of_class(traffic(f"{PAUSED},bytes=64KB,trains=0.5", NARROW), BACKGROUND)
    assert {names(NARROW, flow) for flow in flows} == {
        ("h5", "h13"),
        *((f"h{n}", "h13") for n in (14, 15, 16)),
    }
    far_bytes = 0.5 * 1e-3 * 40e9 / 8
    first = [flow for flow in flows if flow.start_ns < 1_000_000]
    assert abs(sum(flow.bytes for flow in first) - 2 * far_bytes) < 4 * 64_000
    far = [flow.start_ns for flow in first if names(NARROW, flow)[0] == "h5"]
    assert abs(len(far) * 64_000 - far_bytes) < 64_000
    assert [later - earlier for earlier, later in itertools.pairwise(far)] == [12_800] * (len(far) - 1)
    again = [flow.start_ns - 1_000_000 for flow in flows if 1_000_000 <= flow.start_ns < 2_000_000]
    assert again == [flow.start_ns for flow in first]
    assert max(flow.start_ns for flow in flows) < 2_000_000


def test_trains_to_hot_spots() -> None:
    """Each hot spot gets trains from its burst senders and from the far host until measured flows have ended."""
    flows = traffic(f"{BURSTY},bursts=3,every=100us,spots=2,trains=0.8", HOT)
    background = of_class(flows, BACKGROUND)
    pairs = {names(HOT, flow) for flow in background}
    assert pairs == {
        *((host, "h3") for host in ("h4", "h5", "h6", "h12")),
        *((host, "h14") for host in ("h16", "h17", "h18", "h2")),
    }
    to_spot = [flow for flow in background if names(HOT, flow)[1] == "h14"]
    period_bytes = 2 * 0.8 * 1e-4 * 40e9 / 8
    for start_ns in (0, 600_000, 900_000):  # flows start for 500 us
        period = [flow for flow in to_spot if start_ns <= flow.start_ns < start_ns + 100_000]
        assert abs(sum(flow.bytes for flow in period) - period_bytes) < 4 * 64_000
    assert max(flow.start_ns for flow in background) < 1_000_000


def test_hot_spots_have_hosts_of_their_own() -> None:
    """A restricted receiver, the last hosts of its leaf that send bursts, and a host of the next leaf that sends a long
    flow half a round earlier; the same ones through the run. Measured flows are of all other hosts.
    """
    flows = traffic(SPOTS, HOT)
    hot = {"h3": ("h6", "h5", "h4"), "h14": ("h18", "h17", "h16")}
    far = {"h3": "h12", "h14": "h2"}
    background = of_class(flows, BACKGROUND)
    rounds = range(20_000, 500_000, 20_000)
    bursts = Counter((*names(HOT, flow), flow.start_ns) for flow in background if flow.bytes == 64_000)
    assert bursts == {
        (server, receiver, start_ns): 2
        for receiver, servers in hot.items()
        for server in servers
        for start_ns in rounds
    }
    longs = {(*names(HOT, flow), flow.start_ns) for flow in background if flow.bytes == 1_000_000}
    assert longs == {(host, receiver, start - 10_000) for receiver, host in far.items() for start in rounds}
    busy = {*hot, *far.values(), *(server for servers in hot.values() for server in servers)}
    measured = of_class(flows, MONITORED)
    assert {name for flow in measured for name in names(HOT, flow)} == {f"h{i}" for i in range(1, 19)} - busy


def test_hot_spots_of_a_network_without_restricted_hosts() -> None:
    """The last host of each of the first leaves."""
    flows = of_class(
        traffic(SPOTS, parse_topology("leaf-spine:leaves=3,spines=4,hosts=6,rate=40Gbps")), BACKGROUND
    )
    assert {flow.bytes for flow in flows} == {64_000, 1_000_000}
    tree = parse_topology("leaf-spine:leaves=3,spines=4,hosts=6,rate=40Gbps")
    assert {names(tree, flow)[1] for flow in flows} == {"h6", "h12"}


def test_the_restricted_host_is_the_congested_receiver() -> None:
    """Where the topology restricts the paths to another host, the two do not go together."""
    other = parse_topology("leaf-spine:leaves=2,spines=4,hosts=8,rate=40Gbps,restricted=h14/2")
    with pytest.raises(
        SpecError, match="workload paused: the congested receiver is h13; restricted= names another"
    ):
        traffic(PAUSED, other)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (PAUSED.replace("servers=3", "servers=4"), "need 5 hosts at the first leaf and 9 at the second"),
        (PAUSED.replace("load=0.5", "load=1").replace("pairs=4", "pairs=2"), "allow at most 0.5"),
        (PAUSED.replace("duration=1ms", "duration=1ns"), "no flow starts within the duration"),
        (f"{BURSTY},every=1us", "workload poisson: every may only be given together with bursts"),
        (f"{BURSTY},bursts=4", "workload poisson: key 'every' is missing"),
        (f"{BURSTY},bursts=16,every=1us", "bursts must be at most 15, the number of hosts"),
        (f"{BURSTY},spots=2", "workload poisson: spots may only be given together with bursts"),
        (
            f"{BURSTY},bursts=2,every=1us,long=1MB",
            "workload poisson: long may only be given together with spots",
        ),
        (f"{BURSTY},bursts=2,every=1us,spots=1,from=any", "from must be leaf if spots is given,"),
        (f"{BURSTY},bursts=2,every=1us,spots=3", "spots must be no more than the 2 switches with hosts"),
        (f"{BURSTY},bursts=8,every=1us,spots=1", "bursts: leaf1 and leaf2 have too few hosts for a hot spot"),
        ("incast:degree=4,size=1KB,total=4KB", "workload incast: expected either size= or total="),
    ],
)
def test_bad_words(words: str, message: str) -> None:
    """One line that says what is wrong."""
    with pytest.raises(SpecError) as caught:
        traffic(words, WIDE)
    assert message in str(caught.value)


def test_load_of_the_fabric() -> None:
    """What crosses it asks for that share of all uplinks, whatever stays at a leaf comes on top."""
    flows = traffic("poisson:size=20KB,load=0.5,of=fabric,duration=5ms", OVERSUBSCRIBED).flows
    host = OVERSUBSCRIBED.host_by_ip
    crossing = sum(flow.bytes for flow in flows if host(flow.src).switch != host(flow.dst).switch)
    capacity = 4 * 2 * 40e9 / 8 * 5e-3
    assert 0.47 < crossing / capacity < 0.53
    staying = sum(flow.bytes for flow in flows) - crossing
    assert 0.2 < staying / crossing < 0.3, "3 of 15 partners are at the own leaf"


def test_hosts_cannot_carry_every_load_of_the_fabric() -> None:
    """With more uplinks than hosts, half of the fabric may be more than the hosts have."""
    wide = parse_topology("leaf-spine:leaves=2,spines=8,hosts=2,rate=40Gbps")
    words = "poisson:size=20KB,load=0.5,of=fabric,duration=1ms"
    with pytest.raises(SpecError, match=r"load of the fabric: the links of hosts carry at most 0\.167 of it"):
        traffic(words, wide)
    with pytest.raises(SpecError, match="load of the fabric: no flow crosses it"):
        traffic(words, parse_topology("leaf-spine:leaves=1,spines=1,hosts=4"))


def test_bursts_change_nothing_of_what_is_measured() -> None:
    """The Poisson flows are the same with and without; each burst has its receiver and as many senders."""
    plain = traffic(BURSTY, OVERSUBSCRIBED).flows
    with_bursts = traffic(f"{BURSTY},bursts=5,burst=2,every=100us,bytes=64KB", OVERSUBSCRIBED)
    assert of_class(with_bursts, MONITORED) == plain
    bursts: dict[int, list[FlowSpec]] = {}
    for flow in of_class(with_bursts, BACKGROUND):
        bursts.setdefault(flow.start_ns, []).append(flow)
    assert list(bursts) == [100_000, 200_000, 300_000, 400_000]
    for flows in bursts.values():
        assert len({flow.dst for flow in flows}) == 1
        assert set(Counter(flow.src for flow in flows).values()) == {2}
        assert (len(flows), {flow.bytes for flow in flows}) == (10, {64_000})


def test_bursts_within_a_leaf() -> None:
    """Their senders are neighbours of the receiver, as many as there are at most."""
    words = f"{BURSTY},every=100us,from=leaf,bursts="
    flows = of_class(traffic(f"{words}3", OVERSUBSCRIBED), BACKGROUND)
    ends = [[OVERSUBSCRIBED.host_by_ip(ip) for ip in (flow.src, flow.dst)] for flow in flows]
    assert len(ends) == 4 * 3
    assert all(a.switch == b.switch and a != b for a, b in ends)
    with pytest.raises(SpecError, match="bursts must be at most 3, the number of hosts"):
        traffic(f"{words}4", OVERSUBSCRIBED)


def test_an_incast_of_a_total() -> None:
    """Every responder sends the same share, rounded up (RLB §VI-B.3)."""
    flows = traffic("incast:degree=15,total=4MB", OVERSUBSCRIBED).flows
    assert [flow.bytes for flow in flows] == [-(-4_000_000 // 15)] * 15
