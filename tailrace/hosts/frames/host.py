# SPDX-License-Identifier: Apache-2.0
"""A host that sends frames of its own beside its NIC's flows, answers pings, and keeps what else arrives."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence

import msgspec

from tailrace.codec.calls import RAW, Packet
from tailrace.codec.nic import port
from tailrace.hosts.frames.echo import Echo, parse, reply
from tailrace.hosts.frames.sources import FrameSource, Ping
from tailrace.hosts.nic.nic import Nic

MOST_KEPT_BYTES = 64 << 20
"""Bytes of arrived frames that all hosts of a run keep; further frames are counted only."""

KEPT_OVERHEAD_BYTES = 100
"""Memory of a kept frame beside its bytes."""


class PingRecord(msgspec.Struct, frozen=True):
    """An echo request: names of sender and receiver, when it left, and its RTT; None: no reply."""

    src: str
    dst: str
    sequence: int
    sent_ns: int
    rtt_ns: int | None = None


class ArrivedFrame(msgspec.Struct, frozen=True):
    """A frame that is not of the NIC's flows, and when it arrived."""

    time_ns: int
    data: bytes


class HostFrames(msgspec.Struct, frozen=True):
    """What a host sent and received besides flows. `arrived` counts all frames; `kept` has the first ones."""

    sent: int = 0
    arrived: int = 0
    kept: tuple[ArrivedFrame, ...] = ()
    pings: tuple[PingRecord, ...] = ()


class FrameHost:
    """A codec.nic.FrameNic: passes frames of flows to and from `nic`, the host's NIC."""

    def __init__(self, nic: Nic, sources: Sequence[FrameSource], most_bytes: int = MOST_KEPT_BYTES) -> None:
        """Args:
        sources: what this host sends.
        most_bytes: memory for arrived frames.

        Raises:
            FileError: a capture cannot be read.
        """
        self.nic = nic
        self._port = port(nic)
        self._due = list(heapq.merge(*(each.frames(nic.mac) for each in sources), key=lambda frame: frame[0]))
        self._due.reverse()  # the next frame is the last one
        self._names = {ping.peer: ping.names for ping in sources if isinstance(ping, Ping)}
        self._pings: dict[Echo, PingRecord] = {}  # by the reply
        self._replies: deque[bytes] = deque()
        self._sent = self._arrived = 0
        self._kept: list[ArrivedFrame] = []
        self._most_bytes = most_bytes

    @property
    def idle(self) -> bool:
        """Whether the NIC is idle and all frames are sent; replies to pings may still come."""
        return not self._due and not self._replies and self.nic.idle

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        """Handles a frame; virtual_bytes: payload that is not stored."""
        echo = parse(frame)
        if echo is not None and echo.dst == self.nic.ip and self._on_echo(now_ns, frame, echo):
            return
        refused = self.nic.counters.total()
        self._port.arrive(now_ns, frame, virtual_bytes)
        if self.nic.counters.total() != refused:
            self._arrived += 1
            self._most_bytes -= len(frame) + virtual_bytes + KEPT_OVERHEAD_BYTES
            if self._most_bytes >= 0:
                self._kept.append(ArrivedFrame(now_ns, bytes(frame) + bytes(virtual_bytes)))

    def _on_echo(self, now_ns: int, frame: bytes, echo: Echo) -> bool:
        """Answers a request, or records a reply; returns whether this host waits for the reply."""
        if echo.is_request:
            self._replies.append(reply(frame))
            return True
        ping = self._pings.get(echo)
        if ping is None or ping.rtt_ns is not None:
            return False
        self._pings[echo] = msgspec.structs.replace(ping, rtt_ns=now_ns - ping.sent_ns)
        return True

    def next_packet(self, now_ns: int) -> Packet | int | None:
        """The frame to send now: a reply, a frame that is due, or the NIC's next frame; else as Nic."""
        if self._replies:
            return RAW, self._replies.popleft(), 0
        if self._due and self._due[-1][0] <= now_ns:
            return RAW, self._send(now_ns), 0
        departure = self._port.depart(now_ns)
        if isinstance(departure, tuple):
            return RAW, *departure
        due_ns = self._due[-1][0] if self._due else None
        return min((time_ns for time_ns in (departure, due_ns) if time_ns is not None), default=None)

    def _send(self, now_ns: int) -> bytes:
        _, frame, awaited = self._due.pop()
        self._sent += 1
        if awaited is not None:
            self._pings[awaited] = PingRecord(*self._names[awaited.src], awaited.sequence, now_ns)
        return frame

    def seen(self) -> HostFrames:
        """What was sent and what arrived so far."""
        return HostFrames(self._sent, self._arrived, tuple(self._kept), tuple(self._pings.values()))


def frame_host(nic: Nic, sources: Sequence[FrameSource], hosts: int) -> Nic | FrameHost:
    """The NIC alone if no host of the run sends frames besides flows, else the host around it.

    Args:
        sources: what all hosts send.
        hosts: number of hosts, which share the memory for arrived frames.

    Raises:
        FileError: a capture cannot be read.
    """
    if not sources:
        return nic
    return FrameHost(nic, [each for each in sources if each.host == nic.ip], MOST_KEPT_BYTES // hosts)
