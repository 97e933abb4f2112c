# SPDX-License-Identifier: Apache-2.0
"""Walks packets through what an intent installs, without any switch: every next hop that a hash could choose."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from tailrace.p4rt.entities import P4MeterConfig, P4TableEntry
from tailrace.p4rt.intent import SwitchIntent
from tailrace.topology import Topology


class Tables:
    """The forwarding tables of one switch."""

    def __init__(self, intent: SwitchIntent) -> None:
        self.hosts: dict[str, tuple[int, str]] = {}
        self.prefixes: list[tuple[IPv4Network, int, int]] = []
        self.members: dict[tuple[int, int], int] = {}
        self.candidates: dict[int, tuple[int, ...]] = {}
        self.roles: set[int] = set()
        self.guarded: set[int] = set()
        self.addresses: set[tuple[int, str]] = set()
        self.limits: dict[tuple[str, int], P4MeterConfig] = {}
        for entity in intent.entities:
            if isinstance(entity, P4TableEntry) and not entity.is_default_action:
                self._add(entity)

    def _add(self, entry: P4TableEntry) -> None:
        match, action = entry.match, entry.action
        assert match is not None
        args = getattr(action, "args")  # noqa: B009 - actions of action profiles have none
        if entry.table_id == "group_members":
            key = (match["group"], match["slot"])
            assert key not in self.members
            self.members[key] = args["port"]
        elif entry.table_id == "candidates":
            ports = [args[f"p{i}"] for i in range(len(args) - 1)]
            self.candidates[match["group"]] = tuple(ports[: args["count"]])
            assert not any(ports[args["count"] :])
        elif entry.table_id == "port_role":
            trusted = getattr(action, "name") != "guarded_port"  # noqa: B009 - as above
            (self.roles if trusted else self.guarded).add(match["ingress_port"])
        elif entry.table_id == "host_addresses":
            self.addresses.add((match["ingress_port"], match["src"]))
        elif entry.meter_config is not None:
            (port,) = match.values()
            self.limits[str(entry.table_id), port] = entry.meter_config
        elif "dst_mac" in args:
            self.hosts[match["dst"]] = (args["port"], args["dst_mac"])
        elif entry.table_id == "ipv4_routes":
            self.prefixes.append((IPv4Network(match["dst"]), args["group"], args["size"]))

    def next_ports(self, ip: str) -> set[int]:
        """Ports by which a packet for an address can leave: one for a host here, all slots of a group, or
        none.
        """
        if f"{ip}/32" in self.hosts:
            return {self.hosts[f"{ip}/32"][0]}
        matching = [route for route in self.prefixes if IPv4Address(ip) in route[0]]
        if not matching:
            return set()
        _, group, size = max(matching, key=lambda route: route[0].prefixlen)
        return {self.members[group, slot] for slot in range(size)}


def walk(topology: Topology, tables: dict[str, Tables], start: str, ip: str) -> int | None:
    """The longest way, in switches, of a packet from a switch to an address; None where it is dropped at
    once.

    Raises:
        AssertionError: some way loops, ends elsewhere, or is dropped later on.
    """
    destination = topology.host_by_ip(ip)
    if not tables[start].next_ports(ip):
        return None
    lengths: dict[str, int] = {}
    visiting: set[str] = set()

    def visit(switch: str) -> int:
        if switch in lengths:
            return lengths[switch]
        assert switch not in visiting, f"a packet for {ip} loops at {switch}"
        visiting.add(switch)
        ports = tables[switch].next_ports(ip)
        assert ports, f"{switch} drops a packet for {ip}"
        longest = 0
        for port in ports:
            peer = topology.ports_of(switch)[port]
            if peer.kind == "host":
                assert peer.name == destination.name
            else:
                longest = max(longest, visit(peer.name))
        visiting.remove(switch)
        lengths[switch] = longest + 1
        return longest + 1

    return visit(start)
