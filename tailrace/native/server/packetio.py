# SPDX-License-Identifier: Apache-2.0
"""PacketIn and PacketOut: the controller headers in front of a frame (P4Runtime specification 16.1).

A frame for the CPU port begins with the packed `packet_in` header; a packet-out enters through the CPU port
behind the packed `packet_out` header. Fields are packed in P4Info's order, the first in the most significant
bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from finsy.proto import p4i, p4r

from tailrace.native.server.entities.bytestring import decode, encode
from tailrace.native.server.entities.schema import sdn_bits
from tailrace.p4rt.status import P4RtError, invalid


@dataclass(frozen=True, slots=True)
class _Field:
    id: int
    name: str
    bits: int
    shift: int


@dataclass(frozen=True, slots=True)
class _Header:
    nbytes: int
    fields: tuple[_Field, ...]


def _header(info: p4i.P4Info, name: str) -> _Header:
    for metadata in info.controller_packet_metadata:
        if metadata.preamble.name == name:
            widths = [(m, sdn_bits(m.bitwidth, m.type_name.name, info)) for m in metadata.metadata]
            nbytes = (sum(bits for _, bits in widths) + 7) // 8
            left, fields = 8 * nbytes, []
            for item, bits in widths:
                if bits <= 0:
                    raise invalid(f"P4Info: '{name}.{item.name}' has no width in bits")
                left -= bits
                fields.append(_Field(item.id, item.name, bits, left))
            return _Header(nbytes, tuple(fields))
    return _Header(0, ())


class PacketIo:
    """The controller headers of one pipeline.

    With `lenient`, metadata that a packet-out leaves out is zero, and of a field that is given twice the last
    value counts, as in simple_switch_grpc.
    """

    def __init__(self, info: p4i.P4Info, *, lenient: bool = False) -> None:
        self._in = _header(info, "packet_in")
        self._out = _header(info, "packet_out")
        self._lenient = lenient

    def packet_in(self, frame: bytes) -> p4r.PacketIn | None:
        """The message for a frame that went to the CPU port; None when it is shorter than its header."""
        header = self._in
        if len(frame) < header.nbytes:
            return None
        message = p4r.PacketIn(payload=frame[header.nbytes :])
        value = int.from_bytes(frame[: header.nbytes], "big")
        for field in header.fields:
            item = message.metadata.add()
            item.metadata_id = field.id
            item.value = encode(value >> field.shift & (1 << field.bits) - 1)
        return message

    def packet_out(self, message: p4r.PacketOut) -> bytes:
        """The frame to inject for a packet-out.

        Raises:
            P4RtError: INVALID_ARGUMENT or OUT_OF_RANGE: the metadata is not what P4Info says.
        """
        header = self._out
        given: dict[int, bytes] = {}
        for item in message.metadata:
            if item.metadata_id in given and not self._lenient:
                raise invalid(f"packet_out: metadata {item.metadata_id} is given twice")
            given[item.metadata_id] = item.value
        value = 0
        for field in header.fields:
            data = given.pop(field.id, None)
            if data is None:
                if not self._lenient:
                    raise invalid(f"packet_out: metadata '{field.name}' is missing")
                continue
            value |= decode(data, field.bits, f"packet_out: metadata '{field.name}'") << field.shift
        for unknown in given:
            raise _unknown(unknown)
        return value.to_bytes(header.nbytes, "big") + message.payload


def _unknown(metadata_id: int) -> P4RtError:
    return invalid(f"packet_out: P4Info has no metadata with id {metadata_id}")
