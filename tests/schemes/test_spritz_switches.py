# SPDX-License-Identifier: Apache-2.0
"""Real packets through the compiled program `spritz` with what the controller writes: every EV of every list takes
exactly the path that the list says, and whatever switches draw keeps the bounds.
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.controller.inspect.steered_paths import check_lists, check_sample, walker_of
from tailrace.schemes.registry import parse_scheme
from tailrace.topology import Topology, parse_topology
from tailrace.topology.paths.bounded import BoundedPaths
from tests.controller.inspect.test_dragonfly_paths import InProcess
from tests.flowcut.fabric import build, control
from tests.flowcut.frames import ROCE, UDP
from tests.flowcut.sources import Packet, Script, attach
from tests.p4src.dragonfly_ways import Way, Ways
from tests.schemes.planned import endpoint_paths
from tests.topology.following import follow

LINKS = "rate=10Gbps"
SMALL = (
    f"dragonfly:p=1,a=3,h=1,{LINKS}",
    f"dragonfly:p=1,a=4,h=2,groups=3,{LINKS}",
    f"dragonfly:p=1,a=4,h=1,groups=1,{LINKS}",
    f"dragonfly:p=1,a=3,h=2,groups=5,{LINKS}",
    f"slim-fly:p=1,q=3,{LINKS}",
    f"fat-tree:k=4,hosts=1,{LINKS}",
    f"leaf-spine:leaves=3,spines=2,hosts=1,{LINKS}",
    str(Path(__file__).parents[1] / "flowcut" / "irregular.json"),
)
GAP_NS = 10_000
PAYLOAD = Packet(GAP_NS, 200)
TO_ROCE = (ROCE, UDP)


def run(topology: Topology, scheme: str, scripts: list[Script]) -> Ways:
    """The ways of all packets."""
    with build(topology, parse_scheme(scheme), seed=3) as network:
        attach(network, scripts)
        ways = Ways(network)
        assert network.run()
        return ways


@pytest.mark.parametrize("words", SMALL)
def test_every_ev_takes_its_path(words: str) -> None:
    """All pairs, all EVs of their lists."""
    topology = parse_topology(words)
    paths = BoundedPaths(topology)
    expected = {
        (src.ip, dst.ip, path.ev, *TO_ROCE): (src, dst, path)
        for src, dst in permutations(topology.hosts, 2)
        for path in paths.between(src.switch, dst.switch)
    }
    scripts = [
        Script(src.name, dst.name, path.ev, *TO_ROCE, GAP_NS * number, (PAYLOAD,))
        for number, (src, dst, path) in enumerate(expected.values())
    ]
    ways = run(topology, "spritz:queue=1MB", scripts)
    taken = {key: (way.host, tuple(way.switches)) for (key, _), way in ways.of.items()}
    assert {key: (dst.name, path.switches) for key, (_, dst, path) in expected.items()} == taken


def scattered(topology: Topology, count: int) -> list[Script]:
    """So many packets between each two hosts, each with an EV of its own."""
    return [
        Script(
            src.name, dst.name, (7919 * (number + pair) + 1) % 65_535 + 1, *TO_ROCE, GAP_NS * pair, (PAYLOAD,)
        )
        for pair, (src, dst) in enumerate(permutations(topology.hosts, 2))
        for number in range(count)
    ]


def follows_the_rules(topology: Topology, way: Way, dst: str) -> bool:
    """Whether it ends at its host, within the bounds; in a Slim Fly it may come back once."""
    within, between = way.links(topology)
    if topology.kind == "slim-fly":
        return way.host == dst and len(way.switches) <= 5
    once = len(set(way.switches)) == len(way.switches)
    return way.host == dst and once and within <= 3 and between <= 2


@pytest.mark.parametrize("words", [SMALL[0], SMALL[1], SMALL[4]])
@pytest.mark.parametrize("scheme", ["ops", "valiant:draw=hop", "ugal-l:draw=hop", "minimal:draw=hop"])
def test_any_ev_and_any_draw_arrives(words: str, scheme: str) -> None:
    """Nothing loops; EVs go where topology.paths.bounded says, and minimal routing as the default tables."""
    topology = parse_topology(words)
    paths = BoundedPaths(topology)
    ways = run(topology, f"{scheme}{',' if ':' in scheme else ':'}queue=1MB", scattered(topology, 3))
    assert 3 * len(topology.hosts) * (len(topology.hosts) - 1) == len(ways.of)
    lengths = set()
    for ((src_ip, dst_ip, ev, *_), _), way in ways.of.items():
        src, dst = topology.host_by_ip(src_ip), topology.host_by_ip(dst_ip)
        assert follows_the_rules(topology, way, dst.name)
        lengths.add(len(way.switches) - 1)
        if scheme == "ops":
            path = follow(paths, src.switch, dst.switch, ev)
            assert path is not None
            assert path.switches == tuple(way.switches)
        elif scheme.startswith("minimal"):
            assert paths.default_links(src.switch, dst.switch) == len(way.switches) - 1
    minimal = 2 if topology.kind == "slim-fly" else 3
    assert (max(lengths) > minimal) == scheme.startswith(("ops", "valiant"))


@pytest.mark.parametrize("words", [SMALL[1], SMALL[4], SMALL[7]])
def test_check_reads_live_switches(words: str) -> None:
    """All lists agree with what switches hold, over P4Runtime; and with other entries they do not."""
    topology, scheme = parse_topology(words), parse_scheme("spritz")
    endpoints = endpoint_paths(topology, scheme)
    pairs = [(src, dst) for src, dst in permutations(topology.hosts, 2) if src.switch != dst.switch]
    with build(topology, scheme) as network:
        nodes = {
            s.name: InspectedSwitch(s.name, InProcess(network, s.name, "spritz")) for s in topology.switches
        }
        report = check_lists(endpoints, walker_of(topology, nodes), pairs)
        total = sum(len(endpoints.of(src.ip, dst.ip).evs) for src, dst in pairs)
        assert (total, 0) == (sum_of(report, "walked"), sum_of(report, "different"))
        sample = check_sample(endpoints, walker_of(topology, nodes), pairs, 50)
        assert (50, 0) == (sum_of(sample, "walked"), sum_of(sample, "different"))
        link = topology.links[0]
        repaired = parse_scheme("spritz:repair=on")
        control(network, repaired, frozenset({(link.a, link.a_port)}))
        changed = check_lists(endpoints, walker_of(topology, nodes), pairs)
        assert 0 < sum_of(changed, "different") < total
        note = next(str(row["note"]) for row in changed.rows if row["different"])
        assert note.startswith("EV ")
        assert " goes " in note


def sum_of(listing, column: str) -> int:
    """All cells of a column together."""
    return sum(row[column] for row in listing.rows)
