# SPDX-License-Identifier: Apache-2.0
"""UDP source ports of flows: unique for each pair of hosts, since switches distinguish flows by 5-tuple."""

from __future__ import annotations

import random

from tailrace.codec.numbers import SOURCE_PORTS
from tailrace.experiments.workloads.transfer import PatternError
from tailrace.topology import Host

MORE_PORTS = range(0x400, SOURCE_PORTS.start)
"""Ports for pairs of hosts that have used all SOURCE_PORTS: all others except the system ports."""

_PREFERRED = tuple(SOURCE_PORTS)
"""SOURCE_PORTS as a tuple, so that flows with equal ports share one int object (saves memory)."""

_MOST_DRAWS = 64
"""Draws before the unused ports are listed instead: so many draws fail in a row only if few are unused."""


class SourcePorts:
    """Draws random ports, each at most once for a pair of hosts.

    Large runs typically have a million pairs with one flow each. To save memory, a pair stores one integer
    for its first flow, a set from its second flow on, and a list only if few SOURCE_PORTS are unused.
    """

    def __init__(self, rng: random.Random) -> None:
        """`rng` draws the ports."""
        self._rng = rng
        self._first: dict[str, dict[str, int]] = {}  # by sender, then receiver: the first port of the pair
        self._used: dict[tuple[str, str], set[int]] = {}  # of pairs with several flows
        self._unused: dict[tuple[str, str], list[int]] = {}  # of pairs with few unused SOURCE_PORTS

    def draw(self, sender: Host, receiver: Host) -> int:
        """A port for one more flow of these hosts.

        Raises:
            PatternError: every port is used by a flow of these hosts.
        """
        pair = (sender.name, receiver.name)
        unused = self._unused.get(pair)
        if unused is None:
            port = self._rng.choice(_PREFERRED)
            for _ in range(_MOST_DRAWS):
                if self._take(pair, port):
                    return port
                port = self._rng.choice(_PREFERRED)
            unused = self._unused[pair] = self._rest(pair)
        if not unused:
            count = len(SOURCE_PORTS) + len(MORE_PORTS)
            raise PatternError(f"more than {count} flows from {sender.name} to {receiver.name}")
        return unused.pop()

    def reserve(self, sender: Host, receiver: Host, port: int) -> None:
        """Excludes a given port from later draws; call it before the first draw for these hosts."""
        self._take((sender.name, receiver.name), port)

    def _take(self, pair: tuple[str, str], port: int) -> bool:
        """Marks a port as used; returns whether it was free."""
        sender, receiver = pair
        first_to = self._first.setdefault(sender, {})
        first = first_to.get(receiver)
        if first is None:
            first_to[receiver] = port
            return True
        used = self._used.get(pair)
        if used is None:
            used = self._used[pair] = {first}
        if port in used:
            return False
        used.add(port)
        return True

    def _rest(self, pair: tuple[str, str]) -> list[int]:
        """All unused ports in random order; SOURCE_PORTS come last, because `draw` pops from the end."""
        used = self._used[pair]
        rest: list[int] = []
        for ports in (MORE_PORTS, SOURCE_PORTS):
            free = [port for port in ports if port not in used]
            self._rng.shuffle(free)
            rest += free
        return rest
