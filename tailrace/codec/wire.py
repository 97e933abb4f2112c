# SPDX-License-Identifier: Apache-2.0
"""Reads frames fast: every offset comes from the Scapy layers, and no frame whatever raises anything.

Builders are in `codec.templates`. A virtual payload is a length beside the frame: it stands for as many
zeros right before the ICRC.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple
from zlib import crc32

from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from tailrace.codec.calls import NO_QUANTA, NO_SHIM
from tailrace.codec.checksum import ICRC_BYTES, icrc_of_headers, ipv4_checksum
from tailrace.codec.layers import local, pfc
from tailrace.codec.layers.bth import AETH, BTH, RETRANSMISSION, ROCE_PORT, Opcode
from tailrace.codec.layers.dscp import DSCP_SHIFT, TRIMMED
from tailrace.codec.layers.flow_pause import FlowPause, PauseOp
from tailrace.codec.layers.local import Local, Subtype
from tailrace.codec.layers.nic_shim import ACK_PORT, SHIM_PORT, NicAck, NicShim
from tailrace.codec.layout import Layout
from tailrace.codec.templates import AETH_BYTES, NIC_ACK, PLAIN, RETH_BYTES, TTL, UDP_PROTOCOL

MAX_PAYLOAD_BYTES = 1 << 16
ZEROS = memoryview(bytes(MAX_PAYLOAD_BYTES))
CE = 3
DATA_OPCODES = (Opcode.WRITE_FIRST, Opcode.WRITE_MIDDLE, Opcode.WRITE_LAST, Opcode.WRITE_ONLY)
_OUR_PORTS = frozenset((ROCE_PORT, SHIM_PORT, ACK_PORT))


class Junk(Enum):
    """Why a frame is of no use; the names are those of the counters."""

    OTHER = "other"  # no protocol of ours
    MALFORMED = "malformed"
    BAD_ICRC = "bad_icrc"


class Data(NamedTuple):
    """A data packet. Ports are the flow's own, also when the wire had others."""

    src: int
    dst: int
    sport: int
    wire_sport: int
    qpn: int
    psn: int
    opcode: int
    payload_bytes: int  # without padding
    frame_bytes: int  # Ethernet to ICRC, virtual payload included
    hops: int
    ce: bool
    retransmission: bool
    ackreq: bool
    tag: int
    ticks: int  # of the shim; NO_SHIM: there was none
    trimmed: bool = False  # all behind the BTH was cut off; payload_bytes is 0 then


class Ack(NamedTuple):
    """An ACK or NAK."""

    src: int
    dst: int
    qpn: int
    psn: int
    syndrome: int
    msn: int
    sport: int  # echoes that of the packet which it answers
    becn: bool  # echoes that congestion was met


class Cnp(NamedTuple):
    """A congestion notification packet."""

    src: int
    dst: int
    qpn: int


class NicAcked(NamedTuple):
    """A NIC ACK (Flowcut §II-D)."""

    src: int
    dst: int
    orig_sport: int
    data_bytes: int
    hops: int
    ticks: int


class Pause(NamedTuple):
    """A pause of one flow, by its 5-tuple on the wire."""

    key: tuple[int, int, int, int, int]
    op: PauseOp
    credit_bytes: int


class Pfc(NamedTuple):
    """A PFC frame: pause time in quanta of each priority; NO_QUANTA: it does not speak of it."""

    quanta: tuple[int, ...]


Parsed = Data | Ack | Cnp | NicAcked | Pause | Pfc | Junk

_Outer = tuple[int, int, int, int, int, int, int, int, int, int, int, int]
"""Numbers of IPv4 and UDP, as `_IP_UDP` reads them."""
_Bth = tuple[int, int, int, int]
"""Numbers of the BTH: opcode, flags, and the words with the queue pair and the PSN."""

_L = PLAIN.layout
_ETHER_BYTES = _L.start("IP")
_UDP_START = _L.start("UDP")
_BTH_START = _L.start("BTH")
_ETHER_TYPE = slice(_L.span("Ether.type").byte, _L.span("Ether.type").end)
_PORTS = slice(_L.span("UDP.sport").byte, _L.span("UDP.dport").end)
_IP_LEN = slice(_L.span("IP.len").byte, _L.span("IP.len").end)
_UDP_LEN = slice(_L.span("UDP.len").byte, _L.span("UDP.len").end)
_IPV4 = 0x0800.to_bytes(2, "big")
_LOCAL = local.ETHER_TYPE.to_bytes(2, "big")
_MAC_CONTROL = pfc.ETHER_TYPE.to_bytes(2, "big")
_NO_OPTIONS = PLAIN.fill({})[_L.span("IP.version", "IP.ihl").byte]
_FRAGMENT = _L.span("IP.flags", "IP.frag")
# a fragment: more to come (the lowest of the flags) or an offset
_IS_FRAGMENT = _L.mask("IP.frag") << 1 | 1
_IP_FIELDS = ("tos", "len", "id", "ttl", "proto", "src", "dst")
_IP_UDP_LAYOUT = Layout(Ether, IP, UDP)
_IP_UDP = _IP_UDP_LAYOUT.reader(
    sorted(
        [_L.span("IP.version", "IP.ihl"), _FRAGMENT]
        + [_L.span(f"IP.{name}") for name in _IP_FIELDS]
        + [_L.span(f"UDP.{name}") for name in ("sport", "dport", "len")],
        key=lambda span: span.start,
    )
)

_BTH_LAYOUT = Layout(BTH)
_FLAGS = _BTH_LAYOUT.span("BTH.solicited", "BTH.version")
_PAD_SHIFT, _PAD_MASK = _BTH_LAYOUT.shift(_FLAGS, "BTH.padcount"), _BTH_LAYOUT.mask("BTH.padcount")
_QPN = _BTH_LAYOUT.span("BTH.fecn", "BTH.dqpn")
_QPN_MASK = _BTH_LAYOUT.mask("BTH.dqpn")
_BECN_SHIFT = _BTH_LAYOUT.shift(_QPN, "BTH.becn")
_TAG_SHIFT, _TAG_MASK = _BTH_LAYOUT.shift(_QPN, "BTH.resv6"), _BTH_LAYOUT.mask("BTH.resv6")
_PSN = _BTH_LAYOUT.span("BTH.ackreq", "BTH.psn")
_ACKREQ_SHIFT = _BTH_LAYOUT.shift(_PSN, "BTH.ackreq")
_PSN_MASK = _BTH_LAYOUT.mask("BTH.psn")
_BTH = _BTH_LAYOUT.reader([_BTH_LAYOUT.span("BTH.opcode"), _FLAGS, _QPN, _PSN])
_BTH_BYTES = _BTH_LAYOUT.size_bytes
_TRIMMED_BYTES = _BTH_START + _BTH_BYTES

_AETH_LAYOUT = Layout(AETH)
_AETH_WORD = _AETH_LAYOUT.span("AETH.syndrome", "AETH.msn")
_AETH = _AETH_LAYOUT.reader([_AETH_WORD])
_SYNDROME_SHIFT, _MSN_MASK = _AETH_LAYOUT.shift(_AETH_WORD, "AETH.syndrome"), _AETH_LAYOUT.mask("AETH.msn")

_SHIM_LAYOUT = Layout(NicShim)
_SHIM = _SHIM_LAYOUT.reader(
    [_SHIM_LAYOUT.span(f"NicShim.{name}") for name in ("orig_sport", "orig_dport", "ticks")]
)
_SHIM_BYTES = _SHIM_LAYOUT.size_bytes

_NIC_ACK_LAYOUT = Layout(NicAck)
_COUNT = _NIC_ACK_LAYOUT.span("NicAck.bytes", "NicAck.hops")
_BYTES_SHIFT, _HOPS_MASK = _NIC_ACK_LAYOUT.shift(_COUNT, "NicAck.bytes"), _NIC_ACK_LAYOUT.mask("NicAck.hops")
_NIC_ACK = _NIC_ACK_LAYOUT.reader(
    [_NIC_ACK_LAYOUT.span("NicAck.orig_sport"), _COUNT, _NIC_ACK_LAYOUT.span("NicAck.ticks")]
)

_PAUSE_LAYOUT = Layout(Ether, Local, FlowPause)
_PAUSE_FIELDS = ("src", "dst", "sport", "dport", "protocol", "op", "credit_bytes")
_PAUSE = _PAUSE_LAYOUT.reader(
    [_PAUSE_LAYOUT.span("Local.subtype")]
    + [_PAUSE_LAYOUT.span(f"FlowPause.{name}") for name in _PAUSE_FIELDS]
)
_PAUSE_OPS = {int(op): op for op in PauseOp}

_PFC_LAYOUT = Layout(Ether, MACControlClassBasedFlowControl)
_CFC = "MACControlClassBasedFlowControl"
_PFC = _PFC_LAYOUT.reader(
    [
        _PFC_LAYOUT.span(f"{_CFC}._op_code"),
        _PFC_LAYOUT.span(f"{_CFC}.c7_enabled", f"{_CFC}.c0_enabled"),
        *(_PFC_LAYOUT.span(f"{_CFC}.c{priority}_pause_time") for priority in range(pfc.PRIORITIES)),
    ]
)

WITH_RETH = (Opcode.WRITE_FIRST, Opcode.WRITE_ONLY)
_BODY_BEFORE_PAYLOAD = {int(opcode): RETH_BYTES if opcode in WITH_RETH else 0 for opcode in DATA_OPCODES}


def parse(frame: bytes, virtual_bytes: int = 0) -> Parsed:
    """What a frame says.

    Args:
        frame: from the Ethernet header on, without FCS; anything at all.
        virtual_bytes: length of the virtual payload beside it.
    """
    if len(frame) < _ETHER_BYTES:
        return Junk.MALFORMED
    ether_type = frame[_ETHER_TYPE]
    if ether_type == _IPV4:
        return _parse_ipv4(frame, virtual_bytes)
    if ether_type == _LOCAL:
        return _parse_local(frame)
    if ether_type == _MAC_CONTROL:
        return _parse_mac_control(frame)
    return Junk.OTHER


def _parse_ipv4(frame: bytes, virtual_bytes: int) -> Parsed:
    if len(frame) < _BTH_START:
        return Junk.MALFORMED
    outer: _Outer = _IP_UDP.unpack_from(frame)
    version, tos, ip_len, _, fragment, _, protocol, src, dst, _, dport, udp_len = outer
    if protocol != UDP_PROTOCOL or dport not in _OUR_PORTS:
        return Junk.OTHER
    end = _ETHER_BYTES + ip_len - virtual_bytes
    if (
        version != _NO_OPTIONS
        or fragment & _IS_FRAGMENT
        or end > len(frame)
        or udp_len != ip_len - (_UDP_START - _ETHER_BYTES)
        or int.from_bytes(frame[_ETHER_BYTES:_UDP_START], "big") % 0xFFFF
    ):
        return Junk.MALFORMED
    if dport == ACK_PORT:
        if end != NIC_ACK.layout.size_bytes:
            return Junk.MALFORMED
        orig_sport, count, ticks = _NIC_ACK.unpack_from(frame, _BTH_START)
        return NicAcked(src, dst, orig_sport, count >> _BYTES_SHIFT, count & _HOPS_MASK, ticks)
    if dport == ROCE_PORT and tos >> DSCP_SHIFT in TRIMMED:
        return _parse_trimmed(frame, outer, end, virtual_bytes)
    return _parse_roce(frame, outer, end, virtual_bytes, shimmed=dport == SHIM_PORT)


def _parse_roce(frame: bytes, outer: _Outer, end: int, virtual_bytes: int, *, shimmed: bool) -> Parsed:
    """A frame with a BTH and an ICRC, which ends at `end`."""
    start = _BTH_START + _SHIM_BYTES if shimmed else _BTH_START
    body = start + _BTH_BYTES
    payload_bytes = end - ICRC_BYTES - body + virtual_bytes
    if payload_bytes < virtual_bytes:
        return Junk.MALFORMED
    headers = restored_headers(frame) if shimmed else frame[_ETHER_BYTES:body]
    crc = crc32(memoryview(frame)[body : end - ICRC_BYTES], icrc_of_headers(headers))
    if virtual_bytes:
        crc = crc32(ZEROS[:virtual_bytes], crc)
    if crc != int.from_bytes(frame[end - ICRC_BYTES : end], "little"):
        return Junk.BAD_ICRC

    bth: _Bth = _BTH.unpack_from(frame, start)
    before = _BODY_BEFORE_PAYLOAD.get(bth[0])
    if before is None:
        return _parse_answer(frame, outer, bth, body, payload_bytes)
    payload_bytes -= before + (bth[1] >> _PAD_SHIFT & _PAD_MASK)
    if payload_bytes < 0:
        return Junk.MALFORMED
    data = _data(outer, bth, payload_bytes, end + virtual_bytes, trimmed=False)
    if shimmed:
        sport, _, ticks = _SHIM.unpack_from(frame, _BTH_START)
        return data._replace(sport=sport, ticks=ticks)
    return data


def _data(outer: _Outer, bth: _Bth, payload_bytes: int, frame_bytes: int, *, trimmed: bool) -> Data:
    """What the headers of a data packet say, a shim's left out."""
    _, tos, _, ident, _, ttl, _, src, dst, sport, _, _ = outer
    opcode, _, qpn, psn = bth
    return Data(
        src,
        dst,
        sport,
        sport,
        qpn & _QPN_MASK,
        psn & _PSN_MASK,
        opcode,
        payload_bytes,
        frame_bytes,
        TTL - ttl if ttl <= TTL else 0,
        tos & CE == CE,
        ident == RETRANSMISSION,
        bool(psn >> _ACKREQ_SHIFT),
        qpn >> _TAG_SHIFT & _TAG_MASK,
        NO_SHIM,
        trimmed,
    )


def _parse_trimmed(frame: bytes, outer: _Outer, end: int, virtual_bytes: int) -> Parsed:
    """The headers of a data packet, up to the BTH; nothing vouches for them but the IPv4 checksum."""
    if end != _TRIMMED_BYTES or virtual_bytes:
        return Junk.MALFORMED
    bth: _Bth = _BTH.unpack_from(frame, _BTH_START)
    return _data(outer, bth, 0, end, trimmed=True) if bth[0] in _BODY_BEFORE_PAYLOAD else Junk.OTHER


def _parse_answer(frame: bytes, outer: _Outer, bth: _Bth, body: int, body_bytes: int) -> Parsed:
    """A packet with a BTH, and the rest from `body` on, that is no data."""
    _, _, _, _, _, _, _, src, dst, wire_sport, _, _ = outer
    opcode, _, qpn, psn = bth
    if opcode == Opcode.CNP:
        return Cnp(src, dst, qpn & _QPN_MASK)
    if opcode != Opcode.ACK:
        return Junk.OTHER
    if body_bytes != AETH_BYTES:
        return Junk.MALFORMED
    (word,) = _AETH.unpack_from(frame, body)
    becn = bool(qpn >> _BECN_SHIFT & 1)
    syndrome, msn = word >> _SYNDROME_SHIFT, word & _MSN_MASK
    return Ack(src, dst, qpn & _QPN_MASK, psn & _PSN_MASK, syndrome, msn, wire_sport, becn)


def restored_headers(frame: bytes) -> bytes:
    """IPv4, UDP and BTH of a shimmed frame as they were before the shim, but for the IPv4 checksum."""
    headers = bytearray(frame[:_BTH_START])
    headers[_PORTS] = frame[_BTH_START : _BTH_START + _PORTS.stop - _PORTS.start]
    for length in (_IP_LEN, _UDP_LEN):
        headers[length] = max(0, int.from_bytes(headers[length], "big") - _SHIM_BYTES).to_bytes(2, "big")
    start = _BTH_START + _SHIM_BYTES
    return bytes(headers[_ETHER_BYTES:]) + frame[start : start + _BTH_BYTES]


def restore(frame: bytes) -> bytes:
    """The frame before the shim, with its original ports, from a well-formed shimmed one."""
    headers = bytearray(restored_headers(frame))
    checksum = slice(_L.span("IP.chksum").byte - _ETHER_BYTES, _L.span("IP.chksum").end - _ETHER_BYTES)
    headers[checksum] = bytes(2)
    headers[checksum] = ipv4_checksum(headers[: _UDP_START - _ETHER_BYTES]).to_bytes(2, "big")
    return frame[:_ETHER_BYTES] + bytes(headers) + frame[_BTH_START + _SHIM_BYTES + _BTH_BYTES :]


def _parse_local(frame: bytes) -> Parsed:
    if len(frame) < _PAUSE_LAYOUT.size_bytes:
        return Junk.MALFORMED
    subtype, src, dst, sport, dport, protocol, number, credit_bytes = _PAUSE.unpack_from(frame)
    if subtype != Subtype.FLOW_PAUSE:
        return Junk.OTHER
    op = _PAUSE_OPS.get(number)
    if op is None:
        return Junk.MALFORMED
    return Pause((src, dst, sport, dport, protocol), op, credit_bytes)


def _parse_mac_control(frame: bytes) -> Parsed:
    if len(frame) < _PFC_LAYOUT.size_bytes:
        return Junk.MALFORMED
    op_code, enabled, *times = _PFC.unpack_from(frame)
    if op_code != pfc.OP_CODE:
        return Junk.OTHER
    return Pfc(tuple(time if enabled >> priority & 1 else NO_QUANTA for priority, time in enumerate(times)))
