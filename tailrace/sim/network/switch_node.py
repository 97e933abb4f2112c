# SPDX-License-Identifier: Apache-2.0
"""A compiled switch of the network, and its CPU port."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.sim.network.core import Net
from tailrace.switch.core import V1ModelSwitch


@dataclass(frozen=True, slots=True)
class SwitchNode:
    """A switch: `number` is its index in the network."""

    name: str
    number: int
    switch: V1ModelSwitch
    net: Net

    def receive(self, port: int, frame: bytes) -> None:
        """Injects a frame now at a port without a link.

        Raises:
            NetworkError: the core does not accept the frame.
        """
        self.net.inject(self.number, port, frame)

    def to_cpu(self) -> list[bytes]:
        """Removes and returns the frames sent to the CPU port, oldest first; at most the newest 65536."""
        return self.net.to_cpu(self.number)

    def settle(self) -> None:
        """Makes the switch handle the events that are due now; called after a change of its state."""
        self.net.settle(self.number)
