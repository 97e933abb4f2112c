# SPDX-License-Identifier: Apache-2.0
"""What frames are and say, by Scapy's layers alone: the oracle of the codec in C."""

from __future__ import annotations

from zlib import crc32

from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import checksum

from tailrace.codec import calls
from tailrace.codec.layers.bth import AETH, BTH, RETH
from tailrace.codec.layers.dscp import DSCP_SHIFT, TRIMMED
from tailrace.codec.layers.local import FlowPause, LocalHeader
from tailrace.codec.layers.nic_shim import NicAck, NicShim, ShimmedBTH
from tailrace.codec.numbers import LOCAL_TYPE, Opcode, PauseOp, Subtype
from tailrace.codec.templates import HostAddress, ip_number
from tests.codec.frames import Frame

ETHER, IPV4, UDP_BYTES, BTH_BYTES, ICRC, TTL = 14, 20, 8, 12, 4, 64
ROCE, SHIM, NIC_ACK = 4791, 4793, 4794
PFC_BYTES = 2 + 2 + 8 * 2  # operation, enabled priorities, their times
HEADERS = ETHER + IPV4 + UDP_BYTES
DATA = (Opcode.WRITE_FIRST, Opcode.WRITE_MIDDLE, Opcode.WRITE_LAST, Opcode.WRITE_ONLY)
WITH_RETH = (Opcode.WRITE_FIRST, Opcode.WRITE_ONLY)


# ---- building ----


def outer(address: HostAddress, *, tos: int, sport: int, dport: int, ident: int = 0) -> Packet:
    """Ethernet, IPv4 and UDP as NICs send them."""
    ip = IP(src=address.src, dst=address.dst, ttl=TTL, flags="DF", id=ident, tos=tos)
    return Ether(src=address.src_mac, dst=address.dst_mac) / ip / UDP(sport=sport, dport=dport, chksum=0)


def data_frame(
    address: HostAddress,
    packet: calls.Small | calls.WithPayload,
    now_ns: int,
    *,
    sport: int,
    qpn: int,
    ecn: bool,
    dscp: int,
    shimmed: bool,
    length_bytes: int,
) -> Frame:
    """A data packet by its numbers; with virtual payload the real zeros are taken out again."""
    _, psn_fields, data_fields = packet[:3]
    payload_bytes = data_fields % 2**16
    payload = packet[3] if len(packet) == 4 else bytes(payload_bytes)
    padding = -payload_bytes % 4
    opcode = data_fields >> 16 & 0xFF
    bth = {
        "opcode": opcode,
        "padcount": padding,
        "dqpn": qpn,
        "ackreq": data_fields >> 40 & 1,
        "resv7": data_fields >> 24 & 0x7F,
        "psn": psn_fields % 2**24,
    }
    dport = SHIM if shimmed else ROCE
    tos = dscp << DSCP_SHIFT | 2 * ecn
    made = outer(address, tos=tos, sport=psn_fields >> 24 & 0xFFFF, dport=dport, ident=data_fields >> 39 & 1)
    if shimmed:
        made /= NicShim(orig_sport=sport, orig_dport=ROCE, ticks=now_ns % 2**32) / ShimmedBTH(**bth)
    else:
        made /= BTH(**bth)
    if opcode in WITH_RETH:
        made /= RETH(length=length_bytes)
    data = bytes(made / Raw(payload + bytes(padding)))
    virtual_bytes = 0 if len(packet) == 4 else payload_bytes + padding
    end = len(data) - ICRC
    data = data[: end - virtual_bytes] + data[end:]
    vlan = data_fields >> 41 & 0xFFF
    if vlan:
        tag = Ether(src=address.src_mac, dst=address.dst_mac) / Dot1Q(vlan=vlan, type=0x0800)
        data = bytes(tag) + data[ETHER:]
    return Frame(data, virtual_bytes)


def ack_frame(address: HostAddress, packet: calls.Small, *, qpn: int, dscp: int) -> Frame:
    """An ACK or NAK by its numbers."""
    _, psn_fields, aeth = packet
    made = outer(address, tos=dscp << DSCP_SHIFT, sport=psn_fields >> 24 & 0xFFFF, dport=ROCE)
    made /= BTH(opcode=int(Opcode.ACK), dqpn=qpn, psn=psn_fields % 2**24, becn=psn_fields >> 40)
    return Frame(bytes(made / AETH(syndrome=aeth >> 24, msn=aeth % 2**24)))


def nic_ack_frame(address: HostAddress, packet: calls.Small, *, sport: int, orig_sport: int) -> Frame:
    """A NIC ACK by its numbers."""
    _, count, ticks = packet
    made = outer(address, tos=0, sport=sport, dport=NIC_ACK)
    made /= NicAck(orig_sport=orig_sport, orig_dport=ROCE, bytes=count >> 8, hops=count & 0xFF, ticks=ticks)
    return Frame(bytes(made))


def restored(shimmed: bytes) -> bytes:
    """The frame without its shim, with the flow's own ports: what the far end works with."""
    packet = Ether(shimmed)
    shim, ip, udp = packet[NicShim], packet[IP].copy(), packet[UDP].copy()
    ip.remove_payload()
    udp.remove_payload()
    udp.sport, udp.dport, udp.len = shim.orig_sport, shim.orig_dport, udp.len - len(NicShim())
    ip.len, ip.chksum = ip.len - len(NicShim()), None
    rest = shimmed[HEADERS + len(NicShim()) :]
    return shimmed[:ETHER] + bytes(ip) + bytes(udp) + rest


# ---- reading ----

Call = tuple[object, ...]


def call_of(frame: bytes, virtual_bytes: int, now_ns: int, address: str) -> Call:
    """The call that a NIC with this address gets: its name without on_, the time, and its numbers."""
    name, *rest = _call_of(frame, virtual_bytes, ip_number(address))
    return name, now_ns, *rest


def _junk(reason: str) -> Call:
    return "junk", reason


def _call_of(frame: bytes, virtual_bytes: int, address: int) -> Call:
    if len(frame) < ETHER:
        return _junk("malformed")
    ether_type = int.from_bytes(frame[ETHER - 2 : ETHER], "big")  # Scapy takes a low one for a length
    if ether_type == 0x0800:
        return _ipv4(frame, virtual_bytes, address)
    if ether_type == LOCAL_TYPE:
        return _local(frame)
    return _mac_control(frame) if ether_type == 0x8808 else _junk("other")


def _local(frame: bytes) -> Call:
    body = ETHER + len(LocalHeader())
    if len(frame) < body + len(FlowPause()):
        return _junk("malformed")
    if LocalHeader(frame[ETHER:body]).subtype != Subtype.FLOW_PAUSE:
        return _junk("other")
    pause = FlowPause(frame[body : body + len(FlowPause())])
    if pause.op not in list(PauseOp):
        return _junk("malformed")
    ends = ip_number(pause.src), ip_number(pause.dst), pause.sport, pause.dport
    return "flow_pause", *ends, pause.protocol, pause.op, pause.credit_bytes


def _mac_control(frame: bytes) -> Call:
    if len(frame) < ETHER + PFC_BYTES:
        return _junk("malformed")
    # without padding, of which scapy cannot read a single byte
    pfc = MACControlClassBasedFlowControl(frame[ETHER : ETHER + PFC_BYTES])
    if pfc._op_code != 0x0101:
        return _junk("other")
    quanta = [
        getattr(pfc, f"c{priority}_pause_time") if getattr(pfc, f"c{priority}_enabled") else -1
        for priority in range(8)
    ]
    return "pfc", tuple(quanta)


def _ipv4(frame: bytes, virtual_bytes: int, address: int) -> Call:
    if len(frame) < HEADERS:
        return _junk("malformed")
    ip, udp = IP(frame[ETHER : ETHER + IPV4]), UDP(frame[ETHER + IPV4 : HEADERS])
    if ip.proto != 17 or udp.dport not in (ROCE, SHIM, NIC_ACK):
        return _junk("other")
    end = ETHER + ip.len - virtual_bytes
    if (
        (ip.version, ip.ihl) != (4, 5)
        or ip.flags.MF
        or ip.frag
        or end > len(frame)
        or udp.len != ip.len - IPV4
        or checksum(frame[ETHER : ETHER + IPV4])
    ):
        return _junk("malformed")
    frame = frame[: max(end, 0)]
    if udp.dport == NIC_ACK:
        said = _nic_ack(frame, ip)
    elif udp.dport == ROCE and ip.tos >> DSCP_SHIFT in TRIMMED:
        said = _trimmed(frame, ip, udp, virtual_bytes)
    else:
        said = _roce(frame, ip, udp, virtual_bytes)
    return said if said[0] == "junk" or ip_number(ip.dst) == address else _junk("not_ours")


def _nic_ack(frame: bytes, ip: Packet) -> Call:
    if len(frame) != HEADERS + len(NicAck()):
        return _junk("malformed")
    ack = NicAck(frame[HEADERS:])
    return "nic_ack", ip_number(ip.src) << 16 | ack.orig_sport, ack.bytes << 8 | ack.hops, ack.ticks


def _bth(header: bytes) -> Packet:
    """A BTH alone: Scapy looks for the ICRC at its end."""
    return BTH(header + bytes(ICRC))


def _icrc(ip: Packet, udp: Packet, bth: Packet, body: bytes) -> int:
    """Annex A17.3.3: what changes on the way counts as ones, behind eight bytes of ones."""
    ip, udp, bth = ip.copy(), udp.copy(), bth.copy()
    for layer in (ip, udp, bth):
        layer.remove_payload()
    ip.tos, ip.ttl, ip.chksum, udp.chksum = 0xFF, 0xFF, 0xFFFF, 0xFFFF
    bth.fecn, bth.becn, bth.resv6 = 1, 1, 0x3F
    return crc32(b"\xff" * 8 + bytes(ip) + bytes(udp) + bytes(bth)[:BTH_BYTES] + body)


def _roce(frame: bytes, ip: Packet, udp: Packet, virtual_bytes: int) -> Call:
    shim, plain_ip, plain_udp = None, ip.copy(), udp.copy()
    at = HEADERS
    if udp.dport == SHIM:
        at += len(NicShim())
        shim = NicShim(frame[HEADERS:at].ljust(len(NicShim()), b"\0"))
        plain_udp.sport, plain_udp.dport = shim.orig_sport, shim.orig_dport
        plain_ip.len, plain_udp.len = max(0, ip.len - len(NicShim())), max(0, udp.len - len(NicShim()))
    if len(frame) < at + BTH_BYTES + ICRC:
        return _junk("malformed")
    bth = _bth(frame[at : at + BTH_BYTES])
    body = frame[at + BTH_BYTES : -ICRC] + bytes(virtual_bytes)
    if _icrc(plain_ip, plain_udp, bth, body) != int.from_bytes(frame[-ICRC:], "little"):
        return _junk("bad_icrc")
    peer = ip_number(ip.src) << 24 | bth.dqpn
    if bth.opcode == Opcode.CNP:
        return "cnp", peer
    psn_fields = udp.sport << 24 | bth.psn
    if bth.opcode == Opcode.ACK:
        if len(body) != len(AETH()):
            return _junk("malformed")
        aeth = AETH(body)
        return "ack", peer, bth.becn << 40 | psn_fields, aeth.syndrome << 24 | aeth.msn
    if bth.opcode not in DATA:
        return _junk("other")
    payload_bytes = len(body) - bth.padcount - (len(RETH()) if bth.opcode in WITH_RETH else 0)
    if payload_bytes < 0:
        return _junk("malformed")
    data_fields = _data_fields(ip, bth, payload_bytes, len(frame) + virtual_bytes)
    return "data", peer, psn_fields, data_fields, -1 if shim is None else shim.ticks


def _trimmed(frame: bytes, ip: Packet, udp: Packet, virtual_bytes: int) -> Call:
    if virtual_bytes or len(frame) != HEADERS + BTH_BYTES:
        return _junk("malformed")
    bth = _bth(frame[HEADERS:])
    if bth.opcode not in DATA:
        return _junk("other")
    data_fields = _data_fields(ip, bth, 0, len(frame))
    return "trimmed", ip_number(ip.src) << 24 | bth.dqpn, udp.sport << 24 | bth.psn, data_fields


def _data_fields(ip: Packet, bth: Packet, payload_bytes: int, frame_bytes: int) -> int:
    data_fields: int = (
        payload_bytes
        | bth.opcode << 16
        | max(0, TTL - ip.ttl) << 24
        | bth.resv6 << 32
        | (ip.tos & 3 == 3) << 38
        | (ip.id == 1) << 39
        | bth.ackreq << 40
        | frame_bytes << 41
    )
    return data_fields
