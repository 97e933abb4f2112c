# SPDX-License-Identifier: Apache-2.0
"""Listens to the data packets of TCP connections as they leave a host, and measures the gaps between them.

The kernel hands a packet to listeners when it leaves the queue of its interface, and stamps it then, so the
gaps are those on the link. An interface must not leave the cutting of segments to anybody else (TSO and GSO
are off).
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping

from tailrace.hosts.driver.raw_socket import SO_RCVBUFFORCE, RawSocket
from tailrace.hosts.gaps.histogram import GapHistogram
from tailrace.words.constants import NS_PER_S

_SO_TIMESTAMPNS = 35
_BUFFER_BYTES = 32 << 20
_TIME = struct.Struct("=qq")
_SNAP_BYTES = 128
_ANCILLARY_BYTES = 64

_ETHERTYPE_AT, _IP_AT = 12, 14
_IPV4 = b"\x08\x00"
_TCP_HEADER_BYTES = 20
_WORD_BYTES = 4

Ends = tuple[bytes, int, int]
"""Of a connection that leaves this host: the destination's address, source port and destination port."""


def data_of(frame: bytes) -> tuple[Ends, int] | None:
    """Whose data a frame carries, and how much; None: it is no TCP segment with payload.

    Args:
        frame: from the Ethernet header on; the payload need not be there.
    """
    if frame[_ETHERTYPE_AT:_IP_AT] != _IPV4 or len(frame) < _IP_AT + 2 * _TCP_HEADER_BYTES:
        return None
    tcp_at = _IP_AT + (frame[_IP_AT] & 15) * _WORD_BYTES
    if frame[_IP_AT + 9] != socket.IPPROTO_TCP or len(frame) < tcp_at + _TCP_HEADER_BYTES:
        return None
    total_bytes = int.from_bytes(frame[_IP_AT + 2 : _IP_AT + 4], "big")
    header_bytes = (frame[tcp_at + 12] >> 4) * _WORD_BYTES
    payload_bytes = total_bytes - (tcp_at - _IP_AT) - header_bytes
    if payload_bytes <= 0:
        return None
    sport = int.from_bytes(frame[tcp_at : tcp_at + 2], "big")
    dport = int.from_bytes(frame[tcp_at + 2 : tcp_at + 4], "big")
    return (frame[_IP_AT + 16 : _IP_AT + 20], sport, dport), payload_bytes


def _prepare(opened: socket.socket) -> None:
    opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, _BUFFER_BYTES)
    opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)


class TcpTap(RawSocket):
    """One interface.

    gaps: between consecutive data packets of the same flow, of all its flows.
    uncut: packets longer than a segment: something else cuts them, so gaps between them mean nothing.
    """

    def __init__(
        self, interface: str, netns: str | int | None, flows: Mapping[Ends, int], segment_bytes: int
    ) -> None:
        """Opens the socket inside the interface's namespace.

        Args:
            flows: numbers of the flows that leave here, by their ends.
            segment_bytes: payload of a full packet.

        Raises:
            DeviceError: no such interface, or no right to do so.
        """
        self.gaps = GapHistogram()
        self.uncut = 0
        self._flows = flows
        self._segment_bytes = segment_bytes
        self._last_ns: dict[int, int] = {}
        super().__init__(interface, netns, _prepare)

    def take(self) -> None:
        """Takes in all that is there.

        Raises:
            DeviceError: the interface is gone or down.
        """
        while True:
            try:
                frame, ancillary, _flags, address = self._socket.recvmsg(_SNAP_BYTES, _ANCILLARY_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                raise self._gone(error) from error
            if address[2] == socket.PACKET_OUTGOING:
                for level, kind, data in ancillary:
                    if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                        seconds, rest_ns = _TIME.unpack(data[: _TIME.size])
                        self.on_frame(seconds * NS_PER_S + rest_ns, frame)

    def on_frame(self, time_ns: int, frame: bytes) -> None:
        """A frame has left at this time."""
        found = data_of(frame)
        if found is None:
            return
        ends, payload_bytes = found
        flow = self._flows.get(ends)
        if flow is None:
            return
        if payload_bytes > self._segment_bytes:
            self.uncut += 1
        last_ns = self._last_ns.get(flow)
        if last_ns is not None:
            self.gaps.add(max(0, time_ns - last_ns))
        self._last_ns[flow] = time_ns
