# SPDX-License-Identifier: Apache-2.0
"""Reads a packet's headers from a frame, with or without shims, the headers that switches and NICs insert."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from tailrace.codec.layers.local import DataShim, FlowPause
from tailrace.codec.layout import HeaderLayout
from tailrace.codec.numbers import (
    LOCAL_TYPE,
    MAC_CONTROL_TYPE,
    RETRANSMISSION,
    ROCE_PORT,
    SHIM_PORT,
    Opcode,
    Subtype,
    Syndrome,
)
from tailrace.sim.job import Job
from tailrace.sim.network.transits import WireTransit

_IP = HeaderLayout("IP")
_ROCE = {
    ROCE_PORT: HeaderLayout("UDP", "BTH", "AETH"),
    SHIM_PORT: HeaderLayout("UDP", "NicShim", "BTH", "AETH"),
}
"""Layouts of headers from UDP on, by UDP destination port."""

_IHL_MASK, _WORD_BYTES = 15, 4
_ECN_MASK = 3
_DATA = frozenset({Opcode.WRITE_FIRST, Opcode.WRITE_MIDDLE, Opcode.WRITE_LAST, Opcode.WRITE_ONLY})


class Ecn(Enum):
    """The ECN field of IPv4 (RFC 3168)."""

    NOT_ECT = 0
    ECT_1 = 1
    ECT_0 = 2
    CE = 3


@dataclass(frozen=True, slots=True)
class RoceHeader:
    """Header fields of a RoCEv2 packet. `syndrome` is None without AETH. IP.id marks retransmissions."""

    src: str
    dst: str
    ecn: Ecn
    retransmitted: bool
    sport: int
    opcode: int
    qpn: int
    psn: int
    syndrome: int | None

    @property
    def is_data(self) -> bool:
        return self.opcode in _DATA

    @property
    def is_ack(self) -> bool:
        return self.opcode == Opcode.ACK and self.syndrome == Syndrome.ACK


def _number(data: bytes, layout: HeaderLayout, name: str) -> int:
    span = layout.span(name)
    return int.from_bytes(data[span.byte : span.end], "big")


def read_header(frame: bytes, ip_at: int | None) -> RoceHeader | None:
    """The headers of a frame whose IPv4 header starts at byte `ip_at`; None if it is not RoCEv2."""
    if ip_at is None:
        return None
    ip = frame[ip_at:]
    udp = ip[(ip[0] & _IHL_MASK) * _WORD_BYTES :]
    layout = _ROCE.get(int.from_bytes(udp[2:4], "big"))
    if layout is None or len(udp) < layout.start("AETH"):
        return None
    opcode = _number(udp, layout, "BTH.opcode")
    # the layout ends with AETH, because RoCEv2's trailer (ICRC) comes after the payload
    return RoceHeader(
        src=str(IPv4Address(_number(ip, _IP, "IP.src"))),
        dst=str(IPv4Address(_number(ip, _IP, "IP.dst"))),
        ecn=Ecn(_number(ip, _IP, "IP.tos") & _ECN_MASK),
        retransmitted=_number(ip, _IP, "IP.id") == RETRANSMISSION,
        sport=int.from_bytes(udp[:2], "big"),
        opcode=opcode,
        qpn=_number(udp, layout, "BTH.dqpn"),
        psn=_number(udp, layout, "BTH.psn"),
        syndrome=_number(udp, layout, "AETH.syndrome") if opcode == Opcode.ACK else None,
    )


def header_of(transit: WireTransit) -> RoceHeader | None:
    """The headers of a packet that was sent over a wire; None if it is not RoCEv2."""
    return read_header(transit.frame, transit.ip_at)


def flow_pause_op(frame: bytes, src: str, dst: str, sport: int) -> str | None:
    """The operation, such as `xoff`, of a frame that pauses this flow; None for any other frame."""
    if len(frame) < 15 or int.from_bytes(frame[12:14], "big") != LOCAL_TYPE:
        return None
    pause = Ether(frame).getlayer(FlowPause)
    if pause is None or (pause.src, pause.dst, pause.sport) != (src, dst, sport):
        return None
    return str(pause.sprintf("%FlowPause.op%"))


def shim_flags(frame: bytes) -> tuple[str, ...]:
    """The Flowcut flags that the last switch set in the frame's shim, such as `moved` and `drained`."""
    if int.from_bytes(frame[12:14], "big") != LOCAL_TYPE or frame[14] != Subtype.DATA_SHIM:
        return ()
    shim = Ether(frame).getlayer(DataShim)
    if shim is None or not shim.stack:
        return ()
    return tuple(name for name in ("moved", "drained", "untracked") if getattr(shim.stack[0], name))


class PacketNames:
    """Readable names of packets in a run."""

    def __init__(self, job: Job) -> None:
        self._flows = {(flow.src, flow.dst, flow.qpn): flow.id for flow in job.flows}

    def of(self, frame: bytes) -> str:
        """The name of a frame's packet: `flow 3, PSN 17`, `ACK of flow 3`, or its kind."""
        if not frame:
            return "a packet that was dropped later"
        ether_type = int.from_bytes(frame[12:14], "big")
        if ether_type == MAC_CONTROL_TYPE:
            return "PFC"
        layers = Ether(frame)
        ip, udp = layers.getlayer(IP), layers.getlayer(UDP)
        if ip is None or udp is None:
            return self._local(frame)
        ip_at = len(frame) - len(bytes(ip.original))
        header = read_header(frame, ip_at)
        if header is None:
            return f"UDP to port {udp.dport}"
        if header.is_data:
            flow = self._flows.get((header.src, header.dst, header.qpn))
            return f"flow {flow}, PSN {header.psn}" + (", retransmitted" if header.retransmitted else "")
        flow = self._flows.get((header.dst, header.src, header.qpn))
        return f"{'ACK' if header.opcode == Opcode.ACK else 'CNP'} of flow {flow}"

    @staticmethod
    def _local(frame: bytes) -> str:
        if int.from_bytes(frame[12:14], "big") == LOCAL_TYPE and frame[14] in list(Subtype):
            return Subtype(frame[14]).name.lower().replace("_", " ")
        return "another packet"
