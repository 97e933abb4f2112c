# SPDX-License-Identifier: Apache-2.0
"""topology.json of the p4lang tutorials is read, and what is wrong in it is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tailrace.topology import parse_topology
from tailrace.topology.model import Topology
from tailrace.words import SpecError


def pod() -> dict[str, Any]:
    """Two leaves with two hosts each and two spines, in the form of the tutorials' `basic` exercise."""
    hosts = {
        f"h{i}": {
            "ip": f"10.0.{i}.{i}/24",
            "mac": f"08:00:00:00:0{i}:{i}{i}",
            "commands": ["route add default"],
        }
        for i in (1, 2, 3, 4)
    }
    links: list[Any] = [["h1", "s1-p1"], ["h2", "s1-p2"], ["s1-p3", "s3-p1"], ["s1-p4", "s4-p2"]]
    links += [["h3", "s2-p1"], ["s2-p2", "h4"], ["s2-p3", "s4-p1", "2ms", 5], ["s2-p4", "s3-p2", 0.5, 0.25]]
    return {
        "hosts": hosts,
        "switches": {f"s{i}": {"runtime_json": f"s{i}.json"} for i in range(1, 5)},
        "links": links,
    }


def read(folder: Path, data: object, options: str = "") -> Topology:
    file = folder / "topology.json"
    file.write_text(json.dumps(data))
    return parse_topology(f"{file}{options}")


def test_read(tmp_path: Path) -> None:
    """Names, ports and addresses are kept; switches with hosts are leaves; units are those of the tutorials."""
    topology = read(tmp_path, pod(), ":rate=10Mbps,delay=3us")
    assert [("s1", "leaf"), ("s2", "leaf"), ("s3", "spine"), ("s4", "spine")] == [
        (switch.name, switch.role) for switch in topology.switches
    ]
    assert ("10.0.4.4", "08:00:00:00:04:44", "s2", 2) == (
        topology.host("h4").ip,
        topology.host("h4").mac,
        topology.host("h4").switch,
        topology.host("h4").port,
    )
    assert (10_000_000, 3_000) == (topology.host("h1").rate_bps, topology.host("h1").delay_ns)
    links = {(link.a, link.b): (link.rate_bps, link.delay_ns) for link in topology.links}
    assert (10_000_000, 3_000) == links["s1", "s3"]
    assert (5_000_000, 2_000_000) == links["s2", "s4"]
    assert (250_000, 500_000) == links["s2", "s3"]
    assert ["10.0.1.0/24", "10.0.2.0/24"] == [str(prefix) for prefix in topology.prefixes_of("s1")]


def test_missing_mac(tmp_path: Path) -> None:
    """A host without a MAC address gets one that holds its address."""
    data = pod()
    del data["hosts"]["h1"]["mac"]
    assert read(tmp_path, data).host("h1").mac == "02:00:0a:00:01:01"


def change(path: tuple[Any, ...], value: object) -> dict[str, Any]:
    data = pod()
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "expected an object with hosts, switches and links"),
        ({}, "hosts: expected an object"),
        (change(("links",), {}), "links: expected a list"),
        (change(("links", 0), ["h1"]), 'links[0]: expected ["h1", "s1-p1", latency, bandwidth]'),
        (change(("links", 0), ["h1", 7]), "links[0]: expected"),
        (change(("links", 0), ["h1", "s1"]), "links[0]: 's1' is neither a host nor a port of a switch"),
        (change(("links", 0), ["h1", "s9-p1"]), "links[0]: 's9-p1' is neither a host nor a port of a switch"),
        (change(("links", 0), ["h1", "s1-p0"]), "links[0]: 's1-p0': ports count from 1"),
        (change(("links", 0), ["h1", "h2"]), "links[0]: joins two hosts"),
        (change(("links", 1), ["h1", "s1-p2"]), "links[1]: h1 has a second link"),
        (change(("links", 4), ["s2-p1", "s3-p9"]), "hosts.h3: has no link"),
        (change(("links", 6), ["s2-p3", "s4-p1", "2m"]), "links[6]: '2m' is no latency"),
        (change(("links", 6), ["s2-p3", "s4-p1", -1]), "links[6]: -1 is no latency"),
        (change(("links", 6), ["s2-p3", "s4-p1", 0, 0]), "links[6]: 0 is no bandwidth"),
        (change(("links", 6), ["s2-p3", "s4-p1", 0, "5"]), "links[6]: '5' is no bandwidth"),
        (change(("hosts", "h1", "ip"), 5), "hosts.h1.ip: expected an address"),
        (change(("hosts", "h1", "ip"), "10.0.1/24"), "h1: '10.0.1' is no IPv4 address"),
        (change(("hosts", "h1", "ip"), "10.0.1.1/33"), "hosts.h1.ip: '33': expected a prefix length"),
        (change(("hosts", "h1", "ip"), "10.0.1.1/"), "hosts.h1.ip: '': expected a prefix length"),
        (change(("hosts", "h1", "ip"), "10.0.1.1/24\n"), "hosts.h1.ip: '24\\n': expected a prefix length"),
        (change(("hosts", "h1", "ip"), "224.0.0.5/24"), "h1: 224.0.0.5 is no address that a host can have"),
        (change(("hosts", "h1", "ip"), "0.0.0.0"), "h1: 0.0.0.0 is no address that a host can have"),
        (change(("hosts", "h1", "ip"), "127.0.0.1/8"), "h1: 127.0.0.1 is no address that a host can have"),
        (change(("hosts", "h1", "mac"), "08:00"), "hosts.h1.mac: expected an address"),
        (
            change(("hosts", "h1", "mac"), "01:00:5e:00:00:01"),
            "hosts.h1.mac: expected an address of one host",
        ),
        (
            change(("hosts", "h1", "mac"), "00:00:00:00:00:00"),
            "hosts.h1.mac: expected an address of one host",
        ),
        (change(("hosts", "h1"), None), "hosts.h1.ip: expected an address"),
        (change(("links", 7), ["s3-p4", "s4-p4"]), None),
        (change(("switches", "s5"), {}), "not connected: there is no path from s1 to s5"),
    ],
)
def test_refusals(tmp_path: Path, data: object, message: str | None) -> None:
    """A bad file is refused in one line with file and key (one of the cases is good)."""
    if message is None:
        assert len(read(tmp_path, data).links) == 4
        return
    with pytest.raises(SpecError) as caught:
        read(tmp_path, data)
    assert message in str(caught.value)
    assert "topology.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreadable(tmp_path: Path) -> None:
    """No file, no JSON and no text are told apart; JSON errors have their line."""
    with pytest.raises(SpecError, match="No such file"):
        parse_topology(str(tmp_path / "none.json"))
    bad = tmp_path / "bad.json"
    bad.write_text('{"hosts": {},\n "links": }')
    with pytest.raises(SpecError, match=r"bad\.json: line 2: "):
        parse_topology(str(bad))
    bad.write_text('{"hosts": {"h1": {}, "h1": {}}}')
    with pytest.raises(SpecError, match=r'bad\.json: key "h1" stands twice'):
        parse_topology(str(bad))
    # a million keys are read once, not each of them once for every other
    bad.write_text("{" + ",".join(f'"{number}":0' for number in range(1_000_000)) + ',"999999":0}')
    with pytest.raises(SpecError, match=r'bad\.json: key "999999" stands twice'):
        parse_topology(str(bad))
    bad.write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match="not UTF-8 text"):
        parse_topology(str(bad))
    bad.write_text("[" * 100_000)
    with pytest.raises(SpecError, match=r"bad\.json: "):
        parse_topology(str(bad))
    with pytest.raises(SpecError, match="unknown key 'speed'"):
        read(tmp_path, pod(), ":speed=1")
