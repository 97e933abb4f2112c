# SPDX-License-Identifier: Apache-2.0
"""The codec in C, field by field: frames against Scapy, what they say, and anything at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from tailrace.codec import calls
from tailrace.codec.checksum import ICRC_BYTES
from tailrace.codec.layers.bth import AETH, BTH, Opcode, Syndrome
from tailrace.codec.layers.dscp import Dscp
from tailrace.codec.layers.flow_pause import FlowPause, PauseOp
from tailrace.codec.layers.local import LocalHeader, Subtype
from tailrace.codec.layers.nic_shim import NicAck, NicShim, ShimmedBTH
from tailrace.codec.layers.pfc import pfc_frame
from tailrace.codec.layers.reth import RETH
from tailrace.codec.layout import HeaderLayout
from tailrace.codec.templates import HostAddress, ack_headers, data_headers, ip_number, nic_ack_headers, reth
from tests.codec.frames import Ack, Cnp, Data, Frame, Junk, NicAcked, Pause, Pfc, build, parse
from tests.codec.oracle import restored
from tests.hosts.trimming import TRIMMED_BYTES, trim

HERE = HostAddress("02:00:0a:00:00:01", "02:00:00:00:00:fe", "10.0.0.1", "10.0.1.2")
FULL = settings(max_examples=60)
bits = st.integers


@st.composite
def data_fields(draw):
    payload = draw(st.binary(max_size=70))
    return {
        "opcode": draw(
            st.sampled_from([Opcode.WRITE_FIRST, Opcode.WRITE_MIDDLE, Opcode.WRITE_LAST, Opcode.WRITE_ONLY])
        ),
        "psn": draw(bits(0, 2**24 - 1)),
        "left": draw(bits(0, 127)),
        "ackreq": draw(st.booleans()),
        "retransmission": draw(st.booleans()),
        "ticks": draw(bits(0, 2**40)),
        "payload": payload,
        "qpn": draw(bits(0, 2**24 - 1)),
        "sport": draw(bits(1, 65535)),
        "wire_sport": draw(bits(1, 65535)),
        "ecn": draw(st.booleans()),
        "shimmed": draw(st.booleans()),
        "virtual": draw(st.booleans()),
        "dscp": draw(st.sampled_from([Dscp.DEFAULT, Dscp.STEERED])),
    }


def made(fields: dict, vlan: int = 0) -> Frame:
    """The frame by the codec."""
    headers = data_headers(
        HERE,
        sport=fields["sport"],
        qpn=fields["qpn"],
        ecn=fields["ecn"],
        shimmed=fields["shimmed"],
        dscp=fields["dscp"],
    )
    payload = fields["payload"]
    psn_fields = fields["wire_sport" if fields["shimmed"] else "sport"] << calls.SPORT_SHIFT | fields["psn"]
    data_fields = len(payload) | fields["opcode"] << calls.OPCODE_SHIFT | fields["left"] << calls.LEFT_SHIFT
    data_fields |= (
        fields["retransmission"] << calls.RETRANSMISSION_SHIFT | fields["ackreq"] << calls.ACKREQ_SHIFT
    )
    data_fields |= vlan << calls.VLAN_SHIFT
    packet = (
        (calls.DATA, psn_fields, data_fields)
        if fields["virtual"]
        else (calls.PAYLOAD, psn_fields, data_fields, payload)
    )
    return build(packet, (headers, reth(1000)), fields["ticks"])


def acked(template: bytes, *, psn: int, aeth: int, sport: int, becn: bool) -> bytes:
    """An ACK or NAK by the codec."""
    psn_fields = becn << calls.BECN_SHIFT | sport << calls.SPORT_SHIFT | psn
    return build((calls.ACK, psn_fields, aeth), (template, b"")).data


def scapy_packet(fields: dict) -> Packet:
    """The same frame by Scapy, with real zeros for a virtual payload."""
    length = len(fields["payload"])
    payload = (bytes(length) if fields["virtual"] else fields["payload"]) + bytes(-length % 4)
    bth = {
        "opcode": int(fields["opcode"]),
        "padcount": -length % 4,
        "dqpn": fields["qpn"],
        "ackreq": int(fields["ackreq"]),
        "resv7": fields["left"],
        "psn": fields["psn"],
    }
    packet = Ether(src=HERE.src_mac, dst=HERE.dst_mac) / IP(
        src=HERE.src,
        dst=HERE.dst,
        ttl=64,
        flags="DF",
        id=int(fields["retransmission"]),
        tos=fields["dscp"] << 2 | 2 * fields["ecn"],
    )
    if fields["shimmed"]:
        packet /= UDP(sport=fields["wire_sport"], dport=4793, chksum=0)
        packet /= NicShim(orig_sport=fields["sport"], orig_dport=4791, ticks=fields["ticks"] % 2**32)
        packet /= ShimmedBTH(**bth)
    else:
        packet /= UDP(sport=fields["sport"], dport=4791, chksum=0) / BTH(**bth)
    if fields["opcode"] in (Opcode.WRITE_FIRST, Opcode.WRITE_ONLY):
        packet /= RETH(length=1000)
    return packet / Raw(payload)


@FULL
@given(data_fields())
def test_data_frames_are_scapy_s(fields):
    """Every byte of a data frame is what Scapy builds, ICRC included; a virtual payload is left out."""
    frame, virtual_bytes = made(fields)
    expected = bytes(scapy_packet(fields))
    cut = len(expected) - ICRC_BYTES
    assert expected[: cut - virtual_bytes] + expected[cut:] == frame


@FULL
@given(data_fields())
def test_data_frames_are_read_back(fields):
    """Everything that a frame says is read, and an original port is restored."""
    frame, virtual_bytes = made(fields)
    parsed = parse(frame, virtual_bytes)
    assert isinstance(parsed, Data)
    assert (ip_number(HERE.src), ip_number(HERE.dst)) == (parsed.src, parsed.dst)
    assert fields["sport"] == parsed.sport
    assert (fields["wire_sport"] if fields["shimmed"] else fields["sport"]) == parsed.wire_sport
    assert (fields["ticks"] % 2**32 if fields["shimmed"] else -1) == parsed.ticks
    for name in ("opcode", "psn", "ackreq", "qpn", "retransmission"):
        assert fields[name] == getattr(parsed, name)
    assert len(fields["payload"]) == parsed.payload_bytes
    assert len(frame) + virtual_bytes == parsed.frame_bytes
    assert (0, False, 0, False) == (parsed.hops, parsed.ce, parsed.tag, parsed.trimmed)


@FULL
@given(data_fields(), bits(0, 63), bits(1, 64), bits(0, 3))
def test_trimmed_frames_are_read(fields, tag, ttl, ecn):
    """All that the headers say, as of the whole frame, but no payload; there is no ICRC to look at."""
    fields |= {"shimmed": False, "virtual": False}
    packet = Ether(made(fields).data)
    packet[BTH].resv6, packet[IP].ttl, packet[IP].tos, packet[IP].chksum = tag, ttl, ecn, None
    whole, cut = bytes(packet), trim(bytes(packet), steered=fields["dscp"] == Dscp.STEERED)
    before, after = parse(whole), parse(cut)
    assert isinstance(before, Data)
    assert before._replace(payload_bytes=0, frame_bytes=TRIMMED_BYTES, trimmed=True) == after
    assert after == parse(cut + bytes(6))


@FULL
@given(data_fields(), st.data())
def test_what_is_trimmed_elsewhere_is_junk(fields, data):
    """A frame of that class which does not end after its BTH, or is no data, says nothing that could be trusted."""
    whole, _ = made({**fields, "shimmed": False, "virtual": False})
    cut = trim(whole)
    assert parse(cut, data.draw(bits(1, 100))) is Junk.MALFORMED
    assert parse(cut[: data.draw(bits(14, TRIMMED_BYTES - 1))]) is Junk.MALFORMED
    packet = Ether(whole)
    packet[IP].tos, packet[IP].chksum = Dscp.TRIMMED << 2, None
    assert parse(bytes(packet)) is Junk.MALFORMED
    opcode = HeaderLayout(Ether, IP, UDP, BTH).span("BTH.opcode").byte
    other = bytearray(cut)
    other[opcode] = data.draw(st.sampled_from([int(Opcode.ACK), int(Opcode.CNP), 0, 255]))
    assert parse(bytes(other)) is Junk.OTHER
    checksum = bytearray(cut)
    checksum[HeaderLayout(Ether, IP).span("IP.chksum").byte] ^= 1
    assert parse(bytes(checksum)) is Junk.MALFORMED


@FULL
@given(data_fields(), bits(1, 4095))
def test_vlan_tags_are_scapy_s(fields, vlan):
    """A tag in front of the EtherType, and nothing else changes; a host that gets one does not read on."""
    frame, virtual_bytes = made(fields)
    roce = Ether(frame)
    tagged = Ether(src=roce.src, dst=roce.dst) / Dot1Q(vlan=vlan, type=roce.type)
    assert (bytes(tagged) + frame[len(Ether()) :], virtual_bytes) == made(fields, vlan)
    assert parse(*made(fields, vlan)) is Junk.OTHER


@FULL
@given(data_fields())
def test_restoring_gives_the_frame_without_shim(fields):
    """The far end gets the very frame that the sender would have sent without Flowcut."""
    shimmed, _ = made({**fields, "shimmed": True, "virtual": False})
    roce, _ = made({**fields, "shimmed": False, "virtual": False})
    assert roce == restored(shimmed)


@FULL
@given(data_fields(), bits(0, 63), bits(1, 64), bits(0, 3))
def test_what_switches_change_does_not_break_the_icrc(fields, tag, ttl, ecn):
    """TTL, ECN, FECN, BECN and the path tag may change on the way, and the receiver sees them."""
    frame, virtual_bytes = made({**fields, "virtual": False})
    packet = Ether(frame)
    bth = packet[ShimmedBTH if fields["shimmed"] else BTH]
    bth.resv6, bth.fecn, bth.becn = tag, 1, 1
    packet[IP].ttl, packet[IP].tos, packet[IP].chksum = ttl, ecn, None
    parsed = parse(bytes(packet), virtual_bytes)
    assert isinstance(parsed, Data)
    assert (tag, 64 - ttl, ecn == 3) == (parsed.tag, parsed.hops, parsed.ce)


@FULL
@given(data_fields(), st.data())
def test_any_other_change_is_noticed(fields, data):
    """A flipped bit anywhere outside the volatile fields makes the frame junk, or none for us."""
    frame, virtual_bytes = made(fields)
    stack = (Ether, IP, UDP, NicShim, BTH) if fields["shimmed"] else (Ether, IP, UDP, BTH)
    layout = HeaderLayout(*stack)
    free = {*range(layout.start("IP")), layout.span("BTH.fecn", "BTH.resv6").byte}
    # the IPv4 checksum guards its header; the UDP checksum is not used; the shim's ticks are nobody else's
    free |= {layout.span("UDP.chksum").byte, layout.span("UDP.chksum").byte + 1}
    if fields["shimmed"]:
        free |= set(range(layout.span("UDP.sport").byte, layout.span("UDP.sport").end))
        free |= set(range(layout.span("NicShim.ticks").byte, layout.span("NicShim.ticks").end))
    position = data.draw(st.sampled_from([place for place in range(len(frame)) if place not in free]))
    broken = bytearray(frame)
    broken[position] ^= 1 << data.draw(bits(0, 7))
    assert isinstance(parse(bytes(broken), virtual_bytes), Junk)


@FULL
@given(
    bits(0, 2**24 - 1),
    bits(0, 2**24 - 1),
    st.sampled_from(Syndrome),
    bits(1, 65535),
    st.booleans(),
    st.sampled_from([Dscp.DEFAULT, Dscp.STEERED]),
)
def test_acknowledgments_are_scapy_s_and_read_back(psn, msn, syndrome, sport, becn, dscp):
    """ACK and NAK: bytes and meaning; they echo the source port and congestion of what they answer."""
    template = ack_headers(HERE, sport=999, qpn=77, dscp=dscp)
    frame = acked(template, psn=psn, aeth=syndrome << 24 | msn, sport=sport, becn=becn)
    ip = IP(src=HERE.src, dst=HERE.dst, ttl=64, flags="DF", id=0, tos=dscp << 2)
    packet = Ether(src=HERE.src_mac, dst=HERE.dst_mac) / ip / UDP(sport=sport, dport=4791, chksum=0)
    packet /= BTH(opcode=int(Opcode.ACK), dqpn=77, psn=psn, becn=int(becn)) / AETH(
        syndrome=int(syndrome), msn=msn
    )
    assert bytes(packet) == frame
    assert Ack(ip_number(HERE.src), ip_number(HERE.dst), 77, psn, syndrome, msn, sport, becn) == parse(frame)


def test_nic_acks_are_scapy_s_and_read_back():
    """NIC ACK: bytes and meaning."""
    template = nic_ack_headers(HERE, sport=999, orig_sport=77, orig_dport=4791)
    frame = build((calls.NIC_ACK, 1090 << 8 | 3, 2**31), (template, b"")).data
    ip = IP(src=HERE.src, dst=HERE.dst, ttl=64, flags="DF", id=0)
    packet = Ether(src=HERE.src_mac, dst=HERE.dst_mac) / ip / UDP(sport=999, dport=4794, chksum=0)
    packet /= NicAck(orig_sport=77, orig_dport=4791, bytes=1090, hops=3, ticks=2**31)
    assert bytes(packet) == frame
    assert NicAcked(ip_number(HERE.src), ip_number(HERE.dst), 77, 1090, 3, 2**31) == parse(frame)


def test_control_frames_are_read():
    """Pauses, PFC and CNP as Scapy builds them."""
    key = {"src": "10.0.0.1", "dst": "10.0.1.2", "sport": 1, "dport": 4791, "protocol": 17}
    pause = (
        Ether(dst=HERE.dst_mac)
        / LocalHeader(subtype=Subtype.FLOW_PAUSE)
        / FlowPause(**key, op=2, credit_bytes=99)
    )
    numbers = (ip_number("10.0.0.1"), ip_number("10.0.1.2"), 1, 4791, 17)
    assert Pause(numbers, PauseOp.XOFF_CREDIT, 99) == parse(bytes(pause))
    assert Pfc((5, -1, -1, -1, -1, -1, -1, 0)) == parse(bytes(pfc_frame("02:00:00:00:00:01", {0: 5, 7: 0})))
    ip = IP(src=HERE.src, dst=HERE.dst)
    cnp = (
        Ether(dst=HERE.dst_mac)
        / ip
        / UDP(sport=1, dport=4791, chksum=0)
        / BTH(opcode=0x81, dqpn=6)
        / Raw(bytes(16))
    )
    assert Cnp(ip_number(HERE.src), ip_number(HERE.dst), 6) == parse(bytes(cnp))


def test_ethernet_padding_is_cut_off():
    """Frames of less than 60 bytes come padded from a real wire."""
    frame = acked(ack_headers(HERE, sport=999, qpn=77), psn=1, aeth=0, sport=999, becn=False)
    assert parse(frame) == parse(frame + bytes(11))


@settings(max_examples=400)
@given(st.binary(max_size=120), bits(0, 3000))
def test_no_frame_raises(frame, virtual_bytes):
    """Noise is junk."""
    assert isinstance(parse(frame, virtual_bytes), (Junk, Pause, Pfc))


@settings(max_examples=300)
@given(data_fields(), bits(0, 200), st.binary(max_size=4), bits(0, 120), bits(0, 100))
def test_no_cut_or_overwritten_frame_raises(fields, keep, noise, place, virtual_bytes):
    """Nor does any frame that begins like one of ours."""
    frame, _ = made(fields)
    broken = bytearray(frame[:keep])
    broken[place : place + len(noise)] = noise
    parse(bytes(broken), virtual_bytes)


@pytest.mark.parametrize("name", ["BTH.psn", "BTH.dqpn", "IP.ttl"])
def test_a_value_that_does_not_fit_is_refused(name):
    """Layouts never write beyond a field."""
    layout = HeaderLayout(Ether, IP, UDP, BTH)
    with pytest.raises(ValueError, match=name):
        layout.put(bytearray(layout.size_bytes), name, layout.mask(name) + 1)
