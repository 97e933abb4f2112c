# SPDX-License-Identifier: Apache-2.0
"""Detour of a packet by another Dragonfly group (Flowcut §III-C4: Valiant), in front of everything else
on links within the group of its source.

Hosts never see it, nor does any switch of another group.
"""

from __future__ import annotations

from scapy.data import ETHER_TYPES
from scapy.fields import ShortField, XShortEnumField
from scapy.layers.inet import IP
from scapy.packet import Packet, bind_layers

from tailrace.codec.layers.local import ETHER_TYPE, LocalHeader, Subtype


class Detour(Packet):
    """group:16 of next hops, next_type:16 of what follows: IPv4, or 0x88B5 again."""

    name = "Detour"
    fields_desc = [ShortField("group", 0), XShortEnumField("next_type", 0x0800, ETHER_TYPES)]


bind_layers(LocalHeader, Detour, subtype=int(Subtype.DETOUR))
bind_layers(Detour, IP, next_type=0x0800)
bind_layers(Detour, LocalHeader, next_type=ETHER_TYPE)
