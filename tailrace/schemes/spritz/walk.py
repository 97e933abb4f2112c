# SPDX-License-Identifier: Apache-2.0
"""The path that a packet with an entropy value (EV) takes by the entries of switches that run `spritz`.

The path is computed from the entries alone; topology.paths.bounded, from which they are made, is not used.

A switch delivers the packet if the destination is one of its hosts. Otherwise the switch has role ECMP 1 for
packets from a host, and role ECMP 2 if `second_role` matches ingress port and source. In role 1 EV1, the
upper byte of the EV, selects a slot of the role's list of ports for all paths; in role 2 EV2, the lower byte.
Without a role or a list, or if EV2 selects the ingress port, the table `destinations` gives the port. In a
network with groups, a destination is *near* if it is in the switch's group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from typing import TypeVar

from tailrace.topology import Host, Topology

FIRST, SECOND = ROLES = ("FIRST", "SECOND")
ALL = "ALL"
"""Members of the P4 source's Role_t and PathClass_t."""

TABLES = ("port_role", "ipv4_routes", "second_role", "path_lists", "path_slots", "destinations")
"""The tables whose entries decide the path."""

_BITS = 32
_V = TypeVar("_V")
_Prefixes = dict[int, dict[int, _V]]
"""Values by prefix length, and by the prefix's bits."""


def _longest_prefix_match(prefixes: _Prefixes[_V], address: int) -> _V | None:
    """The value of the longest prefix that contains an address."""
    for bits, networks in prefixes.items():
        value = networks.get(address >> (_BITS - bits))
        if value is not None:
            return value
    return None


def _put(prefixes: _Prefixes[_V], network: IPv4Network, value: _V) -> None:
    """Adds a prefix, and keeps the longest first."""
    bits = network.prefixlen
    prefixes.setdefault(bits, {})[int(network.network_address) >> (_BITS - bits)] = value
    for length in sorted(prefixes, reverse=True):
        prefixes[length] = prefixes.pop(length)


@dataclass(slots=True)
class SteeredTables:
    """The entries of one switch that decide the path. Roles and classes have the names of the P4 source.

    fabric: ports to other switches
    hosts: port by address of each host of the switch
    second: by ingress port, the prefixes of sources for whose packets the switch has role ECMP 2
    lists: by role and `near`, id and size of the list of ports
    slots: port by list id and slot
    destinations: `near` and the default port by prefix
    """

    fabric: set[int] = field(default_factory=set)
    hosts: dict[int, int] = field(default_factory=dict)
    second: dict[int, _Prefixes[bool]] = field(default_factory=dict)
    lists: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    slots: dict[tuple[int, int], int] = field(default_factory=dict)
    destinations: _Prefixes[tuple[int, int]] = field(default_factory=dict)

    def add_port(self, port: int) -> None:
        """Adds an entry of `port_role` for a trusted port (to another switch)."""
        self.fabric.add(port)

    def add_host(self, address: IPv4Address, port: int) -> None:
        """Adds an entry of `ipv4_routes` for a host of the switch."""
        self.hosts[int(address)] = port

    def add_second(self, port: int, source: IPv4Network) -> None:
        """Adds an entry of `second_role`."""
        _put(self.second.setdefault(port, {}), source, True)

    def add_list(self, role: str, near: int, list_id: int, size: int) -> None:
        """Adds an entry of `path_lists` for the class of all paths."""
        self.lists[role, near] = (list_id, size)

    def add_slot(self, list_id: int, slot: int, port: int) -> None:
        """Adds an entry of `path_slots`."""
        self.slots[list_id, slot] = port

    def add_destination(self, network: IPv4Network, near: int, port: int) -> None:
        _put(self.destinations, network, (near, port))

    def port(self, in_port: int, src: int, dst: int, ev: int) -> int | None:
        """The egress port of a packet; None if it is dropped."""
        host_port = self.hosts.get(dst)
        if host_port is not None:
            return host_port
        match = _longest_prefix_match(self.destinations, dst)
        if match is None:
            return None
        near, default = match
        role, value = FIRST, ev >> 8
        if in_port in self.fabric:
            role, value = SECOND, ev & 0xFF
            if _longest_prefix_match(self.second.get(in_port, {}), src) is None:
                return default
        list_id, size = self.lists.get((role, near), (0, 0))
        if not size:
            return default
        port = self.slots.get((list_id, value % size))
        return default if role == SECOND and port == in_port else port


@dataclass(frozen=True, slots=True)
class EvWalk:
    """The path of a packet: its switches, and the egress ports of all but the last. `problem`: why the packet
    did not arrive.
    """

    switches: tuple[str, ...]
    ports: tuple[int, ...]
    problem: str | None = None


class EvWalker:
    """Follows packets through the switches of a topology."""

    def __init__(self, topology: Topology, tables: Callable[[str], SteeredTables]) -> None:
        """`tables` reads the entries of the switch with a name; it is called once per switch."""
        self._topology, self._read = topology, tables
        self._tables: dict[str, SteeredTables] = {}
        self._peers = {switch.name: topology.ports_of(switch.name) for switch in topology.switches}
        self._addresses: Mapping[str, int] = {h.name: int(IPv4Address(h.ip)) for h in topology.hosts}

    def walk(self, src: Host, dst: Host, ev: int) -> EvWalk:
        """The path of a RoCE packet from host to host. Raises what `tables` raises."""
        switches, ports = [src.switch], list[int]()
        in_port = src.port
        source, destination = self._addresses[src.name], self._addresses[dst.name]
        # a packet may come back to its first two switches once, then it takes a path without a loop
        while len(switches) <= len(self._peers) + 2:
            switch = switches[-1]
            port = self._tables_of(switch).port(in_port, source, destination, ev)
            peer = None if port is None else self._peers[switch].get(port)
            problem = None
            if port is None:
                problem = f"{switch} drops it"
            elif peer is None:
                problem = f"port {port} of {switch} leads nowhere"
            elif peer.kind == "host" and peer.name != dst.name:
                problem = f"{switch} delivers it to {peer.name}"
            if port is None or peer is None or peer.kind == "host":
                return EvWalk(tuple(switches), tuple(ports), problem)
            switches.append(peer.name)
            ports.append(port)
            in_port = peer.port
        return EvWalk(tuple(switches), tuple(ports), "it loops")

    def _tables_of(self, switch: str) -> SteeredTables:
        if switch not in self._tables:
            self._tables[switch] = self._read(switch)
        return self._tables[switch]
