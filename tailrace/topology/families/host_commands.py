# SPDX-License-Identifier: Apache-2.0
"""Routes and ARP entries that hosts of topology.json get by commands, as in the p4lang tutorials.

    route add default gw 10.0.1.10 dev eth0      ip route add 10.0.2.0/24 via 10.0.1.10
    arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00   ip neigh add 10.0.1.10 lladdr 08:00:00:00:01:00 dev eth0

Other commands are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network

_MAC = re.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}")

Pairs = tuple[tuple[str, str], ...]


def routes_and_arp(subnet: IPv4Network, commands: Iterable[str]) -> tuple[Pairs, Pairs]:
    """The fields `routes` and `arp` of a host; its own subnet is the first route."""
    routes: dict[str, str] = {str(subnet): ""}
    arp: dict[str, str] = {}
    for command in commands:
        words = [word for word in command.split() if word != "sudo"]
        words[:1] = [name.rpartition("/")[2] for name in words[:1]]
        try:
            if words[:2] == ["route", "add"]:
                route = _route([word for word in words[2:] if word not in {"-net", "-host"}], "gw")
                routes.update([route])
            elif words[:1] == ["arp"] and "-s" in words:
                arp.update([_neighbour(words[words.index("-s") + 1 :], 1)])
            elif words[:2] == ["ip", "route"] and words[2:3] in (["add"], ["replace"]):
                routes.update([_route(words[3:], "via")])
            elif words[:1] == ["ip"] and "lladdr" in words and words[2:3] in (["add"], ["replace"]):
                arp.update([_neighbour(words[3:], words[3:].index("lladdr") + 1)])
        except (ValueError, IndexError):
            continue  # a command that says nothing of IPv4, or that the shell would refuse
    return tuple(routes.items()), tuple(arp.items())


def _route(words: Sequence[str], gateway: str) -> tuple[str, str]:
    """A prefix and its gateway; IndexError or ValueError where it is none."""
    prefix = "0.0.0.0/0" if words[0] == "default" else words[0]
    if "netmask" in words:
        prefix += f"/{_after(words, 'netmask')}"
    return str(IPv4Network(prefix)), str(IPv4Address(_after(words, gateway))) if gateway in words else ""


def _neighbour(words: Sequence[str], mac: int) -> tuple[str, str]:
    """An address and its MAC address, which is the word of that number; likewise."""
    if _MAC.fullmatch(words[mac]) is None:
        raise ValueError(words[mac])
    return str(IPv4Address(words[0])), words[mac].lower()


def _after(words: Sequence[str], key: str) -> str:
    return words[words.index(key) + 1]
