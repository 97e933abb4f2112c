# SPDX-License-Identifier: Apache-2.0
"""The model objects: a record of a good run passes, and no longer when anything in it is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.flowcut.dump import Dump
from tests.flowcut.frames import Kind, Parsed
from tests.flowcut.oracle import MismatchError, Oracle
from tests.flowcut.replay import Replay
from tests.flowcut.run import Run
from tests.flowcut.scenario import TOPOLOGIES, Scenario
from tests.flowcut.watch import Event

_SWITCH = "leaf1"
# Any busy run will do in which none of the changes below happens to be harmless, such as the repetition of an ACK
# that was the last one anyway.
_BUSY = Scenario(
    TOPOLOGIES[1],
    20,
    "flowcut:variant=full,buckets=2,queue=500KB,rtt=1.5,growth=off,left=0,credit=2000",
    30,
    slow_links=2,
)
Tamper = Callable[[list[Event]], None]


@pytest.fixture(scope="module")
def busy() -> Iterator[Run]:
    with Run(_BUSY) as run:
        assert run.go()
        assert run.leftovers() == []
        yield run


def replay(run: Run, events: list[Event], oracle: Oracle | None = None) -> None:
    watch = run.watches[_SWITCH]
    kept, watch.events = watch.events, events
    config = run.config(_SWITCH)
    model = oracle or run.oracle(_SWITCH)
    try:
        Replay(watch, model, full=True, limit_bytes=config.queue_limit_bytes or 0).check()
        run.compare_counters(_SWITCH, model)
    finally:
        watch.events = kept


def test_the_run_has_everything_that_is_tampered_with_below(busy: Run) -> None:
    decisions = busy.compare_with_model()
    assert decisions > 300
    switch = busy.network.switch(_SWITCH)
    for counter in ("flowcut_overflow", "flowcut_rerouted", "xoff_sent", "xon_sent", "acks_made"):
        assert switch.counter_read(switch.model.counter(counter).index, 0)[1] > 0, counter


def _find(events: list[Event], what: str, good: Callable[[Parsed], bool]) -> int:
    """A place in the second half of the run, when there is much to remember."""
    return next(
        i
        for i, e in enumerate(events)
        if i > len(events) // 3 and e.what == what and e.frame is not None and good(e.frame)
    )


def _change(events: list[Event], at: int, **changes: Any) -> None:
    frame = events[at].frame
    assert frame is not None
    events[at] = replace(events[at], frame=replace(frame, **changes))


def _other_port(events: list[Event]) -> None:
    at = _find(events, "out", lambda f: f.kind is Kind.DATA and f.shim)
    uplinks = sorted({e.port for e in events if e.what == "out" and e.frame and e.frame.shim})
    event = events[at]
    events[at] = replace(event, port=next(port for port in uplinks if port != event.port))


def _ack_unseen(events: list[Event]) -> None:
    del events[_find(events, "in", lambda f: f.kind is Kind.ACK)]


def _ack_not_made(events: list[Event]) -> None:
    del events[_find(events, "out", lambda f: f.kind is Kind.ACK)]


def _pause_with_other_credit(events: list[Event]) -> None:
    _change(events, _find(events, "out", lambda f: f.kind is Kind.PAUSE), credit_bytes=1)


def _shim_shown_to_a_host(events: list[Event]) -> None:
    _change(events, _find(events, "out", lambda f: f.kind is Kind.DATA and not f.shim), shim=True)


def _stamp_forgotten(events: list[Event]) -> None:
    _change(events, _find(events, "out", lambda f: f.shim), stamps=())


def _data_vanished(events: list[Event]) -> None:
    """Dropped although the queue had room."""
    idle = next(i for i, e in enumerate(events) if e.what == "in" and e.frame and e.frame.kind is Kind.DATA)
    packet = events[idle].frame
    assert packet is not None
    events[:] = [
        e
        for i, e in enumerate(events)
        if i <= idle or e.frame is None or e.frame.kind is not Kind.DATA or e.frame.packet != packet.packet
    ]


def _busy_dump(events: list[Event]) -> tuple[int, Dump]:
    for at, event in enumerate(events):
        if (
            event.dump is not None
            and not event.dump.empty
            and any(w.samples for w in event.dump.ways if w.in_flight)
        ):
            return at, event.dump
    raise AssertionError("no dump shows a flow with an ACK")


def _entry(field: str) -> Tamper:
    def tamper(events: list[Event]) -> None:
        at, dump = _busy_dump(events)
        ways = list(dump.ways)
        way = next(i for i, w in enumerate(ways) if w.in_flight and w.samples)
        ways[way] = replace(ways[way], **{field: getattr(ways[way], field) + 1})
        events[at] = replace(events[at], dump=replace(dump, ways=tuple(ways)))

    tamper.__name__ = f"dumped_{field}"
    return tamper


def _untracked(events: list[Event]) -> None:
    at, dump = _busy_dump(events)
    events[at] = replace(events[at], dump=replace(dump, untracked=dump.untracked + 1))


_NUMBERS = ("state", "in_port", "out_port", "in_flight", "last", "average", "growth", "left", "samples")


@pytest.mark.parametrize(
    "tamper",
    [
        _other_port,
        _ack_unseen,
        _ack_not_made,
        _pause_with_other_credit,
        _shim_shown_to_a_host,
        _stamp_forgotten,
        _data_vanished,
        _untracked,
        *(_entry(field) for field in _NUMBERS),
    ],
    ids=lambda tamper: tamper.__name__.lstrip("_"),
)
def test_a_changed_record_does_not_pass(busy: Run, tamper: Tamper) -> None:
    events = list(busy.watches[_SWITCH].events)
    replay(busy, list(events))
    tamper(events)
    with pytest.raises(MismatchError):
        replay(busy, events)


@pytest.mark.parametrize(
    "changes",
    [
        {"rtt_threshold": 2000},
        {"alpha": 120},
        {"ticks_per_byte": 1 << 18},
        {"credit_bytes": 0},
        {"bucket_mask": 0},
        {"obey_bytes": -1},
    ],
    ids=str,
)
def test_a_switch_with_other_parameters_does_not_pass(busy: Run, changes: dict[str, Any]) -> None:
    good = busy.oracle(_SWITCH)
    with pytest.raises((MismatchError, KeyError)):
        replay(busy, busy.watches[_SWITCH].events, Oracle(replace(good.config, **changes), good.hash_of))
