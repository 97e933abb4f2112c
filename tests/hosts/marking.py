# SPDX-License-Identifier: Apache-2.0
"""What a switch makes of a packet that meets congestion."""

from __future__ import annotations

from tailrace.codec.checksum import ipv4_checksum
from tests.codec.frames import Frame

IP, UDP, TOS, CHECKSUM, CE = 14, 34, 15, slice(24, 26), 3


def marked(frame: Frame) -> Frame:
    """The frame with ECN's mark."""
    data = bytearray(frame.data)
    data[TOS] |= CE
    data[CHECKSUM] = bytes(2)
    data[CHECKSUM] = ipv4_checksum(data[IP:UDP]).to_bytes(2, "big")
    return frame._replace(data=bytes(data))
