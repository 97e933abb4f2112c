# SPDX-License-Identifier: Apache-2.0
"""The packets in calls between a NIC and the owner of its wire: a few integers, each with several fields.

The wire is the link of the NIC's host; its owner is the code that delivers frames to the NIC and takes frames
from it. A flow's end is the state of a flow in the NIC of its sender or its receiver.
The port in C (`codec.nic`) parses and builds frames for the owner of the wire; the NIC only makes decisions.
There is one call per arriving frame and one per frame to send, with only these integers as arguments:

    template_id  handle << KIND_BITS | kind              handle of the flow's end, and the kind of packet
    peer         IPv4 address << QPN_BITS | queue pair   the other end, and the queue pair in the BTH
    flow         IPv4 address << PORT_BITS | port        of a NIC ACK: its sender, and the flow's source port
    psn_fields   BECN << 40 | UDP source port << 24 | PSN
    data_fields  of a data packet, with widths in bits, from bit 0 on:

        bits    16        8       8 (7)      6    1       1          1       17
            payload bytes opcode hops (left) tag  CE retransmission ackreq frame bytes

           hops, tag (the path tag, layers/bth.py), CE and frame bytes are set in arriving packets; departing
           packets have `left` (packets of the message that remain) instead of hops, and the VLAN ID (12 bits;
           0: no VLAN tag) instead of frame bytes
    aeth         syndrome << SYNDROME_SHIFT | MSN
    count        of a NIC ACK: bytes of the acknowledged frames << COUNT_SHIFT | hops

All are below 2^62, so that compiled Python code keeps them in a register.
"""

from __future__ import annotations

from typing import Final

# Kinds of departing packets. RAW has no handle: its `template_id` is 0, and the frame is given as bytes.
KIND_BITS: Final = 3
KIND_MASK: Final = (1 << KIND_BITS) - 1
RAW: Final = 0
DATA: Final = 1  # with a virtual payload
PAYLOAD: Final = 2  # data with a real payload
ACK: Final = 3
NIC_ACK: Final = 4

# The low bits of a handle are its slot: an index that the NIC gives to a flow's end and reuses after that end
# is gone. The bits above are the number of ends that had this slot before.
SLOT_BITS: Final = 24
SLOT_MASK: Final = (1 << SLOT_BITS) - 1

QPN_BITS: Final = 24
QPN_MASK: Final = (1 << QPN_BITS) - 1
PORT_BITS: Final = 16
PORT_MASK: Final = (1 << PORT_BITS) - 1
PSN_BITS: Final = 24
PSN_MASK: Final = (1 << PSN_BITS) - 1

SPORT_SHIFT: Final = PSN_BITS
BECN_SHIFT: Final = SPORT_SHIFT + PORT_BITS

PAYLOAD_MASK: Final = (1 << 16) - 1
OPCODE_SHIFT: Final = 16
BYTE_MASK: Final = (1 << 8) - 1  # of an opcode or a hop count
HOPS_SHIFT: Final = 24
LEFT_SHIFT: Final = HOPS_SHIFT
LEFT_MASK: Final = (1 << 7) - 1
TAG_SHIFT: Final = 32
TAG_MASK: Final = (1 << 6) - 1
CE_SHIFT: Final = 38
RETRANSMISSION_SHIFT: Final = 39
ACKREQ_SHIFT: Final = 40
FRAME_SHIFT: Final = 41
VLAN_SHIFT: Final = FRAME_SHIFT
VLAN_MASK: Final = (1 << 12) - 1
# Payload length and opcode, which follow from a packet's position in its message.
LENGTH_OPCODE_MASK: Final = (1 << HOPS_SHIFT) - 1

SYNDROME_SHIFT: Final = 24
MSN_MASK: Final = (1 << SYNDROME_SHIFT) - 1
COUNT_SHIFT: Final = 8

NO_SHIM: Final = -1  # the ticks of a data packet without shim
NO_QUANTA: Final = -1  # the quanta of a priority that is not enabled in a PFC frame

# Reasons for discarding a frame, by index; the NIC itself detects "unexpected" frames.
DISCARD_REASONS: Final = ("other", "malformed", "bad_icrc", "not_ours")

# A time that never comes.
NEVER: Final = 1 << 61

# (template_id, psn_fields, data_fields), (template_id, psn_fields, aeth) or (template_id, count, ticks)
Small = tuple[int, int, int]
# (template_id, psn_fields, data_fields, payload)
WithPayload = tuple[int, int, int, bytes]
# (RAW, frame, virtual bytes)
Raw = tuple[int, bytes, int]
Packet = Small | WithPayload | Raw
