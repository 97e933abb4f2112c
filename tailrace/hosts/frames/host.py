# SPDX-License-Identifier: Apache-2.0
"""A host that sends frames of its own beside its NIC's flows, answers pings, and keeps what else arrives."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence

import msgspec

from tailrace.codec.calls import RAW, Packet
from tailrace.codec.nic import port
from tailrace.hosts.frames.echo import EchoFrame
from tailrace.hosts.frames.sources import FrameSource, Ping
from tailrace.hosts.nic.nic import Nic

MOST_KEPT_BYTES = 64 << 20
"""Bytes of arrived frames that all hosts of a run keep; further frames are counted only."""

MOST_KEPT_FRAMES = MOST_KEPT_BYTES // 64


class Echo(msgspec.Struct, frozen=True):
    """An echo request: addresses of sender and receiver, when it left, and its RTT; None: no reply."""

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
    echoes: tuple[Echo, ...] = ()


class FrameHost:
    """A NIC (codec.nic.FrameNic): passes frames of flows to and from the host's Nic.

    nic: the host's NIC for flows.
    """

    def __init__(self, nic: Nic, sources: Sequence[FrameSource], share: float = 1.0) -> None:
        """Args:
        sources: what this host sends.
        share: part of the memory for arrived frames that this host may use.

        Raises:
            FileError: a capture cannot be read.
        """
        self.nic = nic
        self._port = port(nic)
        self._address = nic.address.to_bytes(4, "big")
        self._due = list(heapq.merge(*(each.frames(nic.mac) for each in sources), key=lambda frame: frame[0]))
        self._due.reverse()  # the next frame is the last one
        self._pings = {
            (ip_bytes(ping.peer), ping.number): ping.peer for ping in sources if isinstance(ping, Ping)
        }
        self._requests: dict[tuple[bytes, int, int], int] = {}
        self._echoes: list[Echo] = []
        self._replies: deque[bytes] = deque()
        self._sent = self._arrived = 0
        self._kept: list[ArrivedFrame] = []
        self._most_bytes, self._most_frames = int(MOST_KEPT_BYTES * share), int(MOST_KEPT_FRAMES * share)

    @property
    def idle(self) -> bool:
        """Whether the NIC is idle and all frames are sent; replies to pings may still come."""
        return not self._due and not self._replies and self.nic.idle

    def set_lateness(self, late_ns: int) -> None:
        """See Nic."""
        self.nic.set_lateness(late_ns)

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        """Handles a frame; virtual_bytes: payload that is not stored."""
        echo = EchoFrame.parse(frame)
        if echo is not None and echo.target == self._address and not virtual_bytes:
            if echo.is_request:
                self._replies.append(echo.reply())
                return
            if self._on_reply(now_ns, echo):
                return
        refused = self.nic.counters.total()
        self._port.arrive(now_ns, frame, virtual_bytes)
        if self.nic.counters.total() != refused:
            self._keep(now_ns, frame, virtual_bytes)

    def _on_reply(self, now_ns: int, echo: EchoFrame) -> bool:
        """Notes the RTT of a request; returns whether this host waits for the reply."""
        sent_ns = self._requests.pop(echo.key, None)
        if sent_ns is None:
            return False
        peer, number, sequence = echo.key
        name = self._pings[peer, number]
        self._echoes.append(Echo(self.nic.ip, name, sequence, sent_ns, now_ns - sent_ns))
        return True

    def _keep(self, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        self._arrived += 1
        self._most_bytes -= len(frame) + virtual_bytes
        if self._most_bytes >= 0 and len(self._kept) < self._most_frames:
            self._kept.append(ArrivedFrame(now_ns, bytes(frame) + bytes(virtual_bytes)))

    def next_packet(self, now_ns: int) -> Packet | int | None:
        """The frame to send now: a reply, a frame that is due, or the NIC's next frame; else as Nic."""
        if self._replies:
            return RAW, self._replies.popleft(), 0
        if self._due and self._due[-1][0] <= now_ns:
            return RAW, self._send(now_ns), 0
        departure = self._port.depart(now_ns)
        if isinstance(departure, tuple):
            return RAW, *departure
        if not self._due:
            return departure
        return self._due[-1][0] if departure is None else min(departure, self._due[-1][0])

    def _send(self, now_ns: int) -> bytes:
        frame = self._due.pop()[1]
        self._sent += 1
        echo = EchoFrame.parse(frame)
        if echo is not None and echo.is_request and echo.key[:2] in self._pings:
            self._requests[echo.key] = now_ns
        return frame

    def seen(self) -> HostFrames:
        """What was sent and what arrived so far."""
        lost = [
            Echo(self.nic.ip, self._pings[peer, number], sequence, sent_ns)
            for (peer, number, sequence), sent_ns in self._requests.items()
        ]
        echoes = sorted([*self._echoes, *lost], key=lambda echo: (echo.sent_ns, echo.dst, echo.sequence))
        return HostFrames(self._sent, self._arrived, tuple(self._kept), tuple(echoes))


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
    return FrameHost(nic, [each for each in sources if each.host == nic.ip], 1 / hosts)


def ip_bytes(address: str) -> bytes:
    """An IPv4 address in dotted form as four octets."""
    return bytes(map(int, address.split(".")))
