# SPDX-License-Identifier: Apache-2.0
"""What a host can win by the kind of frame: at a bottleneck nobody gets more by it than by plain data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from tailrace.topology import parse_topology
from tests import long
from tests.guards.kinds import MAC_CONTROL, Kind, kinds, plain
from tests.guards.places import DRAGONFLY, FLOWCUT, LAST_LINK, PLACES, RLB, ROUTED, SELECTORS, STEERED
from tests.guards.scene import Place, Scene
from tests.guards.source import constants, members

ALL = kinds()
PARTS = 7
"""Fewer than there are schemes at either place, so that each kind is tried with one of them at least."""

CONTROL = [kind for kind in ALL if kind.name.startswith(("BTH_", "UDP_"))]


def test_no_kind_is_forgotten() -> None:
    """Each port, opcode, EtherType, subtype, tag and mark of the sources is in some frame that is sent."""
    names = "\n".join(kind.name for kind in ALL)
    words = [name for prefix in ("UDP_", "BTH_", "ETHERTYPE_") for name, _ in constants(prefix)]
    assert len(words) >= 10
    for name in words:
        assert name in names or name == MAC_CONTROL, name
    for name in members("Subtype_t"):
        assert f"tailrace-{name}-" in names
    for name in members("Dscp_t"):
        assert f"dscp-{name}-" in names
    for vid in members("VlanId_t").values():
        assert f"vlan-{vid}-" in names
    assert len({kind.name for kind in ALL}) == len(ALL)


def _share(schemes: Sequence[str], place: Place) -> list[Any]:
    """Schemes with the kinds that each is tried with: all in `make test-all`, else those of a part of the
    lengths, by turns, for each length takes runs of plain data to compare with.
    """
    hosts = parse_topology(place.topology).hosts
    lengths = {kind.name: len(kind.make(hosts[0], hosts[-1])) for kind in ALL}
    ordered = sorted(set(lengths.values()))
    parts = 1 if long.ALL else PARTS
    return [
        pytest.param(
            scheme, [k for k in ALL if ordered.index(lengths[k.name]) % parts == turn % parts], id=scheme
        )
        for turn, scheme in enumerate(schemes)
    ]


def _tries(place: Place, scheme: str, tried: list[Kind]) -> None:
    with Scene(place, scheme) as scene:
        assert scene.wins(tried) == {}


@pytest.mark.parametrize(("scheme", "tried"), _share([*SELECTORS, *FLOWCUT, *RLB], LAST_LINK))
def test_every_kind_from_elsewhere(scheme: str, tried: list[Kind]) -> None:
    """An attacker whose frames meet the victim's at the last link only."""
    _tries(LAST_LINK, scheme, tried)


@pytest.mark.parametrize(("scheme", "tried"), _share([*ROUTED, *STEERED], DRAGONFLY))
def test_every_kind_in_a_dragonfly(scheme: str, tried: list[Kind]) -> None:
    """With detours, tags, entropy values and trimming."""
    _tries(DRAGONFLY, scheme, tried)


@pytest.mark.parametrize(
    ("scheme", "place"), long.some([*product((SELECTORS[0], FLOWCUT[0]), PLACES)], 2), ids=str
)
def test_control_at_other_bottlenecks(place: Place, scheme: str) -> None:
    """Beside the attacker, behind it, and with several of them."""
    _tries(place, scheme, CONTROL)


def test_the_comparison_sees_what_is_there() -> None:
    """Without limits control packets take everything, and plain data its share only."""
    control = [kind for kind in CONTROL if kind.name == "BTH_ACKNOWLEDGE-short"]
    with Scene(LAST_LINK, "ecmp:queue=64KiB,control=0") as scene:
        assert list(scene.wins(control)) == ["BTH_ACKNOWLEDGE-short"]
        assert scene.wins([plain(62)]) == {}
