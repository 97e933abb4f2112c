# SPDX-License-Identifier: Apache-2.0
"""Congestion notification message (CNM) between switches: a port is about to be paused (RLB §III-B.1)."""

from __future__ import annotations

from scapy.fields import ByteField, IntField, ShortField
from scapy.packet import Packet, bind_layers

from tailrace.codec.layers.local import LocalHeader
from tailrace.codec.numbers import Subtype

LEAF_ALL = 0xFFFF
"""The warning applies to packets to every leaf."""


class Cnm(Packet):
    """port:16 of the switch that warns, leaf:16 (the warning concerns packets to this leaf), priority:8,
    hops:8 (over which the warning was forwarded), valid_ticks:32 (0: the warning ends).
    """

    name = "Cnm"
    fields_desc = [
        ShortField("port", 0),
        ShortField("leaf", LEAF_ALL),
        ByteField("priority", 0),
        ByteField("hops", 0),
        IntField("valid_ticks", 0),
    ]


bind_layers(LocalHeader, Cnm, subtype=int(Subtype.CONGESTION))
