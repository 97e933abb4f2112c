# SPDX-License-Identifier: Apache-2.0
"""EtherType 0x88B5 (IEEE local experimental 1) and the subtype byte after it, the type of the next header."""

from __future__ import annotations

from scapy.fields import ByteEnumField
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_layers

from tailrace.codec.numbers import LOCAL_TYPE, Subtype


class LocalHeader(Packet):
    """The subtype byte: 8 bits."""

    name = "Local"
    fields_desc = [ByteEnumField("subtype", 0, {int(kind): kind.name.lower() for kind in Subtype})]


bind_layers(Ether, LocalHeader, type=LOCAL_TYPE)
