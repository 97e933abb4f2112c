# SPDX-License-Identifier: Apache-2.0
"""The data of a network: switches, hosts, links, and look-ups between them.

Every topology is checked when it is made, so whoever holds one need not: names and ids are unique, every port
has one peer, everything is connected, rates are positive.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from tailrace.topology.index import Index, Peer

__all__ = ["GATEWAY_MAC", "LAST_DATA_PORT", "Host", "Link", "Peer", "Restricted", "Switch", "Topology"]

GATEWAY_MAC = "02:00:00:00:00:fe"
"""The MAC address by which hosts know every switch; no host has it, since theirs hold an address in 10/8."""

LAST_DATA_PORT = 506
"""v1model's ports are 9 bits wide, and the five highest are the switch's own (p4src/common/types.p4)."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch. `id` counts from 1; `group` is its pod or Dragonfly group from 0, -1 where there is none.

    `role` is leaf, spine, edge, agg, core or router. `cpu_port` and `priority_queues` are those of a file;
    None: those of the program that the switch runs.
    """

    name: str
    id: int
    role: str
    group: int = -1
    cpu_port: int | None = None
    priority_queues: int | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """A host with one NIC, on `port` of `switch`; rate and one-way delay are those of its link.

    routes: prefixes, each with its gateway, "" where hosts are reached directly; none: GATEWAY_MAC takes all
    arp: static entries, addresses with their MAC addresses
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
    """A full-duplex link between two switches; `delay_ns` is the propagation delay of one way."""

    a: str
    a_port: int
    b: str
    b_port: int
    rate_bps: int
    delay_ns: int


@dataclass(frozen=True, slots=True)
class Restricted:
    """A host to which only the first `paths` of equal next hops lead, at every switch:
    tailrace/topology/paths/restricted.py.
    """

    host: str
    paths: int


class _Indexed:
    """What is no datum: it follows from the others."""

    __slots__ = ("_index",)

    _index: Index


@dataclass(frozen=True, slots=True)
class Topology(_Indexed):
    """A network. `spec` are what it was made from, such as `leaf-spine:leaves=2,spines=4`.

    latency_ns: what every switch adds to the time of a packet, beside queueing and sending
    restricted: hosts that not all paths lead to

    Raises:
        SpecError: it is no usable network; one line says why.
    """

    kind: str
    spec: str
    switches: tuple[Switch, ...]
    hosts: tuple[Host, ...]
    links: tuple[Link, ...]
    latency_ns: int = 0
    restricted: tuple[Restricted, ...] = ()

    def __post_init__(self) -> None:
        # a frozen dataclass lets nothing else set its fields
        object.__setattr__(self, "_index", Index(self))

    def __reduce__(self) -> tuple[type[Topology], tuple[Any, ...]]:
        # whoever unpickles it makes the index anew
        return Topology, tuple(getattr(self, item.name) for item in fields(self))

    @property
    def identity(self) -> object:
        """What is alive as long as this object, and equal to itself alone: a key for what follows from it."""
        return self._index

    def switch(self, name: str) -> Switch:
        """The switch with a name; KeyError where there is none."""
        return self._index.switches[name]

    def host(self, name: str) -> Host:
        """The host with a name; KeyError where there is none."""
        return self._index.hosts[name]

    def hosts_of(self, switch: str) -> tuple[Host, ...]:
        """The hosts on a switch, by port."""
        return self._index.hosts_of[switch]

    def ports_of(self, switch: str) -> dict[int, Peer]:
        """What is on each port of a switch, by port."""
        return dict(self._index.ports[switch])

    def host_by_ip(self, ip: str) -> Host:
        """The host with an IPv4 address; KeyError where there is none."""
        return self._index.by_ip[ip]

    def next_hop_mac(self, src: str, dst: str) -> str:
        """Where a host sends frames for another one: that one's MAC address, beyond its subnet a gateway's.

        GATEWAY_MAC where neither is known. KeyError where there is no such host.
        """
        host, address = self.host(src), IPv4Address(self.host(dst).ip)
        routes = [(IPv4Network(prefix), gateway) for prefix, gateway in host.routes]
        fitting = [route for route in routes if address in route[0]]
        if not fitting:
            return GATEWAY_MAC
        hop = max(fitting, key=lambda route: route[0].prefixlen)[1] or str(address)
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
        """Networks that hold all hosts of a switch and no host of another one, for routes towards it.

        One /24 where the addresses are given by the generators; a tutorial's file may need several. Those of
        a restricted host, by its name, are its address alone.
        """
        return self._index.prefixes[switch]

    def prefix_of(self, switch: str) -> IPv4Network:
        """The one network of `prefixes_of`; where there are several, the smallest that holds them all.

        Raises:
            KeyError: the switch has no hosts.
        """
        return self._index.prefix(switch)
