# SPDX-License-Identifier: Apache-2.0
"""The hash of a flow as p4src/common/ecmp.p4 says: CRC-32 of the 5-tuple, a seed, two rounds of mixing."""

from __future__ import annotations

import struct
import zlib

from scapy.layers.inet import IP, TCP, UDP
from scapy.packet import Packet

from tests.p4src.rig import address_number

MASK = 0xFFFFFFFF


def key_hash(
    src: int, dst: int, sport: int, dport: int, protocol: int, seed: int = 0, switch_id: int = 0
) -> int:
    """32 bits of a 5-tuple, addresses as numbers."""
    value = (
        zlib.crc32(struct.pack(">IIHHB", src, dst, sport, dport, protocol)) ^ seed ^ switch_id ^ 0x5851F42D
    )
    value = value * 0x9E3779B1 & MASK
    value = (value ^ value >> 15) * 0x85EBCA77 & MASK
    return value ^ value >> 13


def flow_hash(frame: Packet, seed: int = 0, switch_id: int = 0) -> int:
    """The same of the flow that a frame with IPv4 belongs to; what has no ports has zeros."""
    ip = frame[IP]
    if ip.frag or type(ip.payload) not in (UDP, TCP):
        ip = IP(bytes(ip))  # as a switch reads it, with ports only where they are
    sport = dport = 0
    for layer in (UDP, TCP):
        if layer in ip:
            sport, dport = ip[layer].sport, ip[layer].dport
    return key_hash(address_number(ip.src), address_number(ip.dst), sport, dport, ip.proto, seed, switch_id)
