# SPDX-License-Identifier: Apache-2.0
"""Frames of hosts and of neighbouring switches, built with the layers of tailrace/codec/layers."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from tailrace.codec.layers.bth import AETH, BTH
from tailrace.codec.layers.dscp import DSCP_SHIFT
from tailrace.codec.layers.local import PAUSE_MAC, DataShim, FlowcutAck, FlowPause, LocalHeader, Stamp
from tailrace.codec.layers.nic_shim import NicAck
from tailrace.codec.numbers import ACK_PORT, ROCE_PORT, Opcode, PauseOp, Subtype

GATEWAY_MAC = "02:00:00:00:00:fe"
UDP_PROTOCOL = 17
BTH_BYTES = 12
TAG_FACTOR, TAG_MODULUS = 13, 64  # p4src/common/egress.p4: PathTag
PAYLOAD = bytes(range(96))
TRIMMED_UDP_BYTES = len(UDP()) + BTH_BYTES
TRIMMED_IP_BYTES = len(IP()) + TRIMMED_UDP_BYTES


def mac_of(ip: str) -> str:
    """MAC address of a host: 02:00 and its IPv4 address."""
    return ":".join(f"{int(byte):02x}" for byte in ("2", "0", *ip.split(".")))


def number_of(address: str) -> int:
    """A MAC or IPv4 address as the number that a table holds."""
    if ":" in address:
        return int(address.replace(":", ""), 16)
    return int.from_bytes(bytes(map(int, address.split("."))), "big")


@dataclass(frozen=True)
class Flow:
    """A flow between two hosts; its 5-tuple with UDP."""

    src: str
    dst: str
    sport: int = 49152
    dport: int = ROCE_PORT

    def key(self) -> dict[str, str | int]:
        """The 13 bytes by which control packets name the flow."""
        return {
            "src": self.src,
            "dst": self.dst,
            "sport": self.sport,
            "dport": self.dport,
            "protocol": UDP_PROTOCOL,
        }


def roce(
    flow: Flow,
    *,
    ttl: int = 64,
    ecn: int = 0,
    dscp: int = 0,
    tag: int = 0,
    left: int = 0,
    opcode: int = Opcode.WRITE_MIDDLE,
    payload: bytes = PAYLOAD,
    dst_mac: str = GATEWAY_MAC,
) -> Packet:
    """A RoCEv2 packet of a flow; `left` and `tag` are the two reserved fields of the BTH."""
    ether = Ether(src=mac_of(flow.src), dst=dst_mac)
    ip = IP(src=flow.src, dst=flow.dst, ttl=ttl, tos=dscp << DSCP_SHIFT | ecn, flags="DF", id=0)
    bth = BTH(opcode=int(opcode), resv6=tag, resv7=left, dqpn=0x11, psn=0x1234)
    return ether / ip / UDP(sport=flow.sport, dport=flow.dport, chksum=0) / bth / Raw(payload)


def control_packets(flow: Flow) -> list[Packet]:
    """RoCE ACK, NAK, CNP, and the ACK of a Flowcut NIC."""
    nic_ack = UDP(sport=flow.sport, dport=ACK_PORT, chksum=0) / NicAck(bytes=100, hops=2, ticks=1)
    return [
        roce(flow, opcode=Opcode.ACK, payload=bytes(AETH(syndrome=0x1F, msn=1))),
        roce(flow, opcode=Opcode.ACK, payload=bytes(AETH(syndrome=0x60, msn=1))),
        roce(flow, opcode=Opcode.CNP, payload=bytes(16)),
        Ether(src=mac_of(flow.src), dst=GATEWAY_MAC) / IP(src=flow.src, dst=flow.dst) / nic_ack,
    ]


def tagged(tag: int, port: int) -> int:
    """The path tag after a hop between switches by an egress port."""
    return (tag * TAG_FACTOR + port) % TAG_MODULUS


def classed(frame: Packet, vid: int) -> Packet:
    """A frame with a VLAN tag."""
    return Ether(src=frame[Ether].src, dst=frame[Ether].dst) / Dot1Q(vlan=vid) / frame[Ether].payload.copy()


def cut(frame: Packet) -> bytes:
    """A RoCE frame that ends behind its BTH, with honest lengths; its DSCP is as it was."""
    headers = frame.copy()
    headers[IP].len, headers[UDP].len = TRIMMED_IP_BYTES, TRIMMED_UDP_BYTES
    in_front = len(headers) - len(headers[IP])
    return bytes(headers)[: in_front + TRIMMED_IP_BYTES]


MOVED, UNTRACKED, DRAINED = 1 << 15, 1 << 14, 1 << 13
"""What a stamp may say beside the port."""


def stamp(ticks: int, rest: int) -> Stamp:
    """A stamp; `rest` is the 16 bits behind the ticks: the port, and flags."""
    return Stamp(struct.pack(">IH", ticks, rest))


def shimmed(frame: Packet, hops: int, stamps: list[tuple[int, int]]) -> Packet:
    """A data frame as it travels between switches, with stamps (see `stamp`), the newest first."""
    stack = [stamp(*values) for values in stamps]
    ether = Ether(src=frame[Ether].src, dst=frame[Ether].dst)
    return ether / LocalHeader() / DataShim(hops=hops, stack=stack) / frame[Ether].payload.copy()


def flowcut_ack(
    flow: Flow,
    *,
    frame_bytes: int,
    hops: int,
    stamps: list[tuple[int, int]],
    congested: bool = False,
    **forged: int,
) -> Packet:
    """The ACK of a data frame, as the egress switch sends it. `forged` overrides fields of the ACK."""
    stack = [stamp(*values) for values in stamps]
    fields = {
        "bytes": frame_bytes,
        "hops": hops,
        "stack": stack,
        "congested": int(congested),
        **flow.key(),
        **forged,
    }
    return Ether(src=mac_of(flow.dst), dst=mac_of(flow.src)) / LocalHeader() / FlowcutAck(**fields)


def pause(flow: Flow, op: PauseOp, credit_bytes: int = 0, src_mac: str | None = None) -> Packet:
    """What the switch of the source tells the source."""
    ether = Ether(src=src_mac or mac_of(flow.dst), dst=PAUSE_MAC)
    return ether / LocalHeader() / FlowPause(op=int(op), credit_bytes=credit_bytes, **flow.key())


__all__ = [
    "GATEWAY_MAC",
    "PAYLOAD",
    "Flow",
    "LocalHeader",
    "PauseOp",
    "Subtype",
    "classed",
    "control_packets",
    "cut",
    "flowcut_ack",
    "mac_of",
    "number_of",
    "pause",
    "roce",
    "shimmed",
    "tagged",
]
