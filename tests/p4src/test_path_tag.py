# SPDX-License-Identifier: Apache-2.0
"""The path tag (common/egress.p4): what a receiver can tell from it."""

from __future__ import annotations

from itertools import product

import pytest
from scapy.layers.l2 import Ether

from tailrace.codec.layers.bth import BTH
from tests.p4src.frames import roce
from tests.p4src.rig import DOWNLINK, HOST_PORT, Rig

PORTS = range(1, 17)


def mixed(tag: int, port: int) -> int:
    return (tag * 13 + port) % 64


@pytest.mark.parametrize("port", [1, 9, 16, 63, 64, 300, 506])
def test_tag_is_13_times_the_tag_and_the_port(port):
    """For every tag, and the low six bits of ports that have more."""
    with Rig("ecmp") as rig:
        for slot in rig.slots:
            rig.move_slot(slot, port)
        for tag in range(64):
            output = rig.forward(HOST_PORT, roce(resv6=tag), 0)
            assert (output.port, Ether(output.data)[BTH].resv6) == (port, mixed(tag, port))


def test_last_hop_leaves_the_tag_alone():
    """What arrives is the tag of the path between switches."""
    with Rig("ecmp") as rig:
        output = rig.forward(DOWNLINK, roce(src="10.0.2.2", dst="10.0.1.2", resv6=41), 0)
        assert Ether(output.data)[BTH].resv6 == 41


@pytest.mark.parametrize("next_hops", range(1, 6))
def test_two_choices_in_a_row_give_different_tags(next_hops):
    """Up a fat tree edge and aggregation choose; with up to five uplinks each, every pair has its own tag."""
    for first, second in product(PORTS, PORTS):
        choices = product(range(first, first + next_hops), range(second, second + next_hops))
        assert len({mixed(mixed(0, edge), aggregation) for edge, aggregation in choices}) == next_hops**2


def test_one_choice_gives_different_tags():
    """A leaf with up to 64 uplinks."""
    assert len({mixed(7, port) for port in range(1, 65)}) == 64
