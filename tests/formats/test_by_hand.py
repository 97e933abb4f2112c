# SPDX-License-Identifier: Apache-2.0
"""Each format against readings by hand of two files; each file is recognised as one format, whatever its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tailrace.formats.registry import Kind, Source, formats, read_file
from tailrace.spec.errors import FileError
from tailrace.topology import parse_topology
from tests.formats.examples import DISTRIBUTIONS, NETWORKS, TEXTS, WORKLOADS, Network


def cases(group: dict[str, Any]) -> list[tuple[str, str, Any]]:
    return [(name, text, expected) for name, pairs in group.items() for text, expected in pairs]


def test_every_format_has_examples() -> None:
    assert {each.name for each in formats()} == TEXTS.keys()
    assert min(len(texts) for texts in TEXTS.values()) == 2


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in TEXTS for text in TEXTS[name]])
def test_one_format_recognises_a_file(name: str, text: str) -> None:
    for content in (text, text.replace("\n", "\r\n"), "\n" + text):
        source = Source(Path("x"), text=content)
        assert [each.name for each in formats() if each.recognises(source)] == [name]


@pytest.mark.parametrize(("name", "text", "expected"), cases(NETWORKS))
def test_networks(name: str, text: str, expected: Network, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.any"
    path.write_text(text)
    topology = parse_topology(str(path))
    hosts = [(host.name, host.id - 1, host.switch, host.rate_bps, host.delay_ns) for host in topology.hosts]
    switches = [(switch.name, switch.role, switch.group) for switch in topology.switches]
    links = [(link.a, link.b, link.rate_bps, link.delay_ns) for link in topology.links]
    assert Network(hosts, switches, links, topology.latency_ns) == expected


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [(Kind.WORKLOAD, *case[1:]) for case in cases(WORKLOADS)]
    + [(Kind.SIZES, *case[1:]) for case in cases(DISTRIBUTIONS)],
)
def test_flows_and_sizes(kind: Kind, text: str, expected: Any, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    assert read_file(path, kind)[1] == expected


def test_ports_and_addresses_are_completed(tmp_path: Path) -> None:
    """Free ports in the order of links; a prefix for each switch with hosts."""
    path = tmp_path / "x.json"
    path.write_text(NETWORKS["node-link"][0][0].replace('"delay": 500', '"node1": "t0", "port1": 2'))
    topology = parse_topology(str(path))
    assert [(link.a_port, link.b_port) for link in topology.links] == [(1, 2)]
    assert [(host.port, host.ip, host.mac) for host in topology.hosts] == [
        (2, "10.0.1.2", "02:00:0a:00:01:02"),
        (1, "10.9.0.1", "02:00:0a:09:00:01"),
    ]


def test_p4_utils_keys(tmp_path: Path) -> None:
    """topology.json as p4-utils saves it: `node1` may be the target of an edge."""
    path = tmp_path / "topology.json"
    path.write_text(
        """{"directed": false, "graph": {}, "multigraph": false,
        "nodes": [{"cls": null, "isHost": true, "defaultRoute": "via 10.1.0.1", "mac": "00:00:0a:01:00:02",
                   "ip": "10.1.0.2/24", "id": "h0"},
                  {"isP4Switch": true, "isSwitch": true, "cpu_port": true, "cpu_port_num": 5, "id": "s1"},
                  {"isHost": true, "ip": "10.1.0.3/24", "id": "h1"}],
        "links": [{"weight": 1, "node1": "s1", "node2": "h0", "port1": 4, "port2": 0, "ip1": null, "bw": 10.0,
                   "delay": "2.5ms", "source": "h0", "target": "s1"},
                  {"node1": "h1", "node2": "s1", "port1": 0, "port2": 2, "source": "h1", "target": "s1"}]}"""
    )
    topology = parse_topology(str(path))
    first, second = topology.hosts
    assert (first.port, first.rate_bps, first.delay_ns, second.port) == (4, 10**7, 2_500_000, 2)
    assert first.routes == (("10.1.0.0/24", ""), ("0.0.0.0/0", "10.1.0.1"))
    assert topology.switches[0].cpu_port == 5
    assert topology.next_hop_mac("h0", "h1") == second.mac


@pytest.mark.parametrize(
    ("kind", "name", "title"),
    [
        (Kind.TOPOLOGY, "htsim-cm", "connection matrix of htsim"),
        (Kind.WORKLOAD, "sizes", "two columns"),
        (Kind.SIZES, "p4lang", "topology.json of the p4lang tutorials"),
    ],
)
def test_another_kind_is_named(kind: Kind, name: str, title: str, tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(TEXTS[name][0])
    with pytest.raises(
        FileError, match=rf"x\.txt: {name}: {title}.* describes a .*, expected a {kind.value}"
    ):
        read_file(path, kind)
    path.write_text("what is this?")
    with pytest.raises(FileError, match=rf"line 1: no known format of a {kind.value}; known are "):
        read_file(path, kind)
