# SPDX-License-Identifier: Apache-2.0
"""Frames that the tests send."""

from __future__ import annotations

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw


def data_frame(src: str, dst: str, *, sport: int = 1000, dport: int = 9, payload: int = 100) -> bytes:
    """A UDP packet from one host to another, by way of the gateway."""
    ethernet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:fe")
    return bytes(
        ethernet / IP(src=src, dst=dst) / UDP(sport=sport, dport=dport, chksum=0) / Raw(bytes(payload))
    )
