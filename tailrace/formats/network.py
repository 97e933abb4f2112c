# SPDX-License-Identifier: Apache-2.0
"""A network as a file describes it. `topology.from_file` completes it: ports, addresses, roles, default
rates.
"""

from __future__ import annotations

from dataclasses import dataclass

Pairs = tuple[tuple[str, str], ...]
"""Prefixes with gateways ("": hosts are reached directly), or IP addresses with MAC addresses."""


@dataclass(frozen=True, slots=True)
class SwitchData:
    """A switch.

    where: its line or key in the file, for messages
    role: leaf, spine and so on; "": derived from the distance to hosts, or from `tier`
    tier: level above the hosts, from 0; None: unknown
    group: pod or group, from 0; -1: none
    cpu_port, priority_queues: as in topology.Switch
    """

    name: str
    where: str | int = ""
    role: str = ""
    tier: int | None = None
    group: int = -1
    cpu_port: int | None = None
    priority_queues: int | None = None


@dataclass(frozen=True, slots=True)
class HostData:
    """A host.

    number: its number in the file's workloads, from 0; None: its position
    ip: IPv4 address with or without prefix length; "": assigned
    mac: "": derived from the address
    routes, arp: as in topology.Host
    """

    name: str
    where: str | int = ""
    number: int | None = None
    ip: str = ""
    mac: str = ""
    routes: Pairs = ()
    arp: Pairs = ()


@dataclass(frozen=True, slots=True)
class LinkData:
    """A link; port 0: the next free port, or a host; a rate or delay of None is a default of the user's."""

    where: str | int
    a: str
    a_port: int
    b: str
    b_port: int
    rate_bps: int | None = None
    delay_ns: int | None = None


@dataclass(frozen=True, slots=True)
class NetworkData:
    """A network, in the order of the file.

    latency_ns: delay of each switch; None: a default of the user's
    family: a spec string of a topology family that describes the network instead; "": none
    kind: `leaf-spine` or `fat-tree` if the network is such a tree; "": unknown
    """

    switches: tuple[SwitchData, ...] = ()
    hosts: tuple[HostData, ...] = ()
    links: tuple[LinkData, ...] = ()
    latency_ns: int | None = None
    family: str = ""
    kind: str = ""
