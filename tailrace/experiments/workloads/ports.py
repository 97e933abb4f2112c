# SPDX-License-Identifier: Apache-2.0
"""Source ports that no two flows between the same hosts share, or they would be one flow to a switch."""

from __future__ import annotations

import random

from tailrace.codec.layers.bth import SOURCE_PORTS
from tailrace.experiments.workloads.transfer import PatternError
from tailrace.topology import Host

MORE_PORTS = range(0x400, SOURCE_PORTS.start)
"""What a pair of hosts takes once it has used all of those: every other port that is not reserved."""

_PREFERRED = tuple(SOURCE_PORTS)
"""The same numbers; flows that have a port in common share the object, too."""

_MOST_DRAWS = 64
"""Draws before the ports that are left are listed: that many fail in a row only when few are left."""


class SourcePorts:
    """Hands out ports, at random and each once for a pair of hosts.

    A million pairs with a flow each are the common case at scale: a pair costs a number until it has a
    second flow, and a list only when it runs out of SOURCE_PORTS.
    """

    def __init__(self, rng: random.Random) -> None:
        """`rng` draws the ports."""
        self._rng = rng
        self._first: dict[str, dict[str, int]] = {}  # by sender and receiver
        self._used: dict[tuple[str, str], set[int]] = {}
        self._left: dict[tuple[str, str], list[int]] = {}

    def draw(self, sender: Host, receiver: Host) -> int:
        """A port for one more flow of these hosts.

        Raises:
            PatternError: they have one flow for every port there is.
        """
        pair = (sender.name, receiver.name)
        left = self._left.get(pair)
        if left is None:
            port = self._rng.choice(_PREFERRED)
            for _ in range(_MOST_DRAWS):
                if self._take(pair, port):
                    return port
                port = self._rng.choice(_PREFERRED)
            left = self._left[pair] = self._rest(pair)
        if not left:
            count = len(SOURCE_PORTS) + len(MORE_PORTS)
            raise PatternError(f"more than {count} flows from {sender.name} to {receiver.name}")
        return left.pop()

    def reserve(self, sender: Host, receiver: Host, port: int) -> None:
        """Keeps a port that somebody chose from being drawn; before the first draw for these hosts."""
        self._take((sender.name, receiver.name), port)

    def _take(self, pair: tuple[str, str], port: int) -> bool:
        """Whether the port was free; then it is no longer."""
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
        """All ports not used yet, in random order; preferred ones at the end, which is taken first."""
        used = self._used[pair]
        rest: list[int] = []
        for ports in (MORE_PORTS, SOURCE_PORTS):
            free = [port for port in ports if port not in used]
            self._rng.shuffle(free)
            rest += free
        return rest
