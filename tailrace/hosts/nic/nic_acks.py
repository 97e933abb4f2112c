# SPDX-License-Identifier: Apache-2.0
"""NIC ACKs of a destination to a source that does Flowcut itself (Flowcut §II-D): the bytes that arrived."""

from __future__ import annotations

from collections import deque
from typing import Final

from tailrace.codec.calls import COUNT_SHIFT, NEVER, Packet
from tailrace.codec.layers.nic_shim import NicAck
from tailrace.codec.layout import HeaderLayout
from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.steering.flowcut import TICKS_MASK

_MOST_BYTES: Final[int] = HeaderLayout(NicAck).mask("NicAck.bytes")


class NicAcks:
    """The NIC ACKs of one flow: one for `ack_every` packets, or for fewer.

    One ACK has one frame length and one hop count, from which the source learns what the round-trip time
    could have been; so a packet that differs from those before it releases their ACK.

    deadline_ns: when `on_time` has something to do.
    """

    __slots__ = (
        "_ack_delay_ns",
        "_ack_every",
        "_arrived_ns",
        "_bytes",
        "_control",
        "_frame_bytes",
        "_hops",
        "_packets",
        "_template_id",
        "_ticks",
        "deadline_ns",
    )

    def __init__(self, config: NicConfig, template_id: int, control: deque[Packet]) -> None:
        """Args:
        template_id: of NIC ACKs of this flow.
        control: takes them.
        """
        self._ack_every: int = config.nic_ack_every
        self._ack_delay_ns: int = config.ack_delay_ns
        self._template_id = template_id
        self._control = control
        self._packets = 0  # that the next ACK is for
        self._bytes = 0
        self._frame_bytes = 0  # of each of them
        self._hops = 0
        self._ticks = 0  # of the last one, and when it came
        self._arrived_ns = 0
        self.deadline_ns = NEVER

    def on_data(self, now_ns: int, frame_bytes: int, hops: int, ticks: int, at_once: bool) -> None:
        """A data packet has arrived.

        Args:
            frame_bytes: length of its frame.
            hops: switches that it crossed.
            ticks: its shim's.
            at_once: nothing that follows may share its ACK.
        """
        if self._packets and (
            frame_bytes != self._frame_bytes or hops != self._hops or self._bytes + frame_bytes > _MOST_BYTES
        ):
            self._send(now_ns)
        self._packets += 1
        self._bytes += frame_bytes
        self._frame_bytes = frame_bytes
        self._hops = hops
        self._ticks = ticks
        self._arrived_ns = now_ns
        if at_once or self._packets >= self._ack_every:
            self._send(now_ns)
        elif self.deadline_ns == NEVER:
            self.deadline_ns = now_ns + self._ack_delay_ns

    def on_time(self, now_ns: int) -> None:
        """Sends the delayed ACK when its delay is over."""
        if now_ns >= self.deadline_ns:
            self._send(now_ns)

    def _send(self, now_ns: int) -> None:
        ticks = self._ticks
        if now_ns > self._arrived_ns:
            ticks = ticks + now_ns - self._arrived_ns & TICKS_MASK
        self._control.append((self._template_id, self._bytes << COUNT_SHIFT | self._hops, ticks))
        self._packets = self._bytes = 0
        self.deadline_ns = NEVER
