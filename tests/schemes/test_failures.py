# SPDX-License-Identifier: Apache-2.0
"""Paths that switches found faulty: how long they stay out, when they come back, and what is told of them."""

from __future__ import annotations

import pytest
from finsy.proto import p4r
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.p4rt.digests import DigestMessage
from tailrace.p4rt.encoding import encode
from tailrace.p4rt.events import Event, structured
from tailrace.p4rt.programs import P4Program, load
from tailrace.p4rt.target import target
from tailrace.schemes.base import resolve
from tailrace.schemes.blocks.groups import excluding
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.rlb.failures import DIGEST, MOST_DOUBLINGS, Failures
from tailrace.schemes.rlb.faulty_paths import ALREADY_OUT, LAST_WAY, TAKEN_OUT, RlbWatcher, missing_ports
from tailrace.topology import parse_topology
from tests.schemes.planned import intent

HOLD = 1_000
FIRST, SECOND = ("leaf1", 3), ("leaf1", 4)
TOPOLOGY = parse_topology("leaf-spine:leaves=2,spines=3,hosts=2,rate=10Mbps,delay=1ms")
UPLINKS = (3, 4, 5)


def test_first_time() -> None:
    """A path is out for the hold time, to the nanosecond, and once only."""
    failures = Failures(HOLD)
    suppressed = failures.suppress(FIRST, 50)
    assert suppressed is not None
    assert (suppressed.since_ns, suppressed.until_ns) == (50, 50 + HOLD)
    assert failures.suppress(FIRST, 60) is None
    assert failures.next_ns(60) == 50 + HOLD
    assert failures.reuse(49 + HOLD) == []
    assert [path.end for path in failures.suppressed] == [FIRST]
    assert failures.reuse(50 + HOLD) == [FIRST]
    assert (failures.suppressed, failures.next_ns(60 + HOLD)) == ([], None)


def test_doubles_each_time() -> None:
    """Found faulty again at once after each trial: twice as long each time, up to a limit."""
    failures, now_ns, holds = Failures(HOLD), 0, []
    for _ in range(MOST_DOUBLINGS + 3):
        suppressed = failures.suppress(FIRST, now_ns)
        assert suppressed is not None
        holds.append(suppressed.until_ns - now_ns)
        now_ns = suppressed.until_ns
        assert failures.reuse(now_ns) == [FIRST]
    doubled = [HOLD << i for i in range(MOST_DOUBLINGS + 1)]
    assert holds == [*doubled, doubled[-1], doubled[-1]]


def test_good_times_are_remembered() -> None:
    """Each hold time in use without an alert takes one doubling back."""
    failures, now_ns = Failures(HOLD), 0
    for _ in range(3):
        suppressed = failures.suppress(FIRST, now_ns)
        assert suppressed is not None
        now_ns = suppressed.until_ns
        failures.reuse(now_ns)
    # the last hold time was four times the first one; two such times later it is as after the first alert
    late = failures.suppress(FIRST, now_ns + 2 * 4 * HOLD)
    assert late is not None
    assert late.until_ns - late.since_ns == 2 * HOLD
    failures.reuse(late.until_ns)
    much_later = failures.suppress(FIRST, late.until_ns + 100 * HOLD)
    assert much_later is not None
    assert much_later.until_ns - much_later.since_ns == HOLD


def test_dead_links_are_not_tried() -> None:
    """A path whose link is down stays out when its time is over, until the link is back."""
    failures = Failures(HOLD)
    failures.suppress(FIRST, 0)
    failures.suppress(SECOND, 0)
    assert failures.reuse(HOLD, frozenset({FIRST})) == [SECOND]
    assert failures.next_ns(HOLD) is None
    assert [path.end for path in failures.suppressed] == [FIRST]
    assert failures.reuse(HOLD + 1) == [FIRST]


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 5000), st.sampled_from([FIRST, SECOND]), st.booleans()), max_size=30)
)
def test_against_a_list_of_what_happened(steps: list[tuple[int, tuple[str, int], bool]]) -> None:
    """Whatever happens when: out exactly from an alert until the first look after the hold time."""
    failures, now_ns, until = Failures(HOLD), 0, dict[tuple[str, int], int]()
    for gap_ns, end, alert in steps:
        now_ns += gap_ns
        if alert:
            suppressed = failures.suppress(end, now_ns)
            assert (suppressed is None) == (end in until)
            if suppressed is not None:
                hold_ns = suppressed.until_ns - now_ns
                assert hold_ns in {HOLD << i for i in range(MOST_DOUBLINGS + 1)}
                until[end] = suppressed.until_ns
        else:
            due = sorted(end for end, time_ns in until.items() if time_ns <= now_ns)
            assert failures.reuse(now_ns) == due
            for gone in due:
                del until[gone]
        assert {path.end for path in failures.suppressed} == set(until)
        assert failures.next_ns(now_ns) == min((t for t in until.values() if t > now_ns), default=None)


def test_the_last_way_stays() -> None:
    """Ports are left out of each set of next hops, but never all of one."""
    hops = {"leaf2": (3, 4), "leaf3": (3,), "leaf4": ()}
    assert excluding(hops, frozenset({3})) == {"leaf2": (4,), "leaf3": (3,), "leaf4": ()}
    assert excluding(hops, frozenset({3, 4})) == {"leaf2": (3, 4), "leaf3": (3,), "leaf4": ()}


# ---- what a controller makes of digests ----


def alert(port: int, switch: str = "leaf1", total: int = 33) -> DigestMessage:
    return DigestMessage(switch, DIGEST, {"port": port, "sum": total, "packets": 6, "delay_ticks": 12})


def faulty() -> tuple[RlbWatcher, list[Event]]:
    events: list[Event] = []
    config = resolve(parse_scheme(f"rlb:hold={HOLD}ns,interval=1ns"), TOPOLOGY)
    watcher = config.watch(TOPOLOGY, target("native"), events.append)
    assert isinstance(watcher, RlbWatcher)
    return watcher, events


def test_alerts_are_told_with_all_that_is_known() -> None:
    """Time, switch, port, the switch behind it, mean recirculations and t_rc, in ns."""
    paths, events = faulty()
    assert paths.on_digest(alert(4), 5)
    (event,) = events
    assert structured(event) == {
        "event": "failure-alert", "subject": "leaf1-spine2", "text": event.text, "time_ns": 5,
        "switch": "leaf1", "port": 4, "neighbour": "spine2", "mean_recirculations": 5.5, "t_rc_ns": 12_000,
        "action": TAKEN_OUT, "until_ns": 5 + HOLD,
    }  # fmt: skip
    assert "\n" not in event.text
    assert paths.suppressed_ports == {("leaf1", 4)}


def test_alerts_of_a_path_that_is_out_and_of_the_last_way() -> None:
    """Both are told and change nothing; the path comes back in its time, which is told, too."""
    paths, events = faulty()
    assert [paths.on_digest(alert(port), 0) for port in (3, 3, 4, 5)] == [True, False, True, False]
    assert [event.facts["action"] for event in events] == [TAKEN_OUT, ALREADY_OUT, TAKEN_OUT, LAST_WAY]
    assert paths.suppressed_ports == {("leaf1", 3), ("leaf1", 4)}
    assert paths.reused(HOLD) == [("leaf1", 3), ("leaf1", 4)]
    assert [(e.kind, e.facts["port"]) for e in events[4:]] == [("path-back", 3), ("path-back", 4)]
    assert paths.on_digest(alert(5), HOLD)


def test_dead_links_count_as_gone() -> None:
    """What a link that is down leaves may be the last way."""
    paths, events = faulty()
    down = frozenset({("leaf1", 3), ("spine1", 1), ("leaf1", 4), ("spine2", 1)})
    assert not paths.on_digest(alert(5), 0, down)
    assert events[-1].facts["action"] == LAST_WAY
    assert paths.on_digest(alert(5), 1)


@pytest.mark.parametrize("port", [0, 1, 2, 77])
def test_ports_that_lead_to_no_switch(port: int) -> None:
    """An alert of a host's port, or of none there is, is told and no more."""
    paths, events = faulty()
    assert not paths.on_digest(alert(port), 0)
    assert [event.kind for event in events] == ["digest"]
    assert f"port={port}" in events[0].text


def test_other_switches_are_left_alone() -> None:
    """Only the switch that found the path leaves it out."""
    paths, _ = faulty()
    paths.on_digest(alert(1, "spine1"), 0)
    # the only way from spine1 to leaf1
    assert paths.suppressed_ports == frozenset()
    paths.on_digest(alert(3, "leaf2"), 0)
    assert paths.suppressed_ports == {("leaf2", 3)}


# ---- what an earlier controller left ----


def held(suppressed: frozenset[tuple[str, int]] = frozenset()) -> tuple[P4Program, list[p4r.Entity]]:
    """What leaf1 holds with some ports left out."""
    intended = intent(TOPOLOGY, parse_scheme("rlb"), target("native"), suppressed=suppressed)["leaf1"]
    program = load(intended.program)
    return program, encode(program, intended.entities)


@pytest.mark.parametrize("suppressed", [(), (3,), (3, 5)])
def test_ports_that_are_missing(suppressed: tuple[int, ...]) -> None:
    """Those that no group names any more; a switch without any group says nothing."""
    program, intended = held()
    _, left = held(frozenset(("leaf1", port) for port in suppressed))
    assert missing_ports(program, intended, left) == set(suppressed)
    assert missing_ports(program, intended, []) == set()


def test_adopted() -> None:
    """They stay out for a hold time from now on, but for host ports, and the last way."""
    paths, events = faulty()
    assert not paths.adopt("leaf1", {1, 77}, 0)
    assert paths.adopt("leaf1", UPLINKS, 5)
    assert [event.facts["port"] for event in events if event.kind == "path-out"] == [3, 4]
    assert [(path.end, path.until_ns) for path in paths.suppressed] == [
        (("leaf1", p), 5 + HOLD) for p in (3, 4)
    ]
    assert not paths.adopt("leaf1", {3}, 6)
    assert paths.reused(5 + HOLD) == [("leaf1", 3), ("leaf1", 4)]
