# SPDX-License-Identifier: Apache-2.0
"""Reads topology.json in the form of the p4lang tutorials.

    {"hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": [...]}},
     "switches": {"s1": {"cpu_port": 510, "priority_queues": 8}},
     "links": [["h1", "s1-p1"], ["s1-p2", "s2-p1", latency, bandwidth]]}

A latency is a number in ms, or a string with a unit (default: us), as for tc(8). A bandwidth is a number in
Mb/s, or a string with a unit. The default prefix length of an address is 8, as in Mininet. Names and ports
are kept. A switch's `program`, `cli_input` and `runtime_json` are kept for the scheme `program`. Of the
commands of hosts, those that add routes and ARP entries have an effect:

    route add default gw 10.0.1.10 dev eth0      ip route add 10.0.2.0/24 via 10.0.1.10
    arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00   ip neigh add 10.0.1.10 lladdr 08:00:00:00:01:00 dev eth0
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from tailrace.spec import Spec, SpecError, UnitError
from tailrace.spec.files import json_object, text_of
from tailrace.spec.keys import read
from tailrace.spec.units import exact_integer, parse_rate_bps, split
from tailrace.topology.families.build import check_size, host_mac
from tailrace.topology.families.options import LinkOptions
from tailrace.topology.families.tutorials_2018 import from_2018, has_ends
from tailrace.topology.model import Host, Link, Switch, Topology

_SWITCH_END = re.compile(r"(.+)-p([0-9]{1,6})")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
"""Names of switches and hosts, which become parts of file and interface names."""

_IP = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_PREFIX_BITS = re.compile(r"[0-9]|[12][0-9]|3[0-2]")
_MAC = re.compile(r"(?!00(?::00){5})[0-9A-Fa-f][02468ACEace](?::[0-9A-Fa-f]{2}){5}")
"""A unicast MAC address that is not all zeros."""

_ARP_MAC = re.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}")

Pairs = tuple[tuple[str, str], ...]
"""Prefixes with gateways ("": hosts are reached directly), or IP addresses with MAC addresses."""

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

_MOST_CPU_PORT, _MOST_QUEUES = 511, 8
"""Ports of v1model have 9 bits, priorities 3."""

_ENTRIES = ("cli_input", "runtime_json")
"""A switch's files of entries, in the order in which the tutorials' tool executes them."""

_MOST_PATH = 4096

_DEFAULT_PREFIX_BITS = "8"
_MOST_COMMANDS = 1000
"""The most commands of one host."""

_FORMAT = "the topology.json of the p4lang tutorials has hosts, switches and links"
_OTHER_FORMATS = {
    "nodes": "this is a node-link graph, as NetworkX writes it; docs/experiments.md shows how to convert it",
    "topology": "this is a p4-utils network (p4app.json), which is not read",
}
"""Names of other formats, by a key that only they have."""


class _TutorialReader:
    """Reads one file; every error names the file and the key."""

    def __init__(self, spec: Spec) -> None:
        self._file = spec.name
        self._options = read(spec, LinkOptions)
        self._switches: dict[str, Switch] = {}
        self._hosts: dict[str, Any] = {}
        self._host_ids: dict[str, int] = {}
        self._attached: dict[str, Host] = {}
        self._links: list[Link] = []

    def error(self, key: str, problem: str) -> SpecError:
        return SpecError(f"{self._file}: {key}: {problem}")

    def read(self, spec: Spec) -> Topology:
        data = self._load()
        for key, kind in (("hosts", dict | list), ("switches", dict), ("links", list)):
            if not isinstance(data.get(key), kind):
                what = "a list" if kind is list else "an object"
                other = next((f"{text}; " for name, text in _OTHER_FORMATS.items() if name in data), "")
                raise self.error(key, f"{other}expected {what}; {_FORMAT}")
        check_size(
            f"topology {self._file}",
            switches=len(data["switches"]),
            hosts=len(data["hosts"]),
            links=len(data["links"]),
        )
        if isinstance(data["hosts"], list):
            data = from_2018(data, self.error)
        self._hosts = data["hosts"]
        names = list(data["switches"])
        for key, names_of_kind in (("hosts", self._hosts), ("switches", names)):
            for name in names_of_kind:
                if _NAME.fullmatch(name) is None:
                    raise self.error(key, f"{name[:40]!r}: expected a name of letters, digits and _.-")
        self._host_ids = {name: host_id for host_id, name in enumerate(self._hosts, 1)}
        known = set(names)
        for index, link in enumerate(data["links"]):
            self._link(f"links[{index}]", link, known)
        with_hosts = {host.switch for host in self._attached.values()}
        for switch_id, name in enumerate(names, 1):
            fields = data["switches"][name]
            cpu_port = self._number(name, fields, "cpu_port", _MOST_CPU_PORT)
            queues = self._number(name, fields, "priority_queues", _MOST_QUEUES)
            role = "leaf" if name in with_hosts else "spine"
            program, *entries = (self._path(name, fields, key) for key in ("program", *_ENTRIES))
            self._switches[name] = Switch(
                name,
                switch_id,
                role,
                cpu_port=cpu_port,
                priority_queues=queues,
                program=program,
                entries=tuple(filter(None, entries)),
            )
        for name in self._hosts:
            if name not in self._attached:
                raise self.error(f"hosts.{name}", "has no link")
        hosts = tuple(self._attached[name] for name in self._hosts)
        switches, links = tuple(self._switches.values()), tuple(self._links)
        return Topology(self._file, str(spec), switches, hosts, links, self._options.latency_ns)

    def _number(self, switch: str, fields: Any, key: str, most: int) -> int | None:
        """A number of a switch; a string is accepted, as the tutorials pass it on to a command line."""
        value = fields.get(key) if isinstance(fields, dict) else None
        if value is None:
            return None
        number = int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,4}", value) else value
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= most:
            raise self.error(
                f"switches.{switch}.{key}", f"{repr(value)[:40]}: expected a number of 1 to {most}"
            )
        return number

    def _path(self, switch: str, fields: Any, key: str) -> str:
        """The name of a file of a switch; empty if there is none."""
        value = fields.get(key, "") if isinstance(fields, dict) else ""
        if not isinstance(value, str) or len(value) > _MOST_PATH or "\0" in value:
            raise self.error(f"switches.{switch}.{key}", "expected the name of a file")
        return value

    def _load(self) -> dict[str, Any]:
        text = text_of(Path(self._file))
        try:
            data = json.loads(text, object_pairs_hook=json_object)
        except json.JSONDecodeError as error:
            raise SpecError(f"{self._file}: line {error.lineno}: {error.msg}") from None
        except ValueError as error:  # a key twice, or a number with more digits than Python converts
            raise SpecError(f"{self._file}: {error}") from None
        except RecursionError:
            raise SpecError(f"{self._file}: nested too deeply") from None
        if not isinstance(data, dict):
            raise SpecError(f"{self._file}: expected an object with hosts, switches and links")
        return data

    def _link(self, key: str, link: Any, switches: set[str]) -> None:
        if not has_ends(link):
            raise self.error(key, 'expected ["h1", "s1-p1", latency, bandwidth]')
        delay_ns = self._latency(key, link[2]) if len(link) > 2 else self._options.delay_ns
        given = len(link) > 3 and link[3] is not None
        rate_bps = self._bandwidth(key, link[3]) if given else self._options.rate_bps
        a, b = (self._end(key, text, switches) for text in link[:2])
        if a[1] and b[1]:
            self._links.append(Link(a[0], a[1], b[0], b[1], rate_bps, delay_ns))
        elif a[1] or b[1]:
            host, (switch, port) = (a[0], b) if b[1] else (b[0], a)
            self._attach(key, host, switch, port, rate_bps, delay_ns)
        else:
            raise self.error(key, "joins two hosts")

    def _end(self, key: str, text: str, switches: set[str]) -> tuple[str, int]:
        """(switch, port), or (host, 0)."""
        if text in self._hosts:
            return text, 0
        match = _SWITCH_END.fullmatch(text)
        if match is None or match[1] not in switches:
            raise self.error(key, f"{text!r} is neither a host nor a port of a switch such as s1-p1")
        if int(match[2]) < 1:
            raise self.error(key, f"{text!r}: ports count from 1")
        return match[1], int(match[2])

    def _attach(self, key: str, name: str, switch: str, port: int, rate_bps: int, delay_ns: int) -> None:
        if name in self._attached:
            raise self.error(key, f"{name} has a second link")
        fields = self._hosts[name]
        ip = fields.get("ip") if isinstance(fields, dict) else None
        if not isinstance(ip, str):
            raise self.error(f"hosts.{name}.ip", "expected an address such as 10.0.1.1/24")
        ip, slash, bits = ip.partition("/")
        if slash and _PREFIX_BITS.fullmatch(bits) is None:
            raise self.error(f"hosts.{name}.ip", f"{bits[:40]!r}: expected a prefix length of 0 to 32")
        mac = fields.get("mac")
        if mac is None and _IP.fullmatch(ip):
            mac = host_mac(ip)
        if not isinstance(mac, str) or _MAC.fullmatch(mac) is None:
            raise self.error(f"hosts.{name}.mac", "expected a unicast address such as 08:00:00:00:01:11")
        host_id = self._host_ids[name]
        routes, arp = self._routes_and_arp(name, ip, bits or _DEFAULT_PREFIX_BITS, fields.get("commands"))
        self._attached[name] = Host(
            name, host_id, ip, mac.lower(), switch, port, rate_bps, delay_ns, routes, arp
        )

    def _routes_and_arp(self, name: str, ip: str, bits: str, commands: Any) -> tuple[Pairs, Pairs]:
        """Routes and ARP entries of a host."""
        given = commands if isinstance(commands, list) else []
        if len(given) > _MOST_COMMANDS:
            raise self.error(f"hosts.{name}.commands", f"{len(given)}; at most {_MOST_COMMANDS} are read")
        try:
            subnet = IPv4Network(f"{ip}/{bits}", strict=False)
        except ValueError:
            return (), ()  # a bad address is reported when the whole topology is checked
        return _routes_and_arp(subnet, (command for command in given if isinstance(command, str)))

    def _latency(self, key: str, value: object) -> int:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _MAX_NUMBER:
            return round(value * _MS)
        if isinstance(value, str):
            with contextlib.suppress(UnitError, KeyError):
                number, unit = split(value)
                return exact_integer(number * _TC_NS[unit.lower()], value)
        expected = "a number of ms, or a string with a unit (default: us)"
        raise self.error(key, f"{repr(value)[:40]} is no latency; expected {expected}")

    def _bandwidth(self, key: str, value: object) -> int:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= _MAX_NUMBER:
            return round(value * _MBPS)
        if isinstance(value, str):
            with contextlib.suppress(UnitError):
                rate_bps = parse_rate_bps(value)
                if rate_bps > 0 and split(value)[1]:
                    return rate_bps
        expected = "a number of Mb/s, or a string with a unit, such as 1Gbps"
        raise self.error(key, f"{repr(value)[:40]} is no bandwidth; expected {expected}")


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


def read_topology_json(spec: Spec) -> Topology:
    """The topology in the file `spec.name`.

    rate= and delay= are defaults for links that have none in the file; latency= is that of all switches.

    Raises:
        SpecError: no such file, or its content is no topology; the message names the file and the line or
            key.
    """
    return _TutorialReader(spec).read(spec)
