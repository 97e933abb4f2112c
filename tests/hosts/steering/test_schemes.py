# SPDX-License-Identifier: Apache-2.0
"""What Spritz is compared with (OPS, ECMP, FLICR, FlowBender): what each of them is for, in short stories."""

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
