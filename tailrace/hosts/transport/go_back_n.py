# SPDX-License-Identifier: Apache-2.0
"""Go-back-N, as RoCE NICs do a reliable connection (InfiniBand volume 1, §9.7).

The receiver takes packets in order only. The first one beyond the expected PSN is answered by one NAK,
those after it by nothing, until the expected one has come; or, as public NS-3 models of RoCE have it, by
another one whenever `nak_every_ns` have gone by since the last. The sender goes back to it and sends
everything again.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from tailrace.codec.calls import NEVER
from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.transport.base import NAK, NOTHING, SILENCE, OneTimerSender, Receiver


@mypyc_attr(allow_interpreted_subclasses=True)
class GoBackNSender(OneTimerSender):
    """Sends from a position that NAKs and timeouts set back."""

    __slots__ = ("_next",)

    def __init__(self, packets: int, config: NicConfig, sport: int) -> None:
        """Args: packets: length of the flow, 1 or more."""
        super().__init__(packets, config, sport)
        self._next = 0

    def peek(self) -> int:
        """The packet at the position, if the window lets it go."""
        index = self._next
        return index if self.window_open_after(index - 1) else NOTHING

    def _advance(self, index: int) -> None:
        self._next = index + 1

    def _on_progress(self) -> None:
        self._next = max(self._next, self.acked)

    def _on_nak(self, arrived: int) -> None:
        # what arrived was not kept: everything from the missing packet on goes again
        if arrived < self._next:
            self._next = self.acked

    def on_echo(self, arrived: int, sport: int, marked: bool) -> None:
        """One path and a window that does not change: there is nothing to learn."""

    def _on_timeout(self) -> None:
        self._next = self.acked


@mypyc_attr(allow_interpreted_subclasses=True)
class GoBackNReceiver(Receiver):
    """Takes packets in order, and says when one is missing: once, or again and again."""

    __slots__ = ("_nak_every_ns", "_nak_sent", "_nak_until_ns")

    def __init__(self, packets: int, config: NicConfig) -> None:
        """Args: packets: length of the flow, 1 or more."""
        super().__init__(packets, config)
        self._nak_every_ns: int = config.nak_every_ns
        self._nak_sent = False
        self._nak_until_ns = NEVER  # no other one is sent before

    def on_data(self, now_ns: int, index: int, ackreq: bool) -> int:
        """As all receivers; a NAK is repeated when it is time."""
        if now_ns >= self._nak_until_ns:
            self._nak_sent = False
        response = super().on_data(now_ns, index, ackreq)
        if response == NAK and self._nak_every_ns:
            self._nak_until_ns = now_ns + self._nak_every_ns
        return response

    def on_trimmed(self, index: int) -> int:  # noqa: ARG002
        """As if it were lost."""
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
