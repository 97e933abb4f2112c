# SPDX-License-Identifier: Apache-2.0
"""Frames to packet calls, and packets to frames, as native/virtual does in C: for real links and tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

from tailrace.codec.builders import AckTemplate, DataTemplate, NicAckTemplate, with_vlan
from tailrace.codec.calls import (
    ACK,
    ACKREQ_SHIFT,
    BECN_SHIFT,
    BYTE_MASK,
    CE_SHIFT,
    COUNT_SHIFT,
    FRAME_SHIFT,
    HOPS_SHIFT,
    JUNK_NAMES,
    KIND_BITS,
    KIND_MASK,
    LEFT_MASK,
    LEFT_SHIFT,
    NIC_ACK,
    NOT_OURS,
    OPCODE_SHIFT,
    PAYLOAD,
    PAYLOAD_MASK,
    PORT_BITS,
    PORT_MASK,
    PSN_MASK,
    QPN_BITS,
    RAW,
    RETRANSMISSION_SHIFT,
    SPORT_SHIFT,
    SYNDROME_SHIFT,
    TAG_SHIFT,
    VLAN_MASK,
    VLAN_SHIFT,
    Packet,
    Raw,
    Small,
    WithPayload,
)
from tailrace.codec.frame import Frame
from tailrace.codec.wire import WITH_RETH, ZEROS, Ack, Cnp, Data, Junk, NicAcked, Pause, Pfc, parse

_REASONS = {junk: JUNK_NAMES.index(junk.value) for junk in Junk}


class PacketCalls(Protocol):
    """The arrival side of a NIC; see `codec.calls` for the numbers."""

    @property
    def address(self) -> int:
        """Its IPv4 address."""
        ...

    def on_data(self, now_ns: int, peer: int, place: int, shape: int, ticks: int) -> None:
        """A data packet."""
        ...

    def on_trimmed(self, now_ns: int, peer: int, place: int, shape: int) -> None:
        """A data packet whose payload a switch cut off: length 0, and the frame's length as it is now."""
        ...

    def on_ack(self, now_ns: int, peer: int, place: int, aeth: int) -> None:
        """An ACK or NAK."""
        ...

    def on_cnp(self, now_ns: int, peer: int) -> None:
        """A congestion notification packet."""
        ...

    def on_nic_ack(self, now_ns: int, flow: int, count: int, ticks: int) -> None:
        """A NIC ACK."""
        ...

    def on_flow_pause(
        self,
        now_ns: int,
        src: int,
        dst: int,
        sport: int,
        dport: int,
        protocol: int,
        op: int,
        credit_bytes: int,
    ) -> None:
        """A pause of one flow."""
        ...

    def on_pfc(self, now_ns: int, quanta: tuple[int, ...]) -> None:
        """A PFC frame."""
        ...

    def on_junk(self, now_ns: int, reason: int) -> None:
        """A frame that is of no use."""
        ...


def deliver(nic: PacketCalls, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
    """Tells a NIC of a frame, whatever it is, by exactly one call.

    Args:
        frame, virtual_bytes: as in `codec.wire.parse`.
    """
    parsed = parse(frame, virtual_bytes)
    if isinstance(parsed, Junk):
        nic.on_junk(now_ns, _REASONS[parsed])
    elif isinstance(parsed, Pfc):
        nic.on_pfc(now_ns, parsed.quanta)
    elif isinstance(parsed, Pause):
        nic.on_flow_pause(now_ns, *parsed.key, int(parsed.op), parsed.credit_bytes)
    elif parsed.dst != nic.address:
        nic.on_junk(now_ns, NOT_OURS)
    elif isinstance(parsed, NicAcked):
        count = parsed.data_bytes << COUNT_SHIFT | parsed.hops
        nic.on_nic_ack(now_ns, parsed.src << PORT_BITS | parsed.orig_sport, count, parsed.ticks)
    else:
        _deliver_roce(nic, now_ns, parsed)


def _deliver_roce(nic: PacketCalls, now_ns: int, parsed: Data | Ack | Cnp) -> None:
    peer = parsed.src << QPN_BITS | parsed.qpn
    if isinstance(parsed, Cnp):
        nic.on_cnp(now_ns, peer)
    elif isinstance(parsed, Ack):
        place = parsed.psn | parsed.sport << SPORT_SHIFT | parsed.becn << BECN_SHIFT
        nic.on_ack(now_ns, peer, place, parsed.syndrome << SYNDROME_SHIFT | parsed.msn)
    else:
        shape = (
            parsed.payload_bytes
            | parsed.opcode << OPCODE_SHIFT
            | parsed.hops << HOPS_SHIFT
            | parsed.tag << TAG_SHIFT
            | parsed.ce << CE_SHIFT
            | parsed.retransmission << RETRANSMISSION_SHIFT
            | parsed.ackreq << ACKREQ_SHIFT
            | parsed.frame_bytes << FRAME_SHIFT
        )
        place = parsed.psn | parsed.wire_sport << SPORT_SHIFT
        if parsed.trimmed:
            nic.on_trimmed(now_ns, peer, place, shape)
        else:
            nic.on_data(now_ns, peer, place, shape, parsed.ticks)


class Builder:
    """Builds a NIC's frames."""

    def __init__(self, template: Callable[[int], tuple[bytes, bytes]]) -> None:
        """Args: template: the NIC's; asked once for each end of a flow and kind of packet."""
        self._template = template
        self._data: dict[int, tuple[DataTemplate, bytes]] = {}  # with the RETH
        self._acks: dict[int, AckTemplate] = {}
        self._nic_acks: dict[int, NicAckTemplate] = {}

    def frame(self, now_ns: int, packet: Packet) -> Frame:
        """The frame of a packet that the NIC sends now."""
        what = packet[0]
        kind = what & KIND_MASK
        if what == RAW:
            _, data, virtual_bytes = cast("Raw", packet)
            return Frame(data, virtual_bytes)
        if kind == ACK:
            return Frame(self._ack(*cast("Small", packet)))
        if kind == NIC_ACK:
            return Frame(self._nic_ack(*cast("Small", packet)))
        if kind == PAYLOAD:
            return self._data_frame(now_ns, *cast("WithPayload", packet))
        return self._data_frame(now_ns, *cast("Small", packet), None)

    def _data_frame(self, now_ns: int, what: int, place: int, shape: int, payload: bytes | None) -> Frame:
        found = self._data.get(what >> KIND_BITS)
        if found is None:
            headers, reth = self._template(what)
            found = self._data[what >> KIND_BITS] = DataTemplate(headers), reth
        template, body = found
        opcode = shape >> OPCODE_SHIFT & BYTE_MASK
        if opcode not in WITH_RETH:
            body = b""
        padding = -(shape & PAYLOAD_MASK) % 4
        virtual_bytes = 0
        if payload is None:
            virtual_bytes = (shape & PAYLOAD_MASK) + padding
        else:
            body += payload + bytes(padding)
        data = template.build(
            opcode=opcode,
            psn=place & PSN_MASK,
            left=shape >> LEFT_SHIFT & LEFT_MASK,
            ackreq=bool(shape >> ACKREQ_SHIFT & 1),
            retransmission=bool(shape >> RETRANSMISSION_SHIFT & 1),
            sport=place >> SPORT_SHIFT & PORT_MASK,
            ticks=now_ns,
            body=body,
            padding=padding,
            virtual_bytes=virtual_bytes,
            zeros=ZEROS,
        )
        vlan = shape >> VLAN_SHIFT & VLAN_MASK
        return Frame(with_vlan(data, vlan) if vlan else data, virtual_bytes)

    def _ack(self, what: int, place: int, aeth: int) -> bytes:
        template = self._acks.get(what)
        if template is None:
            template = self._acks[what] = AckTemplate(self._template(what)[0])
        return template.build(
            psn=place & PSN_MASK,
            aeth=aeth,
            sport=place >> SPORT_SHIFT & PORT_MASK,
            becn=bool(place >> BECN_SHIFT),
        )

    def _nic_ack(self, what: int, count: int, ticks: int) -> bytes:
        template = self._nic_acks.get(what)
        if template is None:
            template = self._nic_acks[what] = NicAckTemplate(self._template(what)[0])
        return template.build(count=count, ticks=ticks)
