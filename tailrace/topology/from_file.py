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
from dataclasses import astuple, replace
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import Annotated, Any

from tailrace.formats.network import LinkData, NetworkData, NodeData
from tailrace.formats.registry import Kind, Source, read_file
from tailrace.spec import Spec, SpecError, keys
from tailrace.spec.keys import read
from tailrace.topology.families.build import MAX_HOSTS, check_size, host_address, host_mac
from tailrace.topology.families.options import LinkOptions
from tailrace.topology.model import Host, Link, Switch, Topology

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
"""Names of switches and hosts, which become parts of file and interface names."""

_ROLES = {1: ("leaf",), 2: ("leaf", "spine"), 3: ("edge", "agg", "core")}
"""By number of tiers, the role of each tier. With more tiers: leaves, and spines above them."""

_SETTINGS = ("name", "group", "cpu_port", "priority_queues", "program", "entries")


class FileOptions(LinkOptions, frozen=True):
    """Keys after the name of a file; those of links are defaults for links without them."""

    hosts: Annotated[
        int | None,
        keys.integer("hosts", "hosts of each switch, for a file without hosts", least=1, absent="none"),
    ] = None


def topology_of_file(spec: Spec) -> Topology:
    """The topology in the file `spec.name`; raises SpecError with the file, format, and line or key."""
    options = read(spec, FileOptions)
    source, data = read_file(Path(spec.name), Kind.TOPOLOGY)
    return topology_of(data, source, spec, options)


def topology_of(data: NetworkData, source: Source, spec: Spec, options: FileOptions) -> Topology:
    """The topology of a network as a file describes it; `source` is for messages. Raises SpecError."""
    data = _with_hosts(data, source, options.hosts)
    check_size(str(source.path), switches=len(data.switches), hosts=len(data.hosts), links=len(data.links))
    _check_names(data, source)
    links, attached = _links(data, source, options)
    latency_ns = options.latency_ns if data.latency_ns is None else data.latency_ns
    kind = data.kind or spec.name
    parts = tuple(_switches(data, links, attached)), tuple(_hosts(data, source, attached)), links
    try:
        return Topology(kind, str(spec), *parts, latency_ns)
    except SpecError as error:
        raise source.error("", str(error).removeprefix(f"topology {kind}: ")) from None


def _with_hosts(data: NetworkData, source: Source, per_switch: int | None) -> NetworkData:
    """The network, with this number of hosts added to each switch."""
    if per_switch is None and data.hosts:
        return data
    if per_switch is None or data.hosts:
        missing = "no node is a host; hosts=1 after the file name adds one to each switch"
        raise source.error("", "hosts= is for files without hosts" if data.hosts else missing)
    check_size(str(source.path), switches=0, hosts=per_switch * len(data.switches), links=0)
    switches = [switch for switch in data.switches for _ in range(per_switch)]
    hosts = tuple(NodeData(f"h{number}", switch.where) for number, switch in enumerate(switches, start=1))
    ends = zip(hosts, switches, strict=True)
    links = [LinkData(switch.where, host.name, 0, switch.name, 0) for host, switch in ends]
    return replace(data, hosts=hosts, links=(*links, *data.links))


def _check_names(data: NetworkData, source: Source) -> None:
    names = Counter(node.name for node in (*data.hosts, *data.switches))
    for node in (*data.hosts, *data.switches):
        if _NAME.fullmatch(node.name) is None:
            raise source.error(node.where, f"{node.name[:40]!r}: expected letters, digits and _.- as a name")
        if names[node.name] > 1:
            raise source.error(node.where, f"name {node.name} is used {names[node.name]} times")


def _links(
    data: NetworkData, source: Source, options: FileOptions
) -> tuple[tuple[Link, ...], dict[str, Link]]:
    """The links between switches, and by name of a host its link, with the switch as `b`."""
    hosts = {host.name for host in data.hosts}
    ports: dict[str, set[int]] = {switch.name: set() for switch in data.switches}
    for link in data.links:
        for end, port in ((link.a, link.a_port), (link.b, link.b_port)):
            if end in ports:
                ports[end].add(port)
            elif end not in hosts:
                raise source.error(link.where, f"{end[:40]!r} is neither a host nor a switch")
    last = dict.fromkeys(ports, 0)

    def port_of(switch: str, port: int) -> int:
        while not port and switch in ports:
            last[switch] += 1
            port = 0 if last[switch] in ports[switch] else last[switch]
        return port

    links: list[Link] = []
    attached: dict[str, Link] = {}
    for link in data.links:
        rate_bps = options.rate_bps if link.rate_bps is None else link.rate_bps
        delay_ns = options.delay_ns if link.delay_ns is None else link.delay_ns
        ends = [(end, port_of(end, port)) for end, port in ((link.a, link.a_port), (link.b, link.b_port))]
        ends.sort(key=lambda end: end[0] not in hosts)
        (a, a_port), (b, b_port) = ends
        if b in hosts or a in attached:
            raise source.error(link.where, "joins two hosts" if b in hosts else f"{a} has a second link")
        made = Link(a, a_port, b, b_port, rate_bps, delay_ns)
        if a in hosts:
            attached[a] = made
        else:
            links.append(made)
    return tuple(links), attached


def _switches(data: NetworkData, links: tuple[Link, ...], attached: dict[str, Link]) -> Iterator[Switch]:
    near: dict[str, list[str]] = defaultdict(list)
    for link in links:
        near[link.a].append(link.b)
        near[link.b].append(link.a)
    # the distance to a switch with hosts
    tiers = dict.fromkeys((link.b for link in attached.values()), 0)
    waiting = deque(tiers)
    while waiting:
        name = waiting.popleft()
        for peer in near[name]:
            if peer not in tiers:
                tiers[peer] = tiers[name] + 1
                waiting.append(peer)
    tiers |= {switch.name: switch.tier for switch in data.switches if switch.tier is not None}
    count = max(tiers.values(), default=0) + 1
    roles = _ROLES.get(count) or ("leaf", *["spine"] * (count - 1))
    for switch_id, switch in enumerate(data.switches, start=1):
        role = switch.role or roles[tiers.get(switch.name, 0)]
        yield Switch(id=switch_id, role=role, **_settings(switch))


def _settings(switch: Switch | NodeData) -> dict[str, Any]:
    """What files say of a switch besides its role."""
    return {name: getattr(switch, name) for name in _SETTINGS}


def _hosts(data: NetworkData, source: Source, attached: dict[str, Link]) -> Iterator[Host]:
    with_hosts = {link.b for link in attached.values()}
    leaves = (switch.name for switch in data.switches if switch.name in with_hosts)
    leaf_numbers = {name: number for number, name in enumerate(leaves, start=1)}
    counts = Counter[str]()
    for position, host in enumerate(data.hosts):
        if host.name not in attached:
            raise source.error(host.where, "has no link")
        link = attached[host.name]
        if not host.ip and counts[link.b] == MAX_HOSTS:
            raise source.error(host.where, f"{link.b} has more than {MAX_HOSTS} hosts")
        ip = host.ip or host_address(leaf_numbers[link.b], counts[link.b])
        counts[link.b] += 1
        try:
            IPv4Address(ip)
        except AddressValueError:
            raise source.error(host.where, f"{ip[:40]!r} is no IPv4 address") from None
        host_id = (position if host.number is None else host.number) + 1
        place = (link.b, link.b_port, link.rate_bps, link.delay_ns)
        yield Host(host.name, host_id, ip, host.mac or host_mac(ip), *place, host.routes, host.arp)


def data_of(topology: Topology) -> NetworkData:
    """The plain data of a topology, for writers of formats; raises SpecError for restricted hosts."""
    if topology.restricted:
        raise SpecError(f"topology {topology.spec}: restricted= cannot be written to a file")
    switches = (NodeData(role=switch.role, **_settings(switch)) for switch in topology.switches)
    hosts, links = [], []
    for host in topology.hosts:
        hosts.append(NodeData(host.name, ip=host.ip, mac=host.mac, routes=host.routes, arp=host.arp))
        links.append(LinkData("", host.name, 0, host.switch, host.port, host.rate_bps, host.delay_ns))
    links += [LinkData("", *astuple(link)) for link in topology.links]
    return NetworkData(tuple(switches), tuple(hosts), tuple(links), topology.latency_ns, topology.kind)
