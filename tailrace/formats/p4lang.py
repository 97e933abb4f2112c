# SPDX-License-Identifier: Apache-2.0
"""topology.json of the p4lang tutorials.

    {"hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": [...]}},
     "switches": {"s1": {"cpu_port": 510, "priority_queues": 8, "role": "leaf", "group": 0}},
     "links": [["h1", "s1-p1"], ["s1-p2", "s2-p1", latency, bandwidth]]}

A latency is a number in ms, or a string with a unit (default: us), as for tc(8). A bandwidth is a number in
Mb/s, or a string with a unit. The default prefix length of an address is 8, as in Mininet. Names and ports
are kept; keys about running the exercise (programs, runtime files) are ignored. `role`, `tier` and `group` of
a switch are additions of this project (network.py). Of the commands of hosts, those that add routes and
ARP entries have an effect:

    route add default gw 10.0.1.10 dev eth0      ip route add 10.0.2.0/24 via 10.0.1.10
    arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00   ip neigh add 10.0.1.10 lladdr 08:00:00:00:01:00 dev eth0
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from tailrace.formats.network import LinkData, NetworkData, NodeData, addresses, attributes, switch_data
from tailrace.formats.p4lang_2018 import from_2018, has_ends
from tailrace.formats.registry import Kind, Source, register
from tailrace.spec import SpecError, UnitError
from tailrace.spec.units import exact_integer, parse_rate_bps, split

_SWITCH_END = re.compile(r"(.+)-p([0-9]{1,6})")
_ARP_MAC = re.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}")

_MAX_NUMBER = 1e12
"""The largest latency in ms and bandwidth in Mb/s that a file may give as numbers."""

_MS = 1_000_000
_MBPS = 1_000_000

_TC_NS = {
    **dict.fromkeys(("ns", "nsec", "nsecs"), 1),
    **dict.fromkeys(("", "us", "usec", "usecs"), 10**3),
    **dict.fromkeys(("ms", "msec", "msecs"), 10**6),
    **dict.fromkeys(("s", "sec", "secs"), 10**9),
}
"""Units of time of tc(8), in ns; their case does not matter."""

_MOST_COMMANDS = 1000
"""The most commands of one host."""

_PARTS = "hosts, switches and links"


def _recognises(source: Source) -> bool:
    return source.json is not None and not (isinstance(source.json, dict) and "nodes" in source.json)


def _read(source: Source) -> NetworkData:
    data = source.json
    if not isinstance(data, dict):
        raise source.error("", f"expected an object with {_PARTS}")
    for key, kind in (("hosts", dict | list), ("switches", dict), ("links", list)):
        if not isinstance(data.get(key), kind):
            what = "a list" if kind is list else "an object"
            other = "this is a p4-utils network (p4app.json), which is not read; " * ("topology" in data)
            problem = f"{other}expected {what}; the topology.json of the p4lang tutorials has {_PARTS}"
            raise source.error(key, problem)
    data = from_2018(data, source.error) if isinstance(data["hosts"], list) else data
    switches = tuple(
        switch_data(source, f"switches.{name[:64]}", name, fields if isinstance(fields, dict) else {})
        for name, fields in data["switches"].items()
    )
    links = tuple(_link(source, f"links[{i}]", link, data) for i, link in enumerate(data["links"]))
    hosts = (_host(source, name, fields) for name, fields in data["hosts"].items())
    return NetworkData(switches, tuple(hosts), links)


def _host(source: Source, name: str, fields: Any) -> NodeData:
    fields = fields if isinstance(fields, dict) else {}
    where = f"hosts.{name[:64]}"
    ip, subnet, mac = addresses(source, where, fields, "8")
    commands = fields.get("commands")
    commands = commands if isinstance(commands, list) else []
    if len(commands) > _MOST_COMMANDS:
        raise source.error(f"{where}.commands", f"{len(commands)}; at most {_MOST_COMMANDS} are read")
    routes, arp = ({}, {}) if subnet is None else _routes_and_arp(subnet, commands)
    return NodeData(name, where, ip=ip, mac=mac, routes=tuple(routes.items()), arp=tuple(arp.items()))


def _link(source: Source, where: str, link: Any, data: dict[str, Any]) -> LinkData:
    if not has_ends(link):
        raise source.error(where, 'expected ["h1", "s1-p1", latency, bandwidth]')
    delay_ns = _latency(source, where, link[2]) if len(link) > 2 else None
    rate_bps = _bandwidth(source, where, link[3]) if len(link) > 3 and link[3] is not None else None
    ends: list[tuple[str, int]] = []
    for text in link[:2]:
        match = _SWITCH_END.fullmatch(text)
        if text in data["hosts"]:
            ends.append((text, 0))
        elif match is None or match[1] not in data["switches"]:
            raise source.error(where, f"{text[:40]!r} is neither a host nor a port of a switch such as s1-p1")
        elif int(match[2]) < 1:
            raise source.error(where, f"{text!r}: ports count from 1")
        else:
            ends.append((match[1], int(match[2])))
    return LinkData(where, *ends[0], *ends[1], rate_bps, delay_ns)


def _latency(source: Source, where: str, value: object) -> int:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _MAX_NUMBER:
        return round(value * _MS)
    if isinstance(value, str):
        with contextlib.suppress(UnitError, KeyError):
            number, unit = split(value)
            return exact_integer(number * _TC_NS[unit.lower()], value)
    raise source.error(where, f"{repr(value)[:40]} is no latency; expected ms, or a unit as in 5us")


def _bandwidth(source: Source, where: str, value: object) -> int:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= _MAX_NUMBER:
        return round(value * _MBPS)
    if isinstance(value, str):
        with contextlib.suppress(UnitError):
            rate_bps = parse_rate_bps(value)
            if rate_bps > 0 and split(value)[1]:
                return rate_bps
    raise source.error(where, f"{repr(value)[:40]} is no bandwidth; expected Mb/s, or a unit as in 1Gbps")


def _routes_and_arp(subnet: IPv4Network, commands: Sequence[Any]) -> tuple[dict[str, str], dict[str, str]]:
    """The fields `routes` and `arp` of a host that its commands add to; the first route is its subnet."""
    routes, arp = {str(subnet): ""}, dict[str, str]()
    for command in commands:
        argv = [arg for arg in str(command).split() if arg != "sudo"]
        argv[:1] = [name.rpartition("/")[2] for name in argv[:1]]
        try:
            if argv[:2] == ["route", "add"]:
                route = _route([arg for arg in argv[2:] if arg not in {"-net", "-host"}], "gw")
                routes.update([route])
            elif argv[:1] == ["arp"] and "-s" in argv:
                arp.update([_neighbour(argv[argv.index("-s") + 1 :], 1)])
            elif argv[:2] == ["ip", "route"] and argv[2:3] in (["add"], ["replace"]):
                routes.update([_route(argv[3:], "via")])
            elif argv[:1] == ["ip"] and "lladdr" in argv and argv[2:3] in (["add"], ["replace"]):
                arp.update([_neighbour(argv[3:], argv[3:].index("lladdr") + 1)])
        except (ValueError, IndexError):
            continue  # not about IPv4, or invalid
    return routes, arp


def _route(argv: Sequence[str], gateway: str) -> tuple[str, str]:
    """A prefix and its gateway; raises IndexError or ValueError for an invalid route."""
    prefix = "0.0.0.0/0" if argv[0] == "default" else argv[0]
    if "netmask" in argv:
        prefix += f"/{_after(argv, 'netmask')}"
    return str(IPv4Network(prefix)), str(IPv4Address(_after(argv, gateway))) if gateway in argv else ""


def _neighbour(argv: Sequence[str], mac: int) -> tuple[str, str]:
    """An IP address, argv[0], and its MAC address, argv[mac]; raises IndexError or ValueError if invalid."""
    if _ARP_MAC.fullmatch(argv[mac]) is None:
        raise ValueError(argv[mac])
    return str(IPv4Address(argv[0])), argv[mac].lower()


def _after(argv: Sequence[str], key: str) -> str:
    return argv[argv.index(key) + 1]


def _write(data: NetworkData) -> str:
    if data.latency_ns:
        raise SpecError("p4lang: switches cannot have a latency (latency=)")
    switches = {switch.name: attributes(switch) for switch in data.switches}
    links = []
    for link in data.links:
        ends = ((link.a, link.a_port), (link.b, link.b_port))
        texts = (f"{end}-p{port}" if port else end for end, port in ends)
        links.append([*texts, f"{link.delay_ns}ns", f"{link.rate_bps}bps"])
    hosts = {host.name: _written_host(host) for host in data.hosts}
    return json.dumps({"hosts": hosts, "switches": switches, "links": links}, indent=1) + "\n"


def _written_host(host: NodeData) -> dict[str, Any]:
    """A host; its first route is its subnet. Without routes it reaches nobody directly: 32 bits."""
    bits = host.routes[0][0].partition("/")[2] if host.routes else "32"
    routes = (f"ip route add {prefix}" + f" via {hop}" * bool(hop) for prefix, hop in host.routes[1:])
    arp = (f"ip neigh add {ip} lladdr {mac}" for ip, mac in host.arp)
    return {"ip": f"{host.ip}/{bits}", "mac": host.mac, "commands": [*routes, *arp]}


register("p4lang", Kind.TOPOLOGY, "topology.json of the p4lang tutorials", _recognises, _read, _write)
