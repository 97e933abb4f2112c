# SPDX-License-Identifier: Apache-2.0
"""Tries: what a switch would do with a packet now, while nothing of the switch changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tailrace.spec.errors import Error
from tailrace.switch.core.core import ps
from tailrace.switch.core.lib import C, ffi, load
from tailrace.switch.core.switch import Switch
from tailrace.switch.trace.events import Trace
from tailrace.switch.trace.records import Told, Written, choices_in, nothing_written
from tailrace.switch.trace.tracing_build import glass_of

MOST_WORDS = 1 << 18
"""Room for the records of one try; 2 MiB, some hundred times what a packet of Flowcut takes."""

MOST_TOLD = 1 << 21
"""Words of records of all ways of one packet, or of one that is sent: whoever asks must not keep the switch
busy for long.
"""

MOST_OUTCOMES = 1024
"""Ways of one packet that are followed."""

_PROBLEMS = {
    C.TR_EINVAL: "the switch runs another program now",
    C.TR_ERANGE: "no such port, or the packet is too long",
    C.TR_ENOMEM: "out of memory",
}


class TraceError(Error):
    """A packet cannot be traced; one line for the user."""


class Tried(NamedTuple):
    """A trace, and its steps once more in the order of time, over all copies."""

    trace: Trace
    told: Told


NUMBER = C.TR_GLASS_SPAN + 1
"""A choice of `random` among more numbers than are tried: this and more is the number itself, so far above
the lowest one.
"""


def try_packet(
    switch: Switch,
    port: int,
    data: bytes,
    *,
    at_ns: int = 0,
    choices: Sequence[int] = (),
    written: Written = nothing_written,
) -> Trace:
    """What a switch would do with a packet that came in now by a port. Nothing of the switch changes.

    Its copies are followed as well. They wait for nothing: each leaves its queue as soon as it is there.

    Args:
        at_ns: the time, if it is later than the switch's own.
        choices: outcomes of the first choices, in order; later ones come as they would by themselves.
        written: tells what the controller has written.

    Raises:
        TraceError: no program, no such port, or no memory.
        ProgramError: the program cannot be compiled for this.
    """
    return try_in_order(switch, port, data, at_ns=at_ns, choices=choices, written=written).trace


def try_in_order(
    switch: Switch,
    port: int,
    data: bytes,
    *,
    at_ns: int = 0,
    choices: Sequence[int] = (),
    written: Written = nothing_written,
) -> Tried:
    """The same, with the order of time. Raises as `try_packet`."""
    return next(_tries(switch, port, data, at_ns, written, [tuple(choices)]))


def outcomes(
    switch: Switch,
    port: int,
    data: bytes,
    *,
    at_ns: int = 0,
    most: int = MOST_OUTCOMES,
    written: Written = nothing_written,
) -> Iterator[Trace]:
    """Every way that a packet could take: each member of a group, each colour, each number of `random`.

    Of more than 65 numbers 64 are tried, as far apart as can be, and the one that comes by itself. The first
    is the way that the packet would take now. At most `most` are followed, and MOST_TOLD words of records.

    Raises:
        TraceError: as for `try_packet`.
    """
    waiting: list[tuple[int, ...]] = [()]
    for n, tried in enumerate(_tries(switch, port, data, at_ns, written, waiting)):
        yield tried.trace
        if n + 1 >= most:
            return


def _tries(
    switch: Switch,
    port: int,
    data: bytes,
    at_ns: int,
    written: Written,
    waiting: list[tuple[int, ...]],
) -> Iterator[Tried]:
    """A try for each of some choices; to the list come those that its choices leave open."""
    if switch.program is None:
        raise TraceError("the switch has no program")
    glass = glass_of(switch.program)
    core = load()
    made = glass.room(MOST_WORDS)
    if not made:
        raise TraceError("out of memory")
    reader = glass.reader(written)
    n, cut = ffi.new("uint32_t *"), ffi.new("uint32_t *")
    told = 0
    while waiting and told < MOST_TOLD:
        choices = waiting.pop(0)
        try:
            code = core.tr_glass_try(
                switch.handle,
                made,
                glass.plain,
                glass.entry,
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
        words = core.tr_glass_words(made, n, cut)
        raw = ffi.unpack(words, n[0]) if n[0] else []
        steps = reader.told(raw)
        for other in _left_open(choices_in(raw), len(choices)):
            if len(waiting) >= MOST_OUTCOMES:
                break
            waiting.append(other)
        told += len(raw)
        name = glass.program.model.name
        nested, deep = reader.nested(steps)
        yield Tried(Trace(program=name, steps=nested, cut=deep or bool(cut[0])), steps)


def _left_open(taken: Sequence[tuple[int, int]], first: int) -> Iterator[tuple[int, ...]]:
    """The choices that begin as those that were taken, and differ in the last, none before `first`."""
    for at in range(first, len(taken)):
        possible, own = taken[at]
        before = tuple(outcome for _, outcome in taken[:at])
        yield from ((*before, other) for other in range(possible) if other != own)
