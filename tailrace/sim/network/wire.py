# SPDX-License-Identifier: Apache-2.0
"""A wire, one direction of a link, for observers: its ends, and events of its frames."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import msgspec

from tailrace.sim.network.core import Net

FrameTest = Callable[[bytes], bool]
"""Returns whether a fault applies to a frame."""


class NodePort(msgspec.Struct, frozen=True):
    """A port of a switch, or the only port (0) of a host."""

    node: str
    port: int


class WireEvent(Enum):
    """What has happened to the frame with which a tap is called."""

    SENT = "sent"
    """The frame's first bit leaves now."""
    RECEIVED = "received"
    """The frame's last bit arrives now."""
    LOST = "lost"
    """The frame would be received now, but a fault loses it."""


_EVENTS = (WireEvent.SENT, WireEvent.RECEIVED, WireEvent.LOST)
"""By their numbers in tv_net.h."""

Tap = Callable[["Wire", WireEvent, int, bytes, int], None]
"""tap(wire, event, now_ns, frame, virtual_bytes)"""


class Wire:
    """A wire. `nominal_rate_bps` is its rate without faults, `rate_bps` its present rate; `delay_ns` includes
    its target's latency.
    """

    def __init__(
        self, net: Net, index: int, source: NodePort, target: NodePort, nominal_rate_bps: int, delay_ns: int
    ) -> None:
        """Called by the network, in which the wire has this index."""
        self.index = index
        self.source = source
        self.target = target
        self.nominal_rate_bps = self.rate_bps = nominal_rate_bps
        self.delay_ns = delay_ns
        self._net = net
        self._taps: list[Tap] = []

    @property
    def name(self) -> str:
        """The wire's name in messages and captures, such as `leaf1:3>spine1:1`."""
        return f"{self.source.node}:{self.source.port}>{self.target.node}:{self.target.port}"

    @property
    def up(self) -> bool:
        return self._net.up(self.index)

    def tap(self, tap: Tap) -> None:
        """From now on, `tap` is called for each event of this wire."""
        if not self._taps:
            self._net.tap(self.index, self._call_taps)
        self._taps.append(tap)

    def _call_taps(self, event: int, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        for tap in self._taps:
            tap(self, _EVENTS[event], now_ns, frame, virtual_bytes)
