# SPDX-License-Identifier: Apache-2.0
"""One flow as a TCP connection of the kernel, with both ends in this process, each in its host's namespace.

The source writes the flow's bytes as fast as the kernel takes them. The destination reads them, and confirms
the last one by a byte of its own: then the flow is complete at its source, too.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tailrace.hosts.driver.job import HostJob
from tailrace.hosts.driver.netns import inside
from tailrace.hosts.driver.tcp_info import NOTHING, TcpInfo, read
from tailrace.hosts.errors import DeviceError
from tailrace.hosts.flows.flow import FlowRecord, FlowSpec

# What a segment may hold beside its payload: the option of time stamps with its padding.
TIMESTAMPS_BYTES: Final = 12
# IP packets of the hosts' own stacks are no longer than their route's MTU, of which headers take so much.
MOST_SEGMENT_BYTES: Final = 1500 - 40 - TIMESTAMPS_BYTES
_CHUNK: Final = memoryview(bytes(1 << 18))
_WHOLE: Final = b"!"
_RESET_AT_CLOSE: Final = struct.pack("=ii", 1, 0)


@dataclass(slots=True)
class TcpFlow:
    """A flow and its sockets.

    spec: the flow.
    listener, source, destination: its sockets, as far as they are there.
    start_ns: when it might send its first byte; None: not yet.
    end_ns: when every byte had arrived; None: not yet.
    done: the source knows that.
    sent, arrived: bytes that the kernel has taken, and given.
    waits: flows that it still waits for (FlowSpec.after).
    counters: what both ends have counted, the source first; None until they are closed.
    """

    spec: FlowSpec
    listener: socket.socket
    source: socket.socket
    destination: socket.socket | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    done: bool = False
    sent: int = 0
    arrived: int = 0
    waits: int = 0
    counters: tuple[TcpInfo, TcpInfo] | None = None

    def accept(self) -> None:
        """Takes the connection that has come; the listener has done its work."""
        self.destination, _ = self.listener.accept()
        self.destination.setblocking(False)
        self.destination.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.listener.close()

    def check(self) -> bool:
        """Whether the source is connected.

        Raises:
            DeviceError: it cannot be.
        """
        code = self.source.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise self._lost(os.strerror(code))
        try:
            self.source.getpeername()
        except OSError:
            return False
        return True

    def send(self) -> bool:
        """Writes as much as the kernel takes; whether that was everything that is left.

        Raises:
            DeviceError: the connection is gone.
        """
        try:
            while self.sent < self.spec.bytes:
                self.sent += self.source.send(_CHUNK[: self.spec.bytes - self.sent])
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._lost(error.strerror) from error
        return True

    def receive(self, room: bytearray) -> bool:
        """Reads what has arrived; whether it was the last byte, which is confirmed then.

        Raises:
            DeviceError: the connection is gone.
        """
        assert self.destination is not None
        try:
            while self.arrived < self.spec.bytes:
                count = self.destination.recv_into(room)
                if count == 0:
                    raise self._lost("closed")
                self.arrived += count
            self.destination.send(_WHOLE)
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._lost(error.strerror) from error
        return True

    def hear(self) -> bool:
        """Whether the confirmation is there.

        Raises:
            DeviceError: the connection is gone.
        """
        try:
            heard = self.source.recv(len(_WHOLE))
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._lost(error.strerror) from error
        if not heard:
            raise self._lost("closed")
        return True

    def _lost(self, why: str | None) -> DeviceError:
        return DeviceError(f"flow {self.spec.id}: its TCP connection: {why}")

    def close(self) -> None:
        """Notes what both ends have counted, and leaves nothing of the connection in the kernel."""
        if self.destination is not None and self.counters is None:
            self.counters = read(self.source), read(self.destination)
        for one in (self.listener, self.source, self.destination):
            if one is not None and one.fileno() >= 0:
                # a reset, and no TIME_WAIT: the next run may use the same ports
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
                one.close()

    def record(self) -> FlowRecord:
        """What happened to it, after `close`; 0 where `unknown` says so, or nobody counts (UNOBSERVED)."""
        spec, counts = self.spec, self._counts()
        return FlowRecord(
            id=spec.id,
            src=spec.src,
            dst=spec.dst,
            bytes=spec.bytes,
            start_ns=spec.start_ns if self.start_ns is None else self.start_ns,
            end_ns=self.end_ns,
            packets=counts["packets"] or 0,
            retransmitted=counts["retransmitted"] or 0,
            out_of_order=0,
            ood_max=0,
            path_changes=0,
            drains=0,
            drained_ns=0,
            received=counts["received"] or 0,
            timeouts=counts["timeouts"] or 0,
            out_of_sequence=counts["out_of_sequence"] or 0,
        )

    def unknown(self) -> set[str]:
        """The fields of the record that this kernel does not count."""
        return {name for name, value in self._counts().items() if value is None}

    def _counts(self) -> dict[str, int | None]:
        source, destination = self.counters or (NOTHING, NOTHING)
        return {
            "packets": source.data_out,
            "retransmitted": source.retransmitted,
            "received": destination.data_in,
            "timeouts": source.timeouts,
            "out_of_sequence": destination.out_of_order,
        }


def open_flow(
    spec: FlowSpec, hosts: Mapping[str, HostJob], port: int, segment_bytes: int, congestion: str
) -> TcpFlow:
    """A flow whose connection is being made.

    Args:
        hosts: by address.
        port: where the destination listens.
        segment_bytes: payload of a full packet.
        congestion: the kernel's name of a congestion control.

    Raises:
        DeviceError: the kernel refuses.
    """
    opened: list[socket.socket] = []
    try:
        with inside(hosts[spec.dst].netns):
            listener = _socket(opened, spec.dst, port)
            listener.listen(1)
        with inside(hosts[spec.src].netns):
            source = _socket(opened, spec.src, spec.sport)
            _choose(source, congestion)
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, segment_bytes + TIMESTAMPS_BYTES)
            code = source.connect_ex((spec.dst, port))
            if code not in (0, errno.EINPROGRESS):
                raise DeviceError(f"flow {spec.id}: its TCP connection: {os.strerror(code)}")
    except OSError as error:
        _close(opened)
        raise DeviceError(f"flow {spec.id}: a TCP socket: {error.strerror}") from error
    except DeviceError:
        _close(opened)
        raise
    return TcpFlow(spec, listener, source)


def _close(opened: list[socket.socket]) -> None:
    for one in opened:
        one.close()


def _socket(opened: list[socket.socket], address: str, port: int) -> socket.socket:
    one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.append(one)
    one.setblocking(False)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind((address, port))
    return one


def _choose(source: socket.socket, congestion: str) -> None:
    try:
        source.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    except OSError as error:
        text = f"this kernel has no congestion control {congestion!r}: {error.strerror}"
        raise DeviceError(text) from error
