# SPDX-License-Identifier: Apache-2.0
"""Choices of one switch that runs `spritz` (Spritz §III): of any packet, in any mode, with lists of any size."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from tailrace.codec.layers.dscp import Dscp
from tailrace.codec.numbers import Opcode
from tests.long import times
from tests.p4src.frames import roce
from tests.p4src.rig import (
    DOWNLINK,
    HOST,
    HOST_PORT,
    OTHER_HOST,
    OTHER_HOST_PORT,
    PROGRAMS,
    REMOTE,
    UPLINKS,
    Rig,
)
from tests.p4src.spritz_rig import (
    ELSEWHERE,
    FAR_DEFAULT,
    MODES,
    NEAR,
    NEAR_DEFAULT,
    OTHER_VID,
    Lists,
    Sent,
    Slot,
    SpritzRig,
    Way,
    classed,
    vid,
)

LISTS = Lists(
    first_far=(Slot(DOWNLINK, True), *[Slot(port) for port in UPLINKS]),
    first_near=(Slot(DOWNLINK), Slot(UPLINKS[0])),
    second=(*[Slot(port) for port in UPLINKS], Slot(DOWNLINK)),
)
DRAWS = 60
SPORT_AT = 14 + 20

slots = st.lists(st.builds(Slot, st.integers(2, 500), st.booleans()), max_size=12).map(tuple)
evs = st.one_of(st.integers(0, 0xFFFF), st.sampled_from([0, 1, 0xFF, 0x100, 0xFF00, 0xFFFF]))
packets = st.builds(
    Sent,
    in_port=st.sampled_from([HOST_PORT, DOWNLINK, UPLINKS[0]]),
    src=st.sampled_from([HOST, NEAR, ELSEWHERE]),
    dst=st.sampled_from([REMOTE, NEAR]),
    ev=evs,
    tag=st.sampled_from([None, vid("MINIMAL"), vid("NONMINIMAL"), OTHER_VID, 0]),
    dscp=st.sampled_from([*Dscp, 46]),
)


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=times(40, 2))
@given(st.builds(Lists, slots, slots, slots), st.lists(packets, min_size=1, max_size=12), st.booleans())
def test_any_packet(mode, lists, sent, marks):
    """It takes one of the ways that the paper lets it, changed in nothing but TTL, path tag, VLAN tag, and marks that
    its host may not give.
    """
    with SpritzRig(lists, mode, marks=marks) as rig:
        for packet in sent:
            output = rig.forward(packet.in_port, packet.on_wire(), 1)
            way = rig.way_of(output)
            assert way in rig.ways(packet)
            expected = replace(packet, dscp=rig.dscp(packet)).frame(ttl=63, path_tag=way.port % 64)
            expected = expected if way.tag is None else classed(expected, way.tag)
            assert output.data.hex() == bytes(expected).hex()
        assert rig.drops() == {}


def with_ev(frame: bytes, ev: int) -> bytes:
    """A frame without tag with another entropy value; its UDP has no checksum."""
    return frame[:SPORT_AT] + ev.to_bytes(2, "big") + frame[SPORT_AT + 2 :]


@pytest.mark.parametrize("size", [1, 2, 3, 200, 255, 256])
def test_every_byte_of_both_roles(size):
    """EV1 at the first switch, EV2 at the second, modulo the list's size, whatever the other byte is."""
    ports = [300 + slot % 200 for slot in range(size)]
    lists = Lists(tuple(map(Slot, ports)), (), tuple(map(Slot, ports)))
    with SpritzRig(lists) as rig:
        first, second = bytes(Sent().on_wire()), bytes(Sent(DOWNLINK, NEAR).on_wire())
        for value in range(256):
            other = value * 37 % 256
            assert rig.forward(HOST_PORT, with_ev(first, value << 8 | other), 1).port == ports[value % size]
            assert rig.forward(DOWNLINK, with_ev(second, other << 8 | value), 1).port == ports[value % size]


def test_widest_list():
    """Of 512 slots a byte names the first 256."""
    slots = tuple(Slot(2 + slot % 500) for slot in range(512))
    with SpritzRig(Lists(slots, (), ())) as rig:
        frame = bytes(Sent().on_wire())
        ports = {rig.forward(HOST_PORT, with_ev(frame, value << 8 | 1), 1).port for value in range(256)}
    assert ports == {slot.port for slot in slots[:256]}


def test_draws_are_uniform():
    """Valiant: each slot of either role by its share, within five deviations."""
    with SpritzRig(LISTS, "RANDOM", seed=3) as rig:
        for packet in (Sent(), Sent(DOWNLINK, NEAR, ev=5)):
            count, frame = 2000, bytes(packet.on_wire())
            shares = Counter(Way(rig.forward(packet.in_port, frame, now).port) for now in range(count))
            assert set(shares) == rig.ways(packet)
            # The default is one of the slots, and stands for the one that leads back.
            weight = {Way(FAR_DEFAULT): 2} if packet.in_port == DOWNLINK else {}
            for way, share in shares.items():
                mean = count / 5 * weight.get(way, 1)
                assert abs(share - mean) < 5 * mean**0.5


bytes_waiting = st.one_of(st.integers(0, 20_000), st.integers(0, 2**32 - 1))
link_counts = st.integers(1, 255)


@settings(max_examples=150)
@given(
    loads=st.tuples(bytes_waiting, bytes_waiting),
    links=st.tuples(link_counts, link_counts),
    equal=st.booleans(),
    goes_on=st.booleans(),
    tag=st.sampled_from([None, vid("NONMINIMAL"), OTHER_VID]),
)
def test_ugal_l_rule(loads, links, equal, goes_on, tag):
    """Minimal if q_min * h_min <= q_val * h_val, also where the products are equal or fill 40 bits."""
    if equal:
        loads = (links[1] * 1000, links[0] * 1000)
    detour = Slot(UPLINKS[0], goes_on, links[1])
    with SpritzRig(Lists((detour,), (), (), minimal_links=links[0]), "UGAL_L") as rig:
        rig.set_load(FAR_DEFAULT, loads[0])
        rig.set_load(detour.port, loads[1])
        way = rig.way_of(rig.forward(HOST_PORT, Sent(tag=tag).on_wire(), 1))
    if loads[0] * links[0] <= loads[1] * links[1]:
        assert way == Way(FAR_DEFAULT)
    else:
        assert way == Way(detour.port, vid("NONMINIMAL") if goes_on else None)


@settings(max_examples=25)
@given(st.lists(st.integers(0, 5000), min_size=5, max_size=5))
def test_ugal_l_of_many_links(loads):
    """Each packet compares the default port with one that it draws: detours are those that win, all of them."""
    with SpritzRig(LISTS, "UGAL_L") as rig:
        load = dict(zip((DOWNLINK, *UPLINKS), loads, strict=True))
        for port, nbytes in load.items():
            rig.set_load(port, nbytes)
        frame = bytes(Sent().on_wire())
        taken = {rig.way_of(rig.forward(HOST_PORT, frame, now)) for now in range(DRAWS)}
    worst = load[FAR_DEFAULT] * LISTS.minimal_links
    wins = {slot for slot in LISTS.first_far if worst > load[slot.port] * slot.links}
    detours = {Way(slot.port, vid("NONMINIMAL") if slot.goes_on else None) for slot in wins}
    default = {Way(FAR_DEFAULT)} if len(wins) < len(LISTS.first_far) else set()
    assert taken == detours | default


def test_ugal_l_in_the_own_group():
    """The list of the own group, and the links of the destination's entry."""
    with SpritzRig(LISTS, "UGAL_L") as rig:
        rig.set_load(NEAR_DEFAULT, 6)
        rig.set_load(UPLINKS[0], 1)
        ways = {rig.way_of(rig.forward(HOST_PORT, Sent(dst=NEAR).on_wire(), now)) for now in range(DRAWS)}
    assert ways == {Way(NEAR_DEFAULT), Way(UPLINKS[0])}  # 6 * 1 > 1 * 5, and against itself it wins


def bare(content: Packet) -> Packet:
    """A packet from the host to REMOTE."""
    return Ether(src="02:00:0a:00:01:02", dst="02:00:00:00:00:fe") / content


OTHERS = [
    IP(src=HOST, dst=REMOTE, id=0) / UDP(sport=0x101, dport=9, chksum=0) / Raw(bytes(30)),
    IP(src=HOST, dst=REMOTE, id=0) / TCP(sport=0x101, dport=4791) / Raw(bytes(30)),
    IP(src=HOST, dst=REMOTE, id=0) / ICMP() / Raw(bytes(30)),
    IP(src=HOST, dst=REMOTE, id=0, flags="MF") / UDP(sport=0x101, dport=4791, chksum=0) / Raw(bytes(30)),
    IP(src=HOST, dst=REMOTE, id=0, tos=Dscp.STEERED << 2) / ICMP() / Raw(bytes(30)),
]


@pytest.mark.parametrize("mode", MODES)
def test_only_roce_is_steered(mode):
    """Everything else takes the default table, tagged or not, and has no tag afterwards."""
    with SpritzRig(LISTS, mode) as rig:
        for content in OTHERS:
            for frame in (bare(content), classed(bare(content), vid("NONMINIMAL"))):
                assert rig.way_of(rig.forward(HOST_PORT, frame, 1)) == Way(FAR_DEFAULT)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("opcode", [Opcode.ACK, Opcode.CNP])
def test_answers_take_the_ways_of_data(mode, opcode):
    """In the control queue."""
    with SpritzRig(LISTS, mode) as rig:
        for ev in range(1, 0x0800, 0x0101):
            frame = roce(ev, opcode=int(opcode))
            assert rig.way_of(rig.forward(HOST_PORT, frame, 1)) in rig.ways(Sent(ev=ev))
        rig.switch.port_config(FAR_DEFAULT, rate_bps=8)
        rig.default("spritz_config", mode=0, host_marks=1)
        for _ in range(2):
            rig.send(HOST_PORT, frame, 2)
        assert rig.switch.queue_depth(FAR_DEFAULT, 7)[0] == 1


@pytest.mark.parametrize("mode", MODES)
def test_tags_never_reach_hosts(mode):
    """From wherever, and the account is of what leaves."""
    with SpritzRig(LISTS, mode) as rig:
        for port, src in ((HOST_PORT, HOST), (DOWNLINK, NEAR), (UPLINKS[0], REMOTE)):
            frame = roce(1, src=src, dst=OTHER_HOST)
            output = rig.forward(port, classed(frame, vid("NONMINIMAL")), 1)
            assert (output.port, len(output.data)) == (OTHER_HOST_PORT, len(frame))
        assert rig.load(OTHER_HOST_PORT) == 0


@pytest.mark.parametrize("program", [name for name in PROGRAMS if name != "spritz"])
def test_tags_mean_nothing_to_other_programs(program):
    """Whatever is behind one, also where it is broken."""
    frame = bytes(classed(roce(), vid("NONMINIMAL")))
    with Rig(program) as rig:
        for data in (
            frame,
            frame[:30],
            frame[:28] + b"\xff\xff" + frame[30:],
            frame[:16] + b"\x88\xb5" + frame[18:],
        ):
            assert rig.send(HOST_PORT, data, 1) == []
        assert rig.drops() == {"UNSUPPORTED": 4}
