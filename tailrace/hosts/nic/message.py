# SPDX-License-Identifier: Apache-2.0
"""Segments a flow's message into RDMA WRITE packets: opcodes, lengths, payload, and PSNs."""

from __future__ import annotations

from typing import Final

from tailrace.codec.calls import OPCODE_SHIFT, PSN_MASK
from tailrace.codec.numbers import Opcode

# Byte i of a message is i modulo this prime number, so that any part of a payload shows its offset.
PATTERN_PERIOD: Final = 251
_PATTERN: Final = bytes(range(PATTERN_PERIOD)) * (1 << 6)  # longer than a payload and a period
_HALF: Final = (PSN_MASK + 1) // 2
NO_PACKET: Final = -1


class RdmaMessage:
    """One flow's packets, by index from 0.

    packets: number of packets.
    """

    __slots__ = (
        "_bytes",
        "_first_fields",
        "_first_psn",
        "_last",
        "_last_fields",
        "_middle_fields",
        "_mtu_bytes",
        "packets",
    )

    def __init__(self, length_bytes: int, mtu_bytes: int, first_psn: int) -> None:
        """Args:
        length_bytes: length of the message, 1 or more.
        mtu_bytes: payload of a full packet.
        first_psn: PSN of packet 0.
        """
        self._bytes = length_bytes
        self._mtu_bytes = mtu_bytes
        self._first_psn = first_psn
        self.packets = -(-length_bytes // mtu_bytes)
        self._last = self.packets - 1
        only = self.packets == 1
        opening, closing = Opcode.WRITE_FIRST, Opcode.WRITE_LAST
        if only:
            opening = closing = Opcode.WRITE_ONLY
        self._first_fields = self.payload_bytes(0) | int(opening) << OPCODE_SHIFT
        self._middle_fields = mtu_bytes | int(Opcode.WRITE_MIDDLE) << OPCODE_SHIFT
        self._last_fields = self.payload_bytes(self._last) | int(closing) << OPCODE_SHIFT

    def length_opcode(self, index: int) -> int:
        """A packet's payload length and opcode, as in data_fields (codec.calls); or NO_PACKET."""
        if index <= 0:
            return self._first_fields if index == 0 else NO_PACKET
        if index < self._last:
            return self._middle_fields
        return self._last_fields if index == self._last else NO_PACKET

    def payload_bytes(self, index: int) -> int:
        """Length of a packet's payload, without padding."""
        return min(self._mtu_bytes, self._bytes - index * self._mtu_bytes)

    def payload(self, index: int) -> bytes:
        """A packet's payload, without padding."""
        start = index * self._mtu_bytes % PATTERN_PERIOD
        return _PATTERN[start : start + self.payload_bytes(index)]

    def psn(self, index: int) -> int:
        return (self._first_psn + index) & PSN_MASK

    def index(self, psn: int, near: int) -> int:
        """The index with this PSN that is nearest to index `near`; it may be out of range."""
        distance = (psn - self._first_psn - near) & PSN_MASK
        return near + (distance if distance < _HALF else distance - PSN_MASK - 1)
