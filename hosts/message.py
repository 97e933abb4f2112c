# SPDX-License-Identifier: Apache-2.0
"""How a flow's bytes are cut into RDMA WRITE packets: opcodes, lengths, payload, and PSNs."""

from __future__ import annotations

from hosts.packets.bth import PSN_MASK, Opcode

# Any stretch of a payload tells where it belongs: byte i of a message is i modulo this prime number.
PATTERN_PERIOD = 251
_PATTERN = bytes(range(PATTERN_PERIOD)) * (1 << 6)
_HALF = (PSN_MASK + 1) // 2


class Message:
    """One flow's packets, numbered from 0."""

    __slots__ = ("_bytes", "_first_psn", "_mtu_bytes", "packets")

    def __init__(self, length_bytes: int, mtu_bytes: int, first_psn: int) -> None:
        """Args:
        length_bytes: of the message, 1 or more.
        mtu_bytes: payload of a full packet.
        first_psn: PSN of packet 0.
        """
        self._bytes = length_bytes
        self._mtu_bytes = mtu_bytes
        self._first_psn = first_psn
        self.packets = -(-length_bytes // mtu_bytes)

    def opcode(self, index: int) -> Opcode:
        """The opcode of a packet."""
        if self.packets == 1:
            return Opcode.WRITE_ONLY
        if index == 0:
            return Opcode.WRITE_FIRST
        return Opcode.WRITE_LAST if index == self.packets - 1 else Opcode.WRITE_MIDDLE

    def payload_bytes(self, index: int) -> int:
        """Length of a packet's payload, without padding."""
        return min(self._mtu_bytes, self._bytes - index * self._mtu_bytes)

    def payload(self, index: int) -> bytes:
        """A packet's payload, without padding."""
        start = index * self._mtu_bytes % PATTERN_PERIOD
        return _PATTERN[start : start + self.payload_bytes(index)]

    def psn(self, index: int) -> int:
        """The PSN of a packet."""
        return (self._first_psn + index) & PSN_MASK

    def index(self, psn: int, near: int) -> int:
        """The packet of this PSN that is nearest to packet `near`; may be out of range."""
        distance = (psn - self._first_psn - near) & PSN_MASK
        return near + (distance if distance < _HALF else distance - PSN_MASK - 1)
