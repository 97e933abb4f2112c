# SPDX-License-Identifier: Apache-2.0
"""Warnings of other switches: noted, obeyed, forgotten, withdrawn, passed on hop by hop (RLB §III-B.1)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from tailrace.codec.layers.local import LEAF_ALL, Cnm, LocalHeader
from tailrace.switch.core import SentFrame
from tests.p4src.frames import roce
from tests.p4src.rig import DOWNLINK, HOST_PORT, UPLINK_GROUP, UPLINKS
from tests.rlb.rig import (
    FABRIC,
    NO_LEAF,
    REMOTE_LEAF,
    WIDE,
    WIDE_GROUP,
    WIDE_LEAF,
    WIDE_UPLINKS,
    RlbRig,
    cnm,
    other_path,
)

MANY_HOPS = 4
VALID = 1000


@pytest.fixture(scope="module")
def switches() -> Iterator[tuple[RlbRig, RlbRig]]:
    with RlbRig() as leaf, RlbRig(leaf=NO_LEAF) as spine:
        leaf.warnings(valid_ticks=VALID)
        spine.warnings(valid_ticks=VALID)
        yield leaf, spine


def anew(rig: RlbRig) -> RlbRig:
    """Nothing is noted, and it is later than in any test before."""
    rig.reset()
    rig.clock += 1_000_000
    return rig


@pytest.fixture
def leaf(switches: tuple[RlbRig, RlbRig]) -> RlbRig:
    return anew(switches[0])


@pytest.fixture
def spine(switches: tuple[RlbRig, RlbRig]) -> RlbRig:
    return anew(switches[1])


def tell(rig: RlbRig, port: int, message: Packet | bytes, now: int) -> list[SentFrame]:
    """What leaves when a message comes in."""
    return rig.send(port, message, rig.clock + now)


def path(rig: RlbRig, now: int, slot: int = 0, dst: str = "10.0.2.2", group: int = UPLINK_GROUP) -> int:
    """By which port a packet leaves that wants to take a slot."""
    rig.next_slot(slot, group)
    return rig.forward(HOST_PORT, roce(dst=dst), rig.clock + now).port


def beside(port: int, dst: str = "10.0.2.2", ports: tuple[int, ...] = UPLINKS) -> int:
    """By which port the same packet leaves where the one that it wants is warned."""
    return other_path(roce(dst=dst), port, ports)


def copies(outputs: list[SentFrame]) -> dict[int, Packet]:
    """What was passed on, by port."""
    return {output.port: Ether(output.data)[Cnm] for output in outputs}


def test_warned_path_is_left_until_the_warning_ends(leaf):
    """Not before the message came, and not from the tick on at which it is over."""
    assert path(leaf, 99) == UPLINKS[0]
    before = leaf.total("warnings_received")
    assert tell(leaf, UPLINKS[0], cnm(500), 100) == []
    other = beside(UPLINKS[0])
    assert [path(leaf, now) for now in (100, 599, 600)] == [other, other, UPLINKS[0]]
    assert leaf.total("warnings_received") == before + 1


def test_warning_is_of_one_leaf_and_one_port(leaf):
    """Other leaves behind the port, and the leaf behind other ports, stay open; LEAF_ALL closes the port."""
    tell(leaf, WIDE_UPLINKS[0], cnm(500), 1)
    assert path(leaf, 2, 0, WIDE, WIDE_GROUP) == WIDE_UPLINKS[0]
    tell(leaf, WIDE_UPLINKS[0], cnm(500, leaf=WIDE_LEAF), 3)
    wanted = [path(leaf, 4, slot, WIDE, WIDE_GROUP) for slot in range(len(WIDE_UPLINKS))]
    assert wanted == [beside(WIDE_UPLINKS[0], WIDE, WIDE_UPLINKS), *WIDE_UPLINKS[1:]]
    tell(leaf, UPLINKS[2], cnm(500, leaf=LEAF_ALL), 5)
    assert path(leaf, 6, 2) == beside(UPLINKS[2])


def test_withdrawal(leaf):
    """valid 0 ends the warning at once; of a leaf, not the one for all."""
    tell(leaf, UPLINKS[0], cnm(500), 1)
    tell(leaf, UPLINKS[0], cnm(0), 2)
    assert path(leaf, 3) == UPLINKS[0]
    tell(leaf, UPLINKS[0], cnm(500, leaf=LEAF_ALL), 4)
    tell(leaf, UPLINKS[0], cnm(0), 5)
    assert path(leaf, 6) == beside(UPLINKS[0])
    tell(leaf, UPLINKS[0], cnm(0, leaf=LEAF_ALL), 7)
    assert path(leaf, 8) == UPLINKS[0]


def test_no_warning_lasts_longer_than_this_switch_allows(leaf):
    """A neighbour's clock may be wrong; it cannot close a path for ever."""
    tell(leaf, UPLINKS[0], cnm(2**32 - 1), 10)
    assert leaf.warned(UPLINKS[0]) == leaf.clock + 10 + VALID


def test_all_warned_takes_a_path_nevertheless(leaf):
    """Nothing is dropped and nothing loops; the packet goes where the selector says."""
    before = leaf.drops()
    for port in UPLINKS:
        tell(leaf, port, cnm(500), 1)
    assert path(leaf, 2, 1) == UPLINKS[1]
    assert leaf.drops() == before


def test_hosts_cannot_steer_the_fabric(leaf):
    """A CNM by a host's port is counted and ignored."""
    before = leaf.drops().get("CONTROL_FROM_HOST", 0)
    for message in (cnm(500), cnm(500, leaf=LEAF_ALL), cnm(0)):
        assert tell(leaf, HOST_PORT, message, 1) == []
    assert leaf.drops()["CONTROL_FROM_HOST"] == before + 3
    assert path(leaf, 2) == UPLINKS[0]
    assert leaf.register("port_warned_until_ticks", HOST_PORT) == 0


def test_leaf_that_there_is_no_room_for(leaf):
    """It is dropped as malformed; so is a message that ends too soon."""
    before = leaf.drops().get("MALFORMED", 0)
    assert tell(leaf, UPLINKS[0], cnm(500, leaf=128), 1) == []
    assert tell(leaf, UPLINKS[0], bytes(cnm(500))[:-1], 1) == []
    assert leaf.drops()["MALFORMED"] == before + 2


def test_leaf_passes_nothing_on(leaf):
    """Behind it are hosts, also where no next hop is left."""
    assert [tell(leaf, port, cnm(500), 1) for port in UPLINKS] == [[]] * len(UPLINKS)
    assert leaf.count("warnings_passed_on") == 0


def test_spine_passes_on_when_no_next_hop_is_left(spine):
    """To all switches but the one that said so, one hop further; and withdrawals always."""
    for port in UPLINKS[:-1]:
        assert tell(spine, port, cnm(500, port=9), 1) == []
    last = UPLINKS[-1]
    relayed = copies(tell(spine, last, cnm(500, port=9), 1))
    assert set(relayed) == set(FABRIC) - {last}
    for message in relayed.values():
        assert bytes(message) == bytes(cnm(500, port=9, hops=1)[Cnm])
    relayed = copies(tell(spine, last, cnm(0, port=9), 2))
    assert set(relayed) == set(FABRIC) - {last}
    assert spine.empty()


def test_spine_keeps_what_concerns_nobody_else(spine):
    """A warning by a port that leads elsewhere, or too far on its way, ends here."""
    for port in UPLINKS:
        spine.warn(port, spine.clock + 10_000)
    assert tell(spine, DOWNLINK, cnm(500), 1) == []
    assert tell(spine, DOWNLINK, cnm(500, leaf=LEAF_ALL), 1) == []
    assert tell(spine, UPLINKS[0], cnm(500, hops=MANY_HOPS), 1) == []
    assert len(tell(spine, UPLINKS[0], cnm(500, hops=MANY_HOPS - 1), 1)) == len(FABRIC) - 1


def test_spine_says_how_long_no_next_hop_is_left(spine):
    """Until the first of all warnings ends."""
    for port, valid in zip(UPLINKS[:-1], (700, 300, 600), strict=True):
        tell(spine, port, cnm(valid), 1)
    relayed = copies(tell(spine, UPLINKS[-1], cnm(500), 11))
    assert {message.valid_ticks for message in relayed.values()} == {290}


def test_warning_of_all_leaves_is_passed_on_leaf_by_leaf(spine):
    """A queue in the middle of the network: behind the port are some leaves, and those who send by this switch
    are told of these, when no other next hop is left; and of the withdrawal.
    """
    for port in UPLINKS[1:]:
        assert tell(spine, port, cnm(800), 1) == []
    relayed = copies(tell(spine, UPLINKS[0], cnm(500, leaf=LEAF_ALL, port=9), 2))
    assert set(relayed) == set(FABRIC) - {UPLINKS[0]}
    for message in relayed.values():
        assert bytes(message) == bytes(cnm(500, port=9, hops=1)[Cnm])
    relayed = copies(tell(spine, UPLINKS[0], cnm(0, leaf=LEAF_ALL), 3))
    assert {message.valid_ticks for message in relayed.values()} == {0}
    assert len(relayed) == len(FABRIC) - 1
    assert spine.empty()


def test_withdrawal_ends_here_while_all_next_hops_are_warned(spine):
    """What one warning says is no news while another one closes the same path."""
    for port in UPLINKS:
        tell(spine, port, cnm(800), 1)
    tell(spine, UPLINKS[0], cnm(800, leaf=LEAF_ALL), 2)
    assert tell(spine, UPLINKS[0], cnm(0, leaf=LEAF_ALL), 3) == []
    assert len(tell(spine, UPLINKS[0], cnm(0), 4)) == len(FABRIC) - 1


def test_spine_with_forty_next_hops(spine):
    """All of them are looked at, whichever is the last one to be warned of."""
    before = spine.drops()
    first, *remaining = reversed(WIDE_UPLINKS)
    for port in remaining:
        assert tell(spine, port, cnm(500, leaf=WIDE_LEAF), 1) == []
    assert set(copies(tell(spine, first, cnm(500, leaf=WIDE_LEAF), 1))) == set(FABRIC)
    assert set(copies(tell(spine, remaining[3], cnm(0, leaf=WIDE_LEAF), 2))) == set(FABRIC)
    assert spine.drops() == before


def test_two_hops_from_the_congestion(spine, leaf):
    """What a leaf behind the spine is told closes its path through that spine, by uplink and leaf."""
    for port in UPLINKS:
        spine.warn(port, spine.clock + 10_000)
    passed = tell(spine, UPLINKS[0], cnm(500), 1)
    message = next(output.data for output in passed if output.port == DOWNLINK)
    assert Ether(message)[LocalHeader][Cnm].leaf == REMOTE_LEAF
    tell(leaf, UPLINKS[3], message, 1)
    assert path(leaf, 2, 3) == beside(UPLINKS[3])
