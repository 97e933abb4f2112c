# SPDX-License-Identifier: Apache-2.0
"""PacketIn and PacketOut: the controller headers in front of a frame (P4Runtime specification 16.1).

A frame that the switch sends to the CPU port begins with the packed `packet_in` header. A packet-out enters
by the CPU port with the packed `packet_out` header in front. Fields are packed in P4Info's order, the first
in the most significant bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.status import invalid
from tailrace.switch.core.lib import C
from tailrace.switch.p4runtime.entities.schema import Schema
from tailrace.switch.p4runtime.entities.translation import Sdn

if TYPE_CHECKING:
    from tailrace.switch.p4runtime.pins.strings import SdnStrings

_PORTS = ("ingress_port", "egress_port")
"""Names of metadata fields that contain ports."""

Metadata = p4i.ControllerPacketMetadata.Metadata


class _MetadataField(msgspec.Struct, frozen=True):
    """A field of `bits` bits, above the lowest `shift` bits of the packed header.

    `sdn` converts values between frames and messages.
    """

    id: int
    name: str
    bits: int
    shift: int
    sdn: Sdn


class _PacketHeader(msgspec.Struct, frozen=True):
    nbytes: int
    fields: tuple[_MetadataField, ...]


def _header(schema: Schema, name: str) -> _PacketHeader:
    """A header's fields from P4Info, with widths and positions from the program.

    For translated types P4Info has the width in messages instead, and it omits fields annotated @padding.
    """
    headers = (h.metadata for h in schema.info.controller_packet_metadata if h.preamble.name == name)
    metadata: Sequence[Metadata] = next(headers, ())
    if not metadata:
        return _PacketHeader(0, ())
    layout = _layout(metadata, schema)
    nbytes = (sum(bits for _, bits in layout) + 7) // 8
    shift, fields = 8 * nbytes, []
    by_name = {item.name: item for item in metadata}
    for field_name, bits in layout:
        shift -= bits
        item = by_name.get(field_name)
        if item is None:
            continue
        if bits <= 0:
            raise invalid(f"P4Info: '{name}.{field_name}' has no width in bits")
        sdn = schema.types.sdn(item.type_name.name, bits) or Sdn(bits)
        fields.append(_MetadataField(item.id, field_name, bits, shift, sdn))
    return _PacketHeader(nbytes, tuple(fields))


def _layout(metadata: Sequence[Metadata], schema: Schema) -> list[tuple[str, int]]:
    """Names and widths of a header's fields in frames.

    Taken from the program's header that has the metadata's fields; without such a header, from P4Info.
    """
    declared = [(item.name, item.bitwidth) for item in metadata]
    translated = {item.name for item in metadata if schema.types.translated(item.type_name.name) is not None}
    # P4Info lacks the data plane's width of translated types: they are compared by name only
    expected = [(name, 0 if name in translated else bits) for name, bits in declared]
    names = {name for name, _ in declared}
    candidates = []
    for header in schema.model.header_types:
        fields = [(each.name, each.bits) for each in header.fields if not each.hidden]
        actual = [(name, 0 if name in translated else bits) for name, bits in fields if name in names]
        if actual == expected:
            candidates.append(fields)
    # the header with the fewest further fields, which are padding
    return min(candidates, key=len, default=declared)


class PacketIo:
    """The controller headers of one pipeline.

    `lenient` follows simple_switch_grpc: metadata missing in a packet-out is zero; if it is given twice, the
    last value is used.
    """

    def __init__(self, schema: Schema, *, lenient: bool = False) -> None:
        self._in = _header(schema, "packet_in")
        self._out = _header(schema, "packet_out")
        self._lenient = lenient

    @property
    def port_names(self) -> SdnStrings | None:
        """The strings of ports (sdn_string); None: ports are numbers.

        P4Info does not give the type of replicas' ports and of watch ports; the type of the port metadata of
        packet-ins and packet-outs is used.
        """
        of_ports = (field for field in (*self._in.fields, *self._out.fields) if field.name in _PORTS)
        return next((field.sdn.names for field in of_ports if field.sdn.names is not None), None)

    def packet_in(self, frame: bytes) -> p4r.PacketIn | None:
        """The message for a frame to the CPU port; None: the frame is shorter than the packet_in header."""
        header = self._in
        if len(frame) < header.nbytes:
            return None
        message = p4r.PacketIn(payload=frame[header.nbytes :])
        value = int.from_bytes(frame[: header.nbytes], "big")
        for field in header.fields:
            item = message.metadata.add()
            item.metadata_id = field.id
            item.value = field.sdn.to_sdn(value >> field.shift & (1 << field.bits) - 1)
        return message

    def packet_out(self, message: p4r.PacketOut) -> bytes:
        """The frame to inject for a packet-out.

        Raises:
            P4RtError: INVALID_ARGUMENT or OUT_OF_RANGE: the metadata does not match P4Info, or the frame is
                too long.
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
            what = f"packet_out: metadata '{field.name}'"
            names = field.sdn.names
            number = field.sdn.to_wire(data, what) if names is None else names.look_up(data)
            # Writing an entity maps its strings to numbers; other strings have none. A decimal string, such
            # as a port's number, stands for its value if no string has this number (pins/strings.py).
            if number is None:
                raise invalid(f"{what}: the string has no number: no entity uses it, and it is not decimal")
            value |= number << field.shift
        for unknown in given:
            raise invalid(f"packet_out: P4Info has no metadata with id {unknown}")
        frame = value.to_bytes(header.nbytes, "big") + message.payload
        if len(frame) > C.TR_MAX_FRAME:
            # the core would drop and count it, and the client would get no error
            raise invalid(
                f"packet_out: the frame has {len(frame)} bytes with its header; the limit is {C.TR_MAX_FRAME}"
            )
        return frame
