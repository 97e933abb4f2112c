# SPDX-License-Identifier: Apache-2.0
"""Where a packet with an entropy value (EV) goes by the entries that switches hold, in the program `spritz`.

It knows nothing of how the entries were made, as topology.paths.bounded does.

A switch gives the packet to its own host; or else has role ECMP 1 for what comes from a host, and ECMP 2
where `second_role` has the port and the source; then EV1 or EV2 picks a slot of the role's list for all
paths, and without a role, a list, or where EV2 leads back, `destinations` says the port.
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

MOST_SWITCHES = 16
"""No way is so long, even around failures, unless it loops."""

TABLES = ("port_role", "ipv4_routes", "second_role", "path_lists", "path_slots", "destinations")
"""The tables that decide."""

_BITS = 32
_V = TypeVar("_V")
_Prefixes = dict[int, dict[int, _V]]
"""Values by length of the prefix, and by its highest bits."""


def _longest_prefix_match(prefixes: _Prefixes[_V], address: int) -> _V | None:
    """The value of the longest prefix that an address is in."""
    for bits, networks in prefixes.items():
        value = networks.get(address >> (_BITS - bits))
        if value is not None:
            return value
    return None


def _put(prefixes: _Prefixes[_V], network: IPv4Network, value: _V) -> None:
    """Adds a prefix; the longest stay first."""
    bits = network.prefixlen
    prefixes.setdefault(bits, {})[int(network.network_address) >> (_BITS - bits)] = value
    for length in sorted(prefixes, reverse=True):
        prefixes[length] = prefixes.pop(length)


@dataclass(slots=True)
class SteeredTables:
    """The entries of one switch that decide. Roles and classes are named as in the P4 source."""

    fabric: set[int] = field(default_factory=set)
    hosts: dict[int, int] = field(default_factory=dict)
    second: dict[int, _Prefixes[bool]] = field(default_factory=dict)
    lists: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    slots: dict[tuple[int, int], int] = field(default_factory=dict)
    destinations: _Prefixes[tuple[int, int]] = field(default_factory=dict)

    def add_port(self, port: int) -> None:
        """An entry of `port_role` that trusts a port."""
        self.fabric.add(port)

    def add_host(self, address: IPv4Address, port: int) -> None:
        """An entry of `ipv4_routes` for an own host."""
        self.hosts[int(address)] = port

    def add_second(self, port: int, source: IPv4Network) -> None:
        """An entry of `second_role`."""
        _put(self.second.setdefault(port, {}), source, True)

    def add_list(self, role: str, near: int, number: int, size: int) -> None:
        """An entry of `path_lists` for all paths."""
        self.lists[role, near] = (number, size)

    def add_slot(self, number: int, slot: int, port: int) -> None:
        """An entry of `path_slots`."""
        self.slots[number, slot] = port

    def add_destination(self, network: IPv4Network, near: int, port: int) -> None:
        _put(self.destinations, network, (near, port))

    def port(self, in_port: int, src: int, dst: int, ev: int) -> int | None:
        """The port by which a packet leaves; None where it is dropped."""
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
        number, size = self.lists.get((role, near), (0, 0))
        if not size:
            return default
        port = self.slots.get((number, value % size))
        return default if role == SECOND and port == in_port else port


@dataclass(frozen=True, slots=True)
class EvWalk:
    """Where a packet went: its switches, and the ports by which all but the last sent it on. `problem`: why
    it did not arrive.
    """

    switches: tuple[str, ...]
    ports: tuple[int, ...]
    problem: str | None = None


class EvWalker:
    """Sends packets through the switches of a topology."""

    def __init__(self, topology: Topology, tables: Callable[[str], SteeredTables]) -> None:
        """`tables` gives what the switch with a name holds; asked once for each."""
        self._topology, self._read = topology, tables
        self._tables: dict[str, SteeredTables] = {}
        self._peers = {switch.name: topology.ports_of(switch.name) for switch in topology.switches}
        self._addresses: Mapping[str, int] = {h.name: int(IPv4Address(h.ip)) for h in topology.hosts}

    def walk(self, src: Host, dst: Host, ev: int) -> EvWalk:
        """The way of a packet of RoCE from host to host. Raises what reading a switch does."""
        switches, ports = [src.switch], list[int]()
        in_port = src.port
        source, destination = self._addresses[src.name], self._addresses[dst.name]
        while len(switches) <= MOST_SWITCHES:
            here = switches[-1]
            port = self._of(here).port(in_port, source, destination, ev)
            peer = None if port is None else self._peers[here].get(port)
            problem = None
            if port is None:
                problem = f"{here} drops it"
            elif peer is None:
                problem = f"port {port} of {here} leads nowhere"
            elif peer.kind == "host" and peer.name != dst.name:
                problem = f"{here} delivers it to {peer.name}"
            if port is None or peer is None or peer.kind == "host":
                return EvWalk(tuple(switches), tuple(ports), problem)
            switches.append(peer.name)
            ports.append(port)
            in_port = peer.port
        return EvWalk(tuple(switches), tuple(ports), "it loops")

    def _of(self, switch: str) -> SteeredTables:
        if switch not in self._tables:
            self._tables[switch] = self._read(switch)
        return self._tables[switch]
