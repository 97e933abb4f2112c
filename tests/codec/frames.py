# SPDX-License-Identifier: Apache-2.0
"""Frames as tests look at them: what each says, read by the codec in C, which test_codec compares with Scapy."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from tailrace.codec import calls
from tailrace.codec.nic import NicPort, port
from tailrace.codec.numbers import PauseOp

_DST = slice(30, 34)
_OWN_SPORT = slice(42, 44)


class Frame(NamedTuple):
    """Bytes from the Ethernet header on, without FCS, and the length of a payload that is only counted."""

    data: bytes
    virtual_bytes: int = 0

    @property
    def length_bytes(self) -> int:
        return len(self.data) + self.virtual_bytes


class Junk(Enum):
    """Why a frame is of no use; the names are those of the counters."""

    OTHER = "other"
    MALFORMED = "malformed"
    BAD_ICRC = "bad_icrc"


class Data(NamedTuple):
    """A data packet. Its port is the flow's own, also when the wire had another."""

    src: int
    dst: int
    sport: int
    wire_sport: int
    qpn: int
    psn: int
    opcode: int
    payload_bytes: int
    frame_bytes: int
    hops: int
    ce: bool
    retransmission: bool
    ackreq: bool
    tag: int
    ticks: int
    trimmed: bool = False


class Ack(NamedTuple):
    """An ACK or NAK."""

    src: int
    dst: int
    qpn: int
    psn: int
    syndrome: int
    msn: int
    sport: int
    becn: bool


class Cnp(NamedTuple):
    """A congestion notification packet."""

    src: int
    dst: int
    qpn: int


class NicAcked(NamedTuple):
    """A NIC ACK."""

    src: int
    dst: int
    orig_sport: int
    data_bytes: int
    hops: int
    ticks: int


class Pause(NamedTuple):
    """A pause of one flow, by its 5-tuple on the wire."""

    key: tuple[int, ...]
    op: PauseOp
    credit_bytes: int


class Pfc(NamedTuple):
    """A PFC frame: quanta of each priority."""

    quanta: tuple[int, ...]


Parsed = Data | Ack | Cnp | NicAcked | Pause | Pfc | Junk


class _Reader:
    """A NIC that notes what it is told."""

    idle = True

    def __init__(self, address: int) -> None:
        self.address = address
        self.said: list[Parsed] = []

    def on_data(self, now_ns: int, peer: int, psn_fields: int, data_fields: int, ticks: int) -> None:
        src, qpn = divmod(peer, 1 << calls.QPN_BITS)
        sport = psn_fields >> calls.SPORT_SHIFT
        self.said.append(
            Data(
                src,
                self.address,
                sport,
                sport,
                qpn,
                psn_fields & calls.PSN_MASK,
                data_fields >> calls.OPCODE_SHIFT & calls.BYTE_MASK,
                data_fields & calls.PAYLOAD_MASK,
                data_fields >> calls.FRAME_SHIFT,
                data_fields >> calls.HOPS_SHIFT & calls.BYTE_MASK,
                bool(data_fields >> calls.CE_SHIFT & 1),
                bool(data_fields >> calls.RETRANSMISSION_SHIFT & 1),
                bool(data_fields >> calls.ACKREQ_SHIFT & 1),
                data_fields >> calls.TAG_SHIFT & calls.TAG_MASK,
                ticks,
            )
        )

    def on_trimmed(self, now_ns: int, peer: int, psn_fields: int, data_fields: int) -> None:
        self.on_data(now_ns, peer, psn_fields, data_fields, calls.NO_SHIM)
        data = self.said.pop()
        assert isinstance(data, Data)
        self.said.append(data._replace(trimmed=True))

    def on_ack(self, now_ns: int, peer: int, psn_fields: int, aeth: int) -> None:
        src, qpn = divmod(peer, 1 << calls.QPN_BITS)
        syndrome, msn = divmod(aeth, 1 << calls.SYNDROME_SHIFT)
        sport, becn = psn_fields >> calls.SPORT_SHIFT & calls.PORT_MASK, bool(psn_fields >> calls.BECN_SHIFT)
        self.said.append(Ack(src, self.address, qpn, psn_fields & calls.PSN_MASK, syndrome, msn, sport, becn))

    def on_cnp(self, now_ns: int, peer: int) -> None:
        src, qpn = divmod(peer, 1 << calls.QPN_BITS)
        self.said.append(Cnp(src, self.address, qpn))

    def on_nic_ack(self, now_ns: int, flow: int, count: int, ticks: int) -> None:
        src, orig_sport = divmod(flow, 1 << calls.PORT_BITS)
        data_bytes, hops = divmod(count, 1 << calls.COUNT_SHIFT)
        self.said.append(NicAcked(src, self.address, orig_sport, data_bytes, hops, ticks))

    def on_flow_pause(self, now_ns: int, *numbers: int) -> None:
        *key, op, credit_bytes = numbers
        self.said.append(Pause(tuple(key), PauseOp(op), credit_bytes))

    def on_pfc(self, now_ns: int, quanta: Sequence[int]) -> None:
        self.said.append(Pfc(tuple(quanta)))

    def on_discard(self, now_ns: int, reason: int) -> None:
        self.said.append(Junk(calls.DISCARD_REASONS[reason]))

    def next_packet(self, now_ns: int) -> None:
        raise AssertionError("a reader is not asked")

    def template(self, template_id: int) -> tuple[bytes, bytes]:
        raise AssertionError("a reader is not asked")


@functools.lru_cache(maxsize=64)
def _reader(address: int) -> tuple[_Reader, NicPort]:
    reader = _Reader(address)
    return reader, port(reader)


def parse(frame: bytes, virtual_bytes: int = 0) -> Parsed:
    """What a frame says to the host that it is for."""
    reader, its_port = _reader(int.from_bytes(frame[_DST], "big"))
    its_port.arrive(0, frame, virtual_bytes)
    said = reader.said.pop()
    if isinstance(said, Data) and said.ticks != calls.NO_SHIM:
        return said._replace(sport=int.from_bytes(frame[_OWN_SPORT], "big"))
    return said


class _Sender:
    """A NIC that sends one packet."""

    idle = True

    def __init__(self, packet: calls.Packet, template: tuple[bytes, bytes]) -> None:
        self._packet, self._template = packet, template

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        raise AssertionError("nothing arrives")

    def next_packet(self, now_ns: int) -> calls.Packet:
        return self._packet

    def template(self, template_id: int) -> tuple[bytes, bytes]:
        return self._template


def build(packet: calls.Packet, template: tuple[bytes, bytes] = (b"", b""), now_ns: int = 0) -> Frame:
    """The frame of a packet that a NIC sends."""
    sent = port(_Sender(packet, template)).depart(now_ns)
    assert isinstance(sent, tuple)
    return Frame(*sent)
