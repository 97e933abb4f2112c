# SPDX-License-Identifier: Apache-2.0
"""Three calls of BMv2's Thrift services, for what its P4Runtime server refuses: value sets, registers, queue
depths.

Thrift's binary protocol, unframed, with the service name before the method name (multiplexed): a message
header, then fields as (type byte, 16-bit id, value) up to a zero byte. All integers are big-endian.
"""

from __future__ import annotations

import socket
import struct

from conformance.program import ConformanceError

STANDARD, SIMPLE_SWITCH = "standard", "simple_switch"
TIMEOUT_S = 30.0
CONTEXT = 0
VERSION_CALL = 0x80010001
REPLY = 2
STRING, LIST, I32 = 11, 15, 8


def _string_field(number: int, value: bytes) -> bytes:
    return struct.pack(">BhI", STRING, number, len(value)) + value


class ThriftClient:
    """A connection to the Thrift server of one simple_switch_grpc."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self.stream = self.socket.makefile("rb")

    def __enter__(self) -> ThriftClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()
        self.socket.close()

    def _integer(self, layout: str) -> int:
        value: int = struct.unpack(layout, self.stream.read(struct.calcsize(layout)))[0]
        return value

    def _call(self, service: str, method: str, first: int, fields: bytes = b"") -> int:
        """Send a call whose first argument is a number; returns the type of the result, 0 where there is
        none.
        """
        name = f"{service}:{method}".encode()
        header = struct.pack(">II", VERSION_CALL, len(name)) + name + struct.pack(">i", 0)
        self.socket.sendall(header + struct.pack(">Bhi", I32, 1, first) + fields + b"\0")
        kind = self._integer(">I") & 0xFF
        self.stream.read(self._integer(">I") + 4)
        field_type = self._integer(">B")
        if kind != REPLY or (field_type and self._integer(">h") != 0):
            raise ConformanceError(f"simple_switch_grpc: Thrift call {method} failed")
        return field_type

    def value_set_add(self, name: str, value: bytes) -> None:
        """Add a member to a parser value set."""
        self._call(
            STANDARD, "bm_parse_vset_add", CONTEXT, _string_field(2, name.encode()) + _string_field(3, value)
        )

    def set_queue_depths(self, packets: int) -> None:
        """Set the depth of every egress queue, in packets."""
        self._call(SIMPLE_SWITCH, "set_all_egress_queue_depths", packets)
        self.stream.read(5)  # the i32 result, which is always 0, and the end of the reply

    def register_read_all(self, name: str) -> list[int]:
        """All cells of a register array, as unsigned numbers of at most 63 bits."""
        if self._call(STANDARD, "bm_register_read_all", CONTEXT, _string_field(2, name.encode())) != LIST:
            raise ConformanceError(f"simple_switch_grpc: no register {name}")
        self.stream.read(1)
        count = self._integer(">I")
        cells = list(struct.unpack(f">{count}q", self.stream.read(8 * count)))
        self.stream.read(1)
        return cells
