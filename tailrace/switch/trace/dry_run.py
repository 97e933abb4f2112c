# SPDX-License-Identifier: Apache-2.0
"""Dry runs: what a switch would do with a packet now; its state does not change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tailrace.spec.errors import Error
from tailrace.switch.core.core import ps
from tailrace.switch.core.lib import C, ffi, load
from tailrace.switch.core.switch import V1ModelSwitch
from tailrace.switch.trace.events import Trace
from tailrace.switch.trace.records import DescribeEntity, NumberedEvents, choices_in, no_description
from tailrace.switch.trace.tracing_build import cached_build

BUFFER_FIELDS = 1 << 18
"""Size of the record buffer of one dry run: 2 MiB, some hundred times what a packet of Flowcut takes."""

MOST_RECORD_FIELDS = 1 << 21
"""Record fields of all outcomes of one packet, or of an injected one; limits the load on the switch."""

MOST_OUTCOMES = 1024
"""Outcomes of one packet."""

_PROBLEMS = {
    C.TR_EINVAL: "the switch runs another program now",
    C.TR_ERANGE: "no such port, or the packet is too long",
    C.TR_ENOMEM: "out of memory",
}


class TraceError(Error):
    """A packet cannot be traced; one line for the user."""


class DryRun(NamedTuple):
    """A trace, and its events in the order of time, over all copies."""

    trace: Trace
    events: NumberedEvents


FIRST_VALUE = C.TR_DRY_RUN_SPAN + 1
"""A choice of `random` from here on is a value: FIRST_VALUE + n chooses the lowest number + n."""


def dry_run_packet(
    switch: V1ModelSwitch,
    port: int,
    data: bytes,
    *,
    at_ns: int = 0,
    choices: Sequence[int] = (),
    describe: DescribeEntity = no_description,
) -> Trace:
    """What a switch would do with a packet that arrived now at a port. Its state does not change.

    Its copies are traced as well. Each packet leaves its queue at once.

    Args:
        at_ns: the time, if it is later than the switch's own.
        choices: outcomes of the first choices, in order; later ones are natural.
        describe: names entries, members and groups as the controller wrote them.

    Raises:
        TraceError: no program, no such port, or no memory.
        CompilerError: the program cannot be compiled for this.
    """
    return dry_run_in_order(switch, port, data, at_ns=at_ns, choices=choices, describe=describe).trace


def dry_run_in_order(
    switch: V1ModelSwitch,
    port: int,
    data: bytes,
    *,
    at_ns: int = 0,
    choices: Sequence[int] = (),
    describe: DescribeEntity = no_description,
) -> DryRun:
    """The same with the events in the order of time. Raises as `dry_run_packet`."""
    return next(_dry_runs(switch, port, data, at_ns, describe, [tuple(choices)]))


def outcomes(
    switch: V1ModelSwitch,
    port: int,
    data: bytes,
    *,
    at_ns: int = 0,
    most: int = MOST_OUTCOMES,
    describe: DescribeEntity = no_description,
) -> Iterator[Trace]:
    """All outcomes of a packet: each member of a group, each colour, each number of `random`.

    Of more than 65 numbers, the natural one and 64 evenly spaced ones are taken. The first outcome is the
    natural one. There are at most `most`, and at most MOST_RECORD_FIELDS fields of records.

    Raises:
        TraceError: as for `dry_run_packet`.
    """
    waiting: list[tuple[int, ...]] = [()]
    for n, run in enumerate(_dry_runs(switch, port, data, at_ns, describe, waiting)):
        yield run.trace
        if n + 1 >= most:
            return


def _dry_runs(
    switch: V1ModelSwitch,
    port: int,
    data: bytes,
    at_ns: int,
    describe: DescribeEntity,
    waiting: list[tuple[int, ...]],
) -> Iterator[DryRun]:
    """A dry run of each list of choices in `waiting`, to which those that it leaves open are added."""
    if switch.program is None:
        raise TraceError("the switch has no program")
    build = cached_build(switch.program)
    core = load()
    tracer = build.new_tracer(BUFFER_FIELDS)
    if not tracer:
        raise TraceError("out of memory")
    reader = build.reader(describe)
    n, cut = ffi.new("uint32_t *"), ffi.new("uint32_t *")
    total = 0
    while waiting and total < MOST_RECORD_FIELDS:
        choices = waiting.pop(0)
        try:
            code = core.tr_dry_run(
                switch.handle,
                tracer,
                build.regular,
                build.entry,
                port,
                data,
                len(data),
                ps(at_ns),
                list(choices),
                len(choices),
            )
        except OverflowError:
            code = C.TR_ERANGE
        if code < 0:
            raise TraceError(f"port {port}: {_PROBLEMS[code]}")
        buffer = core.tr_tracer_records(tracer, n, cut)
        records = ffi.unpack(buffer, n[0]) if n[0] else []
        events = reader.read(records)
        for other in _left_open(choices_in(records), len(choices)):
            if len(waiting) >= MOST_OUTCOMES:
                break
            waiting.append(other)
        total += len(records)
        name = build.program.model.name
        nested, deep = reader.nest(events)
        yield DryRun(Trace(program=name, steps=nested, cut=deep or bool(cut[0])), events)


def _left_open(taken: Sequence[tuple[int, int]], first: int) -> Iterator[tuple[int, ...]]:
    """The choices that begin as those that were taken, and differ in the last, none before `first`."""
    for at in range(first, len(taken)):
        possible, chosen = taken[at]
        before = tuple(outcome for _, outcome in taken[:at])
        yield from ((*before, other) for other in range(possible) if other != chosen)
