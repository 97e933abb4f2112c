# SPDX-License-Identifier: Apache-2.0
"""RoCEv2 as used here: ports, opcodes, and the reserved fields of the BTH (layers: scapy.contrib.roce).

* resv7 of a data packet: the number of packets of the message that remain, including this one, at most 127;
  0: not given (Flowcut §IV-C).
* resv6, which the ICRC does not cover: a path tag, into which every fabric hop mixes its egress port.
* The identification of the IPv4 header is 0 in a first transmission and 1 in a retransmission, so that a
  receiver can distinguish loss from reordering (the packet is atomic, RFC 6864, so the field is free).
"""

from __future__ import annotations

from enum import IntEnum

from scapy.contrib.roce import AETH, BTH, CNP_OPCODE, CNPPadding
from scapy.packet import Packet

from tailrace.codec.calls import LEFT_MASK, PSN_MASK
from tailrace.codec.numbers import FIRST_PORT, LAST_PORT

ROCE_PORT = 4791
SOURCE_PORTS = range(FIRST_PORT, LAST_PORT + 1)
MAX_LEFT = LEFT_MASK
RETRANSMISSION = 1


class Opcode(IntEnum):
    """Opcodes of the reliable connection that we send, and the CNP."""

    WRITE_FIRST = 0x06
    WRITE_MIDDLE = 0x07
    WRITE_LAST = 0x08
    WRITE_ONLY = 0x0A
    ACK = 0x11
    CNP = CNP_OPCODE


class Syndrome(IntEnum):
    """First byte of the AETH."""

    ACK = 0x1F  # no end-to-end credits
    NAK_SEQUENCE = 0x60
    NAK_TRIMMED = 0x7F  # code 31, the last reserved code; the MSN field has the PSN of the trimmed packet


def left_field(packets_left: int) -> int:
    """The value of resv7 for a packet after which `packets_left` - 1 follow; packets_left >= 1."""
    return min(packets_left, MAX_LEFT)


def packets_left(packet: Packet) -> int:
    """resv7 of a packet with a BTH; 0: the sender does not give it."""
    return int(packet[BTH].resv7)


def path_tag(packet: Packet) -> int:
    """resv6 of a packet with a BTH."""
    return int(packet[BTH].resv6)


__all__ = [
    "AETH",
    "BTH",
    "MAX_LEFT",
    "PSN_MASK",
    "RETRANSMISSION",
    "ROCE_PORT",
    "SOURCE_PORTS",
    "CNPPadding",
    "Opcode",
    "Syndrome",
    "left_field",
    "packets_left",
    "path_tag",
]
