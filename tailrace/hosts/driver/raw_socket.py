# SPDX-License-Identifier: Apache-2.0
"""What all sockets have in common that see whole frames of one interface."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from tailrace.hosts.driver.netns import inside
from tailrace.hosts.errors import DeviceError

SOL_PACKET = 263
SO_RCVBUFFORCE = 33
_ETH_P_ALL = 0x0003
_PACKET_STATISTICS = 6
_STATISTICS = struct.Struct("=II")


class RawSocket:
    """A packet socket, without blocking.

    interface: its name.
    dropped: frames that this program has not fetched in time, as of the last `count_dropped`.
    """

    def __init__(
        self, interface: str, netns: str | int | None, prepare: Callable[[socket.socket], None]
    ) -> None:
        """Opens it inside the interface's namespace.

        Args:
            prepare: sets its options, before anything comes in.

        Raises:
            DeviceError: no such interface, no right to do so, or an option that the kernel refuses.
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
                self._socket.setblocking(False)
                prepare(self._socket)
                self._socket.bind((interface, _ETH_P_ALL))
            except OSError as error:
                self._socket.close()
                raise self._gone(error) from error

    def _gone(self, error: OSError) -> DeviceError:
        return DeviceError(f"interface {self.interface}: {error.strerror}")

    def fileno(self) -> int:
        """The descriptor, to be waited for."""
        return self._socket.fileno()

    def count_dropped(self) -> None:
        """Adds to `dropped` what the kernel dropped since the last call: it was not fetched in time."""
        answer = self._socket.getsockopt(SOL_PACKET, _PACKET_STATISTICS, _STATISTICS.size)
        _, dropped = _STATISTICS.unpack(answer)
        self.dropped += dropped

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()
