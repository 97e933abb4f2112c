# SPDX-License-Identifier: Apache-2.0
"""A packet socket on one interface: whole Ethernet frames in and out."""

from __future__ import annotations

import errno
import socket
import struct

from hosts.driver.netns import inside
from hosts.errors import DeviceError

_ETH_P_ALL = 0x0003
_SOL_PACKET = 263
_PACKET_STATISTICS = 6
_PACKET_QDISC_BYPASS = 20
_PACKET_IGNORE_OUTGOING = 23
_SO_RCVBUFFORCE = 33
_SO_SNDBUFFORCE = 32
_BUFFER_BYTES = 8 << 20
_STATISTICS = struct.Struct("=II")
_MAX_FRAME_BYTES = 1 << 16
# What a full queue of the kernel says: the frame may be sent again.
_FULL = (errno.EAGAIN, errno.ENOBUFS)


class PacketSocket:
    """Frames of one interface, without blocking."""

    def __init__(self, interface: str, netns: str | int | None) -> None:
        """Opens the socket inside the interface's namespace.

        Raises:
            DeviceError: no such interface, or no right to do so.
        """
        self.interface = interface
        self.dropped = 0
        with inside(netns):
            try:
                # protocol 0 takes nothing before it is bound, and so nothing of other interfaces
                self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            except OSError as error:
                raise DeviceError(f"packet socket: {error.strerror}") from error
            try:
                self._prepare()
                self._socket.bind((interface, _ETH_P_ALL))
            except OSError as error:
                self._socket.close()
                raise DeviceError(f"interface {interface}: {error.strerror}") from error

    def _prepare(self) -> None:
        self._socket.setblocking(False)
        optional = (
            (socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES),
            (socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER_BYTES),
            (_SOL_PACKET, _PACKET_QDISC_BYPASS, 1),
            (_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1),
        )
        for level, option, value in optional:
            try:
                self._socket.setsockopt(level, option, value)
            except OSError:
                # an older kernel, or fewer rights: slower, not wrong (own frames are told by their type)
                continue

    def fileno(self) -> int:
        """The descriptor, to be waited for."""
        return self._socket.fileno()

    def receive(self) -> bytes | None:
        """The next frame that came in; None: there is none.

        Raises:
            DeviceError: the interface is gone or down.
        """
        while True:
            try:
                frame, address = self._socket.recvfrom(_MAX_FRAME_BYTES)
            except BlockingIOError:
                return None
            except OSError as error:
                raise DeviceError(f"interface {self.interface}: {error.strerror}") from error
            if address[2] != socket.PACKET_OUTGOING:
                return frame

    def send(self, frame: bytes) -> bool:
        """Whether the kernel took the frame; if not, its queue is full.

        Raises:
            DeviceError: the interface is gone or down, or the frame is too long for it.
        """
        try:
            self._socket.send(frame)
        except OSError as error:
            if error.errno in _FULL:
                return False
            text = f"interface {self.interface}: {error.strerror}"
            raise DeviceError(f"{text}, a frame of {len(frame)} bytes") from error
        return True

    def count_dropped(self) -> None:
        """Adds to `dropped` what the kernel dropped since the last call: it was not fetched in time."""
        answer = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, _STATISTICS.size)
        _, dropped = _STATISTICS.unpack(answer)
        self.dropped += dropped

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()
