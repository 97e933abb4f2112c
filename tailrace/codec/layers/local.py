# SPDX-License-Identifier: Apache-2.0
"""EtherType 0x88B5 (IEEE local experimental 1): the subtype byte, which is the type of the next header, and
the headers after it. Hosts see only the pauses of flows.
"""

from __future__ import annotations

from typing import Any

from scapy.data import ETHER_TYPES
from scapy.fields import (
    BitField,
    ByteEnumField,
    ByteField,
    Field,
    IntField,
    IPField,
    PacketListField,
    ShortField,
    ThreeBytesField,
    XShortEnumField,
)
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_layers

from tailrace.codec.numbers import LOCAL_TYPE, PauseOp, Subtype

PAUSE_MAC = "01:80:c2:00:00:01"
"""The multicast address of MAC control frames; bridges do not forward them."""

LEAF_ALL = 0xFFFF
"""The warning applies to packets to every leaf."""


class LocalHeader(Packet):
    """The subtype byte: 8 bits."""

    name = "Local"
    fields_desc = [ByteEnumField("subtype", 0, {int(kind): kind.name.lower() for kind in Subtype})]


bind_layers(Ether, LocalHeader, type=LOCAL_TYPE)


def flow_key_fields() -> list[Field[Any, Any]]:
    """src:32 dst:32 sport:16 dport:16 protocol:8 of the data flow; new fields at each call."""
    return [
        IPField("src", "0.0.0.0"),
        IPField("dst", "0.0.0.0"),
        ShortField("sport", 0),
        ShortField("dport", 0),
        ByteField("protocol", 17),
    ]


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
    """Flowcut's data shim, between Ethernet and IPv4 on fabric links (Flowcut §II-B, §III-A1).

    Each switch that applies Flowcut to the flow pushes a stamp: its time, the packet's ingress port, three
    flags. `moved`: the flow has left a withdrawn path at this switch. `untracked`: the switch's flow table
    had no free entry for the flow. `drained`: a flowcut begins here, after the last flowcut on that port
    ended because of congestion.

    hops:4 stamps:4 next_type:16, then the stamps.
    """

    name = "DataShim"
    fields_desc = [
        BitField("hops", 0, 4),
        StampCount(),
        XShortEnumField("next_type", 0x0800, ETHER_TYPES),
        stack_field(),
    ]


bind_layers(LocalHeader, DataShim, subtype=int(Subtype.DATA_SHIM))
bind_layers(DataShim, IP, next_type=0x0800)


class FlowPause(Packet):
    """Pause of one flow, from the first switch to the source: XOFF, XOFF with credit, XON (Flowcut §II-B).

    The data flow's key, op:8, credit_bytes:32 (frame bytes that may still be sent; XOFF_CREDIT only).
    """

    name = "FlowPause"
    fields_desc = [
        *flow_key_fields(),
        ByteEnumField("op", int(PauseOp.XOFF), {int(op): op.name.lower() for op in PauseOp}),
        IntField("credit_bytes", 0),
    ]


bind_layers(LocalHeader, FlowPause, subtype=int(Subtype.FLOW_PAUSE))


class FlowcutAck(Packet):
    """ACK between switches: these bytes of this flow have left the network (Flowcut §II-A, §III-A1).

    The data flow's key, bytes:24 and hops:4 of the data packet, stamps:4; then fields of the ACK itself:
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


class Cnm(Packet):
    """Congestion notification message between switches: a port is about to be paused (RLB §III-B.1).

    port:16 of the switch that warns, leaf:16 (the warning concerns packets to this leaf), priority:8,
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


class Detour(Packet):
    """A detour of a packet through another Dragonfly group (Flowcut §III-C4: Valiant). It precedes all other
    headers after Ethernet, on links within the group of the packet's source; no other switch sees it.

    group:16 (id of a group of next hops), next_type:16 (EtherType of the next header: IPv4 or 0x88B5).
    """

    name = "Detour"
    fields_desc = [ShortField("group", 0), XShortEnumField("next_type", 0x0800, ETHER_TYPES)]


bind_layers(LocalHeader, Detour, subtype=int(Subtype.DETOUR))
bind_layers(Detour, IP, next_type=0x0800)
bind_layers(Detour, LocalHeader, next_type=LOCAL_TYPE)


class PathProbe(Packet):
    """Path probe, between Ethernet and IPv4 on fabric links, for the RTT from leaf to leaf (RLB §V).

    A stamp (leaf, path, ticks) to be echoed by the other leaf, and an echo (path, ticks, wait).

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
