# SPDX-License-Identifier: Apache-2.0
"""A compiled switch of the network, and its CPU port."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.sim.network.core import Net
from tailrace.switch.core import V1ModelSwitch


@dataclass(frozen=True, slots=True)
class SwitchNode:
    """A switch: `number` is the network's for it."""

    name: str
    number: int
    switch: V1ModelSwitch
    net: Net

    def receive(self, port: int, frame: bytes) -> None:
        """A frame comes in now by a port without a wire.

        Raises:
            NetworkError: the core takes no such frame.
        """
        self.net.enter(self.number, port, frame)

    def to_cpu(self) -> list[bytes]:
        """Takes the frames that were sent to the CPU port, oldest first; of too many the newest."""
        return self.net.to_cpu(self.number)

    def settle(self) -> None:
        """Lets the switch do what is due now, after it was changed."""
        self.net.settle(self.number)
