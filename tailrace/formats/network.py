# SPDX-License-Identifier: Apache-2.0
"""A network as a file describes it, and attributes of nodes that several JSON formats have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from tailrace.formats.registry import Source

Pairs = tuple[tuple[str, str], ...]
"""Prefixes with gateways ("": hosts are reached directly), or IP addresses with MAC addresses."""

ROLES = ("leaf", "spine", "edge", "agg", "core", "router")
_TIERS = {"edge": "edge", "aggregation": "agg", "core": "core"}
"""Roles by the names of tiers that FNSS gives to the switches of a data centre."""

_LIMITS = {"tier": (0, 9), "cpu_port": (1, 511), "priority_queues": (1, 8)}
_LIMITS |= dict.fromkeys(("group", "pod"), (0, 1 << 16))
"""Least and largest values; ports of v1model have 9 bits, priorities 3."""

_PREFIX_BITS = re.compile(r"[0-9]|[12][0-9]|3[0-2]")
_MAC = re.compile(r"(?!00(?::00){5})[0-9A-Fa-f][02468ACEace](?::[0-9A-Fa-f]{2}){5}")
"""A unicast MAC address that is not all zeros."""


@dataclass(frozen=True, slots=True)
class NodeData:
    """A switch or a host.

    where: its line or key in the file, for messages
    role, group, cpu_port, priority_queues: as in topology.Switch; role "": derived
    tier: level of a switch above the hosts, from 0; None: unknown
    number: number of a host in workloads, from 0; None: its position
    ip, mac, routes, arp: as in topology.Host; "": generated
    """

    name: str
    where: str | int = ""
    role: str = ""
    tier: int | None = None
    group: int = -1
    cpu_port: int | None = None
    priority_queues: int | None = None
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
    kind: `leaf-spine` or `fat-tree` if the network is such a tree; "": unknown
    """

    switches: tuple[NodeData, ...] = ()
    hosts: tuple[NodeData, ...] = ()
    links: tuple[LinkData, ...] = ()
    latency_ns: int | None = None
    kind: str = ""


def switch_data(source: Source, where: str, name: str, fields: Mapping[str, Any]) -> NodeData:
    """A switch with the attributes role, tier (a number, or a name of FNSS), group or pod, cpu_port,
    priority_queues. Raises FileError for invalid values.
    """
    role = fields.get("role") or _TIERS.get(str(fields.get("tier")), "")
    if role and role not in ROLES:
        raise source.error(f"{where}.role", f"{repr(role)[:40]}: expected one of {', '.join(ROLES)}")
    numbers: dict[str, int | None] = {}
    for key, (least, most) in _LIMITS.items():
        value = None if key == "tier" and str(fields.get(key)) in _TIERS else fields.get(key)
        # a string is accepted, as the p4lang tutorials pass it on to a command line
        number = int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,5}", value) else value
        if number is not None and not (type(number) is int and least <= number <= most):
            raise source.error(f"{where}.{key}", f"{repr(value)[:40]}: expected {least} to {most}")
        numbers[key] = number
    pod = numbers.pop("pod")
    group = pod if numbers["group"] is None else numbers["group"]
    return NodeData(name, where, role, **{**numbers, "group": -1 if group is None else group})  # type: ignore[arg-type]


def attributes(switch: NodeData) -> dict[str, Any]:
    """The attributes of a switch of which `switch_data` makes it."""
    fields = {"role": switch.role, "group": switch.group if switch.group >= 0 else None}
    fields |= {"cpu_port": switch.cpu_port, "priority_queues": switch.priority_queues}
    return {key: value for key, value in fields.items() if value is not None}


def addresses(
    source: Source, where: str, fields: Mapping[str, Any], default_bits: str
) -> tuple[str, IPv4Network | None, str]:
    """A host's IP address, its subnet (None: the address is invalid, which topologies report), and its MAC
    address ("": none), from its `ip` and `mac`. Raises FileError.
    """
    text, mac = fields.get("ip"), fields.get("mac")
    if not isinstance(text, str):
        raise source.error(f"{where}.ip", "expected an address such as 10.0.1.1/24")
    ip, slash, bits = text.partition("/")
    if slash and _PREFIX_BITS.fullmatch(bits) is None:
        raise source.error(f"{where}.ip", f"{bits[:40]!r}: expected a prefix length of 0 to 32")
    if mac is not None and not (isinstance(mac, str) and _MAC.fullmatch(mac)):
        raise source.error(f"{where}.mac", "expected a unicast address such as 08:00:00:00:01:11")
    try:
        subnet = IPv4Network(f"{ip}/{bits or default_bits}", strict=False)
    except ValueError:
        subnet = None
    return ip, subnet, (mac or "").lower()
