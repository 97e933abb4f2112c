# SPDX-License-Identifier: Apache-2.0
"""Path probe, between Ethernet and IPv4 on fabric links, for the RTT from leaf to leaf (RLB §V).

Hosts never see it.
"""

from __future__ import annotations

from scapy.data import ETHER_TYPES
from scapy.fields import BitField, IntField, ShortField, XShortEnumField
from scapy.layers.inet import IP
from scapy.packet import Packet, bind_layers

from tailrace.codec.layers.local import LocalHeader
from tailrace.codec.numbers import Subtype


class PathProbe(Packet):
    """A stamp (leaf, path, ticks) to be echoed by the other leaf, and an echo (path, ticks, wait).

    A path is the uplink's port at the leaf that sends the stamp; `echo_wait` is the time for which the stamp
    waited at the other leaf.
    """

    name = "PathProbe"
    fields_desc = [
        BitField("stamped", 0, 1),
        BitField("echoes", 0, 1),
        BitField("reserved", 0, 6),
        ShortField("leaf", 0),
        ShortField("path", 0),
        IntField("ticks", 0),
        ShortField("echo_path", 0),
        IntField("echo_ticks", 0),
        IntField("echo_wait", 0),
        XShortEnumField("next_type", 0x0800, ETHER_TYPES),
    ]


bind_layers(LocalHeader, PathProbe, subtype=int(Subtype.PATH_PROBE))
bind_layers(PathProbe, IP, next_type=0x0800)
