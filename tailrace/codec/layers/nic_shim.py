# SPDX-License-Identifier: Apache-2.0
"""Headers of Flowcut's variant that runs in NICs only (Flowcut §II-D): the shim, a header after UDP, and the
ACK of the destination NIC.

The receiver restores the original packet: original ports, no shim. The ICRC of a packet with shim is that of
the original packet. So restoring does not change the ICRC, and the sender may change the source port freely.
"""

from __future__ import annotations

from typing import Any

from scapy.contrib.roce import BTH
from scapy.fields import ByteField, IntField, ShortField, ThreeBytesField
from scapy.layers.inet import IP, UDP
from scapy.packet import Packet, bind_layers

from tailrace.codec.numbers import ACK_PORT, SHIM_PORT


class NicShim(Packet):
    """orig_sport:16 orig_dport:16 ticks:32 (sending time in ns modulo 2^32, read only by the sender)."""

    name = "NicShim"
    fields_desc = [ShortField("orig_sport", 0), ShortField("orig_dport", 0), IntField("ticks", 0)]


class ShimmedBTH(BTH):
    """A BTH after a NicShim; only the computation of its ICRC differs."""

    def compute_icrc(self, p: bytes) -> bytes:
        """The ICRC of the original packet, 4 bytes as on the wire."""
        shim: Any = self.underlayer
        ip: Any = shim.underlayer.underlayer if shim is not None and shim.underlayer else None
        if not isinstance(ip, IP):
            return bytes(self.pack_icrc(0))
        bth: Any = BTH(**self.fields) / self.payload.copy()
        bth.icrc = None
        restored: Any = ip.copy()
        restored.remove_payload()
        restored.len = None
        restored = restored / UDP(sport=shim.orig_sport, dport=shim.orig_dport, chksum=0) / bth
        return bytes(restored)[-4:]


class NicAck(Packet):
    """An ACK of one or several data packets of a flow: orig_sport:16 orig_dport:16 bytes:24 (of all their
    frames) hops:8 (64 - TTL, the same in all) ticks:32 (those of the last packet plus the delay of the ACK).
    """

    name = "NicAck"
    fields_desc = [
        ShortField("orig_sport", 0),
        ShortField("orig_dport", 0),
        ThreeBytesField("bytes", 0),
        ByteField("hops", 0),
        IntField("ticks", 0),
    ]


bind_layers(UDP, NicShim, dport=SHIM_PORT)
bind_layers(NicShim, ShimmedBTH)
bind_layers(UDP, NicAck, dport=ACK_PORT)
