# SPDX-License-Identifier: Apache-2.0
"""What a switch answers to READ_FLOWS and SWEEP, from the bytes of the packet-in."""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass

from finsy.proto import p4i, p4r

from tailrace.p4rt import programs
from tailrace.sim.network.endpoint import SwitchEndpoint
from tests.flowcut.frames import Key
from tests.flowcut.oracle import WAYS

_BUCKET = struct.Struct(">6sI6s")
_ENTRY = struct.Struct(">4s4sHHBBHHI6sHHhBB")


@dataclass(frozen=True)
class DumpedEntry:
    """A way; `in_flight` 0 is free, and then the rest means nothing."""

    key: Key
    state: int
    in_port: int
    out_port: int
    in_flight: int
    last: int
    average: int
    last_sample: int
    growth: int
    left: int
    samples: int


@dataclass(frozen=True)
class Dump:
    """A bucket."""

    bucket: int
    now: int
    untracked: int
    ways: tuple[DumpedEntry, ...]

    @property
    def empty(self) -> bool:
        return self.untracked == 0 and all(way.in_flight == 0 for way in self.ways)


def _time(raw: bytes) -> int:
    return int.from_bytes(raw, "big")


def _entry(
    raw: tuple[bytes, bytes, int, int, int, int, int, int, int, bytes, int, int, int, int, int],
) -> DumpedEntry:
    src, dst = (".".join(map(str, address)) for address in raw[:2])
    key = (src, dst, raw[2], raw[3], raw[4])
    return DumpedEntry(key, raw[5], raw[6], raw[7], raw[8], _time(raw[9]), *raw[10:])


def decode(bucket: int, payload: bytes) -> Dump:
    now, untracked, _ = _BUCKET.unpack_from(payload)
    ways = [_entry(_ENTRY.unpack_from(payload, _BUCKET.size + i * _ENTRY.size)) for i in range(WAYS)]
    assert len(payload) == _BUCKET.size + WAYS * _ENTRY.size
    return Dump(bucket, _time(now), untracked, tuple(ways))


@functools.cache
def _metadata(header: str) -> dict[str, p4i.ControllerPacketMetadata.Metadata]:
    info = programs.load("flowcut").p4info
    header_info = next(m for m in info.controller_packet_metadata if m.preamble.name == header)
    return {field.name: field for field in header_info.metadata}


def ask(endpoint: SwitchEndpoint, op: str, bucket: int) -> Dump:
    """Sends READ_FLOWS or SWEEP for a bucket, and takes the answer."""
    message = p4r.PacketOut()
    values = {"op": programs.load("flowcut").enum("PacketOutOp_t", op), "index": bucket}
    for name, value in values.items():
        field = _metadata("packet_out")[name]
        raw = value.to_bytes(2, "big").lstrip(b"\0") or b"\0"
        message.metadata.add(metadata_id=field.id, value=raw)
    endpoint.packet_out(message)
    (answer,) = endpoint.packet_ins()
    return decode(bucket, answer.payload)
