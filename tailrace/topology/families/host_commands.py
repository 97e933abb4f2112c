# SPDX-License-Identifier: Apache-2.0
"""Routes and ARP entries that the commands of hosts in topology.json add, as in the p4lang tutorials.

    route add default gw 10.0.1.10 dev eth0      ip route add 10.0.2.0/24 via 10.0.1.10
    arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00   ip neigh add 10.0.1.10 lladdr 08:00:00:00:01:00 dev eth0

Other commands are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network

_MAC = re.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}")

Pairs = tuple[tuple[str, str], ...]
"""Prefixes with gateways ("": hosts are reached directly), or IP addresses with MAC addresses."""


def routes_and_arp(subnet: IPv4Network, commands: Iterable[str]) -> tuple[Pairs, Pairs]:
    """The fields `routes` and `arp` of a host; the first route is its subnet."""
    routes: dict[str, str] = {str(subnet): ""}
    arp: dict[str, str] = {}
    for command in commands:
        argv = [arg for arg in command.split() if arg != "sudo"]
        argv[:1] = [name.rpartition("/")[2] for name in argv[:1]]
        try:
            if argv[:2] == ["route", "add"]:
                route = _route([arg for arg in argv[2:] if arg not in {"-net", "-host"}], "gw")
                routes.update([route])
            elif argv[:1] == ["arp"] and "-s" in argv:
                arp.update([_neighbour(argv[argv.index("-s") + 1 :], 1)])
            elif argv[:2] == ["ip", "route"] and argv[2:3] in (["add"], ["replace"]):
                routes.update([_route(argv[3:], "via")])
            elif argv[:1] == ["ip"] and "lladdr" in argv and argv[2:3] in (["add"], ["replace"]):
                arp.update([_neighbour(argv[3:], argv[3:].index("lladdr") + 1)])
        except (ValueError, IndexError):
            continue  # not about IPv4, or invalid
    return tuple(routes.items()), tuple(arp.items())


def _route(argv: Sequence[str], gateway: str) -> tuple[str, str]:
    """A prefix and its gateway; raises IndexError or ValueError for an invalid route."""
    prefix = "0.0.0.0/0" if argv[0] == "default" else argv[0]
    if "netmask" in argv:
        prefix += f"/{_after(argv, 'netmask')}"
    return str(IPv4Network(prefix)), str(IPv4Address(_after(argv, gateway))) if gateway in argv else ""


def _neighbour(argv: Sequence[str], mac: int) -> tuple[str, str]:
    """An IP address, argv[0], and its MAC address, argv[mac]; raises IndexError or ValueError if invalid."""
    if _MAC.fullmatch(argv[mac]) is None:
        raise ValueError(argv[mac])
    return str(IPv4Address(argv[0])), argv[mac].lower()


def _after(argv: Sequence[str], key: str) -> str:
    return argv[argv.index(key) + 1]
