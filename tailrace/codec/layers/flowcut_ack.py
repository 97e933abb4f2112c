# SPDX-License-Identifier: Apache-2.0
"""Flowcut ACK between switches: these bytes of this flow have left the network (Flowcut §II-A, §III-A1)."""

from __future__ import annotations

from scapy.fields import BitField, ThreeBytesField
from scapy.packet import Packet, bind_layers

from tailrace.codec.layers.data_shim import StampCount, stack_field
from tailrace.codec.layers.flow_key import flow_key_fields
from tailrace.codec.layers.local import LocalHeader
from tailrace.codec.numbers import Subtype


class FlowcutAck(Packet):
    """The data flow's key, bytes:24 and hops:4 of the data packet, stamps:4; then fields of the ACK itself:
    reserved:3, hops_back:4, congested:1, and the stamps.
    """

    name = "FlowcutAck"
    fields_desc = [
        *flow_key_fields(),
        ThreeBytesField("bytes", 0),
        BitField("hops", 0, 4),
        StampCount(),
        BitField("reserved", 0, 3),
        BitField("hops_back", 0, 4),
        BitField("congested", 0, 1),
        stack_field(),
    ]


bind_layers(LocalHeader, FlowcutAck, subtype=int(Subtype.FLOWCUT_ACK))
