# SPDX-License-Identifier: Apache-2.0
"""RDMA extended transport header: destination and length of an RDMA WRITE (InfiniBand volume 1, §9.3)."""

from __future__ import annotations

from scapy.contrib.roce import BTH
from scapy.fields import IntField, XIntField, XLongField
from scapy.packet import Packet, bind_layers

from tailrace.codec.numbers import Opcode


class RETH(Packet):
    """address:64 rkey:32 length:32 (bytes of the whole message)."""

    name = "RETH"
    fields_desc = [XLongField("address", 0), XIntField("rkey", 0), IntField("length", 0)]


bind_layers(BTH, RETH, opcode=int(Opcode.WRITE_FIRST))
bind_layers(BTH, RETH, opcode=int(Opcode.WRITE_ONLY))
