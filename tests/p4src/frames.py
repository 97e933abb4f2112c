# SPDX-License-Identifier: Apache-2.0
"""Frames for the tests of single switches, built with the layers of tailrace/codec/layers."""

from __future__ import annotations

import struct

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from tailrace.codec.layers.bth import BTH
from tailrace.codec.layers.local import DataShim, Detour, FlowcutAck, LocalHeader, Stamp
from tailrace.codec.numbers import LOCAL_TYPE, ROCE_PORT, Opcode
from tests.p4src.rig import HOST, REMOTE

HOST_MAC, GATEWAY_MAC = "02:00:0a:00:01:02", "02:00:00:00:00:fe"
Stamps = list[tuple[int, int]]
"""(ticks, in_port), the newest first."""


def roce(
    sport: int = 49152, *, src: str = HOST, dst: str = REMOTE, payload: bytes = b"payload", **fields: int
) -> Packet:
    """A RoCEv2 packet of a flow; `ttl`, `tos` go into IPv4, the rest into the BTH."""
    ip = {name: fields.pop(name) for name in ("ttl", "tos") if name in fields}
    bth = BTH(**{"opcode": int(Opcode.WRITE_MIDDLE), "dqpn": 1, "psn": 2} | fields)
    packet = Ether(src=HOST_MAC, dst=GATEWAY_MAC) / IP(src=src, dst=dst, id=0, **ip)
    return packet / UDP(sport=sport, dport=ROCE_PORT, chksum=0) / bth / Raw(payload)


MOVED, UNTRACKED = 1 << 15, 1 << 14
"""What a stamp may say beside the port."""


def stamp(ticks: int, rest: int) -> Stamp:
    """A stamp; `rest` is the 16 bits behind the ticks: the port, and flags."""
    return Stamp(struct.pack(">IH", ticks, rest))


def shimmed(frame: Packet, hops: int, stamps: Stamps) -> Packet:
    """A data frame between switches."""
    stack = [stamp(*values) for values in stamps]
    shim = LocalHeader() / DataShim(hops=hops, stack=stack)
    return Ether(src=frame.src, dst=frame.dst) / shim / frame[IP].copy()


def detoured(frame: Packet, group: int) -> Packet:
    """A frame between switches of one Dragonfly group, on its way to another one."""
    next_type = LOCAL_TYPE if LocalHeader in frame else 0x0800
    header = LocalHeader() / Detour(group=group, next_type=next_type)
    return Ether(src=frame.src, dst=frame.dst) / header / frame[Ether].payload.copy()


def ack_of(frame: Packet, hops: int, stamps: Stamps, **forged: int) -> Packet:
    """The ACK of a data frame as its host sent it; `forged` overrides fields."""
    stack = [stamp(*values) for values in stamps]
    key = {"src": frame[IP].src, "dst": frame[IP].dst, "sport": frame[UDP].sport, "dport": frame[UDP].dport}
    fields = {"bytes": len(frame), "hops": hops, "stack": stack, "protocol": 17, **key, **forged}
    return Ether(src=frame.dst, dst=frame.src) / LocalHeader() / FlowcutAck(**fields)


def shim_of(data: bytes) -> DataShim:
    """The shim of a frame that has one."""
    shim = Ether(data)[DataShim]
    assert isinstance(shim, DataShim)
    return shim


def newest_stamp(data: bytes) -> tuple[int, int]:
    """The first stamp of a frame, as `stamp` takes it."""
    ticks, rest = struct.unpack(">IH", bytes(shim_of(data).stack[0]))
    return ticks, rest
