# SPDX-License-Identifier: Apache-2.0
"""What a switch leaves of a data packet for which a queue has no room (Spritz §II-B), by Scapy."""

from __future__ import annotations

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from tailrace.codec.layers.dscp import DSCP_SHIFT, Dscp
from tailrace.codec.layout import HeaderLayout

TRIMMED_BYTES = 54
"""Ethernet, IPv4, UDP and BTH."""


def trim(frame: bytes, *, steered: bool = False) -> bytes:
    """A frame without all that follows its BTH; lengths, DSCP and IPv4 checksum are those of what is left."""
    packet = Ether(frame)
    ip, udp = packet[IP], packet[UDP]
    udp.len = len(UDP()) + HeaderLayout("BTH").size_bytes
    ip.len = len(IP()) + udp.len
    ip.tos = (Dscp.TRIMMED_STEERED if steered else Dscp.TRIMMED) << DSCP_SHIFT | ip.tos & 3
    ip.chksum = None
    return bytes(packet)[:TRIMMED_BYTES]
