# SPDX-License-Identifier: Apache-2.0
"""The data of a network: switches, hosts, links, and look-ups between them.

Every topology is checked when it is created, so its users need no checks: names and ids are unique, every
port has one peer, everything is connected, rates are positive.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from tailrace.topology.index import Index, Peer

__all__ = ["GATEWAY_MAC", "LAST_DATA_PORT", "Host", "Link", "Peer", "Restricted", "Switch", "Topology"]

GATEWAY_MAC = "02:00:00:00:00:fe"
"""The MAC address that hosts use for every switch. It differs from hosts' addresses (families/build.py)."""

LAST_DATA_PORT = 506
"""v1model's ports have 9 bits, and switches use the five highest internally (p4src/common/types.p4)."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch. `id` counts from 1; `group` is its pod or Dragonfly group, from 0; -1: none.

    `role` is leaf, spine, edge, agg, core or router. `cpu_port` and `priority_queues` are from a topology
    file; None: those for which the switch's program was compiled.

    program: path of the switch's compiled program in a topology file; empty: none is given
    entries: paths of its files of entries in a topology file, in the order in which they are written
    """

    name: str
    id: int
    role: str
    group: int = -1
    cpu_port: int | None = None
    priority_queues: int | None = None
    program: str = ""
    entries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Host:
    """A host with one NIC, on `port` of `switch`; rate and one-way delay are those of its link.

    routes: prefixes, each with its gateway ("": hosts are reached directly); empty: all packets are sent to
        GATEWAY_MAC
    arp: static ARP entries: IP addresses with their MAC addresses
    """

    name: str
    id: int
    ip: str
    mac: str
    switch: str
    port: int
    rate_bps: int
    delay_ns: int
    routes: tuple[tuple[str, str], ...] = ()
    arp: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A full-duplex link between two switches; `delay_ns` is the one-way propagation delay."""

    a: str
    a_port: int
    b: str
    b_port: int
    rate_bps: int
    delay_ns: int


@dataclass(frozen=True, slots=True)
class Restricted:
    """A host to which every switch forwards only over the first `paths` of the equal-cost next hops
    (tailrace/topology/paths/restricted.py).
    """

    host: str
    paths: int


class _Indexed:
    """Base with the derived look-up tables, which are no field of the dataclass."""

    __slots__ = ("_index",)

    _index: Index


@dataclass(frozen=True, slots=True)
class Topology(_Indexed):
    """A network. `spec` is the spec string from which it was made, such as `leaf-spine:leaves=2,spines=4`.

    latency_ns: delay that every switch adds to a packet, besides queueing and sending
    restricted: hosts to which not all paths lead

    Raises:
        SpecError: the network is invalid; one line says why.
    """

    kind: str
    spec: str
    switches: tuple[Switch, ...]
    hosts: tuple[Host, ...]
    links: tuple[Link, ...]
    latency_ns: int = 0
    restricted: tuple[Restricted, ...] = ()

    def __post_init__(self) -> None:
        # the only way to set an attribute of a frozen dataclass
        object.__setattr__(self, "_index", Index(self))

    def __reduce__(self) -> tuple[type[Topology], tuple[Any, ...]]:
        # the index is not pickled; unpickling makes it anew
        return Topology, tuple(getattr(self, item.name) for item in fields(self))

    @property
    def identity(self) -> object:
        """An object that lives as long as this one and equals only itself: a cache key for derived data."""
        return self._index

    def switch(self, name: str) -> Switch:
        """The switch with a name; raises KeyError if there is none."""
        return self._index.switches[name]

    def host(self, name: str) -> Host:
        """The host with a name; raises KeyError if there is none."""
        return self._index.hosts[name]

    def hosts_of(self, switch: str) -> tuple[Host, ...]:
        """The hosts on a switch, in order of ports."""
        return self._index.hosts_of[switch]

    def ports_of(self, switch: str) -> dict[int, Peer]:
        """The neighbours of a switch, by port."""
        return dict(self._index.ports[switch])

    def host_by_ip(self, ip: str) -> Host:
        """The host with an IPv4 address; raises KeyError if there is none."""
        return self._index.by_ip[ip]

    def next_hop_mac(self, src: str, dst: str) -> str:
        """The destination MAC address of frames from `src` to `dst`: the address of `dst` in the same subnet,
        otherwise of a gateway. GATEWAY_MAC if it is unknown.

        Raises:
            KeyError: there is no such host.
        """
        host, address = self.host(src), IPv4Address(self.host(dst).ip)
        routes = [(IPv4Network(prefix), gateway) for prefix, gateway in host.routes]
        matching = [route for route in routes if address in route[0]]
        if not matching:
            return GATEWAY_MAC
        hop = max(matching, key=lambda route: route[0].prefixlen)[1] or str(address)
        neighbour = self._index.by_ip.get(hop)
        return dict(host.arp).get(hop) or (GATEWAY_MAC if neighbour is None else neighbour.mac)

    @property
    def leaves(self) -> tuple[str, ...]:
        """The names of the switches that have hosts, in the order of `switches`."""
        return self._index.leaves

    @property
    def fastest_bps(self) -> int:
        """The highest rate of any link, of hosts or of switches."""
        return max(end.rate_bps for ends in (self.hosts, self.links) for end in ends)

    def prefixes_of(self, switch: str) -> tuple[IPv4Network, ...]:
        """Networks that contain all hosts of a switch and no host of another one, for routes towards it.

        There is one /24 if a topology family (families/) has assigned the addresses. A topology.json of the
        p4lang tutorials may assign any addresses, so a switch may need several networks.

        Args:
            switch: name of a switch; or of a restricted host, which has separate routes: the result is then
                the host's address (/32).
        """
        return self._index.prefixes[switch]
