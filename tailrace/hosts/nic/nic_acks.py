# SPDX-License-Identifier: Apache-2.0
"""NIC ACKs: the destination NIC reports bytes that have arrived, for Flowcut on the source NIC (§II-D)."""

from __future__ import annotations

from collections import deque
from typing import Final

from tailrace.codec.calls import COUNT_SHIFT, NEVER, Packet
from tailrace.codec.layout import HeaderLayout
from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.steering.flowcut import TICKS_MASK

_MOST_BYTES: Final[int] = HeaderLayout("NicAck").mask("NicAck.bytes")  # the largest value of the field


class NicAcks:
    """The NIC ACKs of one flow; each is for up to `ack_every` packets.

    The source normalises RTTs by the frame length and the hop count, so both must be equal for all packets of
    an ACK. If a packet differs from the previous packets, the ACK of the previous packets is sent at once.

    deadline_ns: when `on_time` must be called.
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
        template_id: template of this flow's NIC ACKs.
        control: the NIC's queue of control packets, to which NIC ACKs are added.
        """
        self._ack_every: int = config.nic_ack_every
        self._ack_delay_ns: int = config.ack_delay_ns
        self._template_id = template_id
        self._control = control
        self._packets = 0  # number of packets of the next ACK, and total bytes of their frames
        self._bytes = 0
        self._frame_bytes = 0  # length of each packet
        self._hops = 0
        self._ticks = 0  # timestamp of the last packet, and when it arrived
        self._arrived_ns = 0
        self.deadline_ns = NEVER

    def on_data(self, now_ns: int, frame_bytes: int, hops: int, ticks: int, at_once: bool) -> None:
        """Handles a data packet.

        Args:
            frame_bytes: length of the packet's frame.
            hops: number of switches that the packet crossed.
            ticks: timestamp in the packet's NIC shim.
            at_once: send the ACK now, without waiting for more packets.
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
        # the delay of the ACK is added to the timestamp, so that it is not part of the RTT
        if now_ns > self._arrived_ns:
            ticks = ticks + now_ns - self._arrived_ns & TICKS_MASK
        self._control.append((self._template_id, self._bytes << COUNT_SHIFT | self._hops, ticks))
        self._packets = self._bytes = 0
        self.deadline_ns = NEVER
