# SPDX-License-Identifier: Apache-2.0
"""Dry runs: compute what a switch would do with a packet now, without a change to the switch's state.

Outcomes differ in choices: selected group members, meter colours and values of `random`. A choice is a number
that says which outcome happens. The switch core records each step of the packet as a record of 64-bit fields
(records.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tailrace.switch.core.core import ps
from tailrace.switch.core.lib import C
from tailrace.switch.core.switch import V1ModelSwitch
from tailrace.switch.trace.events import Trace
from tailrace.switch.trace.records import DescribeEntity, NumberedEvents, no_description
from tailrace.switch.trace.watcher import PacketWatcher

BUFFER_FIELDS = 1 << 18
"""Size of the record buffer of one dry run: 2 MiB, about a hundred times what a packet needs in Flowcut."""

MOST_RECORD_FIELDS = 1 << 21
"""Most record fields of all outcomes of one dry run, or of one packet sent for a trace (injection.py)."""

MOST_OUTCOMES = 1024
"""Most outcomes of one packet."""

FIRST_VALUE = C.TR_DRY_RUN_SPAN + 1
"""What a choice means for `random` in a range of more than S = TR_DRY_RUN_SPAN values: choice c < S is the
c-th of S evenly spaced values, choice S the value that would be drawn without a dry run, and choice
FIRST_VALUE + n the lowest value plus n.
"""


class DryRun(NamedTuple):
    """One outcome: its trace, and the events of the packet and all its copies in the order of time."""

    trace: Trace
    events: NumberedEvents


def dry_run_packet(switch: V1ModelSwitch, port: int, data: bytes, **options: Any) -> Trace:
    """The first outcome of `dry_runs`, with its arguments and errors."""
    return next(dry_runs(switch, port, data, **options)).trace


def dry_runs(
    switch: V1ModelSwitch,
    port: int,
    data: bytes,
    *,
    at_ns: int = 0,
    choices: Sequence[int] = (),
    describe: DescribeEntity = no_description,
) -> Iterator[DryRun]:
    """What a switch would do with a packet that arrived now: all outcomes, first the one without a dry run.

    Of a range of more than 64 values of `random`, 64 evenly spaced values are tried, and the value that would
    be drawn without a dry run. The packet's copies are traced as well. Packets leave their queues at once.
    There are at most MOST_OUTCOMES outcomes. No further outcome is computed when the records have
    MOST_RECORD_FIELDS fields.

    Args:
        at_ns: the time of arrival, if it is later than the switch's present time.
        choices: the first choices, in order; all results begin with them.
        describe: describes entries, members and groups as the controller wrote them.

    Raises:
        TraceError: the switch has no program or no such port, or memory is exhausted.
        CompilerError: the program's tracing build cannot be compiled.
    """
    watcher = PacketWatcher(switch, BUFFER_FIELDS, describe)
    # `waiting`: sequences of first choices, an outcome each; `size`: record fields of all outcomes so far
    waiting, size, count = [tuple(choices)], 0, 0
    while waiting and size < MOST_RECORD_FIELDS and count < MOST_OUTCOMES:
        given = waiting.pop(0)
        records = watcher.dry_run(port, data, ps(at_ns), given)
        # number of outcomes, and the outcome taken
        taken = [record.payload[1:] for record in records if record.kind == C.TR_RECORD_CHOICE]
        for other in _alternatives(taken, len(given)):
            if len(waiting) >= MOST_OUTCOMES:
                break
            waiting.append(other)
        size, count = size + sum(record.size for record in records), count + 1
        events = watcher.events(records)
        yield DryRun(watcher.trace(events, cut=watcher.cut), events)


def _alternatives(taken: Sequence[Sequence[int]], first: int) -> Iterator[tuple[int, ...]]:
    """Sequences of choices to try next: a prefix of those taken, then another outcome of the next choice.

    Args:
        taken: for each choice, in the order of time: the number of possible outcomes, and the one taken.
        first: index of the first choice that may differ.
    """
    for index in range(first, len(taken)):
        possible, chosen = taken[index]
        before = tuple(outcome for _, outcome in taken[:index])
        yield from ((*before, other) for other in range(possible) if other != chosen)
