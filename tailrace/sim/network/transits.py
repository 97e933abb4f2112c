# SPDX-License-Identifier: Apache-2.0
"""The log of a flow: each transit of a wire (one direction of a link) by a packet between two hosts. Times
are in picoseconds.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from enum import Enum

import msgspec

from tailrace.sim.network.wire import Wire

_RECORD = struct.Struct("=QIIIIII")
"""tv_logged_frame of tv_net.h."""

_NOWHERE = (1 << 32) - 1
"""The offset of the IPv4 header of a frame without one."""

_SENT = 0


class Fate(Enum):
    """What became of a frame on a wire."""

    RECEIVED = "received"
    CUT = "lost: the link is down"
    DROPPED = "lost: taken by a fault"
    UNDER_WAY = "under way"


_FATES = {1: Fate.RECEIVED, 2: Fate.CUT, 3: Fate.DROPPED}
"""By the values of tv_logged_frame.what (tv_net.h)."""


class WireTransit(msgspec.Struct):
    """A frame on a wire: when the network noticed it, and when its last bit arrived, or would have arrived.

    At `sent_ps` a host sends the first bit. A switch may have sent it earlier, because the network notices
    the switch's frames only at the switch's next event. `length` counts the bytes that are stored, and
    `virtual_bytes` further bytes of payload, of which only the number is kept. `frame` is empty while the
    frame is under way; `ip_at` is the offset of its IPv4 header, or None.
    """

    wire: Wire
    sent_ps: int
    length: int
    virtual_bytes: int
    ended_ps: int | None = None
    fate: Fate = Fate.UNDER_WAY
    frame: bytes = b""
    ip_at: int | None = None


def read_transits(log: bytes, wires: Sequence[Wire]) -> list[WireTransit]:
    """Decodes a log; sorted by the time of sending."""
    transits: list[WireTransit] = []
    # a wire is FIFO
    under_way: dict[int, deque[WireTransit]] = {}
    for time_ps, wire, what, length, virtual_bytes, ip_at, frame in _records(log):
        queue = under_way.setdefault(wire, deque())
        if what == _SENT:
            transit = WireTransit(wires[wire], time_ps, length, virtual_bytes)
            queue.append(transit)
            transits.append(transit)
        else:
            transit = queue.popleft()
            transit.ended_ps, transit.fate, transit.frame = time_ps, _FATES[what], frame
            transit.ip_at = None if ip_at == _NOWHERE else ip_at
    transits.sort(key=lambda transit: transit.sent_ps)
    return transits


def _records(log: bytes) -> Iterator[tuple[int, int, int, int, int, int, bytes]]:
    """Yields time, wire, what, length, virtual bytes, offset of the IPv4 header, and frame of each record.

    The frame is empty if the record does not contain it (size 0); `size` includes padding.
    """
    offset = 0
    while offset < len(log):
        time_ps, wire, what, length, virtual_bytes, ip_at, size = _RECORD.unpack_from(log, offset)
        offset += _RECORD.size
        frame = log[offset : offset + length] if size else b""
        yield time_ps, wire, what, length, virtual_bytes, ip_at, frame
        offset += size
