# SPDX-License-Identifier: Apache-2.0
"""Choices of one switch of a Dragonfly: which path the rule takes, what keeps it, and where a detour is over."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.l2 import Ether

from tailrace.codec.layers.local import Detour
from tailrace.codec.numbers import LOCAL_TYPE, Opcode
from tailrace.switch.core import SentFrame
from tests.p4src.dragonfly_rig import (
    FOURTH_GROUP,
    NEVER_TICKS,
    ONWARD_GROUP,
    THIRD_GROUP,
    DragonflyRig,
    Link,
)
from tests.p4src.flow_hash import flow_hash
from tests.p4src.frames import ack_of, detoured, roce, shimmed
from tests.p4src.rig import (
    DOWNLINK,
    HOST_PORT,
    OTHER_HOST,
    REMOTE,
    RTT_OFF,
    UPLINK_GROUP,
    UPLINKS,
    Rig,
)

A, B, C, D = UPLINKS
MINIMAL = [Link(A, 2), Link(B, 3)]
DETOURS = [Link(C, 4, THIRD_GROUP), Link(D, 5, THIRD_GROUP), Link(D, 4, FOURTH_GROUP)]
PROGRAMS = ("dragonfly", "flowcut_dragonfly")

bytes_waiting = st.one_of(st.integers(0, 20_000), st.integers(0, 2**32 - 1))
link_counts = st.integers(1, 255)


def path_of(output: SentFrame) -> tuple[int, int]:
    """The port of a frame that left, and the group of its detour, 0 where it has none."""
    if int.from_bytes(output.data[12:14], "big") != LOCAL_TYPE:
        return output.port, 0  # as most do, and Scapy takes long
    frame = Ether(output.data)
    return output.port, frame[Detour].group if Detour in frame else 0


def key(link: Link) -> tuple[int, int]:
    return link.port, link.group


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=120)
@given(bytes_waiting, bytes_waiting, link_counts, link_counts, st.booleans())
def test_ugal_l_rule(name, minimal_bytes, detour_bytes, minimal_links, detour_links, equal):
    """Minimal if q_min * h_min <= q_val * h_val, also where the products are equal or fill 40 bits."""
    if equal:
        minimal_bytes, detour_bytes = detour_links * 1000, minimal_links * 1000
    minimal, detour = Link(A, minimal_links), Link(B, detour_links, THIRD_GROUP)
    with DragonflyRig(name, [minimal], [detour]) as rig:
        rig.paths("UGAL_L")
        if name != "dragonfly":
            rig.flowcut(first_path="LEAST_LOADED")
        rig.set_load(A, minimal_bytes)
        rig.set_load(B, detour_bytes)
        path = path_of(rig.forward(HOST_PORT, roce(), 1))
    takes_minimal = minimal_bytes * minimal_links <= detour_bytes * detour_links
    assert path == (key(minimal) if takes_minimal else key(detour))


@settings(max_examples=25)
@given(st.lists(st.integers(0, 5000), min_size=4, max_size=4))
def test_ugal_l_of_many_paths(loads):
    """What it takes wins against some path of the other kind; nothing that loses against all of them is taken."""
    with DragonflyRig("dragonfly", MINIMAL, DETOURS) as rig:
        rig.paths("UGAL_L")
        load = dict(zip(UPLINKS, loads, strict=True))
        for port, nbytes in load.items():
            rig.set_load(port, nbytes)
        taken = {path_of(rig.forward(HOST_PORT, roce(), now)) for now in range(60)}
    wins = {key(m) for m in MINIMAL for d in DETOURS if load[m.port] * m.links <= load[d.port] * d.links}
    wins |= {key(d) for m in MINIMAL for d in DETOURS if load[m.port] * m.links > load[d.port] * d.links}
    assert taken <= wins
    assert taken & {key(link) for link in MINIMAL} or not wins & {key(link) for link in MINIMAL}


@pytest.mark.parametrize("own", [range(1), range(1, 2), range(2, 4), range(4, 5), range(0)])
def test_detours_through_the_destination_are_left_out(own):
    """Wherever they are in the list; all others are equally likely."""
    detours = [Link(10 + slot, 4, 20 + slot) for slot in range(5)]
    packets = 600
    with DragonflyRig("dragonfly", MINIMAL, detours, destination_slots=own) as rig:
        rig.paths("VALIANT")
        shares = Counter(path_of(rig.forward(HOST_PORT, roce(), now)) for now in range(packets))
    assert set(shares) == {key(link) for slot, link in enumerate(detours) if slot not in own}
    mean = packets / len(shares)
    assert max(abs(share - mean) for share in shares.values()) < 5 * mean**0.5


def test_minimal_packets_take_all_links_alike():
    packets = 800
    with DragonflyRig("dragonfly", [Link(port, 2) for port in UPLINKS], DETOURS) as rig:
        rig.paths("MINIMAL")
        shares = Counter(path_of(rig.forward(HOST_PORT, roce(), now)) for now in range(packets))
    assert set(shares) == {(port, 0) for port in UPLINKS}
    mean = packets / len(UPLINKS)
    assert max(abs(share - mean) for share in shares.values()) < 5 * mean**0.5


@pytest.mark.parametrize("rule", ["MINIMAL", "VALIANT", "MIXED"])
def test_flows_by_hash(rule):
    """Each flow has one path: its ECMP path where that is minimal, else the detour of its remixed hash."""
    with DragonflyRig("dragonfly", MINIMAL, DETOURS) as rig:
        rig.paths(rule, "FLOW", minimal_share=100)
        for sport in range(400):
            frame = roce(sport)
            value = flow_hash(frame)
            _, detour, coin = rig.drawn_by(value)
            away = rule == "VALIANT" or (rule == "MIXED" and coin >= 100)
            expected = key(detour) if away else (UPLINKS[value % len(UPLINKS)], 0)
            assert {path_of(rig.forward(HOST_PORT, frame, now)) for now in range(2)} == {expected}


@pytest.mark.parametrize(("share", "kinds"), [(0, {True}), (256, {False}), (128, {True, False})])
def test_share_of_minimal_paths(share, kinds):
    """None, all, or about as many as it says."""
    flows = 1000
    with DragonflyRig("dragonfly", MINIMAL, DETOURS) as rig:
        rig.paths("MIXED", "FLOW", minimal_share=share)
        away = [path_of(rig.forward(HOST_PORT, roce(sport), 0))[1] != 0 for sport in range(flows)]
    assert set(away) == kinds
    assert abs(sum(away) - flows * (256 - share) / 256) < 5 * (flows / 4) ** 0.5


def test_hashes_of_minimal_paths_and_detours_are_independent():
    """Flows that share their minimal path are spread over the detours."""
    with DragonflyRig("dragonfly", MINIMAL, DETOURS) as rig:
        chosen = [rig.drawn_by(flow_hash(roce(sport)))[:2] for sport in range(1800)]
    pairs = Counter(chosen)
    mean = len(chosen) / (len(MINIMAL) * len(DETOURS))
    assert max(abs(pairs[m, d] - mean) for m in MINIMAL for d in DETOURS) < 5 * mean**0.5


def test_flowlets_keep_their_path_whatever_the_queues_do():
    """UGAL-L decides for the first packet; the next flowlet follows the queues of its own time."""
    minimal, detour = Link(A, 2), Link(B, 4, THIRD_GROUP)
    with DragonflyRig("dragonfly", [minimal], [detour]) as rig:
        rig.paths("UGAL_L", "FLOWLET")
        rig.default("flowlet_config", "set_flowlet_gap", gap_ticks=100)
        for start, (loaded, expected) in enumerate([(A, detour), (B, minimal), (A, detour)], 1):
            now = 1000 * start
            rig.set_load(A, 0)
            rig.set_load(B, 0)
            rig.set_load(loaded, 5000)
            assert path_of(rig.forward(HOST_PORT, roce(), now)) == key(expected)
            rig.set_load(A, 9000 * (loaded == B))
            rig.set_load(B, 9000 * (loaded == A))
            assert path_of(rig.forward(HOST_PORT, roce(), now + 100)) == key(expected)
        assert rig.count("flowlets_created") == 3


@pytest.mark.parametrize("name", PROGRAMS)
def test_only_data_of_hosts_for_other_groups_is_detoured(name):
    """ACKs, packets of other switches and destinations that are near go minimally."""
    ack = roce(opcode=int(Opcode.ACK), payload=bytes(4))
    with DragonflyRig(name, MINIMAL, DETOURS) as rig:
        rig.paths("VALIANT")
        if name != "dragonfly":
            rig.flowcut("INGRESS", first_path="LEAST_LOADED")
        rig.group("10.0.3.2", 7, (A,))
        assert path_of(rig.forward(HOST_PORT, roce(), 1))[1] != 0
        for port, frame in (
            (HOST_PORT, ack),
            (B, roce(5)),
            (DOWNLINK, roce(6)),
            (HOST_PORT, roce(dst="10.0.3.2")),
        ):
            assert path_of(rig.forward(port, frame, 2))[1] == 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_transit_within_the_group(name):
    """A detour goes on by own links to its group, a minimal packet by own links to its destination's."""
    with DragonflyRig(name, MINIMAL, DETOURS) as rig:
        rig.onward(UPLINK_GROUP, (A,))
        rig.onward(THIRD_GROUP, (C,), ONWARD_GROUP + 1)
        for sport in range(20):
            assert path_of(rig.forward(DOWNLINK, roce(sport), 1)) == (A, 0)
            assert path_of(rig.forward(DOWNLINK, detoured(roce(sport), THIRD_GROUP), 1)) == (C, THIRD_GROUP)
        expected = detoured(roce(7, ttl=63, resv6=C), THIRD_GROUP)
        assert rig.forward(DOWNLINK, detoured(roce(7), THIRD_GROUP), 1).data.hex() == bytes(expected).hex()


@pytest.mark.parametrize("name", PROGRAMS)
def test_link_to_another_group_ends_a_detour(name):
    """Whatever group the header names; the packet then goes as one from a host, but minimally."""
    with DragonflyRig(name, MINIMAL, DETOURS) as rig:
        rig.paths("VALIANT", "FLOW")
        rig.onward(THIRD_GROUP, (C,))
        for group in (UPLINK_GROUP, THIRD_GROUP, 77, 0):
            frame = roce(group + 1)
            output = rig.forward(A, detoured(frame, group), 1)
            port = UPLINKS[flow_hash(frame) % len(UPLINKS)]
            assert output.data.hex() == bytes(roce(group + 1, ttl=63, resv6=port)).hex()
            assert output.port == port


@pytest.mark.parametrize("name", PROGRAMS)
def test_detour_that_no_link_is_known_for(name):
    """It is given up: the packet goes by its route."""
    with DragonflyRig(name, MINIMAL, DETOURS) as rig:
        assert path_of(rig.forward(DOWNLINK, detoured(roce(), 40), 1)) == (UPLINKS[flow_hash(roce()) % 4], 0)


@pytest.mark.parametrize("name", PROGRAMS)
def test_hosts_neither_see_nor_send_detours(name):
    with DragonflyRig(name, MINIMAL, DETOURS) as rig:
        rig.onward(THIRD_GROUP, (C,))
        frame = roce(src=REMOTE, dst=OTHER_HOST)
        expected = roce(src=REMOTE, dst=OTHER_HOST, ttl=63)
        expected.dst = "00:00:00:00:00:02"
        for port in (DOWNLINK, A):
            output = rig.forward(port, detoured(frame, THIRD_GROUP), 1)
            assert output.data.hex() == bytes(expected).hex()
        assert rig.send(HOST_PORT, detoured(roce(), THIRD_GROUP), 2) == []
        assert rig.drops() == {"CONTROL_FROM_HOST": 1}


@pytest.mark.parametrize("name", ["ecmp", "spray", "letflow", "flowcut"])
def test_other_programs_drop_detours(name):
    with Rig(name) as rig:
        assert rig.send(DOWNLINK, detoured(roce(), THIRD_GROUP), 1) == []
        assert rig.drops() == {"UNSUPPORTED": 1}


@pytest.mark.parametrize("name", PROGRAMS)
def test_broken_detours_are_dropped(name):
    """Cut off in the header; behind it a second one, nothing known, or a subtype that is none."""
    whole = bytes(detoured(roce(), THIRD_GROUP))
    twice = bytes(detoured(detoured(roce(), THIRD_GROUP), THIRD_GROUP))
    with DragonflyRig(name, MINIMAL, DETOURS) as rig:
        rig.onward(THIRD_GROUP, (C,))
        for cut in range(14, 19):
            assert rig.send(DOWNLINK, whole[:cut], 1) == []
        assert rig.drops() == {"MALFORMED": 5}
        for frame in (
            twice,
            whole[:17] + b"\x86\xdd" + whole[19:],
            whole[:17] + b"\x88\xb5\x63" + whole[19:],
        ):
            assert rig.send(DOWNLINK, frame, 1) == []
        assert rig.drops() == {"MALFORMED": 5, "UNSUPPORTED": 3}


def flowcut_rig(mode: str = "FULL") -> DragonflyRig:
    rig = DragonflyRig("flowcut_dragonfly", [Link(A, 2)], [Link(B, 4, THIRD_GROUP)])
    rig.members(THIRD_GROUP, (B,))
    rig.paths("UGAL_L", "FLOW")
    rig.flowcut(mode, first_path="LEAST_LOADED", age_ticks=NEVER_TICKS)
    return rig


def test_flowcut_stays_on_its_detour_until_nothing_is_in_flight():
    """Then it follows the queues: back to the minimal path."""
    with flowcut_rig() as rig:
        rig.set_load(A, 5000)
        first = rig.forward(HOST_PORT, roce(), 10)
        rig.set_load(A, 0)
        rig.set_load(B, 90_000)
        second = rig.forward(HOST_PORT, roce(), 20)
        assert path_of(first) == path_of(second) == (B, THIRD_GROUP)
        for ticks in (10, 20):
            rig.send(B, ack_of(roce(), 3, [(ticks, HOST_PORT)]), 30)
        assert rig.count("flowcut_deleted") == 1
        assert path_of(rig.forward(HOST_PORT, roce(), 40)) == (A, 0)
        assert rig.count("flowcut_rerouted") == 1


def test_flowcut_that_was_congested_changes_the_kind_of_its_path():
    """Whatever the queues say: they know nothing of a link further on."""
    with flowcut_rig() as rig:
        rig.drain(rtt_threshold=0)
        rig.forward(HOST_PORT, roce(), 10)
        rig.send(A, ack_of(roce(), 3, [(10, HOST_PORT)]), 30)
        rig.set_load(B, 90_000)
        assert path_of(rig.forward(HOST_PORT, roce(), 40)) == (B, THIRD_GROUP)


def test_ugal_l_decides_again_where_both_paths_were_congested():
    """And a path that was congested later than the other one is left, whatever waits for that."""
    with flowcut_rig() as rig:

        def flowcut(threshold: int) -> tuple[int, int]:
            rig.drain(rtt_threshold=threshold)
            output = rig.forward(HOST_PORT, roce(), 10)
            rig.send(output.port, ack_of(roce(), 3, [(10, HOST_PORT)]), 30)
            return path_of(output)

        assert [flowcut(0), flowcut(0), flowcut(RTT_OFF)] == [(A, 0), (B, THIRD_GROUP), (A, 0)]
        rig.set_load(A, 5000)
        assert flowcut(RTT_OFF) == (A, 0)


def test_first_packets_take_the_ecmp_path():
    """Flowcut §II-A; here it is minimal."""
    with flowcut_rig() as rig:
        rig.flowcut(first_path="ECMP")
        rig.set_load(A, 5000)
        assert path_of(rig.forward(HOST_PORT, roce(), 10)) == (UPLINKS[flow_hash(roce()) % 4], 0)


def test_withdrawn_detour():
    """Nothing of a flow in flight leaves the path that the controller took away."""
    with DragonflyRig("flowcut_dragonfly", [Link(A, 2)], [Link(B, 4, THIRD_GROUP)]) as rig:
        rig.paths("VALIANT", "FLOW")
        rig.flowcut(first_path="LEAST_LOADED", age_ticks=NEVER_TICKS)
        assert path_of(rig.forward(HOST_PORT, roce(), 10)) == (B, THIRD_GROUP)
        assert rig.send(HOST_PORT, roce(), 20) == []  # the rig has no next_hop_ports for the third group
        assert rig.drops() == {"PATH_WITHDRAWN": 1}


@pytest.mark.parametrize("tracked", [True, False])
def test_transit_follows_a_flow_that_its_source_moved(tracked):
    """A switch behind the first one that still counts bytes of a flow on another way lets it go on."""
    with flowcut_rig() as rig:
        rig.onward(THIRD_GROUP, (C,), ONWARD_GROUP)
        rig.onward(FOURTH_GROUP, (D,), ONWARD_GROUP + 1)
        if not tracked:
            for sport in range(4):
                rig.forward(HOST_PORT, roce(500 + sport), 1)
            assert rig.count("flowcut_created") == 4
        for now, (group, port) in enumerate([(THIRD_GROUP, C), (FOURTH_GROUP, D), (THIRD_GROUP, C)], 10):
            frame = detoured(shimmed(roce(), 1, [(now, HOST_PORT)]), group)
            assert path_of(rig.forward(DOWNLINK, frame, now)) == (port, group)
        frame = shimmed(roce(), 2, [(20, HOST_PORT), (19, HOST_PORT)])
        assert path_of(rig.forward(A, frame, 20)) == (UPLINKS[flow_hash(roce()) % 4], 0)
        assert rig.drops() == {}


def test_transit_keeps_a_flow_in_flight_on_its_port():
    """In the full variant, when the controller gives the flow's hash another link."""
    with flowcut_rig() as rig:
        rig.onward(THIRD_GROUP, (C, D), ONWARD_GROUP)
        frame = detoured(shimmed(roce(), 1, [(1, HOST_PORT)]), THIRD_GROUP)
        port = rig.forward(DOWNLINK, frame, 10).port
        other = C + D - port
        for slot in range(2):
            rig.move_slot(slot, other)
        assert path_of(rig.forward(DOWNLINK, frame, 20)) == (port, THIRD_GROUP)
        rig.send(port, ack_of(roce(), 4, [(20, DOWNLINK), (1, HOST_PORT)]), 30)
        rig.send(port, ack_of(roce(), 4, [(10, DOWNLINK), (1, HOST_PORT)]), 30)
        assert path_of(rig.forward(DOWNLINK, frame, 40)) == (other, THIRD_GROUP)


def test_transit_keeps_a_flow_whose_detour_the_controller_took_away():
    """In the full variant it goes by its route only when nothing of it is in flight."""
    with flowcut_rig() as rig:
        frame = detoured(shimmed(roce(), 1, [(1, HOST_PORT)]), THIRD_GROUP)
        entry = rig.onward(THIRD_GROUP, (C,), ONWARD_GROUP)
        assert rig.forward(DOWNLINK, frame, 10).port == C
        rig.delete("onward_groups", entry)
        assert path_of(rig.forward(DOWNLINK, frame, 20)) == (C, 0)
        for ticks in (10, 20):
            rig.send(C, ack_of(roce(), 4, [(ticks, DOWNLINK), (1, HOST_PORT)]), 30)
        assert path_of(rig.forward(DOWNLINK, frame, 40)) == (UPLINKS[flow_hash(roce()) % 4], 0)


def test_shim_and_detour_together():
    """The detour is in front; both are written and read in one go."""
    with flowcut_rig() as rig:
        rig.paths("VALIANT", "FLOW")
        output = rig.forward(HOST_PORT, roce(payload=b"12345"), 77)
        expected = detoured(
            shimmed(roce(payload=b"12345", ttl=63, resv6=B), 1, [(77, HOST_PORT)]), THIRD_GROUP
        )
        assert (output.port, output.data.hex()) == (B, bytes(expected).hex())
        assert rig.register("flow_in_flight_bytes", 0) == len(roce(payload=b"12345"))
        rig.onward(THIRD_GROUP, (C,))
        transit = rig.forward(DOWNLINK, output.data, 90)
        again = detoured(
            shimmed(
                roce(payload=b"12345", ttl=62, resv6=(B * 13 + C) % 64),
                2,
                # the switch has two entries for the flow: from its host, and when it returns
                [(90, DOWNLINK), (77, HOST_PORT)],
            ),
            THIRD_GROUP,
        )
        assert (transit.port, transit.data.hex()) == (C, bytes(again).hex())
