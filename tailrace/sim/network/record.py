# SPDX-License-Identifier: Apache-2.0
"""The record of a run: what became of frames on wires (directions of links) and in switches (tv_record.c)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tailrace.codec.numbers import Opcode, Subtype
from tailrace.sim.network.wire import Wire
from tailrace.spec.constants import PS_PER_NS

_ENTRY = struct.Struct("=QIIIIIIBBBBI")
"""tv_entry of tv_net.h."""

ARRIVED, FAILED, DROPPED, RECIRCULATED = "arrived", "failed", "dropped", "recirculated"
"""At the end of a wire; lost on a wire by a fault; dropped or recirculated by a switch."""
_WHAT = (ARRIVED, FAILED, DROPPED, RECIRCULATED)
"""By the values of tv_recorded (tv_net.h)."""
_ON_WIRES = 2

_ROCE, _IP, _LOCAL, _MAC_CONTROL = 1, 2, 3, 4
_TRIMMED, _RETRANSMITTED, _MARKED = 1, 2, 4

DATA, RETRANSMISSION, TRIMMED, ACK, CNP = "data", "retransmission", "trimmed", "ack", "cnp"
XOFF, XON, IP, OTHER = "xoff", "xon", "ip", "other"
"""Classes of frames: of RoCE; PFC frames that pause a priority, and those that pause none; other IPv4
packets. Frames of the project's EtherType that carry no data have the name of their subtype.
"""
_BY_OPCODE = {int(Opcode.ACK): ACK, int(Opcode.CNP): CNP}
_BY_SUBTYPE = {int(subtype): subtype.name.lower().replace("_", "-") for subtype in Subtype}

FlowKey = tuple[int, int, int]
"""Source and destination of a packet, as integers, and the queue pair number in its BTH (RoCE's header)."""


class FrameRecord(NamedTuple):
    """What became of a frame.

    node, port: for ARRIVED and FAILED, where the wire begins (a host's port is 0); else the switch, and -1.
    flow: id of the flow of a data packet, ACK or CNP, or None.
    psn: its packet sequence number, or None.
    """

    time_ns: int
    what: str
    node: str
    port: int
    flow: int | None
    psn: int | None
    bytes: int
    frame: str
    marked: bool


def read_records(
    entries: bytes, wires: Sequence[Wire], switches: Sequence[str], flows: Mapping[FlowKey, int]
) -> Iterator[FrameRecord]:
    """Decodes the entries of a recorder, by time.

    Args:
        switches: names by index.
        flows: ids of flows; both directions of a flow have a key.
    """
    ends = [(wire.source.node, wire.source.port) for wire in wires]
    nodes = [(name, -1) for name in switches]
    for entry in sorted(_ENTRY.iter_unpack(entries), key=lambda entry: entry[0]):
        time_ps, place, src, dst, qpn, psn, length, what, protocol, kind, flags, _ = entry
        is_roce = protocol == _ROCE
        node, port = (ends if what < _ON_WIRES else nodes)[place]
        yield FrameRecord(
            time_ps // PS_PER_NS,
            _WHAT[what],
            node,
            port,
            flows.get((src, dst, qpn)) if is_roce else None,
            psn if is_roce else None,
            length,
            _class(protocol, kind, flags),
            bool(flags & _MARKED),
        )


def _class(protocol: int, kind: int, flags: int) -> str:
    if protocol == _ROCE:
        usual = RETRANSMISSION if flags & _RETRANSMITTED else DATA
        return TRIMMED if flags & _TRIMMED else _BY_OPCODE.get(kind, usual)
    if protocol == _LOCAL:
        return _BY_SUBTYPE.get(kind, OTHER)
    if protocol == _MAC_CONTROL:
        return XOFF if kind else XON
    return IP if protocol == _IP else OTHER
