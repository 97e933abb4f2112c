# SPDX-License-Identifier: Apache-2.0
"""Builds frames fast: headers are made once by Scapy, and only what changes is written per packet.

`hosts.wire` reads what is built here. tests/hosts compares both with Scapy byte by byte.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from hosts.checksum import ICRC_BYTES, icrc_of_headers, ipv4_checksum
from hosts.layout import Layout
from hosts.packets.bth import AETH, BTH, FIRST_TRANSMISSION, RETRANSMISSION, ROCE_PORT, Opcode
from hosts.packets.nic_shim import ACK_PORT, SHIM_PORT, NicAck, NicShim
from hosts.packets.reth import RETH

TTL = 64
ECT_0 = 2
NO_ECT = 0


class Stack:
    """A stack of fixed headers: its layout, and its bytes as Scapy builds them with nothing set."""

    def __init__(self, *layers: type[Packet]) -> None:
        """Reads the layers, outermost first, down from Ethernet, IPv4 and UDP."""
        self.layout = Layout(*layers)
        packet: Packet = Ether(src="00:00:00:00:00:00", dst="00:00:00:00:00:00") / IP(
            src="127.0.0.1", dst="127.0.0.1", ttl=TTL, flags="DF", id=0
        )
        # given checksums, or Scapy would compute them of nothing
        given: dict[type[Packet], dict[str, Any]] = {UDP: {"chksum": 0}, BTH: {"icrc": 0}}
        for layer in layers[2:]:
            packet /= layer(**given.get(layer, {}))
        self._base = bytes(packet)[: self.layout.size_bytes]

    def fill(self, values: Mapping[str, int]) -> bytearray:
        """The headers with these fields ("LAYER.field") and the IPv4 checksum set."""
        headers = bytearray(self._base)
        values = {**values, "IP.chksum": 0}
        for name, value in values.items():
            self.layout.put(headers, name, value)
        checksum = ipv4_checksum(headers[self.layout.start("IP") : self.layout.start("UDP")])
        self.layout.put(headers, "IP.chksum", checksum)
        return headers


PLAIN = Stack(Ether, IP, UDP, BTH)
SHIMMED = Stack(Ether, IP, UDP, NicShim, BTH)
NIC_ACK = Stack(Ether, IP, UDP, NicAck)

_IP_START = PLAIN.layout.start("IP")
_UDP_START = PLAIN.layout.start("UDP")
# The BTH's first words are the same for all packets of a shape, the last one holds the PSN.
_PSN_SPAN = PLAIN.layout.span("BTH.ackreq", "BTH.psn")
_ACKREQ_SHIFT = PLAIN.layout.shift(_PSN_SPAN, "BTH.ackreq")
_LEFT_SHIFT = PLAIN.layout.shift(_PSN_SPAN, "BTH.resv7")
_PSN_WORD = struct.Struct(">I")
_TICKS = SHIMMED.layout.span("NicShim.ticks")
_SHIMMED_BTH_START = SHIMMED.layout.start("BTH")
_SHIMMED_PSN = SHIMMED.layout.span("BTH.ackreq", "BTH.psn")
_TICKS_MASK = SHIMMED.layout.mask("NicShim.ticks")

_RETH = Layout(RETH)
_AETH = Layout(AETH)
# What a data packet is longer than its payload, Ethernet to ICRC, without the RETH of a first one.
DATA_OVERHEAD_BYTES = PLAIN.layout.size_bytes + ICRC_BYTES
SHIM_BYTES = SHIMMED.layout.size_bytes - PLAIN.layout.size_bytes
RETH_BYTES = _RETH.size_bytes
AETH_BYTES = _AETH.size_bytes
_AETH_WORD = _AETH.span("AETH.syndrome", "AETH.msn")
_SYNDROME_SHIFT = _AETH.shift(_AETH_WORD, "AETH.syndrome")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a NIC's frames go: MAC addresses in colon form, IPv4 addresses in dotted form."""

    src_mac: str
    dst_mac: str
    src: str
    dst: str

    def fields(self, sport: int, dport: int) -> dict[str, int]:
        """The fields of Ethernet, IPv4 and UDP that these addresses and ports decide."""
        return {
            "Ether.src": mac_number(self.src_mac),
            "Ether.dst": mac_number(self.dst_mac),
            "IP.src": ip_number(self.src),
            "IP.dst": ip_number(self.dst),
            "UDP.sport": sport,
            "UDP.dport": dport,
        }


def ip_number(address: str) -> int:
    """An IPv4 address in dotted form as a number; OSError if it is none."""
    return int.from_bytes(socket.inet_aton(address), "big")


def mac_number(address: str) -> int:
    """A MAC address in colon form as a number; ValueError if it is none."""
    return int(address.replace(":", ""), 16)


def _lengths(stack: Stack, body_bytes: int) -> dict[str, int]:
    """IPv4 and UDP lengths of a frame with `body_bytes` after the stack's headers."""
    total = stack.layout.size_bytes + body_bytes
    return {"IP.len": total - _IP_START, "UDP.len": total - _UDP_START}


def reth(length_bytes: int) -> bytes:
    """The RETH of a message of this length, at address 0."""
    buffer = bytearray(_RETH.size_bytes)
    _RETH.put(buffer, "RETH.length", length_bytes)
    return bytes(buffer)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The unchanging parts of packets with one opcode, length and attempt.

    before: up to the ticks of the shim, or to the PSN's word; middle: from there to the PSN's word.
    """

    before: bytes
    middle: bytes
    crc: int


class DataTemplate:
    """Builds the data packets of one flow."""

    def __init__(self, address: Address, *, sport: int, qpn: int, ecn: bool, shimmed: bool) -> None:
        """Args:
        sport: the flow's own UDP source port.
        qpn: queue pair of the receiver.
        ecn: sent as ECT(0).
        shimmed: with the shim of NIC-only Flowcut.
        """
        self._address = address
        self._orig_sport = sport
        self._wire_sport = sport
        self._qpn = qpn
        self._tos = ECT_0 if ecn else NO_ECT
        self._shimmed = shimmed
        self._shapes: dict[tuple[int, int, bool], _Shape] = {}
        self.overhead_bytes = DATA_OVERHEAD_BYTES + (SHIM_BYTES if shimmed else 0)

    @property
    def wire_sport(self) -> int:
        """The source port that packets are sent with."""
        return self._wire_sport

    def set_wire_sport(self, sport: int) -> None:
        """Sends from now on with another source port; only for shimmed flows."""
        self._wire_sport = sport
        self._shapes.clear()

    def build(
        self,
        *,
        opcode: int,
        psn: int,
        left: int,
        ackreq: bool,
        retransmission: bool,
        ticks: int,
        body: bytes,
        padding: int,
        virtual_bytes: int,
        zeros: bytes | memoryview,
    ) -> bytes:
        """One frame.

        Args:
            psn, left, ackreq: the last word of the BTH (left: resv7).
            ticks: the clock for the shim; ignored without one.
            body: RETH if the opcode has one, then the payload with its padding, unless that is virtual.
            padding: padding bytes at the end of the payload, 0..3.
            virtual_bytes: length of a virtual payload with its padding; 0 if it is real.
            zeros: at least as many zeros, which a virtual payload stands for.
        """
        size = len(body) + virtual_bytes
        shape = self._shapes.get((opcode, size, retransmission))
        if shape is None:
            shape = self._shape(opcode, size, retransmission, padding)
        word = _PSN_WORD.pack(ackreq << _ACKREQ_SHIFT | left << _LEFT_SHIFT | psn)
        crc = crc32(body, crc32(word, shape.crc))
        if virtual_bytes:
            crc = crc32(zeros[:virtual_bytes], crc)
        icrc = crc.to_bytes(ICRC_BYTES, "little")
        if self._shimmed:
            stamp = _PSN_WORD.pack(ticks & _TICKS_MASK)
            return b"".join((shape.before, stamp, shape.middle, word, body, icrc))
        return b"".join((shape.before, word, body, icrc))

    def _shape(self, opcode: int, size: int, retransmission: bool, padding: int) -> _Shape:
        common = {
            "IP.tos": self._tos,
            "IP.id": RETRANSMISSION if retransmission else FIRST_TRANSMISSION,
            "BTH.opcode": opcode,
            "BTH.padcount": padding,
            "BTH.dqpn": self._qpn,
        }
        fields = self._address.fields(self._orig_sport, ROCE_PORT)
        plain = PLAIN.fill({**fields, **common, **_lengths(PLAIN, size + ICRC_BYTES)})
        crc = icrc_of_headers(plain[_IP_START : _PSN_SPAN.byte])
        if self._shimmed:
            fields = self._address.fields(self._wire_sport, SHIM_PORT)
            fields |= {"NicShim.orig_sport": self._orig_sport, "NicShim.orig_dport": ROCE_PORT}
            wire = SHIMMED.fill({**fields, **common, **_lengths(SHIMMED, size + ICRC_BYTES)})
            middle = bytes(wire[_SHIMMED_BTH_START : _SHIMMED_PSN.byte])
            shape = _Shape(bytes(wire[: _TICKS.byte]), middle, crc)
        else:
            shape = _Shape(bytes(plain[: _PSN_SPAN.byte]), b"", crc)
        self._shapes[opcode, size, retransmission] = shape
        return shape


class AckTemplate:
    """Builds the acknowledgments of one flow."""

    def __init__(self, address: Address, *, sport: int, qpn: int) -> None:
        """Args:
        address: from the receiver to the flow's source.
        sport: UDP source port of the acknowledgments.
        qpn: queue pair at the flow's source.
        """
        headers = PLAIN.fill(
            {
                **address.fields(sport, ROCE_PORT),
                **_lengths(PLAIN, AETH_BYTES + ICRC_BYTES),
                "BTH.opcode": int(Opcode.ACK),
                "BTH.dqpn": qpn,
            }
        )
        self._before = bytes(headers[: _PSN_SPAN.byte])
        self._crc = icrc_of_headers(headers[_IP_START : _PSN_SPAN.byte])

    def build(self, *, psn: int, syndrome: int, msn: int) -> bytes:
        """An ACK or, by its syndrome, a NAK; psn and msn below 2^24."""
        words = _PSN_WORD.pack(psn) + _PSN_WORD.pack(syndrome << _SYNDROME_SHIFT | msn)
        return b"".join((self._before, words, crc32(words, self._crc).to_bytes(ICRC_BYTES, "little")))


class NicAckTemplate:
    """Builds the NIC ACKs of one flow (Flowcut §II-D)."""

    def __init__(self, address: Address, *, sport: int, orig_sport: int, orig_dport: int) -> None:
        """Args:
        address: from the receiver to the flow's source.
        sport: UDP source port of the NIC ACKs.
        orig_sport, orig_dport: the data flow's own ports.
        """
        layout = NIC_ACK.layout
        headers = NIC_ACK.fill(
            {
                **address.fields(sport, ACK_PORT),
                **_lengths(NIC_ACK, 0),
                "NicAck.orig_sport": orig_sport,
                "NicAck.orig_dport": orig_dport,
            }
        )
        counted = layout.span("NicAck.bytes", "NicAck.hops")
        self._before = bytes(headers[: counted.byte])
        self._hops_shift = layout.shift(counted, "NicAck.hops")
        self._bytes_shift = layout.shift(counted, "NicAck.bytes")

    def build(self, *, data_bytes: int, hops: int, ticks: int) -> bytes:
        """The NIC ACK of a data frame of this length that crossed so many hops and carried these ticks."""
        counted = data_bytes << self._bytes_shift | hops << self._hops_shift
        return self._before + _PSN_WORD.pack(counted) + _PSN_WORD.pack(ticks)
