# SPDX-License-Identifier: Apache-2.0
"""Frame filters of faults, as data that the network evaluates in C."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from tailrace.codec.layout import HeaderLayout
from tailrace.codec.numbers import ACK_PORT, LOCAL_TYPE, Subtype
from tailrace.codec.table import IPV4
from tailrace.codec.templates import UDP_PROTOCOL

_LAYOUT, _DETOUR = HeaderLayout("Ether", "LocalHeader"), HeaderLayout("LocalHeader", "Detour")
_TYPE, _NEXT = _LAYOUT.span("Ether.type"), _DETOUR.span("Detour.next_type")
_MOST_SUBTYPES = 64
_LAST_PORT = 65535
_IPV4_BYTES = HeaderLayout("IP").size_bytes


class FrameMatch(msgspec.Struct, frozen=True):
    """Matches frames of the project's local EtherType if their subtype is in `subtypes`, UDP datagrams if
    their destination port is `udp_port` (0: none), and all other frames if `other_types` is set.

    A detour header (on Valiant paths) is skipped: the next header determines the kind of the frame.
    """

    other_types: bool
    subtypes: frozenset[int] = frozenset()
    udp_port: int = 0

    ALL: ClassVar[FrameMatch]
    FLOWS: ClassVar[FrameMatch]
    """Frames of hosts (data, acknowledgments) and MAC control frames (PFC); of frames with the local
    EtherType only data with a header of a switch: Flowcut's shim (timestamps) or RLB's path probe."""
    FLOWCUT_ACK: ClassVar[FrameMatch]
    """ACKs of Flowcut, between switches or between NICs."""

    def __post_init__(self) -> None:
        """Refuses values that the network cannot match.

        Raises:
            ValueError: a subtype is not within 0..63, or the port not within 0..65535.
        """
        if not 0 <= self.udp_port <= _LAST_PORT:
            raise ValueError(f"udp_port must be within 0..{_LAST_PORT}")
        if not all(0 <= subtype < _MOST_SUBTYPES for subtype in self.subtypes):
            raise ValueError(f"subtypes must be within 0..{_MOST_SUBTYPES - 1}")

    @property
    def mask(self) -> int:
        """A bit mask: bit n is set if subtype n matches."""
        return sum(1 << subtype for subtype in self.subtypes)

    def __call__(self, frame: bytes) -> bool:
        """Whether a frame matches; the same test in Python as the network makes in C."""
        ether_type, offset = frame[_TYPE.byte : _TYPE.end], _LAYOUT.start("LocalHeader")
        while int.from_bytes(ether_type, "big") == LOCAL_TYPE and offset < len(frame):
            if frame[offset] != Subtype.DETOUR:
                return frame[offset] in self.subtypes
            offset += _DETOUR.size_bytes
            if offset > len(frame):
                break
            ether_type = frame[offset - _DETOUR.size_bytes :][_NEXT.byte : _NEXT.end]
        return self.other_types or self._is_udp_to_port(ether_type, frame[offset:])

    def _is_udp_to_port(self, ether_type: bytes, packet: bytes) -> bool:
        if not self.udp_port or int.from_bytes(ether_type, "big") != IPV4 or len(packet) < _IPV4_BYTES:
            return False
        udp_start = (packet[0] & 15) * 4  # IHL counts 32-bit words
        port = packet[udp_start + 2 : udp_start + 4]
        return packet[9] == UDP_PROTOCOL and len(port) == 2 and int.from_bytes(port, "big") == self.udp_port


FrameMatch.ALL = FrameMatch(True, frozenset(range(_MOST_SUBTYPES)))
FrameMatch.FLOWS = FrameMatch(True, frozenset({int(Subtype.DATA_SHIM), int(Subtype.PATH_PROBE)}))
FrameMatch.FLOWCUT_ACK = FrameMatch(False, frozenset({int(Subtype.FLOWCUT_ACK)}), ACK_PORT)
