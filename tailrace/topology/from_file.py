# SPDX-License-Identifier: Apache-2.0
"""Makes a topology of the network in a file, in any format of `tailrace.formats`.

What the file leaves open is completed. Links without ports take the next free ports of their switches, in the
order of the file. Hosts without addresses get those of families/build.py. Switches without roles get them by
their tier, or else by their distance to hosts: leaf and spine, or edge, agg and core if there are three
levels. Links without rate or delay, and switches without latency, get those of the spec's keys.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import Annotated

from tailrace.formats.network import HostData, LinkData, NetworkData, SwitchData
from tailrace.formats.registry import Kind, Origin, read_file
from tailrace.spec import Spec, SpecError, keys
from tailrace.spec.keys import read
from tailrace.topology.families.build import MAX_HOSTS, check_size, host_address, host_mac
from tailrace.topology.families.options import LinkOptions
from tailrace.topology.model import Host, Link, Switch, Topology

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
"""Names of switches and hosts, which become parts of file and interface names."""

_ROLES = {1: ("leaf",), 2: ("leaf", "spine"), 3: ("edge", "agg", "core")}
"""By number of tiers, the role of each tier. With more tiers: leaves, and spines above them."""


@dataclass(frozen=True, slots=True)
class FileOptions(LinkOptions):
    """Keys after the name of a file; those of links are defaults for links without them."""

    hosts: Annotated[
        int | None,
        keys.integer("hosts", "hosts of each switch, for a file without hosts", least=1, absent="none"),
    ] = None


def topology_of_file(spec: Spec) -> Topology:
    """The topology in the file `spec.name`.

    Raises:
        SpecError: no such file, or it describes no valid network; the message names the file, the format and
            the line or key.
    """
    options = read(spec, FileOptions)
    origin, data = read_file(Path(spec.name), Kind.TOPOLOGY)
    return topology_of(data, origin, spec, options)


def topology_of(data: NetworkData, origin: Origin, spec: Spec, options: FileOptions) -> Topology:
    """The topology of a network as a file describes it; `origin` is for messages.

    Raises:
        SpecError: see topology_of_file.
    """
    if data.family:
        from tailrace.topology.parse import parse_topology  # which imports this module

        if spec.options:
            raise origin.error("", f"it is {data.family}, with which no keys can be given")
        return replace(parse_topology(data.family), spec=str(spec))
    check_size(str(origin.path), switches=len(data.switches), hosts=len(data.hosts), links=len(data.links))
    return _Assembly(_with_hosts(data, origin, options.hosts), origin, options).topology(spec)


def _with_hosts(data: NetworkData, origin: Origin, per_switch: int | None) -> NetworkData:
    """The network, with this number of hosts added to each switch."""
    if per_switch is None:
        if not data.hosts:
            raise origin.error("", "no node is a host; hosts=1 after the file name adds one to each switch")
        return data
    if data.hosts:
        raise origin.error("", "hosts= is for files without hosts")
    count = per_switch * len(data.switches)
    check_size(str(origin.path), switches=0, hosts=count, links=len(data.links))
    switches = [switch for switch in data.switches for _ in range(per_switch)]
    hosts = tuple(HostData(f"h{number}", switch.where) for number, switch in enumerate(switches, start=1))
    links = [
        LinkData(switch.where, host.name, 0, switch.name, 0)
        for host, switch in zip(hosts, switches, strict=True)
    ]
    return replace(data, hosts=hosts, links=(*links, *data.links))


class _Assembly:
    """Completes one network."""

    def __init__(self, data: NetworkData, origin: Origin, options: FileOptions) -> None:
        self._data = data
        self._origin = origin
        self._options = options
        self._hosts = {host.name: host for host in data.hosts}
        self._switches = {switch.name: switch for switch in data.switches}
        self._links: list[Link] = []
        self._attached: dict[str, tuple[str, int, LinkData]] = {}  # by host: switch, port and link

    def topology(self, spec: Spec) -> Topology:
        """The topology; raises SpecError if the network is invalid."""
        self._check_names()
        for link in self._data.links:
            self._check_ends(link)
        for link in self._with_ports():
            self._add(link)
        for host in self._data.hosts:
            if host.name not in self._attached:
                raise self._origin.error(host.where, "has no link")
        data, options = self._data, self._options
        latency_ns = options.latency_ns if data.latency_ns is None else data.latency_ns
        parts = tuple(self._made_switches()), tuple(self._made_hosts()), tuple(self._links)
        try:
            return Topology(data.kind or spec.name, str(spec), *parts, latency_ns)
        except SpecError as error:
            title = f"topology {data.kind or spec.name}: "
            raise self._origin.error("", str(error).removeprefix(title)) from None

    def _check_names(self) -> None:
        nodes: tuple[HostData | SwitchData, ...] = (*self._data.hosts, *self._data.switches)
        for node in nodes:
            if _NAME.fullmatch(node.name) is None:
                expected = "expected a name of letters, digits and _.-"
                raise self._origin.error(node.where, f"{node.name[:40]!r}: {expected}")
        for name, count in Counter(node.name for node in nodes).items():
            if count > 1:
                raise self._origin.error("", f"name {name} is used {count} times")

    def _check_ends(self, link: LinkData) -> None:
        for end in (link.a, link.b):
            if end not in self._hosts and end not in self._switches:
                raise self._origin.error(link.where, f"{end[:40]!r} is neither a host nor a switch")
        hosts = [end for end in (link.a, link.b) if end in self._hosts]
        if len(hosts) == 2:
            raise self._origin.error(link.where, "joins two hosts")
        if hosts and hosts[0] in self._attached:
            raise self._origin.error(link.where, f"{hosts[0]} has a second link")
        if hosts:
            switch, port = (link.b, link.b_port) if link.a == hosts[0] else (link.a, link.a_port)
            self._attached[hosts[0]] = (switch, port, link)

    def _with_ports(self) -> Iterator[LinkData]:
        """The links, with a port for each end at a switch."""
        taken: dict[str, set[int]] = defaultdict(set)
        for link in self._data.links:
            taken[link.a].add(link.a_port)
            taken[link.b].add(link.b_port)
        next_port = Counter[str]()

        def port_of(switch: str, port: int) -> int:
            if port or switch in self._hosts:
                return port
            next_port[switch] += 1
            while next_port[switch] in taken[switch]:
                next_port[switch] += 1
            return next_port[switch]

        for link in self._data.links:
            a_port = port_of(link.a, link.a_port)
            yield replace(link, a_port=a_port, b_port=port_of(link.b, link.b_port))

    def _add(self, link: LinkData) -> None:
        options = self._options
        rate_bps = options.rate_bps if link.rate_bps is None else link.rate_bps
        delay_ns = options.delay_ns if link.delay_ns is None else link.delay_ns
        link = replace(link, rate_bps=rate_bps, delay_ns=delay_ns)
        if link.a in self._hosts:
            self._attached[link.a] = (link.b, link.b_port, link)
        elif link.b in self._hosts:
            self._attached[link.b] = (link.a, link.a_port, link)
        else:
            self._links.append(Link(link.a, link.a_port, link.b, link.b_port, rate_bps, delay_ns))

    def _made_switches(self) -> Iterator[Switch]:
        tiers = self._tiers()
        count = max(tiers.values(), default=0) + 1
        roles = _ROLES.get(count) or ("leaf", *["spine"] * (count - 1))
        for switch_id, switch in enumerate(self._data.switches, start=1):
            role = switch.role or roles[tiers[switch.name]]
            yield Switch(switch.name, switch_id, role, switch.group, switch.cpu_port, switch.priority_queues)

    def _tiers(self) -> dict[str, int]:
        """The tier of each switch, from 0: that of the file, or else the distance to a switch with hosts."""
        near: dict[str, list[str]] = defaultdict(list)
        for link in self._links:
            near[link.a].append(link.b)
            near[link.b].append(link.a)
        tiers = dict.fromkeys((switch for switch, _, _ in self._attached.values()), 0)
        waiting = deque(tiers)
        while waiting:
            name = waiting.popleft()
            for peer in near[name]:
                if peer not in tiers:
                    tiers[peer] = tiers[name] + 1
                    waiting.append(peer)
        given = {switch.name: switch.tier for switch in self._data.switches}
        return {name: tiers.get(name, 1) if tier is None else tier for name, tier in given.items()}

    def _made_hosts(self) -> Iterator[Host]:
        with_hosts = {switch for switch, _, _ in self._attached.values()}
        leaves = [switch.name for switch in self._data.switches if switch.name in with_hosts]
        leaf_numbers = {name: number for number, name in enumerate(leaves, start=1)}
        counts = Counter[str]()
        for position, host in enumerate(self._data.hosts):
            switch, port, link = self._attached[host.name]
            if not host.ip and counts[switch] == MAX_HOSTS:
                raise self._origin.error(host.where, f"{switch} has more than {MAX_HOSTS} hosts")
            ip = host.ip or host_address(leaf_numbers[switch], counts[switch])
            counts[switch] += 1
            try:
                IPv4Address(ip)
            except AddressValueError:
                raise self._origin.error(host.where, f"{ip[:40]!r} is no IPv4 address") from None
            number = position if host.number is None else host.number
            assert link.rate_bps is not None
            assert link.delay_ns is not None
            yield Host(
                host.name,
                number + 1,
                ip,
                host.mac or host_mac(ip),
                switch,
                port,
                link.rate_bps,
                link.delay_ns,
                host.routes,
                host.arp,
            )


def data_of(topology: Topology) -> NetworkData:
    """The plain data of a topology, for writers of formats."""
    switches = tuple(
        SwitchData(
            switch.name,
            role=switch.role,
            group=switch.group,
            cpu_port=switch.cpu_port,
            priority_queues=switch.priority_queues,
        )
        for switch in topology.switches
    )
    hosts = tuple(
        HostData(host.name, number=position, ip=host.ip, mac=host.mac, routes=host.routes, arp=host.arp)
        for position, host in enumerate(topology.hosts)
    )
    host_links = [
        LinkData("", host.name, 0, host.switch, host.port, host.rate_bps, host.delay_ns)
        for host in topology.hosts
    ]
    links = [
        LinkData("", link.a, link.a_port, link.b, link.b_port, link.rate_bps, link.delay_ns)
        for link in topology.links
    ]
    if topology.restricted:
        raise SpecError(f"topology {topology.spec}: restricted= cannot be written to a file")
    return NetworkData(switches, hosts, (*host_links, *links), topology.latency_ns, kind=topology.kind)
