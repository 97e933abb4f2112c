# SPDX-License-Identifier: Apache-2.0
"""When a flow leaves its path by Hermes, and which one it takes then, step by step."""

from __future__ import annotations

from collections import Counter

from tailrace.hosts.steering.base import TIMEOUT
from tailrace.hosts.steering.hermes_paths import CONGESTED, FAILED, GOOD, GREY
from tests.hosts.steering.hermes_story import (
    BASE_NS,
    FIRST,
    HIGH_NS,
    HOP_NS,
    Story,
    congested_story,
    known,
    sense,
)


def test_a_new_flow_takes_the_good_path_that_is_used_least():
    """Not a grey one, though that is used less."""
    story = Story()
    story.make({0: GOOD, 1: GREY, 2: GOOD, 3: GOOD})
    for path, count in ((0, 9), (2, 4), (3, 6)):
        story.use(path, count)
    assert [2, 2, 2] == [story.send() for _ in range(3)]
    assert (1, 2, 2) == (story.flow.explored, story.flow.reused, story.flow.path)


def test_without_a_good_path_it_takes_a_grey_one():
    """Again the one that is used least; otherwise any that has not failed."""
    story = Story()
    story.make({0: GREY, 1: CONGESTED, 2: GREY, 3: FAILED})
    story.use(0, 5)
    assert 2 == story.send()
    drawn = set()
    for seed in range(30):
        story = Story(seed)
        story.make({0: FAILED, 1: CONGESTED, 2: FAILED, 3: CONGESTED})
        drawn.add(story.send())
    assert {1, 3} == drawn


def test_where_everything_has_failed_it_goes_on():
    """By any path."""
    drawn = set()
    for seed in range(60):
        story = Story(seed)
        story.make(dict.fromkeys(range(4), FAILED))
        drawn.add(story.send())
    assert {0, 1, 2, 3} == drawn


def test_equal_paths_are_drawn():
    """So that not all NICs begin with the same one."""
    drawn = Counter(Story(seed).send() for seed in range(200))
    assert 4 == len(drawn)
    assert min(drawn.values()) > 25


def test_a_timeout_lets_it_choose_anew():
    """Once."""
    story = Story()
    story.make({0: GOOD, 1: GREY, 2: GREY, 3: GREY})
    assert 0 == story.send()
    story.make({0: GREY, 3: GOOD})
    for _ in range(400):
        sense(story.paths, 0, BASE_NS + 40_000, 0.2, count=1)
    assert 0 == story.send()
    story.flow.on_feedback(0, TIMEOUT, FIRST)
    assert [3, 3] == [story.send() for _ in range(2)]


def test_a_failed_path_is_left_at_once():
    """However little the flow has sent, and however fast."""
    story = Story()
    story.make({0: GOOD, 1: GREY, 2: GREY, 3: GREY})
    assert 0 == story.send()
    story.make({0: FAILED})
    assert story.send() != 0


def test_a_congested_path_is_left_by_a_large_slow_flow():
    """More than S bytes sent, and less than R of the link of late."""
    story = congested_story()
    assert [0] * 9 == [story.send() for _ in range(9)]
    assert 0 == story.send()  # 10000 bytes are not more than S
    assert [1, 1] == [story.send(), story.send()]
    assert 2 == story.flow.explored


def test_a_fast_flow_stays():
    """30 % of 10 Gb/s in 160 us are 60000 bytes."""
    story = congested_story()
    story.send(0, 60_000)
    assert 0 == story.send()
    # 1/8 is forgotten in 20 us
    assert 0 == story.send(19_999)
    assert 1 == story.send(20_000)


def test_a_small_flow_stays():
    """Though nothing else keeps it."""
    story = congested_story(size_bytes=10**9)
    assert {0} == {story.send() for _ in range(50)}


def test_it_moves_only_to_a_notably_better_path():
    """By more than one hop's delay and by more than 5 % of marks; a good one comes before a grey one."""
    for rtt_ns, better in ((BASE_NS + 1, False), (BASE_NS, True)):
        hermes = known()
        hermes.on_rtt(0, 0, BASE_NS + HOP_NS + 1)
        hermes.on_mark(0, 0, True)  # 1/16 of all, and more than 5 %
        hermes.on_rtt(0, 1, rtt_ns)
        assert better == hermes.notably_better(0, 1, 0)
        hermes.on_mark(0, 1, True)
        assert not hermes.notably_better(0, 1, 0)
    present = congested_story().paths.rtt_ns(0, 0)
    # averages in whole ns end up to 7 of them below what comes
    for rtt_ns, share, expected in (
        (present - HOP_NS + 8, 0.0, 0),
        (present - HOP_NS - 1, 0.0, 1),
        (present - HOP_NS - 1, 0.88, 0),
    ):
        story = congested_story()
        story.send(0, 20_000)
        for path in (1, 2, 3):
            sense(story.paths, path, rtt_ns, share)
        story.use(2, 10)
        story.use(3, 10)
        assert expected == story.send()
    good = congested_story()
    good.send(0, 20_000)
    sense(good.paths, 2, BASE_NS + 40_000, 0.0)
    good.use(1, 100)
    assert 1 == good.send()
    grey = congested_story()
    grey.send(0, 20_000)
    sense(grey.paths, 1, HIGH_NS + 90_000, 0.9)
    sense(grey.paths, 2, BASE_NS + 40_000, 0.0)
    assert 2 == grey.send()


def test_a_grey_path_is_kept():
    """Good ones beside it or not."""
    story = Story()
    story.make({0: GOOD, 1: GREY, 2: GREY, 3: GREY})
    story.send(0, 20_000)
    sense(story.paths, 0, HIGH_NS + 90_000, 0.2)
    story.make({1: GOOD})
    assert GREY == story.host.kind(0, 0)
    assert {0} == {story.send(10**9) for _ in range(5)}


def test_ports_that_are_no_path_are_ignored():
    """Whatever is said of them."""
    story = Story()
    story.flow.on_feedback(0, TIMEOUT, 7)
    story.flow.on_rtt(0, 7, 5)
    assert 0 == story.flow.blocked
    story.send()
    for _ in range(4):
        story.flow.on_feedback(0, TIMEOUT, FIRST + story.flow.path)
    assert 1 == story.flow.blocked
