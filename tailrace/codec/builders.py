# SPDX-License-Identifier: Apache-2.0
"""Builds frames fast: of headers that were made once (`codec.templates`), only what changes is written.

`codec.wire` reads what is built here. tests/hosts compares both with Scapy byte by byte.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from zlib import crc32

from tailrace.codec.checksum import ICRC_BYTES, icrc_of_headers
from tailrace.codec.layers.bth import FIRST_TRANSMISSION, RETRANSMISSION
from tailrace.codec.layers.vlan import ETHER_TYPE
from tailrace.codec.templates import NIC_ACK, PLAIN, SHIMMED, lengths

_IP_START = PLAIN.layout.start("IP")
_PORTS = PLAIN.layout.span("UDP.sport", "UDP.dport")
_SPORT = PLAIN.layout.span("UDP.sport")
# The BTH's first words are the same for all packets of a shape, the last one holds the PSN.
_PSN_SPAN = PLAIN.layout.span("BTH.ackreq", "BTH.psn")
_ACKREQ_SHIFT = PLAIN.layout.shift(_PSN_SPAN, "BTH.ackreq")
_LEFT_SHIFT = PLAIN.layout.shift(_PSN_SPAN, "BTH.resv7")
_PSN_WORD = struct.Struct(">I")
_TICKS = SHIMMED.layout.span("NicShim.ticks")
_SHIM_START = SHIMMED.layout.start("NicShim")
_SHIMMED_BTH_START = SHIMMED.layout.start("BTH")
_SHIMMED_PSN = SHIMMED.layout.span("BTH.ackreq", "BTH.psn")
_TICKS_MASK = SHIMMED.layout.mask("NicShim.ticks")
_ECN_BITS = PLAIN.layout.span("BTH.fecn", "BTH.resv6")
_BECN_SHIFT = PLAIN.layout.shift(_ECN_BITS, "BTH.becn")
# A VLAN tag stands in front of the EtherType.
_TAG_AT = PLAIN.layout.span("Ether.type").byte
_TAG_TYPE = ETHER_TYPE.to_bytes(2, "big")


@dataclass(frozen=True, slots=True)
class _Shape:
    """The unchanging parts of packets with one opcode, length, attempt and source port.

    before: up to the ticks of the shim, or to the PSN's word; middle: from there to the PSN's word.
    """

    before: bytes
    middle: bytes
    crc: int


# A flow that keeps changing its source port makes shapes that it never needs again.
_MOST_SHAPES = 64


class DataTemplate:
    """Builds the data packets of one flow."""

    def __init__(self, headers: bytes) -> None:
        """Args: headers: see `data_headers`."""
        self._headers = headers
        self._shimmed = len(headers) == SHIMMED.layout.size_bytes
        self._shapes: dict[tuple[int, int, bool, int], _Shape] = {}

    def build(
        self,
        *,
        opcode: int,
        psn: int,
        left: int,
        ackreq: bool,
        retransmission: bool,
        sport: int,
        ticks: int,
        body: bytes,
        padding: int,
        virtual_bytes: int,
        zeros: bytes | memoryview,
    ) -> bytes:
        """One frame.

        Args:
            psn, left, ackreq: the last word of the BTH (left: resv7).
            sport: UDP source port on the wire.
            ticks: the clock for the shim; ignored without one.
            body: RETH if the opcode has one, then the payload with its padding, unless that is virtual.
            padding: padding bytes at the end of the payload, 0..3.
            virtual_bytes: length of a virtual payload with its padding; 0 if it is real.
            zeros: at least as many zeros, which a virtual payload stands for.
        """
        size = len(body) + virtual_bytes
        shape = self._shapes.get((opcode, size, retransmission, sport))
        if shape is None:
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            shape = self._shape(opcode, size, retransmission, sport, padding)
            self._shapes[opcode, size, retransmission, sport] = shape
        word = _PSN_WORD.pack(ackreq << _ACKREQ_SHIFT | left << _LEFT_SHIFT | psn)
        crc = crc32(body, crc32(word, shape.crc))
        if virtual_bytes:
            crc = crc32(zeros[:virtual_bytes], crc)
        icrc = crc.to_bytes(ICRC_BYTES, "little")
        if self._shimmed:
            stamp = _PSN_WORD.pack(ticks & _TICKS_MASK)
            return b"".join((shape.before, stamp, shape.middle, word, body, icrc))
        return b"".join((shape.before, word, body, icrc))

    def _shape(self, opcode: int, size: int, retransmission: bool, sport: int, padding: int) -> _Shape:
        stack = SHIMMED if self._shimmed else PLAIN
        wire = stack.refill(
            self._headers,
            {
                **lengths(stack, size + ICRC_BYTES),
                "IP.id": RETRANSMISSION if retransmission else FIRST_TRANSMISSION,
                "UDP.sport": sport,
                "BTH.opcode": opcode,
                "BTH.padcount": padding,
            },
        )
        if not self._shimmed:
            return _Shape(
                bytes(wire[: _PSN_SPAN.byte]), b"", icrc_of_headers(wire[_IP_START : _PSN_SPAN.byte])
            )
        # the ICRC is that of the packet without shim
        plain = wire[:_SHIM_START] + wire[_SHIMMED_BTH_START : _SHIMMED_PSN.byte]
        plain[_PORTS.byte : _PORTS.end] = wire[_SHIM_START : _TICKS.byte]
        for name, value in lengths(PLAIN, size + ICRC_BYTES).items():
            PLAIN.layout.put(plain, name, value)
        middle = bytes(wire[_SHIMMED_BTH_START : _SHIMMED_PSN.byte])
        return _Shape(bytes(wire[: _TICKS.byte]), middle, icrc_of_headers(plain[_IP_START:]))


class AckTemplate:
    """Builds the acknowledgments of one flow."""

    def __init__(self, headers: bytes) -> None:
        """Args: headers: see `ack_headers`."""
        self._headers = bytearray(headers[: _PSN_SPAN.byte])
        self._crcs: dict[int, int] = {}

    def build(self, *, psn: int, aeth: int, sport: int, becn: bool) -> bytes:
        """An ACK or, by its syndrome, a NAK.

        Args:
            psn: below 2^24.
            aeth: syndrome, and MSN below 2^24, as in the AETH's word.
            sport: UDP source port.
            becn: echoes that congestion was met.
        """
        headers = self._headers
        headers[_SPORT.byte : _SPORT.end] = sport.to_bytes(2, "big")
        headers[_ECN_BITS.byte] = becn << _BECN_SHIFT
        crc = self._crcs.get(sport)
        if crc is None:
            if len(self._crcs) >= _MOST_SHAPES:
                self._crcs.clear()
            crc = self._crcs[sport] = icrc_of_headers(headers[_IP_START:])
        words = _PSN_WORD.pack(psn) + _PSN_WORD.pack(aeth)
        return b"".join((headers, words, crc32(words, crc).to_bytes(ICRC_BYTES, "little")))


def with_vlan(frame: bytes, vlan: int) -> bytes:
    """The frame with an 802.1Q tag of this VLAN ID, 1..4095, and priority 0; no CRC of RoCE covers it."""
    return b"".join((frame[:_TAG_AT], _TAG_TYPE, vlan.to_bytes(2, "big"), frame[_TAG_AT:]))


class NicAckTemplate:
    """Builds the NIC ACKs of one flow (Flowcut §II-D)."""

    def __init__(self, headers: bytes) -> None:
        """Args: headers: see `nic_ack_headers`."""
        self._before = headers[: NIC_ACK.layout.span("NicAck.bytes").byte]

    def build(self, *, count: int, ticks: int) -> bytes:
        """The NIC ACK of a data frame that carried these ticks; count: its length and hops, as one word."""
        return self._before + _PSN_WORD.pack(count) + _PSN_WORD.pack(ticks)
