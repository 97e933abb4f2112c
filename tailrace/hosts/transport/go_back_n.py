# SPDX-License-Identifier: Apache-2.0
"""Go-back-N, as in reliable connections of RoCE NICs (InfiniBand volume 1, §9.7).

The receiver accepts packets in order only. For the first packet beyond the expected PSN it sends a NAK, and
no further NAK until the expected packet has arrived. With `nak_every_ns`, as in public NS-3 models of RoCE,
it sends another NAK for a packet that arrives this time after the last NAK. The sender retransmits all
packets from the expected PSN on.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from tailrace.codec.calls import NEVER
from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.transport.base import NAK, NOTHING, SILENCE, OneTimerSender, Receiver


@mypyc_attr(allow_interpreted_subclasses=True)
class GoBackNSender(OneTimerSender):
    """Sends packets in order; after a NAK or timeout, again from the first packet not acknowledged."""

    __slots__ = ("_next",)

    def __init__(self, packets: int, config: NicConfig, sport: int) -> None:
        """Args: packets: length of the flow, 1 or more."""
        super().__init__(packets, config, sport)
        self._next = 0

    def peek(self) -> int:
        """The packet `_next`, if the window allows it."""
        index = self._next
        return index if self.window_open_after(index - 1) else NOTHING

    def _advance(self, index: int) -> None:
        self._next = index + 1

    def _on_progress(self) -> None:
        self._next = max(self._next, self.acked)

    def _on_nak(self, arrived: int) -> None:
        # the receiver discarded packet `arrived`: all packets from the missing packet on are retransmitted,
        # unless the sender has already gone back since it sent `arrived`
        if arrived < self._next:
            self._next = self.acked

    def on_echo(self, arrived: int, sport: int, marked: bool) -> None:
        """Does nothing: the path and the window do not change."""

    def _on_timeout(self) -> None:
        self._next = self.acked


@mypyc_attr(allow_interpreted_subclasses=True)
class GoBackNReceiver(Receiver):
    """Accepts packets in order only, and sends a NAK for a missing packet, once or repeatedly."""

    __slots__ = ("_nak_again_ns", "_nak_every_ns", "_nak_sent")

    def __init__(self, packets: int, config: NicConfig) -> None:
        """Args: packets: length of the flow, 1 or more."""
        super().__init__(packets, config)
        self._nak_every_ns: int = config.nak_every_ns
        self._nak_sent = False
        self._nak_again_ns = NEVER  # time from which on the NAK may be repeated

    def on_data(self, now_ns: int, index: int, ackreq: bool) -> int:
        """Like Receiver.on_data, but a NAK may be repeated after `nak_every_ns`."""
        if now_ns >= self._nak_again_ns:
            self._nak_sent = False
        response = super().on_data(now_ns, index, ackreq)
        if response == NAK and self._nak_every_ns:
            self._nak_again_ns = now_ns + self._nak_every_ns
        return response

    def on_trimmed(self, index: int) -> int:  # noqa: ARG002
        """Treats the trimmed packet as lost: no response."""
        return SILENCE

    def _deliver(self) -> None:
        self.expected += 1
        self.received += 1
        self._nak_sent = False

    def _beyond(self) -> int:
        if self._nak_sent:
            return SILENCE
        self._nak_sent = True
        return self._respond(NAK)
