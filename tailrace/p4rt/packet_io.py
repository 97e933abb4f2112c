# SPDX-License-Identifier: Apache-2.0
"""The header fields of packet-ins and packet-outs by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tailrace.p4rt.messages import p4i, p4r


def packet_in_fields(info: p4i.P4Info, packet: p4r.PacketIn) -> dict[str, int]:
    """The fields of a packet-in that P4Info declares."""
    names = {field.id: field.name for field in _declared(info, "packet_in")}
    return {
        names[field.metadata_id]: int.from_bytes(field.value, "big")
        for field in packet.metadata
        if field.metadata_id in names
    }


def packet_out_metadata(info: p4i.P4Info, values: Mapping[str, int]) -> list[p4r.PacketMetadata]:
    """The metadata of a packet-out, from the value of each field that P4Info declares."""
    return [
        p4r.PacketMetadata(metadata_id=field.id, value=_octets(values[field.name]))
        for field in _declared(info, "packet_out")
    ]


def _declared(info: p4i.P4Info, header: str) -> Iterable[p4i.ControllerPacketMetadata.Metadata]:
    headers = info.controller_packet_metadata
    return next((each.metadata for each in headers if each.preamble.alias == header), ())


def _octets(number: int) -> bytes:
    """The shortest bytestring of a number (P4Runtime specification 8.3)."""
    return number.to_bytes((number.bit_length() + 7) // 8 or 1, "big")
