# SPDX-License-Identifier: Apache-2.0
"""Headers of a flow's packets; the codec in C builds frames from them."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from zlib import crc32

import msgspec

from tailrace.codec import formats
from tailrace.codec.checksum import ICRC_BYTES, icrc_of_headers, ipv4_checksum
from tailrace.codec.layers.dscp import DSCP_SHIFT, Dscp
from tailrace.codec.layout import HeaderLayout
from tailrace.codec.numbers import ACK_PORT, ROCE_PORT, SHIM_PORT, Opcode

UDP_PROTOCOL = 17
ECT_0 = 2
NO_ECT = 0
ECN_CE = 3


class Stack:
    """A stack of headers of fixed size: its layout, and its bytes as Scapy builds them by default."""

    def __init__(self, stack: str) -> None:
        """Takes one of `formats.STACKS`."""
        self.layout = HeaderLayout(*stack.split("/"))
        self._base = formats.formats().defaults[stack][: self.layout.size_bytes]

    def fill(self, values: Mapping[str, int]) -> bytearray:
        """The headers with these fields ("LAYER.field") and the IPv4 checksum set."""
        headers = bytearray(self._base)
        values = {**values, "IP.chksum": 0}
        for name, value in values.items():
            self.layout.put(headers, name, value)
        checksum = ipv4_checksum(headers[self.layout.start("IP") : self.layout.start("UDP")])
        self.layout.put(headers, "IP.chksum", checksum)
        return headers


ROCE = Stack(formats.ROCE)
SHIMMED = Stack(formats.SHIMMED)
NIC_ACK = Stack(formats.NIC_ACK)

_IP_START = ROCE.layout.start("IP")
_UDP_START = ROCE.layout.start("UDP")

_RETH = HeaderLayout("RETH")
_AETH = HeaderLayout("AETH")
_CNP = HeaderLayout("CNPPadding")
SHIM_BYTES = SHIMMED.layout.size_bytes - ROCE.layout.size_bytes
RETH_BYTES = _RETH.size_bytes
AETH_BYTES = _AETH.size_bytes


class HostAddress(msgspec.Struct, frozen=True):
    """Addresses in a NIC's frames: MAC addresses in colon form, IPv4 addresses in dotted form."""

    src_mac: str
    dst_mac: str
    src: str
    dst: str

    def fields(self, sport: int, dport: int) -> dict[str, int]:
        """The fields of Ethernet, IPv4 and UDP with these addresses and ports."""
        return {
            "Ether.src": mac_number(self.src_mac),
            "Ether.dst": mac_number(self.dst_mac),
            "IP.src": ip_number(self.src),
            "IP.dst": ip_number(self.dst),
            "UDP.sport": sport,
            "UDP.dport": dport,
        }


def ip_number(address: str) -> int:
    """An IPv4 address in dotted form as a number; raises OSError if it is invalid."""
    return int.from_bytes(socket.inet_aton(address), "big")


def five_tuple_hash(src: str, dst: str, sport: int, dport: int) -> int:
    """A hash of a UDP flow's 5-tuple, 32 bits, the same on every machine; addresses in dotted form."""
    return crc32(struct.pack(">IIHHB", ip_number(src), ip_number(dst), sport, dport, UDP_PROTOCOL))


def mac_number(address: str) -> int:
    """A MAC address in colon form as a number; raises ValueError if it is invalid."""
    return int(address.replace(":", ""), 16)


def lengths(stack: Stack, body_bytes: int) -> dict[str, int]:
    """IPv4 and UDP lengths of a frame with `body_bytes` after the stack's headers."""
    total = stack.layout.size_bytes + body_bytes
    return {"IP.len": total - _IP_START, "UDP.len": total - _UDP_START}


def reth(length_bytes: int) -> bytes:
    """The RETH of a message of this length, at address 0."""
    buffer = bytearray(_RETH.size_bytes)
    _RETH.put(buffer, "RETH.length", length_bytes)
    return bytes(buffer)


def data_headers(
    address: HostAddress, *, sport: int, qpn: int, ecn: bool, shimmed: bool, dscp: int = Dscp.DEFAULT
) -> bytes:
    """Headers of one flow's data packets, down to the BTH.

    Args:
        address: from the flow's source to the receiver.
        sport: the flow's UDP source port.
        qpn: queue pair of the receiver.
        ecn: whether packets are ECT(0).
        shimmed: whether packets have the shim of Flowcut in NICs.
        dscp: class of the packets, as in `codec.layers.dscp`.
    """
    stack = SHIMMED if shimmed else ROCE
    values = {
        **address.fields(sport, SHIM_PORT if shimmed else ROCE_PORT),
        **lengths(stack, ICRC_BYTES),
        "IP.tos": dscp << DSCP_SHIFT | (ECT_0 if ecn else NO_ECT),
        "BTH.dqpn": qpn,
    }
    if shimmed:
        values |= {"NicShim.orig_sport": sport, "NicShim.orig_dport": ROCE_PORT}
    return bytes(stack.fill(values))


def ack_headers(address: HostAddress, *, sport: int, qpn: int, dscp: int = Dscp.DEFAULT) -> bytes:
    """Headers of one flow's acknowledgments, down to the BTH.

    Args:
        address: from the receiver to the flow's source.
        sport: UDP source port, unless packets echo another one.
        qpn: queue pair at the flow's source.
        dscp: class of the packets, as in `codec.layers.dscp`.
    """
    return bytes(
        ROCE.fill(
            {
                **address.fields(sport, ROCE_PORT),
                **lengths(ROCE, AETH_BYTES + ICRC_BYTES),
                "IP.tos": dscp << DSCP_SHIFT | NO_ECT,
                "BTH.opcode": int(Opcode.ACK),
                "BTH.dqpn": qpn,
            }
        )
    )


def cnp_frame(address: HostAddress, *, sport: int, qpn: int, dscp: int = Dscp.DEFAULT) -> bytes:
    """A congestion notification packet from Ethernet to ICRC (InfiniBand annex A17.9.3): BECN, and 16 zeros.

    Args:
        address: from the receiver of marked packets to their source.
        sport: UDP source port.
        qpn: queue pair number at the CNP's destination, the data's source.
        dscp: class of the packet, as in `codec.layers.dscp`.
    """
    headers = ROCE.fill(
        {
            **address.fields(sport, ROCE_PORT),
            **lengths(ROCE, _CNP.size_bytes + ICRC_BYTES),
            "IP.tos": dscp << DSCP_SHIFT | NO_ECT,
            "BTH.opcode": int(Opcode.CNP),
            "BTH.becn": 1,
            "BTH.dqpn": qpn,
        }
    )
    zeros = bytes(_CNP.size_bytes)
    crc = crc32(zeros, icrc_of_headers(headers[_IP_START:]))
    return bytes(headers) + zeros + crc.to_bytes(ICRC_BYTES, "little")


def nic_ack_headers(address: HostAddress, *, sport: int, orig_sport: int, orig_dport: int) -> bytes:
    """Headers of one flow's NIC ACKs (Flowcut §II-D).

    Args:
        address: from the receiver to the flow's source.
        sport: UDP source port of the NIC ACKs.
        orig_sport, orig_dport: the ports of the data flow.
    """
    return bytes(
        NIC_ACK.fill(
            {
                **address.fields(sport, ACK_PORT),
                **lengths(NIC_ACK, 0),
                "NicAck.orig_sport": orig_sport,
                "NicAck.orig_dport": orig_dport,
            }
        )
    )
