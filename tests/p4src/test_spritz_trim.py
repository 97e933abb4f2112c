# SPDX-License-Identifier: Apache-2.0
"""Trimming (common/trim.p4): what is cut and when, what is charged, and that headers overtake data.

Random traffic with all that could leak: data that fits, is cut or dropped, tags that are kept, set and cleared, control
packets, payload that is only a length, ports that are slow.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether

from tailrace.codec.layers.dscp import Dscp
from tailrace.codec.numbers import Opcode
from tests.p4src.frames import roce
from tests.p4src.rig import DOWNLINK, HOST, HOST_PORT, OTHER_HOST, OTHER_HOST_PORT, UPLINKS, number
from tests.p4src.spritz_rig import (
    FAR_DEFAULT,
    MODES,
    NEAR,
    OTHER_VID,
    Lists,
    Sent,
    Slot,
    SpritzRig,
    classed,
    cut,
    vid,
)

LISTS = Lists(
    first_far=(Slot(DOWNLINK, True), *[Slot(port) for port in UPLINKS]),
    first_near=(Slot(DOWNLINK), Slot(UPLINKS[0])),
    second=tuple(Slot(port) for port in UPLINKS),
)
TRIMMED_BYTES, TAG_BYTES = 54, 4
RATE_BPS = 8_000_000_000  # a byte a nanosecond
LIMIT_BYTES = 6000
ALL_PORTS = (HOST_PORT, OTHER_HOST_PORT, DOWNLINK, *UPLINKS)
MOST = 2**32 - 1

sizes = st.one_of(st.integers(0, 200), st.integers(0, 9000))
loads = st.one_of(st.integers(0, 400), st.integers(0, 20_000), st.integers(MOST - 400, MOST))


@settings(max_examples=200)
@given(
    load=loads,
    limit=loads,
    size=sizes,
    virtual=st.sampled_from([0, 1, 4096]),
    near_limit=st.booleans(),
    trims=st.booleans(),
    dscp=st.sampled_from([Dscp.DEFAULT, Dscp.STEERED, Dscp.TRIMMED, Dscp.TRIMMED_STEERED, 46]),
    to_host=st.booleans(),
)
def test_fits_is_cut_or_dropped(load, limit, size, virtual, near_limit, trims, dscp, to_host):
    """Data fits up to the limit; beyond, headers fit up to twice of it; with payload of bytes and of mere length."""
    frame = roce(1, dst=OTHER_HOST, payload=bytes(size), tos=dscp << 2 | 2)
    port = OTHER_HOST_PORT
    if not to_host:
        frame, port = roce(1, payload=bytes(size), tos=dscp << 2 | 2), FAR_DEFAULT
    length = len(frame) + virtual
    if near_limit:
        limit = min(MOST, load + length - 1 + size % 3)
    with SpritzRig(LISTS, "MINIMAL") as rig:
        if not to_host and dscp in (Dscp.STEERED, Dscp.TRIMMED_STEERED):
            port = DOWNLINK  # EV1 0
        rig.set_load(port, load)
        rig.default("queue_config", "set_queue_trim" if trims else "set_queue_limit", limit_bytes=limit)
        outputs = rig.send(HOST_PORT, frame, 1, virtual_bytes=virtual)
        kept = rig.dscp(Sent(dscp=dscp)) << 2 | 2
        left = roce(1, dst=OTHER_HOST, payload=bytes(size), tos=kept, ttl=63)
        left.dst = "00:00:00:00:00:02"
        if not to_host:
            left = roce(1, payload=bytes(size), tos=kept, ttl=63, resv6=port % 64)
        if limit == 0 or load + length <= limit:
            assert [(o.port, o.data.hex(), o.virtual_bytes) for o in outputs] == [
                (port, bytes(left).hex(), virtual)
            ]
            assert (rig.count("trims"), rig.drops()) == (0, {})
        elif trims and load + TRIMMED_BYTES <= 2 * limit:
            steered = dscp in (Dscp.STEERED, Dscp.TRIMMED_STEERED)
            headers = cut(left, Dscp.TRIMMED_STEERED if steered else Dscp.TRIMMED)
            assert [(o.port, o.data.hex(), o.virtual_bytes) for o in outputs] == [(port, headers.hex(), 0)]
            assert (rig.count("trims"), rig.drops()) == (1, {})
        else:
            assert outputs == []
            assert (rig.count("trims"), rig.drops()) == (0, {"QUEUE_LIMIT": 1})
        assert rig.load(port) == load
        assert rig.source_load(HOST_PORT) == 0


def test_what_is_left_is_honest():
    """Scapy finds every length and the header checksum right, and nothing behind the BTH."""
    with SpritzRig(LISTS, "MINIMAL") as rig:
        rig.default("queue_config", "set_queue_trim", limit_bytes=TRIMMED_BYTES)
        frame = roce(1, payload=bytes(1000))
        frame[UDP].chksum = 0xBEEF
        data = rig.forward(HOST_PORT, frame, 1, virtual_bytes=3000).data
    packet = Ether(data)
    assert (len(data), packet[IP].len, packet[UDP].len, packet[UDP].chksum) == (TRIMMED_BYTES, 40, 20, 0)
    fresh = packet[IP].copy()
    del fresh.chksum
    assert IP(bytes(fresh)).chksum == packet[IP].chksum
    assert packet[IP].tos >> 2 == Dscp.TRIMMED


def test_a_cut_packet_is_never_cut_again():
    """It is urgent at every switch behind, at any load; the same with a payload is data."""
    with SpritzRig(LISTS, "MINIMAL") as rig:
        rig.default("queue_config", "set_queue_trim", limit_bytes=TRIMMED_BYTES)
        once = rig.forward(HOST_PORT, roce(1), 1)
        rig.set_load(FAR_DEFAULT, 10**9)
        twice = rig.forward(UPLINKS[0], once.data, 2)
        assert len(twice.data) == TRIMMED_BYTES
        assert rig.count("trims") == 1
        for dscp in (Dscp.TRIMMED, Dscp.TRIMMED_STEERED):
            assert rig.send(UPLINKS[0], roce(1, tos=dscp << 2, src="10.0.9.1"), 3) == []
        assert rig.drops() == {"QUEUE_LIMIT": 2}


def test_headers_overtake_data():
    """In exact time: of ten packets three fit, the headers of the others leave right behind the first one."""
    with SpritzRig(LISTS, "MINIMAL") as rig:
        rig.switch.port_config(FAR_DEFAULT, rate_bps=RATE_BPS)
        frame = roce(1, payload=bytes(946))
        rig.default("queue_config", "set_queue_trim", limit_bytes=2 * len(frame))
        outputs = [output for _ in range(10) for output in rig.send(HOST_PORT, frame, 1)]
        rig.switch.run(1 << 40)
        lengths = [len(output.data) for output in outputs + rig.switch.outputs()]
    assert sorted(lengths) == [TRIMMED_BYTES] * 7 + [len(frame)] * 3
    assert lengths == [len(frame), *[TRIMMED_BYTES] * 7, len(frame), len(frame)]


steps = st.lists(
    st.tuples(
        st.sampled_from(["out", "out", "second", "transit", "local", "control", "ttl", "tcp"]),
        st.integers(1, 7),
        sizes,
        st.sampled_from([0, 0, 4096]),
        st.sampled_from([None, None, vid("MINIMAL"), vid("NONMINIMAL"), OTHER_VID]),
        st.sampled_from([Dscp.DEFAULT, Dscp.DEFAULT, Dscp.STEERED, Dscp.TRIMMED]),
        st.integers(0, 4000),
    ),
    min_size=5,
    max_size=25,
)


def waiting(rig: SpritzRig, port: int) -> tuple[int, int]:
    """Packets and bytes in a port's queues, as the traffic manager counts them."""
    depths = [rig.switch.queue_depth(port, priority) for priority in range(number("priority_queues"))]
    return sum(packets for packets, _ in depths), sum(nbytes for _, nbytes in depths)


@settings(max_examples=50)
@given(st.sampled_from(MODES), st.booleans(), steps)
def test_accounts_are_the_queues(mode, trims, script):
    """By egress port, after every packet, to the byte: of the traffic manager's but for tags, which a packet has or
    has not until it leaves; and nothing is left once all has gone.
    """
    with SpritzRig(LISTS, mode) as rig:
        for port in ALL_PORTS:
            rig.switch.port_config(port, rate_bps=RATE_BPS)
        rig.default("queue_config", "set_queue_trim" if trims else "set_queue_limit", limit_bytes=LIMIT_BYTES)
        now, sent, left, tagged = 0, 0, 0, False
        for kind, flow, size, virtual, tag, dscp, pause_ns in script:
            now += pause_ns
            port, frame = frame_of(kind, flow, size, dscp)
            frame = frame if tag is None else classed(frame, tag)
            left += len(rig.send(port, frame, now, virtual_bytes=virtual))
            sent += 1
            tagged = tagged or tag is not None or mode == "UGAL_L"
            for each in ALL_PORTS:
                packets, nbytes = waiting(rig, each)
                assert abs(rig.load(each) - nbytes) <= (TAG_BYTES * packets if tagged else 0)
            assert sum(map(rig.load, ALL_PORTS)) == sum(rig.source_load(port) for port in range(512))
        rig.switch.run(1 << 50)
        left += len(rig.switch.outputs())
        assert sent == left + sum(rig.drops().values())
        assert [port for port in range(512) if rig.load(port) or rig.source_load(port)] == []
        if not trims:
            assert rig.count("trims") == 0


def frame_of(kind: str, flow: int, size: int, dscp: int) -> tuple[int, Ether]:
    """Port and frame of a step."""
    sent = Sent(ev=flow << 8 | flow, dscp=dscp, size=size)
    if kind == "second":
        return DOWNLINK, Sent(DOWNLINK, NEAR, ev=sent.ev, dscp=dscp, size=size).frame()
    if kind == "transit":
        return UPLINKS[0], Sent(UPLINKS[0], NEAR, ev=sent.ev, dscp=dscp, size=size).frame()
    if kind == "local":
        return HOST_PORT, roce(flow, dst=OTHER_HOST, payload=bytes(size), tos=dscp << 2)
    if kind == "control":
        return HOST_PORT, roce(flow, src=HOST, opcode=int(Opcode.ACK), payload=bytes(4))
    if kind == "ttl":
        return HOST_PORT, sent.frame(ttl=1)
    if kind == "tcp":
        frame = sent.frame()
        frame[IP].proto = 6
        return HOST_PORT, frame
    return HOST_PORT, sent.frame()


@settings(max_examples=40)
@given(
    size=sizes,
    load=st.integers(0, 500),
    goes_on=st.booleans(),
    tag=st.sampled_from(["NONMINIMAL", "MINIMAL"]),
)
def test_the_limit_counts_what_leaves(size, load, goes_on, tag):
    """A tag that goes on is part of the packet, one that is cleared is not; cut packets keep it, too."""
    with SpritzRig(Lists((Slot(DOWNLINK, goes_on),), (), ()), "CLASS") as rig:
        sent = Sent(tag=vid(tag), size=size)
        (way,) = rig.ways(sent)
        leaves = len(sent.frame()) + (TAG_BYTES if way.tag else 0)
        for room, fits in ((leaves, True), (leaves - 1, False)):
            rig.set_load(way.port, load)
            rig.default("queue_config", "set_queue_trim", limit_bytes=load + room)
            data = rig.forward(HOST_PORT, sent.on_wire(), 1).data
            assert (Dot1Q in Ether(data)) == bool(way.tag)
            assert len(data) == (leaves if fits else TRIMMED_BYTES + (TAG_BYTES if way.tag else 0))
