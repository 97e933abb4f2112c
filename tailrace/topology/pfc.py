# SPDX-License-Identifier: Apache-2.0
"""Thresholds of priority flow control (PFC) of the data class, for one port and one switch."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tailrace.spec.watchdog import WATCHDOG, Watchdog
from tailrace.topology import Topology

DEADLOCKS = ("stop", "pass")
DEADLOCK_STOPS = DEADLOCKS[0]
"""What a run does in a deadlock of pauses: stop, or continue."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """PFC thresholds of an ingress port, and the buffer of a switch, in bytes.

    xoff_bytes, xon_bytes: queued bytes from a port at which it is paused, and resumed
    headroom_bytes: bytes that may still arrive after the pause was sent
    buffer_bytes: shared by all ports; None: unlimited
    alpha: factor of dynamic thresholds; None: thresholds are static
    port_bytes: reserve of each port for lossy packets
    watchdog: of pauses between switches; that of hosts' ports follows from it (spec.watchdog.of_port)
    channels: number of lossless priorities on links between switches, beginning with that of data; 0: one,
        which packets keep
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
        """The most bytes that wait in a switch: its buffer, or the sum of xoff and headroom of its ports."""
        if self.buffer_bytes is not None:
            return self.buffer_bytes
        ports = max(len(topology.ports_of(switch.name)) for switch in topology.switches)
        return ports * max(1, self.channels) * (self.xoff_bytes + self.headroom_bytes)

    @property
    def rise(self) -> int:
        """By how much the priority of a packet rises from one switch to the next."""
        return 1 if self.channels else 0
