# SPDX-License-Identifier: Apache-2.0
"""Dry runs: what a switch would do with a packet now; its state does not change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tailrace.switch.core.core import ps
from tailrace.switch.core.lib import C
from tailrace.switch.core.switch import V1ModelSwitch
from tailrace.switch.trace.events import Trace
from tailrace.switch.trace.records import DescribeEntity, NumberedEvents, no_description
from tailrace.switch.trace.watcher import PacketWatcher

BUFFER_FIELDS = 1 << 18
"""Size of the record buffer of one dry run: 2 MiB, some hundred times what a packet of Flowcut takes."""

MOST_RECORD_FIELDS = 1 << 21
"""Record fields of all outcomes of one packet, or of an injected one; limits the load on the switch."""

MOST_OUTCOMES = 1024
"""Outcomes of one packet."""

FIRST_VALUE = C.TR_DRY_RUN_SPAN + 1
"""A choice of `random` from here on is a value: FIRST_VALUE + n chooses the lowest number + n."""


class DryRun(NamedTuple):
    """A trace, and its events in the order of time, over all copies."""

    trace: Trace
    events: NumberedEvents


def dry_run_packet(
    switch: V1ModelSwitch,
    port: int,
    data: bytes,
    *,
    at_ns: int = 0,
    choices: Sequence[int] = (),
    describe: DescribeEntity = no_description,
) -> Trace:
    """The first outcome of `dry_runs`, with its arguments and errors."""
    return next(dry_runs(switch, port, data, at_ns=at_ns, choices=choices, describe=describe)).trace


def dry_runs(
    switch: V1ModelSwitch,
    port: int,
    data: bytes,
    *,
    at_ns: int = 0,
    choices: Sequence[int] = (),
    describe: DescribeEntity = no_description,
) -> Iterator[DryRun]:
    """What a switch would do with a packet that arrived now at a port: all outcomes, the natural one first.

    Outcomes differ in members of groups, colours, and numbers of `random`, of which more than 65 are sampled:
    the natural one and 64 evenly spaced ones. The packet's copies are traced as well. Each packet leaves its
    queue at once. There are at most MOST_OUTCOMES, and about MOST_RECORD_FIELDS fields of records.

    Args:
        at_ns: the time, if it is later than the switch's own.
        choices: outcomes of the first choices, in order, which all outcomes have.
        describe: names entries, members and groups as the controller wrote them.

    Raises:
        TraceError: no program, no such port, or no memory.
        CompilerError: the program cannot be compiled for this.
    """
    watcher = PacketWatcher(switch, BUFFER_FIELDS)
    waiting, size, count = [tuple(choices)], 0, 0
    while waiting and size < MOST_RECORD_FIELDS and count < MOST_OUTCOMES:
        first = waiting.pop(0)
        records = watcher.dry_run(port, data, ps(at_ns), first)
        taken = [record.payload[1:] for record in records if record.kind == C.TR_RECORD_CHOICE]
        for other in _left_open(taken, len(first)):
            if len(waiting) >= MOST_OUTCOMES:
                break
            waiting.append(other)
        size, count = size + sum(record.size for record in records), count + 1
        events = watcher.events(records, describe)
        yield DryRun(watcher.trace(events, cut=watcher.cut), events)


def _left_open(taken: Sequence[Sequence[int]], first: int) -> Iterator[tuple[int, ...]]:
    """The choices that begin as those that were taken, and differ in the last, none before `first`.

    Args:
        taken: the number of outcomes and the taken outcome of each choice, in the order of time.
    """
    for at in range(first, len(taken)):
        possible, chosen = taken[at]
        before = tuple(outcome for _, outcome in taken[:at])
        yield from ((*before, other) for other in range(possible) if other != chosen)
