# SPDX-License-Identifier: Apache-2.0
"""Workloads in which flows wait: windowed all-to-all, closed loop, and what can be under way at once."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tailrace.experiments.plan import nic as concurrent
from tailrace.experiments.workloads.pairs import SWITCHES, Partners, groups_of
from tailrace.experiments.workloads.workload import parse_workload
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.spec import SpecError
from tailrace.topology import parse_topology
from tests.experiments.replay import most_at_once, replay

FABRIC = parse_topology("leaf-spine:leaves=3,spines=2,hosts=4")
WAITING = ("alltoall:window=3", "random:messages=6", "allreduce", "allreduce:algo=butterfly,hosts=8")


def flows(words: str, seed: int = 1) -> list[FlowSpec]:
    return parse_workload(words).traffic(FABRIC, random.Random(seed)).flows


@settings(max_examples=50)
@given(window=st.integers(1, 13), seed=st.integers(0, 1 << 30))
def test_window_is_never_exceeded(window: int, seed: int) -> None:
    """However long each flow takes, no host has more flows under way than the window, and all are sent."""
    made = flows(f"alltoall:window={window}")
    assert len({(flow.src, flow.dst) for flow in made}) == len(made) == 12 * 11
    rng = random.Random(seed)
    spans = replay(made, lambda _flow: rng.randint(1, 1000))
    for host in FABRIC.hosts:
        most = most_at_once([span for span in spans if span.flow.src == host.ip])
        assert most == min(window, 11)


@settings(max_examples=30)
@given(seed=st.integers(0, 1 << 30), jitter_us=st.integers(0, 50))
def test_closed_loop(seed: int, jitter_us: int) -> None:
    """Every host sends its messages in turn: each begins at the very end of the one before it."""
    made = flows(f"random:messages=7,jitter={jitter_us}us", seed)
    rng = random.Random(seed)
    mine = defaultdict(list)
    for span in replay(made, lambda _flow: rng.randint(1, 100_000)):
        mine[span.flow.src].append(span)
    assert [len(spans) for spans in mine.values()] == [7] * 12
    for spans in mine.values():
        assert spans[0].begin_ns == spans[0].flow.start_ns <= jitter_us * 1000
        assert [span.begin_ns for span in spans[1:]] == [span.end_ns for span in spans[:-1]]


def test_partners_are_equally_likely() -> None:
    """Each of the 8 hosts of other leaves is drawn as often as any: within 5 standard deviations of 1/8."""
    partners = Partners(FABRIC.hosts, groups_of(FABRIC, FABRIC.hosts, SWITCHES))
    rng = random.Random(1)
    count = 20_000
    for sender in FABRIC.hosts[::5]:
        drawn = [partners.draw(sender, rng) for _ in range(count)]
        remote_hosts = [host for host in FABRIC.hosts if host.switch != sender.switch]
        assert {host.name for host in drawn} == {host.name for host in remote_hosts}
        spread = (count * 1 / 8 * 7 / 8) ** 0.5
        assert all(abs(drawn.count(host) - count / 8) < 5 * spread for host in remote_hosts)


@pytest.mark.parametrize("words", WAITING)
def test_waits_are_for_own_and_earlier_flows(words: str) -> None:
    """A flow waits for flows with smaller ids that its sender sends or receives; and some flow does wait."""
    made = flows(words)
    ends = {flow.id: (flow.src, flow.dst) for flow in made}
    assert all(number < flow.id and flow.src in ends[number] for flow in made for number in flow.after)
    assert any(flow.after for flow in made)


@settings(max_examples=60)
@given(words=st.sampled_from((*WAITING, "permutation:flows=30")), seed=st.integers(0, 1 << 30))
def test_bound_of_what_is_under_way(words: str, seed: int) -> None:
    """However long each flow takes, and if only some that it waits for must end, no more is under way at once than concurrent.py says."""
    rng = random.Random(seed)
    made = [
        replace(flow, after_count=rng.randint(0, len(set(flow.after)))) if len(flow.after) > 1 else flow
        for flow in flows(words)
    ]
    weights = {flow.id: rng.randint(0, 100) for flow in made}
    spans = replay(made, lambda _flow: rng.randint(1, 1000))
    bound = concurrent.most_at_once(made, lambda flow: weights[flow.id])
    assert most_at_once(spans, lambda span: weights[span.flow.id]) <= bound


def test_bound_is_tight_for_chains() -> None:
    """A window of 3 at 12 hosts is 36 flows; a closed loop of 12 hosts 12; flows that wait for none are all."""
    expected = {"alltoall:window=3": 36, "random:messages=6": 12, "allreduce": 12, "permutation:flows=30": 30}
    assert {words: concurrent.most_at_once(flows(words), lambda _flow: 1) for words in expected} == expected


@pytest.mark.parametrize("rounds", [1, 2, 5, 10, 11])
def test_some_rounds_of_an_all_to_all(rounds: int) -> None:
    """In each every host sends one flow and hears one; near and far hosts have the same share; 11 are all."""
    made = flows(f"alltoall:window=2,rounds={rounds}")
    everything = flows("alltoall:window=2")
    place = {host.ip: number for number, host in enumerate(FABRIC.hosts)}
    count = len(place)
    for ends in ("src", "dst"):
        assert Counter(dict.fromkeys(place, rounds)) == Counter(getattr(flow, ends) for flow in made)
    shifts = sorted({(place[flow.dst] - place[flow.src]) % count for flow in made})
    assert rounds == len(shifts)
    gaps = {
        after - before for before, after in zip(shifts, (*shifts[1:], shifts[0] + count - 1), strict=True)
    }
    assert max(gaps) - min(gaps) <= 1
    assert {(flow.src, flow.dst) for flow in made} <= {(flow.src, flow.dst) for flow in everything}
    if rounds == count - 1:
        assert made == everything


def test_more_rounds_than_there_are() -> None:
    """One line."""
    with pytest.raises(SpecError, match=f"rounds must be less than {len(FABRIC.hosts)}, the number of hosts"):
        flows(f"alltoall:rounds={len(FABRIC.hosts)}")
