# SPDX-License-Identifier: Apache-2.0
"""What the network in C takes for a match is what FrameMatch itself does, on any frame."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from tailrace.codec.layers.local import DataShim, Detour, FlowcutAck, FlowPause, LocalHeader, PathProbe, Stamp
from tailrace.codec.layers.nic_shim import NicAck
from tailrace.codec.numbers import ACK_PORT, LOCAL_TYPE, Subtype
from tailrace.sim.network import FrameMatch, Wire, WireEvent
from tests.sim.network.l3 import Frame, attach_all, network, topology

_SETTINGS = settings(max_examples=150)

_IP = IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=5000, dport=4791) / Raw(bytes(30))
_STACK = [Stamp(ticks=1, in_port=2), Stamp(ticks=3, in_port=4)]
_SHIM = LocalHeader(subtype=1) / DataShim(stack=_STACK) / _IP
_ACK = LocalHeader(subtype=2) / FlowcutAck()
_NIC_ACK = IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=5000, dport=ACK_PORT) / NicAck()
_STACKS: list[tuple[Packet, bool, bool]] = [
    (_IP, True, False),
    (_SHIM, True, False),
    (_ACK, False, True),
    (_NIC_ACK, True, True),
    (LocalHeader(subtype=6) / Detour(group=1) / _NIC_ACK, True, True),
    (LocalHeader(subtype=3) / FlowPause(), False, False),
    (LocalHeader(subtype=5) / PathProbe(stamped=1) / _IP, True, False),
    (LocalHeader(subtype=6) / Detour(group=1) / _IP, True, False),
    (LocalHeader(subtype=6) / Detour(group=1, next_type=LOCAL_TYPE) / _SHIM, True, False),
    (LocalHeader(subtype=6) / Detour(group=1, next_type=LOCAL_TYPE) / _ACK, False, True),
]
"""Frames behind Ethernet, whether they are a flow's own, whether they are ACKs of Flowcut."""


def _frame(behind: Packet) -> bytes:
    return bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / behind)


def lost(match: FrameMatch, frames: list[bytes]) -> list[bytes]:
    """The frames that a fault drops if it drops all that match."""
    taken: list[bytes] = []

    def tap(wire: Wire, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        if event is WireEvent.LOST:
            taken.append(frame)

    with network(topology()) as net:
        nics = attach_all(net)
        net.drop("h1", "leaf1", 1, matches=match)
        net.tap(tap, net.wires_between("h1", "leaf1"))
        nics["h1"].script = [(0, Frame(frame)) for frame in frames]
        net.run()
    return taken


@pytest.mark.parametrize(("behind", "flows", "ack"), _STACKS)
def test_frames_are_told_apart(behind: Packet, flows: bool, ack: bool) -> None:
    frame = _frame(behind)
    for match, expected in ((FrameMatch.FLOWS, flows), (FrameMatch.FLOWCUT_ACK, ack), (FrameMatch.ALL, True)):
        assert match(frame) == expected
        assert lost(match, [frame]) == [frame] * expected


_TYPES = [LOCAL_TYPE.to_bytes(2, "big"), b"\x08\x00", b"\x81\x00"]
_JUNK = st.builds(
    lambda kind, rest: bytes(12) + kind + rest,
    st.sampled_from(_TYPES),
    st.lists(
        st.one_of(st.binary(max_size=9), st.sampled_from([*_TYPES, b"\x06\0\0", b"\x01", b"\x02"])),
        max_size=8,
    ).map(b"".join),
)
_REAL = st.builds(
    lambda frame, cut: frame[:cut], st.sampled_from([_frame(s) for s, _, _ in _STACKS]), st.integers(1, 200)
)


@given(
    match=st.builds(
        FrameMatch, st.booleans(), st.frozensets(st.integers(0, 8)), st.sampled_from([0, 4791, ACK_PORT])
    ),
    frames=st.lists(st.one_of(_JUNK, _REAL, st.binary(min_size=1, max_size=40)), min_size=1, max_size=30),
)
@_SETTINGS
def test_any_frame_matches_in_c_as_in_python(match: FrameMatch, frames: list[bytes]) -> None:
    assert lost(match, frames) == [frame for frame in frames if match(frame)]


def test_subtypes_that_cannot_be_are_refused() -> None:
    assert FrameMatch(False, frozenset({int(Subtype.FLOW_PAUSE)})).mask == 8
    with pytest.raises(ValueError, match=r"subtypes must be within 0\.\.63"):
        FrameMatch(False, frozenset({64}))


def test_a_port_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match=r"udp_port must be within 0\.\.65535"):
        FrameMatch(False, udp_port=65536)
