# SPDX-License-Identifier: Apache-2.0
"""A packet socket on one interface: whole Ethernet frames in and out."""

from __future__ import annotations

import errno
import socket

from tailrace.hosts.driver.raw_socket import SO_RCVBUFFORCE, SOL_PACKET, RawSocket
from tailrace.hosts.errors import DeviceError
from tailrace.words.constants import MAX_FRAME_BYTES

_PACKET_QDISC_BYPASS = 20
_PACKET_IGNORE_OUTGOING = 23
_SO_SNDBUFFORCE = 32
_BUFFER_BYTES = 8 << 20
# What a full queue of the kernel says: the frame may be sent again.
_FULL = (errno.EAGAIN, errno.ENOBUFS)


def _prepare(opened: socket.socket) -> None:
    optional = (
        (socket.SOL_SOCKET, SO_RCVBUFFORCE, _BUFFER_BYTES),
        (socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER_BYTES),
        (SOL_PACKET, _PACKET_QDISC_BYPASS, 1),
        (SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1),
    )
    for level, option, value in optional:
        try:
            opened.setsockopt(level, option, value)
        except OSError:
            # an older kernel, or fewer rights: slower, not wrong (own frames are told by their type)
            continue


class PacketSocket(RawSocket):
    """Frames of one interface, without blocking."""

    def __init__(self, interface: str, netns: str | int | None) -> None:
        """Opens the socket inside the interface's namespace.

        Raises:
            DeviceError: no such interface, or no right to do so.
        """
        super().__init__(interface, netns, _prepare)

    def receive(self) -> bytes | None:
        """The next frame that came in; None: there is none.

        Raises:
            DeviceError: the interface is gone or down.
        """
        while True:
            try:
                frame, address = self._socket.recvfrom(MAX_FRAME_BYTES + 1)
            except BlockingIOError:
                return None
            except OSError as error:
                raise self._gone(error) from error
            if len(frame) > MAX_FRAME_BYTES:
                self.dropped += 1
            elif address[2] != socket.PACKET_OUTGOING:
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
