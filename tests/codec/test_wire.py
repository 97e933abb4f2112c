# SPDX-License-Identifier: Apache-2.0
"""What a frame survives on its way, and what it does not: fields that switches may write, shims, and any other bit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from tailrace.codec import calls
from tailrace.codec.layers.bth import BTH
from tailrace.codec.layers.dscp import Dscp
from tailrace.codec.layers.nic_shim import ShimmedBTH
from tailrace.codec.layout import HeaderLayout
from tailrace.codec.numbers import Opcode
from tailrace.codec.templates import HostAddress, data_headers, reth
from tests.codec.frames import Data, Frame, Junk, build, parse
from tests.codec.oracle import restored

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


def made(fields: dict) -> Frame:
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
    packet = (
        (calls.DATA, psn_fields, data_fields)
        if fields["virtual"]
        else (calls.PAYLOAD, psn_fields, data_fields, payload)
    )
    return build(packet, (headers, reth(1000)), fields["ticks"])


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
    stack = ("Ether", "IP", "UDP", "NicShim", "BTH") if fields["shimmed"] else ("Ether", "IP", "UDP", "BTH")
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


@pytest.mark.parametrize("name", ["BTH.psn", "BTH.dqpn", "IP.ttl"])
def test_a_value_that_does_not_fit_is_refused(name):
    """Layouts never write beyond a field."""
    layout = HeaderLayout("Ether", "IP", "UDP", "BTH")
    with pytest.raises(ValueError, match=name):
        layout.put(bytearray(layout.size_bytes), name, layout.mask(name) + 1)
