# SPDX-License-Identifier: Apache-2.0
"""Look-up tables of a topology; creating them checks the topology. A leaf is a switch with hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from tailrace.spec import SpecError

if TYPE_CHECKING:
    from tailrace.topology.model import Topology

_PREFIX_BITS = 24

_NO_HOST_ADDRESSES = tuple(IPv4Network(text) for text in ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3"))
"""Addresses that no host can have: this network, loopback, multicast and reserved ones (RFC 6890)."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The neighbour at the other end of a port's link.

    kind: `host` or `switch`
    port: the neighbour's port; 0 for a host
    rate_bps, delay_ns: rate and one-way delay of the link
    """

    kind: str
    name: str
    port: int
    rate_bps: int
    delay_ns: int


class Index:
    """Look-up tables of one topology."""

    def __init__(self, topology: Topology) -> None:
        """Checks the topology.

        Raises:
            SpecError: it is invalid.
        """
        self._title = f"topology {topology.kind}"
        names = [switch.name for switch in topology.switches] + [host.name for host in topology.hosts]
        self._refuse_duplicates("name", names)
        self._refuse_duplicates("switch id", [item.id for item in topology.switches])
        self._refuse_duplicates("host id", [item.id for item in topology.hosts])
        self._refuse_duplicates("address", [item.ip for item in topology.hosts])
        self._refuse_duplicates("MAC address", [item.mac for item in topology.hosts])
        if not topology.switches:
            raise self._error("there is no switch")
        if not topology.hosts:
            raise self._error("there is no host")
        if topology.latency_ns < 0:
            raise self._error("the latency of a switch must not be negative")
        self.switches = {switch.name: switch for switch in topology.switches}
        self.hosts = {host.name: host for host in topology.hosts}
        self.by_ip = {host.ip: host for host in topology.hosts}
        self.ports = self._make_ports(topology)
        self.hosts_of = {
            name: tuple(self.hosts[peer.name] for peer in ports.values() if peer.kind == "host")
            for name, ports in self.ports.items()
        }
        self.leaves = tuple(name for name, hosts in self.hosts_of.items() if hosts)
        self._check_connected()
        # Prefixes by name: of each switch, those of its hosts; of each restricted host (only some next
        # hops lead to it: model.Restricted), its address, because such a host has separate routes.
        self.prefixes = self._make_prefixes() | self._restricted_prefixes(topology)

    def _error(self, text: str) -> SpecError:
        return SpecError(f"{self._title}: {text}")

    def _refuse_duplicates(self, what: str, values: Iterable[object]) -> None:
        for value, count in Counter(values).items():
            if count > 1:
                raise self._error(f"{what} {value} is used {count} times")

    def _make_ports(self, topology: Topology) -> dict[str, dict[int, Peer]]:
        from tailrace.topology.model import LAST_DATA_PORT  # the model imports this module

        ports: dict[str, dict[int, Peer]] = {name: {} for name in self.switches}

        def add(switch: str, port: int, peer: Peer) -> None:
            if switch not in ports:
                raise self._error(f"{peer.name} is linked to {switch}, which is no switch")
            if not 1 <= port <= LAST_DATA_PORT:
                raise self._error(f"port {port} of {switch} is not between 1 and {LAST_DATA_PORT}")
            if port in ports[switch]:
                other = ports[switch][port].name
                raise self._error(f"port {port} of {switch} is linked to {other} and {peer.name}")
            if peer.rate_bps <= 0:
                raise self._error(f"the rate of the link {switch}-{peer.name} must be more than 0")
            if peer.delay_ns < 0:
                raise self._error(f"the delay of the link {switch}-{peer.name} must not be negative")
            ports[switch][port] = peer

        for host in topology.hosts:
            add(host.switch, host.port, Peer("host", host.name, 0, host.rate_bps, host.delay_ns))
        for link in topology.links:
            if link.a == link.b:
                raise self._error(f"a link joins {link.a} to itself")
            add(link.a, link.a_port, Peer("switch", link.b, link.b_port, link.rate_bps, link.delay_ns))
            add(link.b, link.b_port, Peer("switch", link.a, link.a_port, link.rate_bps, link.delay_ns))
        return {name: dict(sorted(peers.items())) for name, peers in ports.items()}

    def _check_connected(self) -> None:
        start = next(iter(self.switches))
        reached, waiting = {start}, [start]
        while waiting:
            for peer in self.ports[waiting.pop()].values():
                if peer.kind == "switch" and peer.name not in reached:
                    reached.add(peer.name)
                    waiting.append(peer.name)
        for name in self.switches:
            if name not in reached:
                raise self._error(f"not connected: there is no path from {start} to {name}")

    def _make_prefixes(self) -> dict[str, tuple[IPv4Network, ...]]:
        """The prefixes of each switch's hosts: a /24 if only this switch uses it, else single addresses."""
        users: dict[IPv4Network, set[str]] = {}
        of_host: dict[str, IPv4Network] = {}
        for host in self.hosts.values():
            try:
                address = IPv4Address(host.ip)
            except AddressValueError:
                raise self._error(f"{host.name}: {host.ip!r} is no IPv4 address") from None
            if any(address in network for network in _NO_HOST_ADDRESSES):
                raise self._error(f"{host.name}: {host.ip} is no address that a host can have")
            of_host[host.name] = network = IPv4Network((int(address), _PREFIX_BITS), strict=False)
            users.setdefault(network, set()).add(host.switch)
        prefixes: dict[str, tuple[IPv4Network, ...]] = {}
        for name, hosts in self.hosts_of.items():
            nets = {host: of_host[host.name] for host in hosts}
            unique = {net if len(users[net]) == 1 else IPv4Network(host.ip) for host, net in nets.items()}
            prefixes[name] = tuple(sorted(unique))
        return prefixes

    def _restricted_prefixes(self, topology: Topology) -> dict[str, tuple[IPv4Network, ...]]:
        """The address of each host that the topology's key `restricted` names, by the host's name."""
        names = [restricted.host for restricted in topology.restricted]
        for name in names:
            if name not in self.hosts:
                raise self._error(f"restricted: there is no host {name!r}")
        return {name: (IPv4Network(self.hosts[name].ip),) for name in names}
