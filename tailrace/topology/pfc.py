# SPDX-License-Identifier: Apache-2.0
"""Priority flow control of the data class: what one port and one switch do with what came in."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tailrace.spec.watchdog import WATCHDOG, Watchdog
from tailrace.topology import Topology

DEADLOCKS = ("stop", "pass")
DEADLOCK_STOPS = DEADLOCKS[0]
"""What a run does when it is deadlocked."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What one port does with what came in by it, and what a switch has for all of them, in bytes; and the
    watchdog of pauses between switches, from which that of hosts' ports follows (spec.watchdog.of_port).

    channels: lossless priorities of links between switches, from that of data on; 0: there is one, and
        packets keep it
    deadlock: one of DEADLOCKS
    """

    xoff_bytes: int
    xon_bytes: int
    headroom_bytes: int
    buffer_bytes: int | None = None
    alpha: Fraction | None = None
    port_bytes: int = 0
    watchdog: Watchdog = WATCHDOG
    channels: int = 0
    deadlock: str = DEADLOCKS[0]

    def lossless(self, data_priority: int) -> tuple[int, ...]:
        """The lossless priorities of a link between switches; hosts send with the first one, that of data."""
        return tuple(range(data_priority, data_priority + max(1, self.channels)))

    def held_bytes(self, topology: Topology) -> int:
        """The most that waits in any switch: its buffer, or what its ports hold before and in a pause."""
        if self.buffer_bytes is not None:
            return self.buffer_bytes
        ports = max(len(topology.ports_of(switch.name)) for switch in topology.switches)
        return ports * max(1, self.channels) * (self.xoff_bytes + self.headroom_bytes)

    @property
    def rise(self) -> int:
        """How many priorities above that with which a switch had sent it a packet waits at the next one."""
        return 1 if self.channels else 0
