# SPDX-License-Identifier: Apache-2.0
"""Thresholds of priority flow control (PFC) for data packets, and settings of lossless networks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tailrace.spec.watchdog import WATCHDOG, Watchdog
from tailrace.topology import Topology

DEADLOCKS = ("stop", "pass")
DEADLOCK_STOPS = DEADLOCKS[0]
"""What a run does in a deadlock of pauses: "stop" ends the run, "pass" continues it."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """PFC thresholds for one lossless priority of an ingress port, and settings of its switch.

    xoff_bytes: buffered bytes from the port at which the switch sends a pause frame to the neighbour
    xon_bytes: buffered bytes from the port at which the switch sends a resume
    headroom_bytes: buffer for packets that arrive after the pause was sent and before it takes effect
    buffer_bytes: size of the buffer that all ports of a switch share; None: unlimited
    alpha: a port may use at most `alpha` times the free buffer; None: thresholds do not depend on the buffer
    port_bytes: reserve of each port for packets that are not lossless
    watchdog: PFC watchdog of ports to switches; spec.watchdog.of_port derives the watchdog of ports to hosts
    channels: number of virtual channels (docs/reference/channels.md): lossless priorities on links between
        switches, from the data priority up; 0: only the data priority, which packets keep
    deadlock: what a run does in a deadlock of pauses, one of DEADLOCKS
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
        """The lossless priorities of a link between switches; hosts send with the first, `data_priority`."""
        return tuple(range(data_priority, data_priority + max(1, self.channels)))

    def held_bytes(self, topology: Topology) -> int:
        """The most bytes in a switch's buffer: its size, or the sum of xoff and headroom of all ports."""
        if self.buffer_bytes is not None:
            return self.buffer_bytes
        ports = max(len(topology.ports_of(switch.name)) for switch in topology.switches)
        return ports * max(1, self.channels) * (self.xoff_bytes + self.headroom_bytes)

    @property
    def rise(self) -> int:
        """By how much the priority of a packet rises from one switch to the next."""
        return 1 if self.channels else 0
