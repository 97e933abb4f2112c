# SPDX-License-Identifier: Apache-2.0
"""topology.json of the p4lang tutorials is read, and what is wrong in it is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tailrace.spec import SpecError
from tailrace.topology import GATEWAY_MAC, parse_topology
from tailrace.topology.model import Topology


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


def test_switches(tmp_path: Path) -> None:
    """CPU port and queues of a switch are those of the file, as numbers or as texts."""
    data = pod()
    data["switches"] = {
        "s1": {"cpu_port": "510", "priority_queues": 8},
        "s2": {"cpu_port": 255},
        "s3": {"cpu_port": None},
        "s4": {},
    }
    switches = read(tmp_path, data).switches
    assert [(510, 8), (255, None), (None, None), (None, None)] == [
        (s.cpu_port, s.priority_queues) for s in switches
    ]


@pytest.mark.parametrize(
    ("latency", "delay_ns"),
    [
        ("500", 500_000), ("0", 0), ("0.25", 250), ("2us", 2_000), ("2 usecs", 2_000), ("3MS", 3_000_000),
        ("1msec", 1_000_000), ("7ns", 7), ("1s", 10**9), ("1.5secs", 1_500_000_000), (2, 2_000_000), (0.5, 500_000),
    ],
)  # fmt: skip
def test_latencies(tmp_path: Path, latency: object, delay_ns: int) -> None:
    """Texts mean what tc makes of them, numbers are ms."""
    (link,) = (
        link
        for link in read(tmp_path, change(("links", 2, 2), latency, room=3)).links
        if link.b == "s3" and link.a == "s1"
    )
    assert delay_ns == link.delay_ns


@pytest.mark.parametrize(
    ("bandwidth", "rate_bps"),
    [
        (5, 5_000_000),
        (0.5, 500_000),
        ("1Gbps", 10**9),
        ("512 kbps", 512_000),
        ("9bps", 9),
        (None, 200 * 10**9),
    ],
)
def test_bandwidths(tmp_path: Path, bandwidth: object, rate_bps: int) -> None:
    """Numbers are Mb/s, texts have units; null is none."""
    data = change(("links", 2), ["s1-p3", "s3-p1", 0, bandwidth])
    (link,) = (link for link in read(tmp_path, data).links if (link.a, link.b) == ("s1", "s3"))
    assert rate_bps == link.rate_bps


# ---- the form until 2018 ----


def old() -> dict[str, Any]:
    """The tutorials' exercise `mri` of 2018: names that sort otherwise than numbers, ends in either order."""
    links: list[Any] = [["h1", "s1"], ["h11", "s1"], ["s1", "s2", "0", 0.5], ["s1", "s3"], ["s3", "s2"]]
    links += [["s2", "h2"], ["s2", "h22"], ["s3", "h3"]]
    switches = {name: {"cli_input": f"{name}-commands.txt"} for name in ("s1", "s2", "s3")}
    return {"hosts": ["h1", "h2", "h3", "h11", "h22"], "switches": switches, "links": links}


def test_form_until_2018(tmp_path: Path) -> None:
    """Addresses and ports are those that the tutorials' program gave: worked out by hand from its text."""
    topology = read(tmp_path, old())
    assert {
        "h1": ("10.0.1.1", "00:00:00:00:01:01", "s1", 2),
        "h11": ("10.0.1.11", "00:00:00:00:01:0b", "s1", 1),
        "h2": ("10.0.2.2", "00:00:00:00:02:02", "s2", 2),
        "h22": ("10.0.2.22", "00:00:00:00:02:16", "s2", 1),
        "h3": ("10.0.3.3", "00:00:00:00:03:03", "s3", 1),
    } == {host.name: (host.ip, host.mac, host.switch, host.port) for host in topology.hosts}
    assert {
        ("s1", 3, "s2", 3, 500_000, 0),
        ("s1", 4, "s3", 2, 200 * 10**9, 1_000),
        ("s2", 4, "s3", 3, 200 * 10**9, 1_000),
    } == {(link.a, link.a_port, link.b, link.b_port, link.rate_bps, link.delay_ns) for link in topology.links}
    assert "00:00:00:00:01:01" == topology.next_hop_mac("h1", "h3")
    assert "00:00:00:00:01:0b" == topology.next_hop_mac("h1", "h11")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("hosts",), [], "links[1]: 'h11' is neither a host nor a switch; if hosts are a list"),
        (("hosts", 0), 1, "hosts: 1: in a list of hosts, expected names such as h1"),
        (("hosts", 0), "x1", "hosts: 'x1': in a list of hosts, expected names such as h1"),
        (("hosts", 0), "h256", "hosts: 'h256': in a list of hosts"),
        (("hosts", 0), "h2", "hosts: h2 occurs twice"),
        (("hosts", 0), "h4", "links[0]: 'h1' is neither a host nor a switch"),
        (("links", 0), ["h1", "s1-p1"], "links[0]: 's1-p1' is neither a host nor a switch; if hosts are"),
        (("links", 0), ["h1"], 'links[0]: expected ["h1", "s1-p1", latency, bandwidth]'),
        (("links", 0), 7, 'links[0]: expected ["h1", "s1-p1", latency, bandwidth]'),
        (("links", 1), ["h1", "s2"], "h1 has a second link"),
        (("links", 0), ["h1", "h2"], "links[0]: joins two hosts"),
        (("links", 0), ["s1", "s1"], "hosts.h1"),
        (("links", 2), ["s1", "s2", "soon"], "links[2]: 'soon' is no latency"),
    ],
)
def test_refusals_of_the_form_until_2018(
    tmp_path: Path, path: tuple[Any, ...], value: object, message: str
) -> None:
    """Keys are those of the file, not of what becomes of it."""
    with pytest.raises(SpecError) as caught:
        read(tmp_path, change(path, value, old()))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- where hosts send frames ----


def test_gateways_and_neighbours(tmp_path: Path) -> None:
    """In its subnet a host sends to the other host, else to the gateway of the longest prefix, by its ARP entries."""
    data = pod()
    for name, (ip, *commands) in {
        "h1": ("10.0.1.1/24", "route add default gw 10.0.1.10 dev eth0", "arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00"),
        "h2": ("10.0.1.2/24", "ip route add 10.0.3.0/24 via 10.0.1.1", "sudo /usr/sbin/arp -s 10.0.1.1 0A:00:00:00:00:01 -i eth0"),
        "h3": ("10.0.3.3/31", "route add -net 10.0.0.0 netmask 255.255.0.0 gw 10.0.3.2", "ip neigh add 10.0.3.2 lladdr 0a:00:00:00:00:02 dev eth0"),
        "h4": ("10.0.4.4", "echo arp -s", "", "route add default", "ip route add ::/0 via ::1", "arp -s 10.0.1.1 x", 5),
    }.items():  # fmt: skip
        data["hosts"][name] |= {"ip": ip, "commands": commands}
    topology = read(tmp_path, data)
    assert "08:00:00:00:02:22" == topology.next_hop_mac("h1", "h2")
    assert "08:00:00:00:01:00" == topology.next_hop_mac("h1", "h3")
    assert "0a:00:00:00:00:01" == topology.next_hop_mac("h2", "h1"), "static entries go before the host's own"
    assert "0a:00:00:00:00:01" == topology.next_hop_mac("h2", "h3"), "a host as gateway"
    assert GATEWAY_MAC == topology.next_hop_mac("h2", "h4"), "nothing tells"
    assert "0a:00:00:00:00:02" == topology.next_hop_mac("h3", "h1")
    assert "08:00:00:00:01:11" == topology.next_hop_mac("h4", "h1"), "without a prefix length it has 8"
    generated = parse_topology("leaf-spine:leaves=2,spines=1,hosts=2")
    assert GATEWAY_MAC == generated.next_hop_mac("h1", "h2"), "programs of ours route within a leaf, too"


# ---- other formats ----


def test_other_formats_are_refused_by_name(tmp_path: Path) -> None:
    """One line names the format, and what is expected."""
    p4app = {
        "p4_src": "l2.p4",
        "topology": {"links": [["h1", "s1"]], "hosts": {"h1": {}}, "switches": {"s1": {}}},
    }
    with pytest.raises(
        SpecError,
        match=r"hosts: .*p4-utils network \(p4app\.json\).*expected an object; .*hosts, switches and links",
    ):
        read(tmp_path, p4app)


def test_roles_tiers_and_groups(tmp_path: Path) -> None:
    """Of the file, or from the distance to hosts; with three levels they are edge, agg and core."""
    data = pod()
    data["switches"]["s5"] = {"group": "4"}
    data["links"].append(["s3-p7", "s5-p1"])
    assert [switch.role for switch in read(tmp_path, data).switches] == ["edge", "edge", "agg", "agg", "core"]
    data["switches"] |= {"s1": {"role": "router"}, "s4": {"tier": 2}}
    switches = read(tmp_path, data).switches
    assert [switch.role for switch in switches] == ["router", "edge", "agg", "core", "core"]
    assert [switch.group for switch in switches] == [-1, -1, -1, -1, 4]


def change(
    path: tuple[Any, ...], value: object, data: dict[str, Any] | None = None, room: int = 0
) -> dict[str, Any]:
    """A file with another value; lists get as much room as is wanted."""
    data = pod() if data is None else data
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    if room:
        place += [None] * (room - len(place))
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
        (change(("links", 6), ["s2-p3", "s4-p1", 0, "0Gbps"]), "links[6]: '0Gbps' is no bandwidth"),
        (change(("links", 6), ["s2-p3", "s4-p1", None]), "links[6]: None is no latency"),
        (change(("switches", "s1", "cpu_port"), "none"), "switches.s1.cpu_port: 'none': expected 1"),
        (change(("switches", "s1", "cpu_port"), 512), "switches.s1.cpu_port: 512: expected 1"),
        (change(("switches", "s1", "cpu_port"), True), "switches.s1.cpu_port: True: expected"),
        (change(("switches", "s1", "cpu_port"), "9" * 5000), "switches.s1.cpu_port: '999"),
        (change(("switches", "s1", "role"), "hub"), "switches.s1.role: 'hub': expected one of leaf, spine"),
        (change(("switches", "s1", "tier"), "top"), "switches.s1.tier: 'top': expected 0 to 9"),
        (change(("switches", "s1", "priority_queues"), 0), "switches.s1.priority_queues: 0:"),
        (change(("switches", "s1", "priority_queues"), [8]), "switches.s1.priority_queues: [8]: expected"),
        (change(("hosts", "h1", "ip"), 5), "hosts.h1.ip: expected an address"),
        (change(("hosts", "h1", "ip"), "10.0.1/24"), "h1: '10.0.1' is no IPv4 address"),
        (change(("hosts", "h1", "ip"), "10.0.1.1/33"), "hosts.h1.ip: '33': expected a prefix length"),
        (change(("hosts", "h1", "ip"), "10.0.1.1/"), "hosts.h1.ip: '': expected a prefix length"),
        (change(("hosts", "h1", "ip"), "10.0.1.1/24\n"), "hosts.h1.ip: '24\\n': expected a prefix length"),
        (change(("hosts", "h1", "ip"), "224.0.0.5/24"), "h1: 224.0.0.5 is no address that a host can have"),
        (change(("hosts", "h1", "ip"), "0.0.0.0"), "h1: 0.0.0.0 is no address that a host can have"),
        (change(("hosts", "h1", "ip"), "127.0.0.1/8"), "h1: 127.0.0.1 is no address that a host can have"),
        (change(("hosts", "h1", "mac"), "08:00"), "hosts.h1.mac: expected a unicast address"),
        (change(("hosts", "h1", "mac"), "01:00:5e:00:00:01"), "hosts.h1.mac: expected a unicast address"),
        (change(("hosts", "h1", "mac"), "00:00:00:00:00:00"), "hosts.h1.mac: expected a unicast address"),
        (change(("hosts", "h1"), None), "hosts.h1.ip: expected an address"),
        (change(("hosts", "h1", "commands"), ["ls"] * 1001), "hosts.h1.commands: 1001; at most 1000 are"),
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
    with pytest.raises(SpecError, match=r'bad\.json: key "h1" occurs twice'):
        parse_topology(str(bad))
    # a million keys are read once, not each of them once for every other
    bad.write_text("{" + ",".join(f'"{number}":0' for number in range(1_000_000)) + ',"999999":0}')
    with pytest.raises(SpecError, match=r'bad\.json: key "999999" occurs twice'):
        parse_topology(str(bad))
    bad.write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match="not UTF-8 text"):
        parse_topology(str(bad))
    bad.write_text("[" * 100_000)
    with pytest.raises(SpecError, match=r"bad\.json: "):
        parse_topology(str(bad))
    with pytest.raises(SpecError, match="unknown key 'speed'"):
        read(tmp_path, pod(), ":speed=1")
