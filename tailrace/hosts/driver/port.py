# SPDX-License-Identifier: Apache-2.0
"""One NIC on one socket: emulates the link's rate and delay."""

from __future__ import annotations

from collections import deque

from tailrace.codec.nic import port
from tailrace.hosts.driver.job import HostJob
from tailrace.hosts.driver.packet_socket import PacketSocket
from tailrace.hosts.frames.host import FrameHost
from tailrace.hosts.gaps.histogram import PERMYRIAD, GapHistogram
from tailrace.hosts.nic.nic import Nic
from tailrace.spec.constants import NS_BITS  # bytes * NS_BITS / (bit/s) is a time in ns

# A port that is late by at most this catches up: it sends overdue frames back to back.
CATCH_UP_NS = 5_000_000
# A frame for which the kernel's queue has no space is retried after this time.
RETRY_NS = 100_000
_BATCH_FRAMES = 64


class Lag:
    """A histogram of how late events were handled, in constant memory. `max_ns`: the longest."""

    def __init__(self) -> None:
        """There are no delays yet."""
        self._delays = GapHistogram()
        self.max_ns = 0

    def add(self, lag_ns: int) -> None:
        """Adds one delay, 0..2^61 ns."""
        self._delays.add(lag_ns)
        self.max_ns = max(self.max_ns, lag_ns)

    def quantile_ns(self, share: float) -> int:
        """The quantile of the delays at `share` (0 to 1), at most 1/128 too large; 0 without delays."""
        return min(self._delays.quantile_ns(round(share * PERMYRIAD)), self.max_ns)


class SocketPort:
    """A NIC, its socket, and the frames in flight on the emulated link.

    nic: the NIC for flows.
    end: what sends and receives: the NIC, or the host around it that sends other frames, too.
    refused: number of times that the kernel's queue had no space for a frame.
    """

    def __init__(self, host: HostJob, end: Nic | FrameHost, socket: PacketSocket, lag: Lag) -> None:
        """Args: lag: counts the lateness of frames.

        Raises:
            BuildError: the codec in C cannot be compiled.
        """
        self.host = host
        self.end = end
        self.nic = end.nic if isinstance(end, FrameHost) else end
        self._codec = port(end)  # parses and builds the NIC's frames, in C
        self.socket = socket
        self.refused = 0
        self._lag = lag
        self._in_flight: deque[tuple[int, bytes]] = deque()  # frames on the link, with their arrival times
        self._free_ns = 0  # when the link is free for another frame
        self._next_ns: int | None = 0  # when to ask the NIC for a frame, unless a frame arrives earlier
        self._busy = False  # whether the NIC had a frame at the last request

    def receive(self, now_ns: int) -> None:
        """Passes received frames to the NIC, at most _BATCH_FRAMES, so that other ports do not wait long."""
        for _ in range(_BATCH_FRAMES):
            frame = self.socket.receive()
            if frame is None:
                return
            self._codec.arrive(now_ns, frame)

    def transmit(self, now_ns: int) -> int | None:
        """Sends the frames that are due.

        Returns:
            when this port must be called next; None: only after a frame has arrived.
        """
        self._fill(now_ns)
        in_flight = self._in_flight
        while in_flight and in_flight[0][0] <= now_ns:
            due_ns, frame = in_flight[0]
            if not self.socket.send(frame):
                self.refused += 1
                break
            in_flight.popleft()
            self._lag.add(now_ns - due_ns)
        next_ns = self._next_ns
        if in_flight:
            due_ns = in_flight[0][0] if in_flight[0][0] > now_ns else now_ns + RETRY_NS
            next_ns = due_ns if next_ns is None else min(next_ns, due_ns)
        return next_ns

    def _fill(self, now_ns: int) -> None:
        while self._free_ns <= now_ns:
            overdue = self._busy and now_ns - self._free_ns <= CATCH_UP_NS
            start_ns = self._free_ns if overdue else now_ns
            self.nic.set_lateness(now_ns - start_ns)
            departure = self._codec.depart(now_ns)
            if not isinstance(departure, tuple):
                # the NIC has no frame now: `departure` is the time of the next request, or None
                self._busy = False
                self._next_ns = departure
                return
            frame, virtual_bytes = departure
            self._busy = True
            length_bytes = len(frame) + virtual_bytes
            # NS_BITS: bytes * NS_BITS / (bits/s) is a time in ns
            self._free_ns = start_ns + -(-length_bytes * NS_BITS // self.host.rate_bps)
            self._next_ns = self._free_ns
            self._in_flight.append((self._free_ns + self.host.delay_ns, frame))
