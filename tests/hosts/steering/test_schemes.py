# SPDX-License-Identifier: Apache-2.0
"""Scout, Spray and the schemes that they are compared with: what each of them is for, in short stories."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import SteeringConfig
from tailrace.hosts.steering.assign import MAKERS
from tailrace.hosts.steering.base import ACK, ACK_ECN, NACK, TIMEOUT, Steering
from tests.hosts.steering.path_lists import path_list

PATHS = path_list(800, 1000, 1200, 1200, 1500)
EPOCH_NS = 1000


def steering(
    algorithm: str, *, paths: PathList = PATHS, flow_hash: int = 0, seed: int = 1, **settings: Any
) -> Steering:
    config = SteeringConfig(algorithm=algorithm, epoch_ns=EPOCH_NS, **settings)
    return MAKERS[algorithm](config, paths, flow_hash, random.Random(seed))


def sent(scheme: Steering, count: int, now_ns: int = 0) -> list[int]:
    return [scheme.next_ev(now_ns) for _ in range(count)]


def test_scout_stays_on_the_shortest_good_path():
    """A shorter one that is found later comes before it; equal ones keep their order."""
    scheme = steering("scout")
    for ev, front in ((503, 503), (502, 503), (504, 503), (501, 501), (500, 500)):
        scheme.on_feedback(0, ACK, ev)
        assert [front] == sent(scheme, 1)
    for ev, front in ((500, 501), (501, 503), (503, 502), (502, 504)):
        scheme.on_feedback(0, NACK, ev)
        assert [front] == sent(scheme, 1)
    assert (0, 9) == (scheme.explored, scheme.reused)


def test_scout_bears_a_few_marks():
    """ecn_threshold of them; also when unmarked packets come between."""
    scheme = steering("scout", ecn_threshold=3)
    scheme.on_feedback(0, ACK, 504)
    for _ in range(3):
        scheme.on_feedback(0, ACK_ECN, 504)
        assert [504] == sent(scheme, 1)
        assert 0 == scheme.explored
        scheme.on_feedback(0, ACK, 504)
    scheme.on_feedback(0, ACK_ECN, 504)
    sent(scheme, 1)
    assert 1 == scheme.explored


def test_spray_uses_a_good_path_once_for_each_acknowledgment():
    """In their order, at most as many as the buffer has room for."""
    scheme = steering("spray", buffer=4)
    for ev in (504, 500, 504, 504, 501):
        scheme.on_feedback(0, ACK, ev)
    assert [504, 500, 504, 504] == sent(scheme, 4)
    assert 4 == scheme.reused
    sent(scheme, 1)
    assert 1 == scheme.explored


@pytest.mark.parametrize("algorithm", ["scout", "spray"])
def test_now_and_then_a_path_is_drawn_anyway(algorithm):
    """When explore_threshold + 1 packets were sent since (Algorithm 1, line 2)."""
    scheme = steering(algorithm, explore_threshold=9)
    explored = []
    for number in range(44):
        scheme.on_feedback(0, ACK, 501)
        before = scheme.explored
        scheme.next_ev(0)
        if scheme.explored > before:
            explored.append(number)
    assert [10, 21, 32, 43] == explored


@pytest.mark.parametrize("algorithm", ["scout", "spray"])
def test_a_timeout_blocks_a_path_until_the_timer(algorithm):
    """Each path for its own time."""
    scheme = steering(algorithm, timer_ns=100)
    scheme.on_feedback(0, TIMEOUT, 500)
    scheme.on_feedback(50, TIMEOUT, 501)
    assert {502, 503, 504} == set(sent(scheme, 300, 99))
    assert {500, 502, 503, 504} == set(sent(scheme, 300, 149))
    scheme.on_feedback(149, TIMEOUT, 501)
    assert {500, 502, 503, 504} == set(sent(scheme, 300, 248))
    assert {500, 501, 502, 503, 504} == set(sent(scheme, 300, 249))
    assert 3 == scheme.blocked


@pytest.mark.parametrize("algorithm", ["scout", "spray"])
def test_a_path_that_times_out_again_holds_back_no_other(algorithm):
    """The timer of each runs from its own last timeout."""
    scheme = steering(algorithm, timer_ns=100)
    for now_ns, ev in ((0, 500), (10, 501), (50, 500)):
        scheme.on_feedback(now_ns, TIMEOUT, ev)
    assert {501, 502, 503, 504} == set(sent(scheme, 300, 110))
    assert {500, 501, 502, 503, 504} == set(sent(scheme, 300, 150))


@pytest.mark.parametrize("algorithm", ["scout", "spray"])
def test_much_congestion_leads_to_the_minimal_path(algorithm):
    """Above 90 % marks path 0 is drawn as if there were two of it, and no more when the marks are over."""
    scheme = steering(algorithm, timer_ns=100)
    for _ in range(100):
        scheme.on_feedback(0, ACK_ECN, 504)
    biased = Counter(sent(scheme, 2000))[500] / 2000
    total = sum(PATHS.weights)
    first = PATHS.weights[0]
    assert 2 * first / (total + first) == pytest.approx(biased, abs=0.03)
    assert abs(biased - first / total) > 0.06
    for _ in range(40):
        scheme.on_feedback(0, ACK_ECN, 504)
        scheme.on_feedback(0, NACK, 504)
    scheme.on_feedback(100, NACK, 504)
    still = Counter(sent(scheme, 2000, 100))[500] / 2000
    assert biased == pytest.approx(still, abs=0.04)
    for _ in range(3):
        scheme.on_feedback(100, ACK, 9)  # of no path of the flow, but no mark
    after = Counter(sent(scheme, 2000, 200))[500] / 2000
    assert PATHS.weights[0] / total == pytest.approx(after, abs=0.05)


@pytest.mark.parametrize("algorithm", ["scout", "spray"])
def test_a_blocked_minimal_path_stays_blocked(algorithm):
    """However congested the other ones are."""
    scheme = steering(algorithm, timer_ns=1000)
    for _ in range(100):
        scheme.on_feedback(0, ACK_ECN, 504)
    scheme.on_feedback(0, TIMEOUT, 500)
    scheme.on_feedback(1, ACK_ECN, 504)
    assert 500 not in sent(scheme, 1000, 2)


def test_the_bias_is_as_large_as_set():
    """min_bias_factor, in the unit of the weights."""
    scheme = steering("scout", min_bias_factor=100.0, explore_threshold=0)
    for _ in range(100):
        scheme.on_feedback(0, ACK_ECN, 504)
    share = Counter(sent(scheme, 3000))[500] / 3000
    assert 100 / (100 + sum(PATHS.weights[1:])) == pytest.approx(share, abs=0.02)


def test_ops_draws_every_packet_by_weight_and_heeds_nothing():
    """Not even a timeout."""
    scheme = steering("ops", paths=path_list(1, 1, 1, weights=(4.0, 1.0, 0.0)))
    for feedback in (ACK, ACK_ECN, NACK, TIMEOUT):
        for _ in range(50):
            scheme.on_feedback(0, feedback, 500)
    drawn = Counter(sent(scheme, 5000))
    assert drawn[500] / drawn[501] == pytest.approx(4, rel=0.1)
    assert (0, 5000, 0, 0) == (drawn[502], scheme.explored, scheme.reused, scheme.blocked)


def test_ecmp_keeps_a_flow_on_one_path_by_its_hash():
    """Minimal or not, whatever happens."""
    for flow_hash in range(12):
        scheme = steering("ecmp", flow_hash=flow_hash)
        scheme.on_feedback(0, TIMEOUT, 500 + flow_hash % 5)
        assert [500 + flow_hash % 5] * 3 == sent(scheme, 3)


def test_flicr_keeps_its_path_while_that_is_good():
    """Few marks, feedback of other paths and short pauses change nothing."""
    scheme = steering("flicr", marked_share=0.5)
    (ev,) = sent(scheme, 1)
    now_ns = 0
    for number in range(500):
        now_ns += 100
        scheme.on_feedback(now_ns, ACK_ECN if number % 3 == 0 else ACK, ev)
        scheme.on_feedback(now_ns, NACK, ev + 1)
        assert [ev] == sent(scheme, 1, now_ns)
    assert [ev] == sent(scheme, 1, now_ns + EPOCH_NS)
    assert (1, 501) == (scheme.explored, scheme.reused)


def drawn_anew(scheme: Steering, now_ns: int) -> bool:
    """Whether the next packet's path is drawn."""
    before = scheme.explored
    scheme.next_ev(now_ns)
    return scheme.explored > before


@pytest.mark.parametrize("feedback", [ACK_ECN, NACK])
def test_flicr_leaves_a_congested_path_at_the_end_of_an_epoch(feedback):
    """When more than marked_share of its packets met congestion."""
    for many in (False, True):
        scheme = steering("flicr", marked_share=0.5)
        (ev,) = sent(scheme, 1)
        for number in range(10):
            scheme.on_feedback(number, feedback if number < 4 + 2 * many else ACK, ev)
            assert not drawn_anew(scheme, number)
        scheme.on_feedback(EPOCH_NS, ACK, ev)
        assert many == drawn_anew(scheme, EPOCH_NS)


def test_flicr_draws_a_path_for_every_flowlet_and_after_a_timeout():
    """A flowlet begins after a pause of more than an epoch."""
    scheme = steering("flicr")
    (ev,) = sent(scheme, 1)
    assert not drawn_anew(scheme, EPOCH_NS)
    assert drawn_anew(scheme, 2 * EPOCH_NS + 1)
    scheme.on_feedback(2 * EPOCH_NS + 2, TIMEOUT, 9)
    assert not drawn_anew(scheme, 2 * EPOCH_NS + 3)
    for ev in PATHS.evs:
        scheme.on_feedback(2 * EPOCH_NS + 4, TIMEOUT, ev)
    assert drawn_anew(scheme, 2 * EPOCH_NS + 5)


def judged(scheme: Steering, epoch: int, marked: int) -> None:
    """Plays an epoch, numbered from 1: 20 packets on the present path, of which `marked` are marked."""
    (ev,) = sent(scheme, 1, (epoch - 1) * EPOCH_NS)
    for number in range(20):
        last = number == 19
        now_ns = epoch * EPOCH_NS if last else (epoch - 1) * EPOCH_NS + number
        scheme.on_feedback(now_ns, ACK_ECN if number < marked else ACK, ev)


def test_flowbender_begins_as_ecmp_does():
    """By the hash, and stays where few packets are marked, whatever happens on other paths."""
    for flow_hash in range(12):
        scheme = steering("flowbender", flow_hash=flow_hash)
        for epoch in range(1, 9):
            judged(scheme, epoch, marked=1)  # of 20: no more than the twentieth
            scheme.on_feedback(epoch * EPOCH_NS, TIMEOUT, 500 + (flow_hash + 1) % 5)
        assert [500 + flow_hash % 5] * 3 == sent(scheme, 3, 9 * EPOCH_NS)


@pytest.mark.parametrize("epochs", [1, 3])
def test_flowbender_leaves_its_path_after_congested_epochs_in_a_row(epochs):
    """A good one between makes it count anew."""
    scheme = steering("flowbender", epochs=epochs)
    for epoch in range(1, epochs):
        judged(scheme, epoch, marked=2)
    judged(scheme, epochs, marked=1)
    for epoch in range(epochs + 1, 2 * epochs + 1):
        assert [500] == sent(scheme, 1, (epoch - 1) * EPOCH_NS)
        judged(scheme, epoch, marked=2)
    assert 1 == scheme.explored
    assert [500] != sent(scheme, 1, 2 * epochs * EPOCH_NS)


def test_flowbender_leaves_a_dead_path_at_once():
    """For another one, each time."""
    scheme = steering("flowbender")
    for number in range(50):
        (ev,) = sent(scheme, 1)
        scheme.on_feedback(number, TIMEOUT, ev)
        assert [ev] != sent(scheme, 1)
    assert 50 == scheme.explored
    only = steering("flowbender", paths=path_list(800))
    only.on_feedback(0, TIMEOUT, 500)
    assert [500] == sent(only, 1)
