# SPDX-License-Identifier: Apache-2.0
"""Words of the schemes over bounded simple paths, and their defaults: Spritz, Table II."""

from __future__ import annotations

import pytest

from tailrace.schemes.base import resolve
from tailrace.schemes.dragonfly.declaration import ResolvedRouting
from tailrace.schemes.ecmp import EcmpConfig
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.resolved import RedConfig, Resolved
from tailrace.schemes.spritz.bounded import ResolvedBounded
from tailrace.schemes.spritz.declaration import (
    TIMER_RTTS,
    FlicrConfig,
    OpsConfig,
    ResolvedSpritz,
    SpritzConfig,
)
from tailrace.topology import parse_topology
from tailrace.topology.paths.shapes import Longest, shape_of
from tailrace.topology.timing import (
    FULL_FRAME_BYTES,
    base_rtt_ns,
    bdp_bytes,
    max_bdp_bytes,
    max_rtt_ns,
    propagation_ns,
)

TABLE_2 = "rate=400Gbps,local=25ns,global=500ns,host=25ns,latency=500ns"
DRAGONFLY = parse_topology(f"dragonfly:p=4,a=8,h=4,{TABLE_2}")
SLIM_FLY = parse_topology(f"slim-fly:p=7,q=9,{TABLE_2}")
FRAME = 4160


def resolved(words: str, topology=DRAGONFLY) -> Resolved:
    return resolve(parse_scheme(words), topology)


def test_words() -> None:
    """What is given is taken; what is not is the paper's."""
    assert SpritzConfig() == parse_scheme("spritz")
    expected = SpritzConfig(
        variant="spray", weights="uniform", explore_packets=10, ecn_packets=0, buffer=4, timer_ns=5_000, bias=2.5,
        keep_ns=7_000, control="coarse", trim=False, repair=True, frame_bytes=1100, hash_seed=3, queue_limit_bytes=9_000,
    )  # fmt: skip
    words = "variant=spray,weights=uniform,explore=10,ecn=0,buffer=4,timer=5us,bias=2.5,mode=coarse,trim=off"
    assert expected == parse_scheme(f"spritz:{words},keep=7us,repair=on,frame=1100,seed=3,queue=9KB")
    assert OpsConfig(weights="latency", scale=2.0) == parse_scheme("ops:weights=latency,scale=2")
    assert FlicrConfig(trim=False) == parse_scheme("flicr:trim=no")
    assert EcmpConfig(over="all", frame_bytes=FRAME) == parse_scheme("ecmp:over=all,frame=4160")


@pytest.mark.parametrize(
    ("words", "program", "mode", "steering"),
    [
        ("spritz", "spritz", "steered", "scout"),
        ("spritz:variant=spray", "spritz", "steered", "spray"),
        ("spritz:mode=coarse", "spritz", "class", "scout"),
        ("ops", "spritz", "steered", "ops"),
        ("flicr", "spritz", "steered", "flicr"),
        ("ecmp:over=all", "spritz", "steered", "ecmp"),
        ("ecmp", "ecmp", "", ""),
        ("minimal", "dragonfly", "", ""),
        ("minimal:draw=hop", "spritz", "minimal", ""),
        ("valiant:draw=hop", "spritz", "random", ""),
        ("ugal-l:draw=hop", "spritz", "ugal-l", ""),
        ("ugal-l:draw=group", "dragonfly", "", ""),
    ],
)
def test_programs(words: str, program: str, mode: str, steering: str) -> None:
    """What switches run and do, and what NICs do."""
    config = resolved(words)
    actual = (config.program, getattr(config, "mode", ""), getattr(config, "steering", ""))
    assert (program, mode, steering) == actual


def test_slim_fly_has_no_groups_to_route_by() -> None:
    """There minimal, Valiant and UGAL-L draw hop by hop."""
    for words, mode in (("minimal", "minimal"), ("valiant", "random"), ("ugal-l", "ugal-l")):
        config = resolved(words, SLIM_FLY)
        assert isinstance(config, ResolvedBounded)
        assert ("spritz", mode, None) == (config.program, config.mode, config.dragonfly_paths)
    group = resolved("ugal-l")
    assert isinstance(group, ResolvedRouting)
    assert "group" == group.draw
    assert group.dragonfly_paths is not None


def test_table_2() -> None:
    """88 and 92 frames a BDP, thresholds of 0.5 and 0.1 of it, RED from 0.2 to 0.8 of a queue of one BDP."""
    assert (88 * FRAME, 92 * FRAME) == (
        max_bdp_bytes(DRAGONFLY, FRAME),
        max_bdp_bytes(SLIM_FLY, FRAME),
    )
    spritz = resolved("spritz")
    assert isinstance(spritz, ResolvedSpritz)
    assert (44, 8) == (spritz.explore_packets, spritz.ecn_packets)
    assert 88 * FRAME == spritz.queue_limit_bytes
    red = RedConfig(kmin_bytes=88 * FRAME // 5, kmax_bytes=88 * FRAME * 4 // 5, pmax_permille=1000)
    assert (red, True, False, FRAME) == (spritz.red, spritz.trim, spritz.repair, spritz.frame_bytes)
    assert (3.0, "latency", 8, 0.0) == (spritz.scale, spritz.weights, spritz.buffer, spritz.bias)
    assert TIMER_RTTS * max_rtt_ns(DRAGONFLY, FRAME) == spritz.timer_ns
    for words in ("ops", "flicr", "ecmp:over=all", "ugal-l:draw=hop"):
        assert (88 * FRAME, red) == (resolved(words).queue_limit_bytes, resolved(words).red)


def test_what_is_given_stays() -> None:
    """And RED follows a given limit; without one it follows the BDP."""
    spritz = resolved("spritz:explore=0,ecn=3,timer=1us,queue=10KB,trim=off")
    assert isinstance(spritz, ResolvedSpritz)
    assert (0, 3, 1_000) == (spritz.explore_packets, spritz.ecn_packets, spritz.timer_ns)
    assert RedConfig(kmin_bytes=2_000, kmax_bytes=8_000, pmax_permille=1000) == spritz.red
    assert (10_000, False) == (spritz.queue_limit_bytes, spritz.trim)
    assert (
        RedConfig(kmin_bytes=1, kmax_bytes=2, pmax_permille=500) == resolved("ops:kmin=1,kmax=2,pmax=0.5").red
    )
    unlimited = resolved("ops:queue=0")
    assert (0, 88 * FRAME // 5) == (unlimited.queue_limit_bytes, unlimited.red and unlimited.red.kmin_bytes)


def test_longest_rtt() -> None:
    """By hand: 3 local and 2 global links, 2 of hosts, 6 switches and 7 frames of 83.2 ns there; 2 local links
    and 1 global, 4 switches and 5 ACKs of 1.28 ns back.
    """
    there = 3 * 25 + 2 * 500 + 2 * 25 + 6 * 500 + 7 * 83.2
    back = 2 * 25 + 500 + 2 * 25 + 4 * 500 + 5 * 1.28
    assert round(there + back + 0.5) == max_rtt_ns(DRAGONFLY, FRAME)
    expected = {
        f"dragonfly:p=4,a=8,h=4,{TABLE_2}": ((5, 1_075), (3, 550)), f"slim-fly:p=7,q=9,{TABLE_2}": ((4, 2_000), (2, 1_000)),
        "dragonfly:p=1,a=4,h=1,groups=2": ((3, 3_000), (3, 3_000)), "dragonfly:p=1,a=4,h=1,groups=1": ((2, 2_000), (1, 1_000)),
        "dragonfly:p=1,a=2,h=1,groups=1": ((1, 1_000), (1, 1_000)), "dragonfly:p=1,a=1,h=1,groups=1": ((0, 0), (0, 0)),
        "dragonfly:p=1,a=1,h=2": ((2, 2_000), (1, 1_000)), "slim-fly:q=3,local=2us,global=1us": ((4, 8_000), (2, 4_000)),
        "leaf-spine:leaves=2": ((2, 2_000), (2, 2_000)), "leaf-spine:leaves=1": ((0, 0), (0, 0)),
        "fat-tree:k=4": ((4, 4_000), (4, 4_000)),
    }  # fmt: skip
    for words, (longest, minimal) in expected.items():
        shape = shape_of(parse_topology(words))
        assert (Longest(*longest), Longest(*minimal)) == (shape.longest, shape.minimal)


def test_larger_frames_take_longer() -> None:
    """A frame of another size is the scheme's to say."""
    assert max_rtt_ns(DRAGONFLY, 1100) < max_rtt_ns(DRAGONFLY, FRAME)
    assert 0 == max_bdp_bytes(DRAGONFLY, 1100) % 1100
    small = resolved("spritz:frame=1100")
    assert small.queue_limit_bytes == max_bdp_bytes(DRAGONFLY, 1100)


def test_latency_of_switches_counts() -> None:
    """In the delay of a path each of its switches does, so in a round trip each twice."""
    plain, slow = (parse_topology(f"leaf-spine:leaves=2,latency={latency}") for latency in ("0ns", "400ns"))
    assert propagation_ns(plain, 3) + 3 * 400 == propagation_ns(slow, 3)
    assert base_rtt_ns(plain, FULL_FRAME_BYTES) + 2 * 3 * 400 == base_rtt_ns(slow, FULL_FRAME_BYTES)
    assert bdp_bytes(plain, FULL_FRAME_BYTES) < bdp_bytes(slow, FULL_FRAME_BYTES)
