# SPDX-License-Identifier: Apache-2.0
"""The control plane of a user's program (schemes.program): nobody changes the entries while a network runs.
Only a switch that has restarted gets its program and its entries again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tailrace.schemes.watch import LinkEnd, SuppressedPath
from tailrace.topology.paths.shortest import Down


class NoController:
    """Implements ControlPlane."""

    down: Down = frozenset()
    suppressed: Sequence[SuppressedPath] = ()

    def __init__(self, configure: Callable[[Collection[str]], None]) -> None:
        """Args: configure: writes the programs and entries of the named switches."""
        self._configure = configure

    def start(self) -> None:
        """Does nothing."""

    def catch_up(self) -> None:
        """Does nothing: digests stay in the switches."""

    def notify_links(self, ends: Sequence[LinkEnd], at_ns: int, *, dead: bool) -> None:
        """Does nothing: the entries stay as they are."""

    def switch_lost(self, switch: str) -> None:
        """Does nothing."""

    def switch_restored(self, switch: str) -> None:
        self._configure([switch])

    def check(self) -> None:
        """Never raises."""

    def stop(self) -> None:
        """Does nothing."""
