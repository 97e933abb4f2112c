# SPDX-License-Identifier: Apache-2.0
"""A trace as text: a line for each event, indented within tables, actions and copies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from msgspec import structs

from tailrace.p4rt.values import Mac
from tailrace.spec.text import printable
from tailrace.switch.compiler.model import Source
from tailrace.switch.trace import events
from tailrace.switch.trace.events import Argument, Event, FieldChange, KeyFieldValue, Trace
from tailrace.switch.trace.field_layout import VALID

INDENT = "  "
CUT = "the trace has reached its size limit and ends here"
_SHOWN_BYTES = 64
_DECIMAL_BITS = 16
"""Fields of up to this width are shown in decimal; wider ones are mostly addresses, masks and hashes."""

Line = tuple[int, str, str]
"""Depth of indentation, style and text."""


def shown_value(name: str, value: int, bits: int) -> str:
    """A field's value: an address if its name suggests one, else decimal or, from 17 bits, hexadecimal."""
    if value < 0:
        return str(value)
    if bits in _ADDRESSES and _ADDRESS.search(name):
        return _ADDRESSES[bits](value)
    return str(value) if bits <= _DECIMAL_BITS else f"{value:#0{2 + (bits + 3) // 4}x}"


_ADDRESSES: dict[int, Callable[[int], str]] = {
    32: lambda value: str(IPv4Address(value)),
    48: lambda value: str(Mac(value)),
    128: lambda value: str(IPv6Address(value)),
}
_ADDRESS = re.compile(r"(addr|src|dst|ip|mac|next_hop)\d*$", re.IGNORECASE)


def _frame(frame: str) -> str:
    """The first bytes of a frame, and its length."""
    head = frame[: 2 * _SHOWN_BYTES]
    return f"{head}{'…' if len(frame) > len(head) else ''} ({len(frame) // 2} bytes)"


def lines(trace: Trace, *, full: bool = False) -> Iterator[Line]:
    """The lines of a trace, with unprintable characters escaped.

    Args:
        full: whether to show statements that change nothing, and actions that p4c made of statements.
    """
    shown = ((depth, style, printable(text)) for depth, style, text in _lines(trace.steps, 0, full))
    yield from shown
    yield from _end(trace)


def _end(trace: Trace) -> Iterator[Line]:
    """A line that says why a trace ends before the packet has left, if it does."""
    if trace.cut:
        yield 0, "bad", CUT
    elif trace.inside:
        what = "packet or copy is" if trace.inside == 1 else "packets and copies are"
        yield 0, "bad", f"{trace.inside} {what} still in the switch: the trace ends here"


def text(trace: Trace, *, full: bool = False) -> str:
    """The lines of a trace, without styles."""
    return "".join(f"{INDENT * depth}{line}\n" for depth, _, line in lines(trace, full=full))


_MAIN = (
    events.TableEvent, events.MemberEvent, events.MeterEvent, events.RandomEvent, events.ChecksumEvent,
    events.ParserErrorEvent, events.CloneEvent, events.DigestEvent, events.ResubmitEvent,
    events.RecirculateEvent, events.MulticastEvent, events.CopyEvent, events.QueueEvent, events.SentEvent,
    events.DropEvent, events.TextEvent,
)  # fmt: skip
"""The events that `summary` shows."""


def summary(trace: Trace) -> Iterator[Line]:
    """A short form of a trace: the entries that were hit, queues, copies, and the outcome."""

    def main_events(steps: Sequence[Event]) -> tuple[Event, ...]:
        kept: list[Event] = []
        for step in steps:
            if isinstance(step, events.CopyEvent):
                kept.append(structs.replace(step, steps=main_events(step.steps)))
            elif isinstance(step, _MAIN) and (
                not isinstance(step, events.TableEvent) or step.entry is not None
            ):
                kept.append(step)
        return tuple(kept)

    for depth, style, line in _lines(main_events(trace.steps), 0, full=True):
        if not line.startswith("key ("):
            yield max(0, depth - 1), style, printable(line)
    yield from _end(trace)


def tree(traces: Sequence[Trace], *, full: bool = False) -> Iterator[Line]:
    """Several outcomes of one packet as a tree: common lines once, then each branch's lines, indented."""
    # for each branch: its depth, the lines of its traces, and how many of them were shown before it
    waiting = [(0, [list(lines(trace, full=full)) for trace in traces], 0)]
    while waiting:
        deeper, branch_lines, shown = waiting.pop()
        first = branch_lines[0]
        while all(len(trace) > shown and trace[shown] == first[shown] for trace in branch_lines):
            depth, style, line = first[shown]
            yield depth + deeper, style, line
            shown += 1
        branches: dict[Line, list[list[Line]]] = {}
        for trace_lines in branch_lines:
            if len(trace_lines) > shown:
                branches.setdefault(trace_lines[shown], []).append(trace_lines)
        waiting += [(deeper + 1, branch, shown) for branch in reversed(branches.values())]


def shown_step(step: Event, depth: int) -> Iterator[Line]:
    """The lines of one event; those of a copy's events are left out."""
    for line_depth, style, line in _LINES[type(step)](step):
        yield depth + line_depth, style, printable(line)


_DEPTH: dict[type, int] = {
    events.EnterEvent: 0, events.BeginEvent: 1, events.QueueEvent: 1, events.LeaveEvent: 1,
    events.SentEvent: 1, events.DropEvent: 1, events.CopyEvent: 1, events.CloneEvent: 1,
    events.MulticastEvent: 1, events.ResubmitEvent: 1, events.RecirculateEvent: 1, events.DigestEvent: 1,
    events.ParserErrorEvent: 1, events.ActionEvent: 3, events.MemberEvent: 3,
}  # fmt: skip
"""Depth of indentation; that of all other events depends on the event before (`_lines`)."""


def _is_minor(step: Event) -> bool:
    """Whether an event is a statement without changes, or an action that p4c made of a statement."""
    if isinstance(step, events.StatementEvent):
        return not step.changes
    return isinstance(step, events.ActionEvent) and step.place is None and not step.arguments


def _lines(steps: Sequence[Event], base: int, full: bool) -> Iterator[Line]:
    inner_depth = 2
    for step in steps:
        if not full and _is_minor(step):
            continue
        if isinstance(
            step, events.BeginEvent | events.TableEvent | events.ConditionEvent | events.StateEvent
        ):
            inner_depth = 2
        depth = _DEPTH.get(type(step), inner_depth)
        for line_depth, style, line in _LINES[type(step)](step):
            yield base + depth + line_depth, style, line
        if isinstance(step, events.StateEvent):
            inner_depth = 3
        elif isinstance(step, events.ActionEvent):
            inner_depth = 4
        if isinstance(step, events.CopyEvent):
            yield from _lines(step.steps, base + 2, full)


def _source_line(place: Source | None) -> str:
    return "" if place is None else f"  [{place.file}:{place.line}]"


def _pairs(parts: Sequence[Argument | KeyFieldValue]) -> str:
    return ", ".join(
        f"{name}={shown_value(name, part.value, part.bits)}"
        for part in parts
        for name in (part.field if isinstance(part, KeyFieldValue) else part.name,)
    )


def _changed(change: FieldChange) -> str:
    if change.field.endswith(VALID):
        return f"{change.field.removesuffix(f'.{VALID}')} is {'valid' if change.after else 'invalid'}"
    before, after = (shown_value(change.field, value, change.bits) for value in (change.before, change.after))
    return f"{change.field}: {before} -> {after}"


def _begin(step: events.BeginEvent) -> Iterator[Line]:
    yield 0, "stage", f"{step.stage}: {', '.join(step.headers)}" if step.headers else step.stage
    for change in step.changes:
        yield 1, "change", _changed(change)


def _extract(step: events.ExtractEvent) -> Iterator[Line]:
    yield 0, "step", f"extract {step.header} ({step.length} bytes at {step.offset})"
    if step.fields:
        yield 1, "change", _pairs(step.fields)


def _statement(step: events.StatementEvent) -> Iterator[Line]:
    if step.text:
        yield 0, "step", f"{step.text}{_source_line(step.place)}"
    for change in step.changes:
        yield 1, "change", _changed(change)


def _table(step: events.TableEvent) -> Iterator[Line]:
    yield 0, "table", f"table {step.name}{_source_line(step.place)}"
    if step.key:
        yield 1, "step", f"key ({step.match}): {_pairs(step.key)}"
    if step.entry is None:
        yield 1, "miss", "miss: the default action follows, if there is one"
    else:
        yield 1, "hit", f"hit: {step.written}" if step.written else f"hit: entry {step.entry}"


def _enter(step: events.EnterEvent) -> str:
    virtual = f" and {step.virtual_bytes} virtual bytes, not stored" if step.virtual_bytes else ""
    return f"enters by port {step.port}: {_frame(step.frame)}{virtual}"


def _register(step: events.RegisterEvent) -> str:
    cell = f"{step.name}[{step.index}]"
    if not step.inside:
        return f"{step.access} {cell}{_OUT_OF_RANGE}"
    value = "?" if step.value is None else shown_value(step.name, step.value, step.bits)
    return f"read {cell}: {value}" if step.access == "read" else f"write {cell}: {value}"


def _member(step: events.MemberEvent) -> str:
    text = f"{step.profile}: {step.written or f'group {step.group}, member {step.member}'}"
    if step.group is None:
        return text
    return f"{text}, position {step.position + 1} of {step.of}" if step.of else f"{text}: the group is empty"


def _queue(step: events.QueueEvent) -> str:
    waiting = f"{step.packets} packets wait ({step.bytes} bytes)"
    return f"queue of port {step.port}, priority {step.priority}: {waiting}"


def _copy(step: events.CopyEvent) -> str:
    to = "" if step.port is None else f" to port {step.port}, instance {step.instance}"
    return f"copy {step.packet}{to}"


def _one_line(style: str, text: Callable[[Any], str]) -> Callable[[Any], Iterator[Line]]:
    """A function that makes the lines of an event that has one line."""
    return lambda step: iter(((0, style, text(step)),))


_OUT_OF_RANGE = ": index out of range, nothing happens"
_LINES: Mapping[type, Callable[[Any], Iterator[Line]]] = {
    events.EnterEvent: _one_line("packet", _enter),
    events.BeginEvent: _begin,
    events.StateEvent: _one_line("step", lambda s: f"state {s.name}"),
    events.ExtractEvent: _extract,
    events.SelectEvent: _one_line(
        "step", lambda s: f"select ({_pairs(s.key)}): {s.case} -> {s.next or 'accept'}"
    ),
    events.ParserErrorEvent: _one_line("bad", lambda s: f"parser error {s.name}"),
    events.TableEvent: _table,
    events.MemberEvent: _one_line("hit", _member),
    events.ActionEvent: _one_line(
        "action", lambda s: f"action {s.name}({_pairs(s.arguments)}){_source_line(s.place)}"
    ),
    events.StatementEvent: _statement,
    events.ConditionEvent: _one_line(
        "step", lambda s: f"if {s.text}: {str(s.value).lower()}{_source_line(s.place)}"
    ),
    events.RegisterEvent: _one_line("extern", _register),
    events.CountEvent: _one_line(
        "extern", lambda s: f"count {s.name}[{s.index}]{'' if s.inside else _OUT_OF_RANGE}"
    ),
    events.MeterEvent: _one_line(
        "extern", lambda s: f"meter {s.name}{'' if s.index is None else f'[{s.index}]'}: {s.colour}"
    ),
    events.RandomEvent: _one_line("extern", lambda s: f"random {s.low} to {s.high}: {s.value}"),
    events.ChecksumEvent: _one_line(
        "step", lambda s: f"{s.action} the checksum {s.field}{'' if s.right else ': it is not correct'}"
    ),
    events.CloneEvent: _one_line(
        "packet", lambda s: f"clone to session {s.session}{'' if s.known else ', which does not exist'}"
    ),
    events.DigestEvent: _one_line("packet", lambda s: f"digest {s.name}: {_pairs(s.fields)}"),
    events.ResubmitEvent: _one_line("packet", lambda _: "resubmit"),
    events.RecirculateEvent: _one_line("packet", lambda _: "recirculate"),
    events.MulticastEvent: _one_line(
        "packet", lambda s: f"multicast to group {s.group}: {s.replicas} replicas"
    ),
    events.CopyEvent: _one_line("packet", _copy),
    events.QueueEvent: _one_line("packet", _queue),
    events.LeaveEvent: _one_line(
        "packet", lambda s: f"leaves the queue of port {s.port} after {s.waited_ticks} ticks"
    ),
    events.SentEvent: _one_line("sent", lambda s: f"sent by port {s.port}: {_frame(s.frame)}"),
    events.DropEvent: _one_line("drop", lambda s: f"dropped: {s.reason}"),
    events.TextEvent: _one_line("text", lambda s: f"{s.level}: {s.text}"),
    events.ChoiceEvent: _one_line("choice", lambda s: f"{s.what}: outcome {s.taken + 1} of {s.of}"),
}
"""By class of event: its lines; those of a copy's events are left out."""
