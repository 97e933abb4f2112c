# SPDX-License-Identifier: Apache-2.0
"""How a NIC and whoever owns its wire speak of packets: few numbers, each with several fields.

The port in C (`codec.nic`) reads frames and builds them for whoever owns the wire; the NIC only decides. One
call per arriving frame, one per frame to send, and nothing but numbers in between:

    template_id  handle << KIND_BITS | kind              which end of which flow, and what kind of packet
    peer         IPv4 address << QPN_BITS | queue pair   the other end, and the queue pair in the BTH
    flow         IPv4 address << PORT_BITS | port        of a NIC ACK: its sender, the flow's own source port
    psn_fields   BECN << 40 | UDP source port << 24 | PSN
    data_fields  of a data packet, from bit 0 on:

        bits    16        8       8 (7)      6    1       1          1       17
            payload bytes opcode hops (left) tag  CE retransmission ackreq frame bytes

           hops, tag, CE and frame bytes are an arriving packet's; a departing one has `left` instead of hops,
           and the VLAN ID of its tag (12 bits; 0: no tag) instead of frame bytes
    aeth         syndrome << SYNDROME_SHIFT | MSN
    count        of a NIC ACK: bytes of all its frames << COUNT_SHIFT | hops

All of them are below 2^62, so that compiled code holds them in a register.
"""

from __future__ import annotations

from typing import Final

# What a departing packet is. RAW stands alone: its `template_id` is 0, and a frame's bytes follow.
KIND_BITS: Final = 3
KIND_MASK: Final = (1 << KIND_BITS) - 1
RAW: Final = 0
DATA: Final = 1  # with a virtual payload
PAYLOAD: Final = 2  # data with its payload
ACK: Final = 3
NIC_ACK: Final = 4

# A handle's low bits are a place at its NIC, which an end has while it is there; those above them count the
# ends that had that place before.
PLACE_BITS: Final = 24
PLACE_MASK: Final = (1 << PLACE_BITS) - 1

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
BYTE_MASK: Final = (1 << 8) - 1  # an opcode, a hop count
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
# Payload length and opcode: what a packet's number decides.
LENGTH_OPCODE_MASK: Final = (1 << HOPS_SHIFT) - 1

SYNDROME_SHIFT: Final = 24
MSN_MASK: Final = (1 << SYNDROME_SHIFT) - 1
COUNT_SHIFT: Final = 8

NO_SHIM: Final = -1  # the ticks of a data packet without shim
NO_QUANTA: Final = -1  # the quanta of a priority that a PFC frame does not speak of

# Why a frame is discarded, by number; the NIC itself finds "unexpected" frames.
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
