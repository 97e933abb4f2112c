# SPDX-License-Identifier: Apache-2.0
"""The benchmark's router: tests/programs/basic_l3.p4, its routes and the frames that match them."""

from __future__ import annotations

import struct
from pathlib import Path

from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.compiler.model import Model
from tailrace.switch.core import ActionCall, V1ModelSwitch

BUILD = Path(__file__).resolve().parents[2] / "tests" / "programs" / "build"
JSON = BUILD / "basic_l3.json"

ROUTE = "L3Ingress.route"
FORWARD = "L3Ingress.forward"
NEXT_HOP = 0x020000000001
EGRESS_PORT = 1
MIN_FRAME_BYTES = 34  # Ethernet and IPv4 headers

_SOURCE = 0x0A000001
_FIRST_NETWORK = 0x0B000000


def load() -> SwitchProgram:
    """The compiled router. Raises OSError without its JSON, CompilerError when it cannot be compiled."""
    return load_program(JSON.read_bytes(), source=JSON.name)


def network(number: int) -> int:
    """The address of route `number` (0 to 65535): a network of 24 bits."""
    return _FIRST_NETWORK + (number << 8)


def install(switch: V1ModelSwitch, model: Model, count: int) -> None:
    """Insert `count` routes of 24 bits, all to EGRESS_PORT."""
    table = model.table(ROUTE)
    forward = ActionCall(model.actions[table.actions[0]].index, (NEXT_HOP, EGRESS_PORT))
    mask = b"\xff\xff\xff\x00"
    for number in range(count):
        switch.table_insert(
            table.index, network(number).to_bytes(4, "big"), mask, prefix_bits=24, target=forward
        )


def _ipv4_checksum(header: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(number: int, length_bytes: int) -> bytes:
    """An Ethernet frame of `length_bytes` (at least MIN_FRAME_BYTES) to a host of route `number`."""
    if length_bytes < MIN_FRAME_BYTES:
        raise ValueError(f"a frame of {length_bytes} bytes has no room for its headers")
    start = struct.pack("!BBHHHBB", 0x45, 0, length_bytes - 14, 0, 0, 64, 17)
    end = struct.pack("!II", _SOURCE, network(number) + 2)
    checksum = _ipv4_checksum(start + b"\0\0" + end)
    ethernet = bytes.fromhex("020000000002 020000000003 0800")
    headers = ethernet + start + struct.pack("!H", checksum) + end
    return headers + bytes(length_bytes - len(headers))
