# SPDX-License-Identifier: Apache-2.0
"""Faults: which links they hit, and how."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.experiments.faults.parse import parse_fault
from tailrace.sim.link_faults import (
    AckLoss,
    Blackhole,
    LinkDown,
    LinkSlow,
    Loss,
    SwitchRestart,
    last_change_ns,
)
from tailrace.spec import SpecError
from tailrace.spec.scale import scaled
from tailrace.topology import parse_topology

FABRIC = parse_topology("leaf-spine:leaves=3,spines=4,hosts=2")


def resolve(words: str, seed: int = 1):
    return parse_fault(words).resolve(FABRIC, random.Random(seed))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("link-slow:link=leaf2-spine3,factor=0.1", LinkSlow("leaf2", "spine3", 0.1)),
        ("link-slow:link=spine3-leaf2,factor=0.1", LinkSlow("leaf2", "spine3", 0.1)),
        ("link-slow:link=leaf1-spine1,factor=0.1,at=1us,until=2us", LinkSlow("leaf1", "spine1", 0.1, 1000, 2000)),
        ("link-down:link=leaf1-spine1,at=50us,until=1ms", LinkDown("leaf1", "spine1", 50_000, 1_000_000)),
        ("link-down:link=leaf1-spine1", LinkDown("leaf1", "spine1", 0, None)),
        ("drop:rate=0.01,where=leaf1-spine1", Loss("leaf1", "spine1", 0.01)),
        ("drop:rate=0.1,where=leaf1-spine1,until=2us", Loss("leaf1", "spine1", 0.1, 0, 2000)),
        ("switch-restart:switch=spine2,at=10us,for=5us", SwitchRestart("spine2", 10_000, 5000)),
    ],
)  # fmt: skip
def test_words(words: str, expected: object) -> None:
    """A link is named by its switches in either order, times have units, and without an end a fault lasts for ever."""
    assert resolve(words) == (expected,)


def test_fraction_of_the_links() -> None:
    """A quarter of twelve links is three different ones; a tiny fraction is still one; the seed decides which."""
    hit = resolve("link-slow:fraction=0.25,factor=0.5")
    assert len({(fault.a, fault.b) for fault in hit}) == 3
    assert len(resolve("link-slow:fraction=0.001,factor=0.5")) == 1
    assert len({resolve("link-slow:fraction=0.001,factor=0.5", seed) for seed in range(30)}) > 3


def test_fraction_of_the_directions() -> None:
    """A quarter of 24 directions, each by itself; ACKs may pass (the authors' 2 % of Spritz's Fig. 9)."""
    hit = resolve("drop:rate=1,fraction=0.25,only=data")
    assert len({(fault.a, fault.b) for fault in hit}) == 6
    assert all((fault.rate, fault.one_way, fault.only_data) == (1, True, True) for fault in hit)
    assert not resolve("drop:rate=1,fraction=0.25")[0].only_data
    ways = {(fault.a, fault.b) for seed in range(20) for fault in resolve("drop:rate=1,fraction=0.25", seed)}
    assert len(ways) == 24


def test_drop_by_place() -> None:
    """Everywhere, or on the links of one kind of switch; acknowledgments on every link between switches."""
    assert len(resolve("drop:rate=0.01")) == 12
    assert len(resolve("drop:rate=0.01,where=spine")) == 12
    lost = resolve("ack-loss:rate=0.5,at=1us")
    assert len(lost) == 12
    assert lost[0] == AckLoss("leaf1", "spine1", 0.5, 1000, None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fire", "fault 'fire' is not known; expected ack-loss, blackhole, drop, link-down, link-slow"),
        ("drop:rate=0.1,until=0ns", "fault drop: until must be later than at, found '0ns'"),
        ("blackhole:pairs=0.5,where=core", "fault blackhole: the topology has no 'core'; a switch is leaf1"),
        ("switch-restart:switch=spine1,at=1us", "fault switch-restart: key 'for' is missing"),
        ("switch-restart:switch=spine1,for=0", "fault switch-restart: for must be more than 0, found '0'"),
        ("switch-restart:switch=h1,for=1us", "fault switch-restart: the topology has no 'h1'"),
        ("link-slow:link=a-b,fraction=0.1,factor=0.1", "fault link-slow: expected either link= or fraction="),
        ("link-slow:link=leaf1-spine1", "fault link-slow: key 'factor' is missing"),
        ("link-slow:link=leaf1-spine1,factor=0", "fault link-slow: factor must be more than 0, found '0'"),
        ("link-slow:link=leaf1-spine1,factor=1", "fault link-slow: factor must be less than 1, found '1'"),
        ("link-slow:link=leaf1-leaf2,factor=0.1", "the topology has no 'leaf1-leaf2'; a link"),
        ("link-down:link=leaf1-spine1,at=2ms,until=1ms", "fault link-down: until must be later than at"),
        (
            "drop:rate=1,fraction=0.1,where=spine",
            "fault drop: expected either fraction= or where= and switches=",
        ),
        ("drop:rate=2", "fault drop: rate must be at most 1, found '2'"),
        (
            "drop:rate=0.1,where=core",
            "fault drop: the topology has no 'core'; a link is written as leaf1-spine1",
        ),
        ("ack-loss:rate=0.1,where=spine", "fault ack-loss: unknown key 'where'; expected rate"),
    ],
)
def test_bad_words(words: str, message: str) -> None:
    """One line that says what is wrong and what was expected."""
    with pytest.raises(SpecError) as caught:
        resolve(words)
    assert message in str(caught.value)


def test_drop_at_switches_drawn_at_random() -> None:
    """So many of a role lose what reaches them; the seed decides which (RLB: one of the core)."""
    hit = resolve("drop:rate=0.0035,where=spine,switches=1")
    assert len({fault.b for fault in hit}) == 1
    assert {(fault.a, fault.one_way, fault.rate) for fault in hit} == {
        (f"leaf{number}", True, 0.0035) for number in (1, 2, 3)
    }
    assert len({fault.b for fault in resolve("drop:rate=0.1,where=spine,switches=3")}) == 3
    assert len({resolve("drop:rate=0.1,where=spine,switches=1", seed) for seed in range(30)}) == 4
    with pytest.raises(
        SpecError, match="fault drop: the topology has 4 switches that are spine, found switches=5"
    ):
        resolve("drop:rate=0.1,where=spine,switches=5")


def test_drop_at_a_switch() -> None:
    """A switch by name loses what reaches it, from its hosts, too, and nothing that it sends."""
    hit = resolve("drop:rate=0.1,where=leaf1")
    assert {fault.a for fault in hit} == {"spine1", "spine2", "spine3", "spine4", "h1", "h2"}
    assert all(fault.b == "leaf1" and fault.one_way for fault in hit)


def test_links_between_the_same_switches_are_one() -> None:
    """A fault hits parallel links once, not each of them again and again."""
    parallel = parse_topology("dragonfly:p=1,a=1,h=3,groups=2")
    assert len(parallel.links) == 3
    assert len(parse_fault("drop:rate=0.1").resolve(parallel, random.Random(1))) == 1


@settings(max_examples=60)
@given(share=st.floats(0.001, 1), seed=st.integers(0, 1 << 30))
def test_blackhole(share: float, seed: int) -> None:
    """One switch of the role, and that share of all ordered pairs of different hosts, exactly."""
    [hole] = resolve(f"blackhole:pairs={share:.6f},where=spine", seed)
    ips = {host.ip for host in FABRIC.hosts}
    assert FABRIC.switch(hole.switch).role == "spine"
    assert len(hole.pairs) == max(1, round(float(f"{share:.6f}") * 6 * 5))
    assert all(src != dst and {src, dst} <= ips for src, dst in hole.pairs)
    assert (hole.at_ns, hole.until_ns) == (0, None)


def test_blackhole_is_drawn() -> None:
    """Switch and pairs follow from the seed; without `where` it may be any switch."""
    assert resolve("blackhole:pairs=0.5", 1) == resolve("blackhole:pairs=0.5", 1)
    assert len({resolve("blackhole:pairs=0.5,where=spine2", seed) for seed in range(5)}) == 5
    switches = {resolve("blackhole:pairs=0.5", seed)[0].switch for seed in range(60)}
    assert switches == {switch.name for switch in FABRIC.switches}


def test_switch_restart() -> None:
    """One of a role."""
    [hit] = resolve("switch-restart:switch=leaf,for=1us")
    assert (FABRIC.switch(hit.switch).role, hit.at_ns) == ("leaf", 0)


def test_last_change() -> None:
    """A fault is over at its end; one that lasts for ever changes nothing after its beginning."""
    assert last_change_ns(LinkDown("a", "b", 5, None)) == 5
    assert last_change_ns(LinkDown("a", "b", 5, 9)) == 9
    assert last_change_ns(SwitchRestart("a", 5, 9)) == 14


def test_time_scale_stretches_faults() -> None:
    """Times take so many times as long; rates of loss, links and pairs stay."""
    [hole] = resolve("blackhole:pairs=0.5,where=spine1,at=1us,until=2us")
    assert scaled(hole, 10) == Blackhole(hole.switch, hole.pairs, 10_000, 20_000)
    [restart] = resolve("switch-restart:switch=spine1,at=1us,for=3us")
    assert scaled(restart, 10) == SwitchRestart("spine1", 10_000, 30_000)
    [drop] = resolve("drop:rate=0.5,where=leaf1-spine1,at=1us")
    assert scaled(drop, 10) == Loss("leaf1", "spine1", 0.5, 10_000, None)
