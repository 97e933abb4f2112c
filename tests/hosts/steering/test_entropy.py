# SPDX-License-Identifier: Apache-2.0
"""REPS, UET's modes and PLB choose as oracles do that were written from their descriptions."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable
from typing import Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import SteeringConfig
from tailrace.hosts.steering.assign import MAKERS
from tailrace.hosts.steering.base import ACK, ACK_ECN, NACK, TIMEOUT, Steering

Draw = Callable[[int], int]


class Oracle(Protocol):
    def send(self, now: int) -> int: ...

    def feedback(self, now: int, kind: int, ev: int, rtt: int) -> None: ...


class RepsOracle:
    """The ring as a list of [EV, uses left], oldest first."""

    def __init__(self, evs: list[int], draw: Draw, ring: int, lifetime: int, freeze: int, explore: int, most_rtt: int, rto: int):  # fmt: skip
        self.evs, self.draw, self.size, self.lifetime = evs, draw, ring, lifetime
        self.freeze, self.explore, self.most_rtt, self.rto = freeze, explore, most_rtt, rto
        self.ring: deque[list[int]] = deque(maxlen=ring)
        self.slots: list[int] = []  # the EVs in the order of the ring's slots
        self.added = self.turn = self.exploring = 0
        self.thaw: int | None = None
        self.rtts: list[int] = []
        self.rtts_since = 0

    def send(self, now: int) -> int:
        if self.exploring:
            self.exploring -= 1
        elif self.thaw is not None and self.slots:
            self.turn += 1
            return self.slots[(self.turn - 1) % len(self.slots)]
        elif self.thaw is None:
            for entry in self.ring:
                if entry[1]:
                    entry[1] -= 1
                    return entry[0]
        return self.evs[self.draw(len(self.evs))]

    def feedback(self, now: int, kind: int, ev: int, rtt: int) -> None:
        if kind == TIMEOUT:
            seen_queues = self.most_rtt and max(self.rtts, default=0) >= self.most_rtt
            if self.freeze and self.thaw is None and not self.exploring and not seen_queues:
                self.thaw = now + self.freeze
            return
        if now > self.rtts_since + 2 * self.rto:
            self.rtts, self.rtts_since = [], now
        self.rtts.append(rtt)
        if self.thaw is not None and now > self.thaw:
            self.thaw = None
            self.ring.clear()
            self.slots, self.added, self.turn = [], 0, 0
            self.exploring = self.explore
        if kind == ACK:
            self.ring.append([ev, self.lifetime])
            if len(self.slots) < self.size:
                self.slots.append(ev)
            else:
                self.slots[self.added % self.size] = ev
            self.added += 1


class PlbOracle:
    """The rules of tcp_plb.c, with rounds as in DCTCP; `sent` and `acked` count packets."""

    def __init__(self, evs: list[int], rng: random.Random, first: int, rounds: int, idle: int, share: float, suspend: int, rto: int):  # fmt: skip
        self.evs, self.rng, self.ev = evs, rng, evs[first % len(evs)]
        self.rounds, self.idle, self.share, self.suspend, self.rto = rounds, idle, share, suspend, rto
        self.sent = self.acked = self.until = 0
        self.round: list[bool] = []
        self.congested = self.paused_until = 0
        self.rto_at: int | None = None

    def rehash(self) -> None:
        self.ev, self.congested = self.evs[self.rng.randrange(len(self.evs))], 0

    def send(self, now: int) -> int:
        if self.idle and self.congested >= self.idle and self.sent == self.acked:
            self.rehash()
        self.sent += 1
        return self.ev

    def feedback(self, now: int, kind: int, ev: int, rtt: int) -> None:
        self.acked += 1
        if kind == TIMEOUT:
            if self.rto_at is None or now > self.rto_at + self.rto:
                self.rto_at, self.congested = now, 0
                self.paused_until = now + int(self.suspend * (1 + self.rng.random()))
                self.rehash()
            return
        self.round.append(kind != ACK)
        if self.acked >= self.until:
            if now >= self.paused_until:
                is_congested = sum(self.round) >= self.share * len(self.round)
                self.congested = self.congested + 1 if is_congested else 0
                if self.rounds and self.congested >= self.rounds:
                    self.rehash()
            self.round, self.until = [], self.sent


kinds = st.sampled_from([ACK, ACK, ACK, ACK, ACK_ECN, NACK, TIMEOUT])
# time since the last event, and a packet that is sent, or the feedback of the packet that was sent so many ago
events = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.one_of(st.just("send"), st.tuples(kinds, st.integers(0, 6), st.integers(1, 99))),
    ),
    min_size=60,
    max_size=250,
)
evs = st.lists(st.integers(1, 65535), min_size=1, max_size=20, unique=True)


def replay(ours: Steering, oracle: Oracle, story: list[tuple[int, object]]) -> None:
    now, sent = 0, list[int]()
    for later, event in story:
        now += later
        if event == "send":
            ev = ours.next_ev(now)
            assert oracle.send(now) == ev
            sent.append(ev)
        elif sent and isinstance(event, tuple):
            kind, back, rtt = event
            ev = sent[-1 - min(back, len(sent) - 1)]
            ours.rtt_ns = rtt
            ours.on_feedback(now, kind, ev)
            oracle.feedback(now, kind, ev, rtt)


def steering(algorithm: str, ports: list[int], rng: random.Random, flow_hash: int = 0, **parameters: object) -> Steering:  # fmt: skip
    paths = PathList(tuple(ports), (0,) * len(ports), (1.0,) * len(ports))
    return MAKERS[algorithm](
        SteeringConfig(algorithm=algorithm, parameters=parameters), paths, flow_hash, rng
    )


@settings(max_examples=100)
@given(
    ports=evs, ring=st.integers(1, 9), lifetime=st.integers(1, 3), freeze=st.sampled_from([0, 5, 80]),
    explore=st.sampled_from([0, 3, 12]), most_rtt=st.sampled_from([0, 50]), rto=st.sampled_from([1, 40]),
    seed=st.integers(0, 99), story=events,
)  # fmt: skip
def test_reps_recycles_freezes_and_explores(
    ports, ring, lifetime, freeze, explore, most_rtt, rto, seed, story
):
    """The EV of each packet, for any feedback."""
    ours = steering(
        "reps", ports, random.Random(seed), ring=ring, lifetime=lifetime, freeze_ns=freeze, explore=explore,
        most_rtt_ns=most_rtt, rto_ns=rto,
    )  # fmt: skip
    draw = random.Random(seed).randrange
    replay(ours, RepsOracle(ports, draw, ring, lifetime, freeze, explore, most_rtt, rto), story)


@settings(max_examples=100)
@given(
    ports=evs, first=st.integers(0, 99), rounds=st.sampled_from([0, 1, 3]), idle=st.sampled_from([0, 1, 2]),
    share=st.sampled_from([0.25, 0.5, 1.0]), suspend=st.sampled_from([0, 100]), rto=st.sampled_from([0, 20]),
    seed=st.integers(0, 99), story=events,
)  # fmt: skip
def test_plb_changes_the_path_by_linux_rules(ports, first, rounds, idle, share, suspend, rto, seed, story):
    """After congested rounds, at idle, and at timeouts; suspended after these."""
    ours = steering(
        "plb", ports, random.Random(seed), first, rounds=rounds, idle_rounds=idle, share=share,
        suspend_ns=suspend, rto_ns=rto,
    )  # fmt: skip
    replay(ours, PlbOracle(ports, random.Random(seed), first, rounds, idle, share, suspend, rto), story)


@pytest.mark.parametrize("algorithm", ["uet-oblivious", "uet-bitmap"])
def test_each_round_of_uet_takes_every_entropy_value_once(algorithm):
    """In the first 2^n values of the list; in an order that changes."""
    ports = list(range(500, 570))
    ours = steering(algorithm, ports, random.Random(3))
    rounds = [[ours.next_ev(0) for _ in range(64)] for _ in range(20)]
    assert all(sorted(evs) == ports[:64] for evs in rounds)
    assert len({tuple(evs) for evs in rounds}) > 10


@pytest.mark.parametrize(
    ("feedback", "skipped"),
    [(ACK, 0), (ACK_ECN, 1), (NACK, 4), (TIMEOUT, 15)],
    ids=["ack", "ecn", "nack", "rto"],
)
def test_an_entropy_value_is_skipped_as_often_as_its_penalty_says(feedback, skipped):
    ours = steering("uet-bitmap", list(range(500, 564)), random.Random(3))
    ours.on_feedback(0, feedback, 510)
    uses = Counter(ours.next_ev(0) for _ in range(64 * 20))
    # a round without EV 510 is one packet shorter, so 20 rounds of packets begin one round more, at most
    assert 20 - skipped <= uses[510] <= 21 - skipped
    assert all(20 <= count <= 21 for ev, count in uses.items() if ev != 510)


def test_penalties_add_up_to_fifteen_at_most_and_do_not_stop_a_flow():
    ours = steering("uet-bitmap", list(range(500, 504)), random.Random(3))
    for ev in range(500, 504):
        for _ in range(9):
            ours.on_feedback(0, TIMEOUT, ev)
    # a packet that meets a penalty reduces it by 1: many packets later none is left
    assert {ours.next_ev(0) for _ in range(240)} == {500, 501, 502, 503}
    assert all(3 <= count <= 5 for count in Counter(ours.next_ev(0) for _ in range(16)).values())


@settings(max_examples=50)
@given(story=events, seed=st.integers(0, 99))
def test_mixed_recycles_first(story, seed):
    """Values of unmarked arrivals, in the order of their ACKs; without any, those of the bitmap."""
    ports = list(range(500, 516))
    ours = steering("uet-mixed", ports, random.Random(seed))
    # RecycledFifo and UetBitmap draw from the flow's random numbers in this order when they are made
    rng = random.Random(seed)
    bitmap = steering("uet-bitmap", ports, rng)
    rng.randrange(len(ports))
    queue: deque[int] = deque()

    class Expected:
        def send(self, now: int) -> int:
            return queue.popleft() if queue else bitmap.next_ev(now)

        def feedback(self, now: int, kind: int, ev: int, rtt: int) -> None:
            bitmap.on_feedback(now, kind, ev)
            if kind == ACK:
                queue.append(ev)

    replay(ours, Expected(), story)


def test_the_fifo_takes_all_values_in_turn_before_the_first_feedback():
    ports = list(range(500, 532))
    ours = steering("reps-fifo", ports, random.Random(1))
    assert sorted(ours.next_ev(0) for _ in range(32)) == ports
    ours.on_feedback(0, ACK, 501)
    ours.on_feedback(0, ACK, 507)
    assert [501, 507] == [ours.next_ev(0), ours.next_ev(0)]
