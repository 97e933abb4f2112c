# SPDX-License-Identifier: Apache-2.0
"""Pause of one flow, from the first switch to the source: XOFF, XOFF with credit, XON (Flowcut §II-B)."""

from __future__ import annotations

from scapy.fields import ByteEnumField, IntField
from scapy.packet import Packet, bind_layers

from tailrace.codec.layers.flow_key import flow_key_fields
from tailrace.codec.layers.local import LocalHeader
from tailrace.codec.numbers import PauseOp, Subtype

# The multicast address of MAC control frames; bridges do not forward them.
PAUSE_MAC = "01:80:c2:00:00:01"


class FlowPause(Packet):
    """The data flow's key, op:8, credit_bytes:32 (frame bytes that may still be sent; XOFF_CREDIT only)."""

    name = "FlowPause"
    fields_desc = [
        *flow_key_fields(),
        ByteEnumField("op", int(PauseOp.XOFF), {int(op): op.name.lower() for op in PauseOp}),
        IntField("credit_bytes", 0),
    ]


bind_layers(LocalHeader, FlowPause, subtype=int(Subtype.FLOW_PAUSE))
