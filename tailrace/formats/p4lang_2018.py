# SPDX-License-Identifier: Apache-2.0
"""topology.json in the form of the p4lang tutorials until 2018: hosts are a list, and links have no ports.

    {"hosts": ["h1", "h2"], "switches": {"s1": {}}, "links": [["h1", "s1"], ["h2", "s1", latency, bandwidth]]}

A host has the address 10.0.SWITCH.HOST/24, with the numbers in the names. Links are added in the order of
their ends' names, hosts' links first, and take the ports of a switch in order, from 1. The gateway of a
host has the host's MAC address, as the interface of the switch had in these exercises.

Source: p4lang/tutorials, P4D2_2018_East/utils/run_exercise.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from tailrace.spec.errors import FileError

_NAME = re.compile(r"[hs]([0-9]{1,3})")
_MOST = 255
"""The largest number in a name, which becomes an octet of addresses."""

Error = Callable[[str, str], FileError]
"""Makes an error from a key and a description of the problem."""


def has_ends(link: Any) -> bool:
    """Whether a link is a list of two strings and up to two further values."""
    return isinstance(link, list) and 2 <= len(link) <= 4 and all(isinstance(end, str) for end in link[:2])


def from_2018(data: Mapping[str, Any], error: Error) -> dict[str, Any]:
    """Converts a network to the form since 2018; the order of links stays the same.

    Raises:
        SpecError: names that cannot be converted.
    """
    hosts: dict[str, Any] = {}
    for name in data["hosts"]:
        if not isinstance(name, str) or name[:1] != "h" or _number(name) is None:
            raise error("hosts", f"{repr(name)[:40]}: in a list of hosts, expected names such as h1")
        if name in hosts:
            raise error("hosts", f"{name} occurs twice")
        hosts[name] = {}
    links, switches = list(data["links"]), data["switches"]
    ends = {index: sorted(link[:2]) for index, link in enumerate(links) if has_ends(link)}
    ports = {switch: count(1) for switch in switches}
    for index in sorted(ends, key=lambda index: (ends[index][0] not in hosts, "".join(ends[index]))):
        named_ends = []
        for end in ends[index]:
            if end not in hosts and end not in ports:
                problem = f"{end[:40]!r} is neither a host nor a switch"
                raise error(f"links[{index}]", f"{problem}; if hosts are a list, links have no ports")
            named_ends.append(end if end in hosts else f"{end}-p{next(ports[end])}")
        host, switch = ends[index]
        if host in hosts and switch in ports:
            number = _number(switch)
            if number is None:
                raise error(
                    f"links[{index}]",
                    f"{switch[:40]!r}: expected a name such as s1, as addresses contain its number",
                )
            hosts[host] = hosts[host] or _host(number, _number(host) or 0)
        links[index] = [*named_ends, *links[index][2:]]
    # a host without a link to a switch is refused later
    hosts = {name: fields or _host(0, _number(name) or 0) for name, fields in hosts.items()}
    return {"hosts": hosts, "switches": switches, "links": links}


def _number(name: str) -> int | None:
    match = _NAME.fullmatch(name)
    return int(match[1]) if match and int(match[1]) <= _MOST else None


def _host(switch: int, host: int) -> dict[str, Any]:
    mac, gateway = f"00:00:00:00:{switch:02x}:{host:02x}", f"10.0.{host}.254"
    commands = [f"route add default gw {gateway}", f"arp -s {gateway} {mac}"]
    return {"ip": f"10.0.{switch}.{host}/24", "mac": mac, "commands": commands}
