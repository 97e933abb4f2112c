# SPDX-License-Identifier: Apache-2.0
"""Flowcut data shim, between Ethernet and IPv4 on fabric links (Flowcut §II-B, §III-A1).

Each switch that applies Flowcut to the flow pushes a stamp: its time, the packet's ingress port, three flags.
`moved`: the flow has left a withdrawn path at this switch. `untracked`: the switch's flow table had no free
entry for the flow. `drained`: a flowcut begins here, after the last flowcut on that port ended because of
congestion. Hosts never see the shim.
"""

from __future__ import annotations

from typing import Any

from scapy.data import ETHER_TYPES
from scapy.fields import BitField, IntField, PacketListField, XShortEnumField
from scapy.layers.inet import IP
from scapy.packet import Packet, bind_layers

from tailrace.codec.layers.local import LocalHeader
from tailrace.codec.numbers import Subtype


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
        """The bytes after a stamp belong to the layer that contains the list of stamps."""
        return b"", s


class StampCount(BitField):
    """The length of the list of stamps, 4 bits; computed if not given."""

    def __init__(self) -> None:
        """Creates the field `stamps`, the length of the field `stack`."""
        super().__init__("stamps", None, 4)

    def i2m(self, pkt: Any, x: Any) -> int:
        """The count to write: the given one, else the length of the list."""
        return len(pkt.stack) if x is None else int(x)


def stack_field() -> PacketListField:
    """The list of stamps, newest first; its length is in the field `stamps`."""
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
