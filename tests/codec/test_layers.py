# SPDX-License-Identifier: Apache-2.0
"""Golden bytes of every packet format, and Scapy's reading of them."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from tailrace.codec.layers.bth import AETH, BTH, MAX_LEFT, RETH, left_field, packets_left, path_tag
from tailrace.codec.layers.dscp import DSCP_SHIFT, Dscp
from tailrace.codec.layers.local import PAUSE_MAC, DataShim, FlowcutAck, FlowPause, LocalHeader, Stamp
from tailrace.codec.layers.nic_shim import NicAck, NicShim, ShimmedBTH
from tailrace.codec.layers.pfc import pfc_frame
from tailrace.codec.numbers import Opcode, PauseOp, Subtype, Syndrome, pause_ns

MACS = "02000a00000202000a000001"
KEY = {"src": "10.0.0.1", "dst": "10.0.1.2", "sport": 0x1234, "dport": 4791}
KEY_HEX = "0a000001 0a000102 1234 12b7 11"
IPS = "0a0000010a000102"


def ether() -> Packet:
    return Ether(dst="02:00:0a:00:00:02", src="02:00:0a:00:00:01")


def roce(**fields: int) -> Packet:
    ip = IP(src="10.0.0.1", dst="10.0.1.2", ttl=64, flags="DF", id=0)
    return ip / UDP(sport=0x1234, dport=4791, chksum=0) / BTH(psn=5, dqpn=7, **fields)


GOLDEN = {
    "data shim without stamps": (
        ether() / LocalHeader(subtype=1) / DataShim(hops=3) / Raw(b"\x45"),
        MACS + "88b5 01 30 0800 45",
    ),
    "data shim with stamps, newest first": (
        ether()
        / LocalHeader(subtype=1)
        / DataShim(
            hops=2, next_type=0x1111, stack=[Stamp(ticks=0xA1B2C3D4, in_port=9), Stamp(ticks=1, in_port=2)]
        )
        / Raw(b"\xee"),
        MACS + "88b5 01 22 1111 a1b2c3d4 0009 00000001 0002 ee",
    ),
    "Flowcut ACK": (
        ether()
        / LocalHeader(subtype=2)
        / FlowcutAck(**KEY, bytes=0x010203, hops=5, hops_back=9, congested=1),
        MACS + "88b5 02" + KEY_HEX + "010203 50 13",
    ),
    "Flowcut ACK with a stamp": (
        ether()
        / LocalHeader(subtype=2)
        / FlowcutAck(**KEY, bytes=1, hops=1, stack=[Stamp(ticks=7, in_port=3)]),
        MACS + "88b5 02" + KEY_HEX + "000001 11 00 00000007 0003",
    ),
    "flow pause with credit": (
        Ether(dst=PAUSE_MAC, src="02:00:0a:00:00:01")
        / LocalHeader(subtype=3)
        / FlowPause(**KEY, op=PauseOp.XOFF_CREDIT, credit_bytes=4096),
        "0180c2000001 02000a000001 88b5 03" + KEY_HEX + "02 00001000",
    ),
    "NIC ACK": (
        ether()
        / IP(src="10.0.0.1", dst="10.0.1.2", flags="DF", id=0)
        / UDP(sport=0x1234, dport=4794, chksum=0)
        / NicAck(orig_sport=0x1234, orig_dport=4791, bytes=0x010203, hops=4, ticks=0xA1B2C3D4),
        MACS + "0800 45000028 00004000 401125c3" + IPS + "1234 12ba 0014 0000 1234 12b7 010203 04 a1b2c3d4",
    ),
    "PFC of priorities 0 and 3": (
        pfc_frame("02:00:0a:00:00:01", {0: 0xFFFF, 3: 0}),
        "0180c2000001 02000a000001 8808 0101 0009 ffff 0000 0000 0000 0000 0000 0000 0000",
    ),
    "RDMA WRITE, only packet": (
        ether() / roce(opcode=Opcode.WRITE_ONLY, ackreq=1, resv7=1) / RETH(length=4) / Raw(b"abcd"),
        MACS
        + "0800 45000040 00004000 401125ab"
        + IPS
        + "1234 12b7 002c 0000 0a00ffff 00000007 81000005"
        + "0000000000000000 00000000 00000004 61626364",
    ),
    "NAK": (
        ether() / roce(opcode=Opcode.ACK) / AETH(syndrome=Syndrome.NAK_SEQUENCE, msn=9),
        MACS
        + "0800 45000030 00004000 401125bb"
        + IPS
        + "1234 12b7 001c 0000 1100ffff 00000007 00000005 60000009",
    ),
    "NACK of a trimmed packet, steered": (
        ether()
        / IP(src="10.0.0.1", dst="10.0.1.2", ttl=64, flags="DF", id=0, tos=Dscp.STEERED << DSCP_SHIFT)
        / UDP(sport=0x0A0B, dport=4791, chksum=0)
        / BTH(opcode=Opcode.ACK, psn=5, dqpn=7)
        / AETH(syndrome=Syndrome.NAK_TRIMMED, msn=9),
        MACS
        + "0800 451c0030 00004000 4011259f"
        + IPS
        + "0a0b 12b7 001c 0000 1100ffff 00000007 00000005 7f000009",
    ),
    "data with a path class": (
        ether() / Dot1Q(vlan=3) / roce(opcode=Opcode.WRITE_MIDDLE) / Raw(b"abcd"),
        MACS
        + "8100 0003 0800 45000030 00004000 401125bb"
        + IPS
        + "1234 12b7 001c 0000 0700ffff 00000007 00000005 61626364",
    ),
    "data with the NIC's shim": (
        ether()
        / IP(src="10.0.0.1", dst="10.0.1.2", ttl=64, flags="DF", id=0)
        / UDP(sport=0xC001, dport=4793, chksum=0)
        / NicShim(orig_sport=0x1234, orig_dport=4791, ticks=0xA1B2C3D4)
        / ShimmedBTH(opcode=Opcode.WRITE_MIDDLE, psn=5, dqpn=7)
        / Raw(b"abcd"),
        MACS
        + "0800 45000038 00004000 401125b3"
        + IPS
        + "c001 12b9 0024 0000 1234 12b7 a1b2c3d4 0700ffff 00000007 00000005 61626364",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_bytes_are_those_of_the_format(name):
    """Each format has exactly these bytes; RoCEv2 packets end with the ICRC besides."""
    packet, expected = GOLDEN[name]
    built = bytes(packet)
    icrc_bytes = 4 if BTH in packet or ShimmedBTH in packet else 0
    expected_bytes = bytes.fromhex(expected.replace(" ", ""))
    padding = len(built) - len(expected_bytes) - icrc_bytes
    assert (
        expected_bytes + (bytes(padding) if name.startswith("PFC") else b"")
        == built[: len(built) - icrc_bytes]
    )


def layer_names(packet: Packet) -> list[str]:
    """The layers, without what Scapy adds when it dissects: padding, and MAC control before its own kind."""
    added = ("Raw", "Padding", "MACControl")
    return [layer.__name__ for layer in packet.layers() if layer.__name__ not in added]


@pytest.mark.parametrize("name", GOLDEN)
def test_scapy_reads_what_it_builds(name):
    """Dissecting gives the same layers and builds the same bytes."""
    packet, _ = GOLDEN[name]
    built = bytes(packet)
    read = Ether(built)
    assert layer_names(packet) == layer_names(read)
    assert built == bytes(read)


def test_shimmed_packet_has_the_icrc_of_the_restored_one():
    """Far end and sender agree on the ICRC though ports, lengths and shim differ on the wire."""
    shimmed, _ = GOLDEN["data with the NIC's shim"]
    plain = ether() / roce(opcode=Opcode.WRITE_MIDDLE) / Raw(b"abcd")
    assert bytes(plain)[-4:] == bytes(shimmed)[-4:]


def test_reserved_fields_of_the_bth():
    """The packets that are left, at most 127, lie beside the ACK request; the path tag lies beside FECN and BECN."""
    packet = BTH(resv7=left_field(90), resv6=0x2A, icrc=0)
    assert (90, 0x2A) == (packets_left(packet), path_tag(packet))
    assert MAX_LEFT == left_field(1000) == 127
    assert bytes(packet)[4] == 0x2A
    assert bytes(packet)[8] == 90


@pytest.mark.parametrize(
    ("quanta", "rate_bps", "expected_ns"),
    [(1, 10_000_000_000, 52), (0xFFFF, 10_000_000_000, 3_355_392), (0, 1, 0), (3, 512, 3_000_000_000)],
)
def test_pause_time_is_rounded_up(quanta, rate_bps, expected_ns):
    """A quantum is 512 bit times of the link, and no pause is cut short by rounding."""
    assert expected_ns == pause_ns(quanta, rate_bps)


def test_subtypes_are_distinct_and_named():
    """The byte after the EtherType says what follows."""
    assert [1, 2, 3, 4, 5, 6] == [int(kind) for kind in Subtype]
