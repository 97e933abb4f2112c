# SPDX-License-Identifier: Apache-2.0
"""Builds a topology part by part, and assigns ids, ports and addresses.

On every switch the hosts have the first ports, from 1, and links follow in the order in which they are added.
A leaf is a switch with hosts.
The n-th leaf (from 1) has the prefix 10.n.0/24 (n as two octets); the address of its i-th host
(from 0) ends in 2 + i; a host's MAC address contains its IP address.
"""

from __future__ import annotations

from tailrace.spec import Spec, SpecError
from tailrace.spec.limits import refuse_above
from tailrace.topology.families.options import LinkOptions
from tailrace.topology.model import Host, Link, Restricted, Switch, Topology

_FIRST_HOST = 2
MAX_HOSTS = 255 - _FIRST_HOST
"""The most hosts of a leaf with generated addresses."""

_MAX_LEAVES = (1 << 16) - 1

MOST_HOSTS = 1 << 16
MOST_SWITCHES = 1 << 13
MOST_LINKS = 1 << 18
"""Limits of one network, at least thirty times the numbers in the papers' largest networks."""


def host_address(leaf: int, host: int) -> str:
    """The IP address of a host (counted from 0) on a leaf (counted from 1)."""
    return f"10.{leaf >> 8}.{leaf & 0xFF}.{_FIRST_HOST + host}"


def host_mac(ip: str) -> str:
    """The MAC address of the host with an IP address: 02:00 and its four bytes."""
    return ":".join(["02", "00", *(f"{int(part):02x}" for part in ip.split("."))])


def check_size(title: str, *, switches: int, hosts: int, links: int) -> None:
    """Raises SpecError if a network is too large; `links` counts those between switches."""
    refuse_above(title, "switches", switches, MOST_SWITCHES)
    refuse_above(title, "hosts", hosts, MOST_HOSTS)
    refuse_above(title, "links", links, MOST_LINKS)


class Builder:
    """Collects the parts of one topology; all links have the same rate."""

    def __init__(self, spec: Spec, links: LinkOptions) -> None:
        self._spec = spec
        self._options = links
        self._switches: list[Switch] = []
        self._hosts: list[Host] = []
        self._links: list[Link] = []
        self._ports: dict[str, int] = {}
        self._groups: dict[str, int] = {}
        self._leaves = 0
        self._restricted: tuple[Restricted, ...] = ()

    def expect(self, *, switches: int, hosts: int, links: int) -> None:
        """Checks the size of the network before it is built.

        Raises:
            SpecError: the network is too large.
        """
        check_size(self._spec.title, switches=switches, hosts=hosts, links=links)

    def switch(self, name: str, role: str, group: int = -1, hosts: int = 0) -> str:
        """Adds a switch with a number of hosts; returns its name.

        Raises:
            SpecError: more hosts or leaves than there are addresses.
        """
        self._switches.append(Switch(name, len(self._switches) + 1, role, group))
        self._ports[name] = hosts
        self._groups[name] = group
        if hosts:
            self._leaves += 1
            if hosts > MAX_HOSTS:
                raise SpecError(f"{self._spec.title}: a switch can have {MAX_HOSTS} hosts, not {hosts}")
            if self._leaves > _MAX_LEAVES:
                raise SpecError(f"{self._spec.title}: at most {_MAX_LEAVES} switches can have hosts")
        for index in range(hosts):
            ip = host_address(self._leaves, index)
            host_id = len(self._hosts) + 1
            rate_bps, delay_ns = self._options.rate_bps, self._options.to_host_ns
            self._hosts.append(
                Host(f"h{host_id}", host_id, ip, host_mac(ip), name, index + 1, rate_bps, delay_ns)
            )
        return name

    def link(self, a: str, b: str) -> None:
        """Links the next free ports of two switches."""
        self.link_ports(a, self._next(a), b, self._next(b))

    def link_ports(self, a: str, a_port: int, b: str, b_port: int) -> None:
        """Links chosen ports of two switches."""
        is_local = self._groups[a] == self._groups[b]
        delay_ns = self._options.within_ns if is_local else self._options.between_ns
        self._links.append(Link(a, a_port, b, b_port, self._options.rate_bps, delay_ns))

    def _next(self, switch: str) -> int:
        self._ports[switch] += 1
        return self._ports[switch]

    def restrict(self, restricted: tuple[Restricted, ...] | None) -> None:
        """Sets the hosts to which only some of the equal-cost paths lead; None: no host is restricted."""
        self._restricted = restricted or ()

    def topology(self) -> Topology:
        """The topology that was built; raises SpecError if it is invalid."""
        spec = self._spec
        return Topology(
            spec.name,
            str(spec),
            tuple(self._switches),
            tuple(self._hosts),
            tuple(self._links),
            self._options.latency_ns,
            self._restricted,
        )
