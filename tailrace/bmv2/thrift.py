# SPDX-License-Identifier: Apache-2.0
"""A client of BMv2's Thrift services for value sets, registers, rates and depths of queues, and ports.

It speaks Thrift's binary protocol, unframed and multiplexed (the service name is put before the method name):
a message header, then fields as (type byte, 16-bit id, value) up to a zero byte. All integers are big-endian.
It uses the standard library only, so that .venv-ptf, the environment of the packet tests, can import it, too.
"""

from __future__ import annotations

import socket
import struct
import time

from tailrace.spec.errors import Error

START_S = 5.0
"""How long calls are retried, in s; the Thrift server starts after the P4Runtime server."""

_STANDARD, _SIMPLE_SWITCH = "standard", "simple_switch"
_TIMEOUT_S = 30.0
_POLL_S = 0.05
_CONTEXT = 0  # the id of the only context (pipeline with its tables) of simple_switch
_VERSION_CALL = 0x80010001
_REPLY, _EXCEPTION = 2, 3
_STOP, _I32, _I64, _STRING, _LIST = 0, 8, 10, 11, 15
_UNKNOWN_SERVICE = "Unknown service"
"""Text in TMultiplexedProcessor's error for a service that is not registered; the call was not executed."""

_MOST_REASON_BYTES = 400


class ThriftError(Error, OSError):
    """The switch rejected a call, or closed the connection. The message is one line."""


class _UnknownServiceError(ThriftError):
    """The service is not registered, or not yet; the server closes the connection after this error."""


def _i32(number: int, value: int) -> bytes:
    return struct.pack(">Bhi", _I32, number, value)


def _i64(number: int, value: int) -> bytes:
    return struct.pack(">Bhq", _I64, number, value)


def _string(number: int, value: bytes) -> bytes:
    return struct.pack(">BhI", _STRING, number, len(value)) + value


class ThriftClient:
    """A connection to the Thrift server of one simple_switch_grpc; a context manager.

    The switch listens before all its services are registered (bm_runtime::start_server, then add_service), so
    connections and calls are retried until START_S after the client was created. Every method raises
    ThriftError if the switch rejects the call.
    """

    def __init__(self, port: int, start_s: float = START_S) -> None:
        """Connects to a port of this network namespace's loopback.

        Args:
            port: TCP port.
            start_s: how long to retry while the server starts, in s.

        Raises:
            OSError: no server listens within this time.
        """
        self._port = port
        self._deadline = time.monotonic() + start_s
        self._connect()

    def __enter__(self) -> ThriftClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _connect(self) -> None:
        while True:
            try:
                self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=_TIMEOUT_S)
                break
            except ConnectionRefusedError:
                if time.monotonic() > self._deadline:
                    raise
                time.sleep(_POLL_S)
        self._stream = self._socket.makefile("rb")

    def _close(self) -> None:
        self._stream.close()
        self._socket.close()

    def value_set_add(self, name: str, value: bytes) -> None:
        """Add a member to a parser value set."""
        fields = _i32(1, _CONTEXT) + _string(2, name.encode()) + _string(3, value)
        self._do(_STANDARD, "bm_parse_vset_add", fields)

    def register_write(self, name: str, index: int, value: int) -> None:
        """Set a cell of a register array to a value of at most 63 bits."""
        fields = _i32(1, _CONTEXT) + _string(2, name.encode()) + _i32(3, index) + _i64(4, value)
        self._do(_STANDARD, "bm_register_write", fields)

    def set_queue_depths(self, packets: int) -> None:
        """Set the depth of every egress queue, in packets."""
        self._do(_SIMPLE_SWITCH, "set_all_egress_queue_depths", _i32(1, packets))

    def set_port_rate(self, port: int, packets_per_s: int) -> None:
        """Set the rate of every priority queue of a port."""
        self._do(_SIMPLE_SWITCH, "set_egress_queue_rate", _i32(1, port) + _i64(2, packets_per_s))

    def set_queue_rate(self, port: int, priority: int, packets_per_s: int) -> None:
        """Set the rate of a single priority queue of a port."""
        fields = _i32(1, port) + _i32(2, priority) + _i64(3, packets_per_s)
        self._do(_SIMPLE_SWITCH, "set_egress_priority_queue_rate", fields)

    def add_port(self, port: int, interface: str) -> None:
        """Attach an interface as a port."""
        fields = _string(1, interface.encode()) + _i32(2, port) + _string(3, b"")
        self._do(_STANDARD, "bm_dev_mgr_add_port", fields)

    def remove_port(self, port: int) -> None:
        """Remove the interface of a port, which then neither sends nor receives."""
        self._do(_STANDARD, "bm_dev_mgr_remove_port", _i32(1, port))

    def register_read_all(self, name: str) -> list[int]:
        """All cells of a register array, as unsigned values of at most 63 bits."""
        kind = self._call(_STANDARD, "bm_register_read_all", _i32(1, _CONTEXT) + _string(2, name.encode()))
        if kind != _LIST:
            raise ThriftError(f"simple_switch_grpc: no register {name}")
        self._read(1)
        count = self._integer(">I")
        cells = list(struct.unpack(f">{count}q", self._read(8 * count)))
        self._read(1)
        return cells

    def _do(self, service: str, method: str, fields: bytes) -> None:
        """Make a call that returns nothing, or an i32 that is always 0."""
        if self._call(service, method, fields) != _STOP:
            self._read(struct.calcsize(">iB"))

    def _call(self, service: str, method: str, fields: bytes) -> int:
        """Make a call; returns the type of its result, whose value is still to be read; _STOP: no result."""
        while True:
            try:
                return self._call_once(service, method, fields)
            except _UnknownServiceError:
                if time.monotonic() > self._deadline:
                    raise
                time.sleep(_POLL_S)
                self._close()
                self._connect()

    def _call_once(self, service: str, method: str, fields: bytes) -> int:
        name = f"{service}:{method}".encode()
        header = struct.pack(">II", _VERSION_CALL, len(name)) + name + struct.pack(">i", 0)
        self._socket.sendall(header + fields + bytes([_STOP]))
        kind = self._integer(">I") & 0xFF
        self._read(self._integer(">I") + 4)
        result = self._integer(">B")
        # Field 0 is the result; any other field is an exception that the service declares.
        if kind == _REPLY and (result == _STOP or self._integer(">h") == 0):
            return result
        text = f"simple_switch_grpc: its Thrift server refused {method}"
        if kind == _EXCEPTION and result == _STRING and self._integer(">h") == 1:
            # a TApplicationException, whose field 1 is its message
            reason = self._read(min(self._integer(">I"), _MOST_REASON_BYTES)).decode(errors="replace")
            error = _UnknownServiceError if _UNKNOWN_SERVICE in reason else ThriftError
            raise error(f"{text}: {reason}")
        raise ThriftError(text)

    def _integer(self, layout: str) -> int:
        value: int = struct.unpack(layout, self._read(struct.calcsize(layout)))[0]
        return value

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) != size:
            raise ThriftError("simple_switch_grpc: its Thrift server closed the connection")
        return data
