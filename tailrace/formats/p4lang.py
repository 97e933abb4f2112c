# SPDX-License-Identifier: Apache-2.0
"""topology.json of the p4lang tutorials.

    {"hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": [...]}},
     "switches": {"s1": {"cpu_port": 510, "priority_queues": 8, "role": "leaf", "group": 0}},
     "links": [["h1", "s1-p1"], ["s1-p2", "s2-p1", latency, bandwidth]]}

A latency is a number in ms, or a string with a unit (default: us), as for tc(8). A bandwidth is a number in
Mb/s, or a string with a unit. The default prefix length of an address is 8, as in Mininet. Names and ports
are kept; keys about running the exercise (programs, runtime files) are ignored. `role`, `tier` and `group` of
a switch are additions of this project (attributes.py). Of the commands of hosts, those that add routes and
ARP entries have an effect:

    route add default gw 10.0.1.10 dev eth0      ip route add 10.0.2.0/24 via 10.0.1.10
    arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00   ip neigh add 10.0.1.10 lladdr 08:00:00:00:01:00 dev eth0
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from tailrace.formats.attributes import address, mac_address, switch_data
from tailrace.formats.network import HostData, LinkData, NetworkData, Pairs, SwitchData
from tailrace.formats.p4lang_2018 import from_2018, has_ends
from tailrace.formats.registry import Format, Kind, Source, register
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

_DEFAULT_PREFIX_BITS = "8"
_MOST_COMMANDS = 1000
"""The most commands of one host."""

_NAME = "p4lang"
_PARTS = "hosts, switches and links"


def _recognises(source: Source) -> bool:
    return isinstance(source.json, list) or (isinstance(source.json, dict) and "nodes" not in source.json)


def _read(source: Source) -> NetworkData:
    return _Reader(source).read()


class _Reader:
    """Reads one file."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._hosts: dict[str, Any] = {}
        self._is_old = False

    def read(self) -> NetworkData:
        data = self._source.json
        if not isinstance(data, dict):
            raise self._source.error("", f"expected an object with {_PARTS}")
        for key, kind in (("hosts", dict | list), ("switches", dict), ("links", list)):
            if not isinstance(data.get(key), kind):
                what = "a list" if kind is list else "an object"
                other = "this is a p4-utils network (p4app.json), which is not read; " * ("topology" in data)
                problem = f"{other}expected {what}; the topology.json of the p4lang tutorials has {_PARTS}"
                raise self._source.error(key, problem)
        self._is_old = isinstance(data["hosts"], list)
        if self._is_old:
            data = from_2018(data, self._source.error)
        self._hosts = data["hosts"]
        switches = tuple(self._switch(name, fields) for name, fields in data["switches"].items())
        links = [self._link(f"links[{i}]", link, data["switches"]) for i, link in enumerate(data["links"])]
        return NetworkData(switches, tuple(map(self._host, self._hosts)), tuple(links))

    def _switch(self, name: str, fields: Any) -> SwitchData:
        given = fields if isinstance(fields, dict) else {}
        return switch_data(self._source, f"switches.{name[:64]}", name, given)

    def _link(self, where: str, link: Any, switches: dict[str, Any]) -> LinkData:
        if not has_ends(link):
            raise self._source.error(where, 'expected ["h1", "s1-p1", latency, bandwidth]')
        delay_ns = self._latency(where, link[2]) if len(link) > 2 else None
        rate_bps = self._bandwidth(where, link[3]) if len(link) > 3 and link[3] is not None else None
        a, b = (self._end(where, text, switches) for text in link[:2])
        return LinkData(where, *a, *b, rate_bps, delay_ns)

    def _end(self, where: str, text: str, switches: dict[str, Any]) -> tuple[str, int]:
        """(switch, port), or (host, 0)."""
        if text in self._hosts:
            return text, 0
        match = _SWITCH_END.fullmatch(text)
        if match is None or match[1] not in switches:
            problem = f"{text[:40]!r} is neither a host nor a port of a switch such as s1-p1"
            raise self._source.error(where, problem)
        if int(match[2]) < 1:
            raise self._source.error(where, f"{text!r}: ports count from 1")
        return match[1], int(match[2])

    def _host(self, name: str) -> HostData:
        fields = self._hosts[name] if isinstance(self._hosts[name], dict) else {}
        where = f"hosts.{name[:64]}"
        if self._is_old and not fields:
            return HostData(name, where)  # refused: it has no link to a switch
        ip, subnet = address(self._source, where, fields.get("ip"), _DEFAULT_PREFIX_BITS)
        mac = mac_address(self._source, where, fields.get("mac"))
        given = fields.get("commands")
        commands: list[Any] = given if isinstance(given, list) else []
        if len(commands) > _MOST_COMMANDS:
            problem = f"{len(commands)}; at most {_MOST_COMMANDS} are read"
            raise self._source.error(f"{where}.commands", problem)
        routes: Pairs = ()
        arp: Pairs = ()
        if subnet is not None:
            texts = (command for command in commands if isinstance(command, str))
            routes, arp = _routes_and_arp(subnet, texts)
        return HostData(name, where, ip=ip, mac=mac, routes=routes, arp=arp)

    def _latency(self, where: str, value: object) -> int:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _MAX_NUMBER:
            return round(value * _MS)
        if isinstance(value, str):
            with contextlib.suppress(UnitError, KeyError):
                number, unit = split(value)
                return exact_integer(number * _TC_NS[unit.lower()], value)
        expected = "a number of ms, or a string with a unit (default: us)"
        raise self._source.error(where, f"{repr(value)[:40]} is no latency; expected {expected}")

    def _bandwidth(self, where: str, value: object) -> int:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= _MAX_NUMBER:
            return round(value * _MBPS)
        if isinstance(value, str):
            with contextlib.suppress(UnitError):
                rate_bps = parse_rate_bps(value)
                if rate_bps > 0 and split(value)[1]:
                    return rate_bps
        expected = "a number of Mb/s, or a string with a unit, such as 1Gbps"
        raise self._source.error(where, f"{repr(value)[:40]} is no bandwidth; expected {expected}")


def _routes_and_arp(subnet: IPv4Network, commands: Iterable[str]) -> tuple[Pairs, Pairs]:
    """The fields `routes` and `arp` of a host that its commands add to; the first route is its subnet."""
    routes: dict[str, str] = {str(subnet): ""}
    arp: dict[str, str] = {}
    for command in commands:
        argv = [arg for arg in command.split() if arg != "sudo"]
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
    return tuple(routes.items()), tuple(arp.items())


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
    """The file of a network; times in ns and rates in bit/s, so that they are exact."""
    if data.latency_ns:
        raise SpecError(f"{_NAME}: switches cannot have a latency (latency=)")
    hosts = {host.name: _written_host(host) for host in data.hosts}
    switches = {}
    for switch in data.switches:
        fields = {"role": switch.role, "group": switch.group if switch.group >= 0 else None}
        fields |= {"cpu_port": switch.cpu_port, "priority_queues": switch.priority_queues}
        switches[switch.name] = {key: value for key, value in fields.items() if value not in (None, "")}
    links = [
        [*(f"{end}-p{port}" if port else end for end, port in ends), f"{delay_ns}ns", f"{rate_bps}bps"]
        for ends, delay_ns, rate_bps in (
            (((link.a, link.a_port), (link.b, link.b_port)), link.delay_ns, link.rate_bps)
            for link in data.links
        )
    ]
    parts = {"hosts": hosts, "switches": switches, "links": links}
    return json.dumps(parts, indent=1) + "\n"


def _written_host(host: HostData) -> dict[str, Any]:
    """A host; its first route is its subnet, from which the prefix length follows. Without routes it reaches
    nobody directly: 32.
    """
    subnet = host.routes[0][0] if host.routes else "/32"
    commands = [
        f"ip route add {prefix}" + (f" via {gateway}" if gateway else "")
        for prefix, gateway in host.routes[1:]
    ]
    commands += [f"ip neigh add {ip} lladdr {mac}" for ip, mac in host.arp]
    fields: dict[str, Any] = {"ip": host.ip + subnet[subnet.index("/") :], "mac": host.mac}
    return fields | ({"commands": commands} if commands else {})


register(Format(_NAME, Kind.TOPOLOGY, "topology.json of the p4lang tutorials", _recognises, _read, _write))
