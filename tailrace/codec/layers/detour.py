# SPDX-License-Identifier: Apache-2.0
"""Header for a detour of a packet through another Dragonfly group (Flowcut §III-C4: Valiant). It precedes all
other headers after Ethernet, on links within the group of the packet's source.

Neither hosts nor switches of other groups see it.
"""

from __future__ import annotations

from scapy.data import ETHER_TYPES
from scapy.fields import ShortField, XShortEnumField
from scapy.layers.inet import IP
from scapy.packet import Packet, bind_layers

from tailrace.codec.layers.local import LocalHeader
from tailrace.codec.numbers import LOCAL_TYPE, Subtype


class Detour(Packet):
    """group:16 (id of a group of next hops), next_type:16 (EtherType of the next header: IPv4 or 0x88B5)."""

    name = "Detour"
    fields_desc = [ShortField("group", 0), XShortEnumField("next_type", 0x0800, ETHER_TYPES)]


bind_layers(LocalHeader, Detour, subtype=int(Subtype.DETOUR))
bind_layers(Detour, IP, next_type=0x0800)
bind_layers(Detour, LocalHeader, next_type=LOCAL_TYPE)
