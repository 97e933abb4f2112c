# SPDX-License-Identifier: Apache-2.0
"""Reads the formats of headers from their Scapy layers; `codec.formats` keeps them."""

from __future__ import annotations

from typing import Any

from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.fields import FCSField, PacketListField
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet

from tailrace.codec.formats import STACKS, Formats
from tailrace.codec.layers.bth import AETH, BTH, RETH, CNPPadding
from tailrace.codec.layers.local import DataShim, Detour, FlowPause, LocalHeader, PathProbe, Stamp
from tailrace.codec.layers.nic_shim import NicAck, NicShim
from tailrace.codec.numbers import TTL

_LAYERS: tuple[type[Packet], ...] = (
    *(Ether, Dot1Q, IP, UDP, BTH, AETH, RETH, CNPPadding, MACControlClassBasedFlowControl),
    *(NicShim, NicAck, LocalHeader, FlowPause, DataShim, Stamp, Detour, PathProbe),
)


def read_formats() -> Formats:
    """The formats of all layers that the codec and the virtual network use."""
    layers = {layer.__name__: layer for layer in _LAYERS}
    fields = {name: _fields(layer) for name, layer in layers.items()}
    return Formats(fields, {stack: _default([layers[name] for name in stack.split("/")]) for stack in STACKS})


def _fields(layer: type[Packet]) -> list[tuple[str, int]]:
    return [
        (field.name, round(field.sz * 8))
        for field in layer.fields_desc
        if not isinstance(field, (PacketListField, FCSField))
    ]


def _default(layers: list[type[Packet]]) -> bytes:
    """A stack that begins with Ethernet and IPv4, as Scapy builds it; its trailers follow it."""
    packet: Packet = Ether(src="00:00:00:00:00:00", dst="00:00:00:00:00:00") / IP(
        src="127.0.0.1", dst="127.0.0.1", ttl=TTL, flags="DF", id=0
    )
    # checksums are given, so that Scapy does not compute them
    given: dict[type[Packet], dict[str, Any]] = {UDP: {"chksum": 0}, BTH: {"icrc": 0}}
    for layer in layers[2:]:
        packet /= layer(**given.get(layer, {}))
    return bytes(packet)
