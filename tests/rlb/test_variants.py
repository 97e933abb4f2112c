# SPDX-License-Identifier: Apache-2.0
"""RLB over each of its selectors: what the selector wants is obeyed unless it is warned of (RLB §III-B.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.schemes.drill import CANDIDATES
from tailrace.schemes.rlb.app import DRILL, HERMES, PRESTO, VARIANTS
from tests.p4src.frames import roce
from tests.p4src.rig import HOST_PORT, REMOTE, UPLINK_GROUP, UPLINKS
from tests.rlb.rig import FIRST_SPORT, REMOTE_LEAF, RlbRig, other_path

STEP = 1000
FLOWS = 64
SENT = 1200
SPORTS = range(FIRST_SPORT, FIRST_SPORT + FLOWS)


class VariantRig(RlbRig):
    """A leaf of a variant; DRILL's candidates are its slots once more."""

    def __init__(self, variant: str) -> None:
        self.variant = variant
        super().__init__(f"rlb_{variant}")

    def members(self, group: int, ports: tuple[int, ...]) -> None:
        super().members(group, ports)
        for table in CANDIDATES if self.variant == DRILL else ():
            for slot, port in enumerate(ports):
                self.insert(table, (group, slot), "sampled", port=port)


@pytest.fixture(scope="module", params=VARIANTS)
def leaf(request: pytest.FixtureRequest) -> Iterator[VariantRig]:
    with VariantRig(request.param) as rig:
        rig.warnings()
        rig.limits()
        yield rig


@settings(max_examples=20)
@given(st.sets(st.sampled_from(UPLINKS)), st.lists(st.integers(49152, 49160), min_size=1, max_size=12))
def test_no_packet_takes_a_warned_path_while_one_is_open(leaf, warned, sports):
    """Whatever the selector draws: an open path, or any where none is."""
    leaf.reset()
    for port in warned:
        leaf.warn(port, 1 << 47, REMOTE_LEAF)
    allowed = set(UPLINKS) - warned or set(UPLINKS)
    for sport in sports:
        leaf.clock += STEP
        assert leaf.forward(HOST_PORT, roce(sport, dst=REMOTE), leaf.clock).port in allowed
    assert leaf.empty()


def test_hermes_goes_where_the_sender_says():
    """The source port names the slot; where that is warned, the flow's hash names another, and no packet else
    moves.
    """
    with VariantRig(HERMES) as rig:
        rig.warnings()
        rig.limits()
        wanted = {sport: UPLINKS[sport % len(UPLINKS)] for sport in SPORTS}
        assert {sport: rig.forward(HOST_PORT, roce(sport), sport).port for sport in SPORTS} == wanted
        rig.warn(UPLINKS[1], 1 << 47)
        moved = {sport: rig.forward(HOST_PORT, roce(sport), sport + STEP).port for sport in SPORTS}
        for sport, port in wanted.items():
            assert moved[sport] == (other_path(roce(sport), port) if port == UPLINKS[1] else port)


@pytest.mark.parametrize("variant", [PRESTO, HERMES])
def test_flows_of_a_warned_slot_spread_over_all_others(variant):
    """Each flow as its hash says, always the same way, and no path gets less than half of its share."""
    slot, size = 1, len(UPLINKS)
    closed = UPLINKS[slot]
    # by these source ports Hermes wants the slot; Presto is told to
    flows = [roce(FIRST_SPORT + size * number + slot) for number in range(FLOWS)]
    with VariantRig(variant) as rig:
        rig.warnings()
        rig.limits()

        def taken() -> list[int]:
            ports = []
            for frame in flows:
                if variant == PRESTO:
                    rig.next_slot(slot)
                rig.clock += STEP
                ports.append(rig.forward(HOST_PORT, frame, rig.clock).port)
            return ports

        assert taken() == [closed] * FLOWS
        rig.warn(closed, 1 << 47)
        assert taken() == taken() == [other_path(frame, closed) for frame in flows]
        packets = Counter(taken())
    assert set(packets) == set(UPLINKS) - {closed}
    assert min(packets.values()) > FLOWS / (size - 1) / 2


def test_drill_remembers_what_was_used():
    """Not a path that was refused, which stays empty and would be wanted for ever."""
    with VariantRig(DRILL) as rig:
        rig.warnings()
        rig.limits()
        for port in UPLINKS[1:]:
            rig.set_load(port, 1 << 20)
        taken = [rig.forward(HOST_PORT, roce(), STEP + i).port for i in range(60)]
        assert taken[-30:] == [UPLINKS[0]] * 30
        rig.warn(UPLINKS[0], 1 << 47)
        assert UPLINKS[0] not in [rig.forward(HOST_PORT, roce(), 2 * STEP + i).port for i in range(30)]
        assert rig.register("drill_memory", UPLINK_GROUP) != 1


@pytest.mark.parametrize("warned", [(0, 1), (1, 4), (5, 6, 7)])
def test_drill_spreads_evenly_over_what_is_open(warned):
    """Warned uplinks are empty, and are drawn and refused again and again; no other one gets their share."""
    ports = tuple(range(8, 16))
    with VariantRig(DRILL) as rig:
        rig.warnings()
        rig.limits()
        for port in ports:
            rig.insert("port_role", (port,), rig.role(port))
        rig.group("10.0.8.2", 8, ports)
        rig.leaf_at("10.0.8.2", 8, 8)
        for slot in warned:
            rig.warn(ports[slot], 1 << 47, 8)
        packets = Counter(dict.fromkeys(ports, 0))
        for i in range(SENT):
            port = rig.forward(HOST_PORT, roce(dst="10.0.8.2"), STEP + i).port
            packets[port] += 1
            rig.set_load(port, packets[port] * STEP)
    assert {port for port in ports if not packets[port]} == {ports[slot] for slot in warned}
    fair = SENT / (len(ports) - len(warned))
    assert all(0.9 * fair < packets[port] < 1.1 * fair for port in +packets)
