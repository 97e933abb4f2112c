# SPDX-License-Identifier: Apache-2.0
"""Flowcut data shim, between Ethernet and IPv4 on fabric links (Flowcut §II-B, §III-A1).

Each switch that tracks the flow pushes a stamp: its clock, the port the packet came in by, whether the flow
has left a withdrawn path there, whether it is not in the switch's table, and whether a flowcut begins
there whose last one by that port ended in congestion. Hosts never see it.
"""

from __future__ import annotations

from typing import Any

from scapy.data import ETHER_TYPES
from scapy.fields import BitField, IntField, PacketListField, XShortEnumField
from scapy.layers.inet import IP
from scapy.packet import Packet, bind_layers

from tailrace.codec.layers.local import LocalHeader, Subtype


class Stamp(Packet):
    """ticks:32 of the switch's clock, moved:1, untracked:1, drained:1, reserved:4, in_port:9."""

    name = "Stamp"
    fields_desc = [
        IntField("ticks", 0),
        BitField("moved", 0, 1),
        BitField("untracked", 0, 1),
        BitField("drained", 0, 1),
        BitField("reserved", 0, 4),
        BitField("in_port", 0, 9),
    ]

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes | None]:
        """What follows a stamp belongs to the layer that holds it."""
        return b"", s


class StampCount(BitField):
    """Length of the list of stamps, 4 bits; computed unless given."""

    def __init__(self) -> None:
        """A field named `stamps` that counts `stack`."""
        super().__init__("stamps", None, 4)

    def i2m(self, pkt: Any, x: Any) -> int:
        """The count to write: what was given, or the length of the list."""
        return len(pkt.stack) if x is None else int(x)


def stack_field() -> PacketListField:
    """The stamps, newest first, as many as the field `stamps` says."""
    return PacketListField("stack", [], Stamp, count_from=lambda packet: packet.stamps)


class DataShim(Packet):
    """hops:4 stamps:4 next_type:16, then the stamps."""

    name = "DataShim"
    fields_desc = [
        BitField("hops", 0, 4),
        StampCount(),
        XShortEnumField("next_type", 0x0800, ETHER_TYPES),
        stack_field(),
    ]


bind_layers(LocalHeader, DataShim, subtype=int(Subtype.DATA_SHIM))
bind_layers(DataShim, IP, next_type=0x0800)
