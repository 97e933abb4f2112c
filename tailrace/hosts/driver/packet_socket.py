# SPDX-License-Identifier: Apache-2.0
"""A packet socket on one interface, perhaps of another network namespace: receives and sends whole Ethernet
frames.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tailrace.hosts.errors import DeviceError
from tailrace.spec.constants import MAX_FRAME_BYTES

_CLONE_NEWNET = 0x40000000
_NAMED = Path("/var/run/netns")
_CURRENT = Path("/proc/thread-self/ns/net")
_LIBC = ctypes.CDLL(None, use_errno=True)


def namespace_path(netns: str | int) -> Path:
    """The path of a namespace that is given by pid, by name, or by its path."""
    if isinstance(netns, int):
        return Path(f"/proc/{netns}/ns/net")
    return Path(netns) if "/" in netns else _NAMED / netns


@contextmanager
def inside(netns: str | int | None) -> Iterator[None]:
    """Runs its block in a network namespace (None: the current one), then returns to the previous namespace.

    Raises:
        DeviceError: there is no such namespace, or it may not be entered.
    """
    if netns is None:
        yield
        return
    path = namespace_path(netns)
    current = os.open(_CURRENT, os.O_RDONLY)
    try:
        _enter(path)
        try:
            yield
        finally:
            _set_namespace(current, _CURRENT)
    finally:
        os.close(current)


def _enter(path: Path) -> None:
    try:
        other = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise DeviceError(f"network namespace {path}: {error.strerror}") from error
    try:
        _set_namespace(other, path)
    finally:
        os.close(other)


def _set_namespace(descriptor: int, path: Path) -> None:
    if _LIBC.setns(descriptor, _CLONE_NEWNET) != 0:
        raise DeviceError(f"network namespace {path}: {os.strerror(ctypes.get_errno())}")


_SOL_PACKET = 263
_PACKET_STATISTICS = 6
_PACKET_QDISC_BYPASS = 20
_PACKET_IGNORE_OUTGOING = 23
_SO_SNDBUFFORCE = 32
_SO_RCVBUFFORCE = 33
_ETH_P_ALL = 0x0003
_STATISTICS = struct.Struct("=II")
_BUFFER_BYTES = 8 << 20
# Errors of a full transmit queue: the frame can be retried later.
_FULL = (errno.EAGAIN, errno.ENOBUFS)


def _prepare(opened: socket.socket) -> None:
    optional = (
        (socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES),
        (socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER_BYTES),
        (_SOL_PACKET, _PACKET_QDISC_BYPASS, 1),
        (_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1),
    )
    for level, option, value in optional:
        try:
            opened.setsockopt(level, option, value)
        except OSError:
            # an older kernel, or fewer rights: slower, but correct, since `receive` drops outgoing frames
            continue


class PacketSocket:
    """A non-blocking packet socket on one interface.

    interface: its name.
    dropped: received frames that were lost: those that the kernel dropped because they were not read in time,
        as of the last `count_dropped`, and those longer than MAX_FRAME_BYTES.
    """

    def __init__(self, interface: str, netns: str | int | None) -> None:
        """Opens the socket inside the interface's namespace.

        Raises:
            DeviceError: there is no such interface, or the right to open the socket is missing.
        """
        self.interface = interface
        self.dropped = 0
        with inside(netns):
            try:
                # with protocol 0 the socket receives nothing, so no frames of other interfaces, before bind
                self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            except OSError as error:
                raise DeviceError(f"packet socket: {error.strerror}") from error
            try:
                self._socket.setblocking(False)
                _prepare(self._socket)
                self._socket.bind((interface, _ETH_P_ALL))
            except OSError as error:
                self._socket.close()
                raise self._failed(error) from error

    def _failed(self, error: OSError) -> DeviceError:
        return DeviceError(f"interface {self.interface}: {error.strerror}")

    def fileno(self) -> int:
        """The descriptor, for select and epoll."""
        return self._socket.fileno()

    def count_dropped(self) -> None:
        """Adds to `dropped` the number of frames that the kernel has dropped since the last call."""
        statistics = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, _STATISTICS.size)
        _, dropped = _STATISTICS.unpack(statistics)
        self.dropped += dropped

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def receive(self) -> bytes | None:
        """The next received frame; None: there is none.

        Raises:
            DeviceError: the interface is gone or down.
        """
        while True:
            try:
                frame, address = self._socket.recvfrom(MAX_FRAME_BYTES + 1)
            except BlockingIOError:
                return None
            except OSError as error:
                raise self._failed(error) from error
            if len(frame) > MAX_FRAME_BYTES:
                self.dropped += 1
            elif address[2] != socket.PACKET_OUTGOING:
                return frame

    def send(self, frame: bytes) -> bool:
        """Sends a frame; returns False if the kernel's queue is full.

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
