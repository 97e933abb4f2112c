# SPDX-License-Identifier: Apache-2.0
"""Faults: which links they hit, and how."""

from __future__ import annotations

import random

import pytest

from experiments.fault import AckLoss, Drop, LinkDown, LinkSlow, parse_fault
from spec import SpecError
from topology import parse_topology

FABRIC = parse_topology("leaf-spine:leaves=3,spines=4,hosts=2")


def resolve(words: str, seed: int = 1):
    return parse_fault(words).resolve(FABRIC, random.Random(seed))


def test_link_by_either_end() -> None:
    """A link is named by its switches in either order."""
    assert resolve("link-slow:link=leaf2-spine3,factor=0.1") == (LinkSlow("leaf2", "spine3", 0.1),)
    assert resolve("link-slow:link=spine3-leaf2,factor=0.1") == (LinkSlow("leaf2", "spine3", 0.1),)


def test_fraction_of_the_links() -> None:
    """A quarter of twelve links is three different ones; a tiny fraction is still one; the seed decides which."""
    hit = resolve("link-slow:fraction=0.25,factor=0.5")
    assert len({(fault.a, fault.b) for fault in hit}) == 3
    assert len(resolve("link-slow:fraction=0.001,factor=0.5")) == 1
    assert len({resolve("link-slow:fraction=0.001,factor=0.5", seed) for seed in range(30)}) > 3


def test_link_down() -> None:
    """Times with units; without `until` for ever."""
    assert resolve("link-down:link=leaf1-spine1,at=50us,until=1ms") == (
        LinkDown("leaf1", "spine1", 50_000, 1_000_000),
    )
    assert resolve("link-down:link=leaf1-spine1") == (LinkDown("leaf1", "spine1", 0, None),)


def test_drop_by_place() -> None:
    """Everywhere, on one link, or on the links of one kind of switch."""
    assert len(resolve("drop:rate=0.01")) == 12
    assert resolve("drop:rate=0.01,where=leaf1-spine1") == (Drop("leaf1", "spine1", 0.01),)
    assert len(resolve("drop:rate=0.01,where=spine")) == 12


def test_ack_loss() -> None:
    """On every link between switches."""
    hit = resolve("ack-loss:rate=0.5")
    assert len(hit) == 12
    assert hit[0] == AckLoss("leaf1", "spine1", 0.5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fire", "fault 'fire' is not known; expected link-slow, link-down, drop, ack-loss"),
        ("link-slow:factor=0.1", "fault link-slow: expected either link= or fraction="),
        ("link-slow:link=a-b,fraction=0.1,factor=0.1", "fault link-slow: expected either link= or fraction="),
        ("link-slow:link=leaf1-spine1", "fault link-slow: key 'factor' is missing"),
        ("link-slow:link=leaf1-spine1,factor=0", "fault link-slow: factor must be more than 0, found '0'"),
        ("link-slow:link=leaf1-spine1,factor=1", "fault link-slow: factor must be less than 1, found '1'"),
        (
            "link-slow:link=leaf1-leaf2,factor=0.1",
            "the topology has no 'leaf1-leaf2'; a link is leaf1-spine1",
        ),
        (
            "link-down:link=leaf1-spine1,at=2ms,until=1ms",
            "fault link-down: until must be later than at, found '1ms'",
        ),
        ("drop:rate=2", "fault drop: rate must be at most 1, found '2'"),
        ("drop:rate=0.1,where=core", "fault drop: the topology has no 'core'; a link is leaf1-spine1"),
        ("ack-loss:rate=0.1,where=spine", "fault ack-loss: unknown key 'where'; expected rate"),
    ],
)
def test_bad_words(words: str, message: str) -> None:
    """One line that says what is wrong and what was expected."""
    with pytest.raises(SpecError) as caught:
        resolve(words)
    assert message in str(caught.value)
