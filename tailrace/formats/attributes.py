# SPDX-License-Identifier: Apache-2.0
"""Attributes of switches and hosts that several JSON formats have: role, tier, group, CPU port, address."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Any

from tailrace.formats.network import SwitchData
from tailrace.formats.registry import Origin

ROLES = ("leaf", "spine", "edge", "agg", "core", "router")

_TIER_NAMES = {"edge": "edge", "aggregation": "agg", "core": "core"}
"""Roles by the names of tiers that FNSS gives to the switches of a data centre."""

_MOST_TIER, _MOST_GROUP = 9, 1 << 16
_MOST_CPU_PORT, _MOST_QUEUES = 511, 8
"""Ports of v1model have 9 bits, priorities 3."""

_PREFIX_BITS = re.compile(r"[0-9]|[12][0-9]|3[0-2]")
_MAC = re.compile(r"(?!00(?::00){5})[0-9A-Fa-f][02468ACEace](?::[0-9A-Fa-f]{2}){5}")
"""A unicast MAC address that is not all zeros."""


def switch_data(origin: Origin, where: str, name: str, fields: Mapping[str, Any]) -> SwitchData:
    """A switch with these attributes: role, tier (a number, or a name of FNSS), group or pod, cpu_port,
    priority_queues.

    Raises:
        FormatError: an invalid value; the message names the key.
    """
    role, tier = fields.get("role") or "", fields.get("tier")
    if role and role not in ROLES:
        problem = f"{repr(role)[:40]}: expected one of {', '.join(ROLES)}"
        raise origin.error(f"{where}.role", problem)
    if isinstance(tier, str) and tier in _TIER_NAMES:
        role, tier = role or _TIER_NAMES[tier], None
    group = _number(origin, where, fields, "group" if "group" in fields else "pod", 0, _MOST_GROUP)
    return SwitchData(
        name,
        where,
        role,
        None if tier is None else _number(origin, where, fields, "tier", 0, _MOST_TIER),
        -1 if group is None else group,
        _number(origin, where, fields, "cpu_port", 1, _MOST_CPU_PORT),
        _number(origin, where, fields, "priority_queues", 1, _MOST_QUEUES),
    )


def _number(
    origin: Origin, where: str, fields: Mapping[str, Any], key: str, least: int, most: int
) -> int | None:
    """A number; a string is accepted, as the p4lang tutorials pass it on to a command line."""
    value = fields.get(key)
    if value is None:
        return None
    number = int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,5}", value) else value
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
        expected = f"expected a number of {least} to {most}"
        raise origin.error(f"{where}.{key}", f"{repr(value)[:40]}: {expected}")
    return number


def address(origin: Origin, where: str, text: Any, default_bits: str) -> tuple[str, IPv4Network | None]:
    """The IP address in a text such as 10.0.1.1/24, and its subnet (None: the address is none).

    Raises:
        FormatError: no text, or an invalid prefix length.
    """
    if not isinstance(text, str):
        raise origin.error(f"{where}.ip", "expected an address such as 10.0.1.1/24")
    ip, slash, bits = text.partition("/")
    if slash and _PREFIX_BITS.fullmatch(bits) is None:
        raise origin.error(f"{where}.ip", f"{bits[:40]!r}: expected a prefix length of 0 to 32")
    try:
        return ip, IPv4Network(f"{ip}/{bits or default_bits}", strict=False)
    except ValueError:
        return ip, None  # refused with the whole network


def mac_address(origin: Origin, where: str, text: Any) -> str:
    """A MAC address in lower case; "" for None. Raises FormatError for what is no unicast address."""
    if text is None:
        return ""
    if not isinstance(text, str) or _MAC.fullmatch(text) is None:
        raise origin.error(f"{where}.mac", "expected a unicast address such as 08:00:00:00:01:11")
    return text.lower()
