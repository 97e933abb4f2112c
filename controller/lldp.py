# SPDX-License-Identifier: Apache-2.0
"""LLDP frames with the switch and port that sent them (IEEE 802.1AB: chassis id, port id, time to live)."""

from __future__ import annotations

from struct import pack, unpack_from

ETHER_TYPE = 0x88CC
_NEAREST_BRIDGE = bytes.fromhex("0180c200000e")
_SOURCE = bytes.fromhex("0200000000fd")
_HEADER_BYTES = 14
_MIN_FRAME_BYTES = 60

_END, _CHASSIS_ID, _PORT_ID, _TTL, _ORGANIZATION = 0, 1, 2, 3, 127
_ORGANIZATION_HEAD = bytes.fromhex("02000001")
"""A locally assigned organization identifier, and its only subtype, for the number of a probe's round."""

_LOCALLY_ASSIGNED = 7
"""Subtype of both ids: a locally assigned name."""
_TTL_S = 120


def _tlv(kind: int, value: bytes) -> bytes:
    return pack("!H", kind << 9 | len(value)) + value


def encode(switch: str, port: int, number: int) -> bytes:
    """The frame to send out of a port of a switch; `number`, of 32 bits, identifies its round of probes."""
    subtype = bytes([_LOCALLY_ASSIGNED])
    frame = (
        _NEAREST_BRIDGE
        + _SOURCE
        + pack("!H", ETHER_TYPE)
        + _tlv(_CHASSIS_ID, subtype + switch.encode())
        + _tlv(_PORT_ID, subtype + str(port).encode())
        + _tlv(_TTL, pack("!H", _TTL_S))
        + _tlv(_ORGANIZATION, _ORGANIZATION_HEAD + pack("!I", number))
        + _tlv(_END, b"")
    )
    return frame.ljust(_MIN_FRAME_BYTES, b"\0")


def _values(frame: bytes) -> dict[int, bytes] | None:
    """The values of a frame by type; None if it is not a complete LLDP frame."""
    if len(frame) < _HEADER_BYTES or unpack_from("!H", frame, 12)[0] != ETHER_TYPE:
        return None
    values: dict[int, bytes] = {}
    offset = _HEADER_BYTES
    while offset + 2 <= len(frame):
        (head,) = unpack_from("!H", frame, offset)
        kind, length = head >> 9, head & 0x1FF
        if kind == _END:
            break
        offset += 2
        if offset + length > len(frame):
            return None
        values[kind] = frame[offset : offset + length]
        offset += length
    return values


def decode(frame: bytes) -> tuple[tuple[str, int], int | None] | None:
    """The switch and port that a frame names as its sender, and the number of its round of probes, None in
    frames of other makers. None if the frame does not have both names in the form of `encode`.
    """
    values = _values(frame)
    if values is None:
        return None
    chassis, port = values.get(_CHASSIS_ID, b""), values.get(_PORT_ID, b"")
    if chassis[:1] != bytes([_LOCALLY_ASSIGNED]) or port[:1] != bytes([_LOCALLY_ASSIGNED]):
        return None
    if not port[1:].isdigit():
        return None
    organization = values.get(_ORGANIZATION, b"")
    number = int.from_bytes(organization[-4:], "big") if organization[:-4] == _ORGANIZATION_HEAD else None
    try:
        return (chassis[1:].decode(), int(port[1:])), number
    except UnicodeDecodeError:
        return None
