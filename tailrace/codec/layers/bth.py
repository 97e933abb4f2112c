# SPDX-License-Identifier: Apache-2.0
"""RoCEv2 as used here: the reserved fields of the BTH (layers: scapy.contrib.roce).

* resv7 of a data packet: the number of packets of the message that remain, including this one, at most 127;
  0: not given (Flowcut §IV-C).
* resv6, which the ICRC does not cover: a path tag, into which every fabric hop mixes its egress port.
* The identification of the IPv4 header is 0 in a first transmission and 1 in a retransmission, so that a
  receiver can distinguish loss from reordering (the packet is atomic, RFC 6864, so the field is free).
"""

from __future__ import annotations

from scapy.contrib.roce import AETH, BTH, CNPPadding
from scapy.fields import IntField, XIntField, XLongField
from scapy.packet import Packet, bind_layers

from tailrace.codec.calls import LEFT_MASK, PSN_MASK
from tailrace.codec.numbers import Opcode

MAX_LEFT = LEFT_MASK


def left_field(packets_left: int) -> int:
    """The value of resv7 for a packet after which `packets_left` - 1 follow; packets_left >= 1."""
    return min(packets_left, MAX_LEFT)


def packets_left(packet: Packet) -> int:
    """resv7 of a packet with a BTH; 0: the sender does not give it."""
    return int(packet[BTH].resv7)


def path_tag(packet: Packet) -> int:
    """resv6 of a packet with a BTH."""
    return int(packet[BTH].resv6)


class RETH(Packet):
    """RDMA extended transport header: destination and length of an RDMA WRITE (InfiniBand volume 1, §9.3).

    address:64 rkey:32 length:32 (bytes of the whole message).
    """

    name = "RETH"
    fields_desc = [XLongField("address", 0), XIntField("rkey", 0), IntField("length", 0)]


bind_layers(BTH, RETH, opcode=int(Opcode.WRITE_FIRST))
bind_layers(BTH, RETH, opcode=int(Opcode.WRITE_ONLY))

__all__ = [
    "AETH",
    "BTH",
    "MAX_LEFT",
    "PSN_MASK",
    "RETH",
    "CNPPadding",
    "left_field",
    "packets_left",
    "path_tag",
]
