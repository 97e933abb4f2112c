# SPDX-License-Identifier: Apache-2.0
"""EtherType 0x88B5 (IEEE local experimental 1) and the subtype byte after it, the type of the next header."""

from __future__ import annotations

from enum import IntEnum

from scapy.fields import ByteEnumField
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_layers

ETHER_TYPE = 0x88B5


class Subtype(IntEnum):
    """Types of the header after the subtype byte."""

    DATA_SHIM = 1
    FLOWCUT_ACK = 2
    FLOW_PAUSE = 3
    CONGESTION = 4
    PATH_PROBE = 5
    DETOUR = 6


class LocalHeader(Packet):
    """The subtype byte: 8 bits."""

    name = "Local"
    fields_desc = [ByteEnumField("subtype", 0, {int(kind): kind.name.lower() for kind in Subtype})]


bind_layers(Ether, LocalHeader, type=ETHER_TYPE)
