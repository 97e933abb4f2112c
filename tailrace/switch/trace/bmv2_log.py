# SPDX-License-Identifier: Apache-2.0
"""Events as lines of BMv2's log, with the texts and levels of p4lang's behavioral-model (src/bm_sim,
targets/simple_switch).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import singledispatch
from pathlib import PurePath

from tailrace.switch.trace import events
from tailrace.switch.trace.events import Event, SourceLine

DEBUG, TRACE, INFO, ERROR = "debug", "trace", "info", "error"

Line = tuple[str, str]
"""Level and text."""

_PIPELINES = {"ingress", "egress"}
_ENDS = (
    events.QueueEvent,
    events.DropEvent,
    events.SentEvent,
    events.ResubmitEvent,
    events.RecirculateEvent,
    events.MulticastEvent,
)


class Log:
    """The log of one packet, with its parser and pipeline state."""

    def __init__(self, drop_port: int) -> None:
        self._drop_port = drop_port
        self._stage = ""
        self._state = ""
        self._parsed_bytes = 0
        self._looked_up = False

    def lines(self, step: Event) -> Iterator[Line]:
        """BMv2's lines of an event."""
        if isinstance(step, events.StateEvent):
            yield from self._left()
            self._state = step.name
        elif isinstance(step, events.ExtractEvent):
            self._parsed_bytes = step.offset + step.length
        elif isinstance(step, events.SelectEvent):
            key = "".join(_hex(part.value, part.bits) for part in step.key)
            yield DEBUG, f"Parser state '{self._state}': key is {key}"
            yield from self._parsed()
        elif isinstance(step, events.BeginEvent):
            yield from self._begin(step)
        elif isinstance(step, _ENDS):
            yield from self._end()
            if isinstance(step, events.DropEvent) and step.reason == "ingress_drop":
                yield DEBUG, f"Egress port is {self._drop_port}"
        elif isinstance(step, events.ActionEvent) and self._looked_up:
            arguments = "".join(f"{argument.value:x}," for argument in step.arguments)
            yield DEBUG, f"Action entry is {step.name} - {arguments}"
        self._looked_up = isinstance(step, events.TableEvent | events.MemberEvent)
        yield from _lines_of(step)

    def _left(self) -> Iterator[Line]:
        """Closes a parser state without a select, if there is one."""
        if self._state:
            yield DEBUG, f"Parser state '{self._state}' has no switch, going to default next state"
            yield from self._parsed()

    def _parsed(self) -> Iterator[Line]:
        self._state = ""
        yield TRACE, f"Bytes parsed: {self._parsed_bytes}"

    def _begin(self, step: events.BeginEvent) -> Iterator[Line]:
        yield from self._left()
        if step.stage != "verify":  # a part of parsing
            yield from self._end()
            self._stage = step.stage
        if step.stage == "parser":
            self._parsed_bytes = 0
            yield DEBUG, "Parser 'parser': start"
        elif step.stage in _PIPELINES:
            yield DEBUG, f"Pipeline '{step.stage}': start"
        elif step.stage == "deparser":
            yield DEBUG, "Deparser 'deparser': start"
            for header in step.headers:
                yield DEBUG, f"Deparsing header '{header}'"
            yield DEBUG, "Deparser 'deparser': end"
            self._stage = ""

    def _end(self) -> Iterator[Line]:
        """Closes the present stage, if there is one."""
        if self._stage in _PIPELINES:
            yield DEBUG, f"Pipeline '{self._stage}': end"
        elif self._stage == "parser":
            yield DEBUG, "Parser 'parser': end"
        self._stage = ""


def _hex(value: int, bits: int) -> str:
    return (value & (1 << bits) - 1).to_bytes((bits + 7) // 8, "big").hex()


def _at(place: SourceLine | None) -> str:
    return "" if place is None else f"{PurePath(place.file).name}({place.line}) "


@singledispatch
def _lines_of(_step: object) -> Iterator[Line]:
    yield from ()


@_lines_of.register
def _(step: events.EnterEvent) -> Iterator[Line]:
    yield DEBUG, f"Processing packet received on port {step.port}"


@_lines_of.register
def _(step: events.StateEvent) -> Iterator[Line]:
    yield DEBUG, f"Parser 'parser' entering state '{step.name}'"


@_lines_of.register
def _(step: events.ExtractEvent) -> Iterator[Line]:
    yield DEBUG, f"Extracting header '{step.header}'"


@_lines_of.register
def _(step: events.ParserErrorEvent) -> Iterator[Line]:
    yield DEBUG, f"Parser 'parser': error {step.name}"


@_lines_of.register
def _(step: events.TableEvent) -> Iterator[Line]:
    yield TRACE, f"Applying table '{step.name}'"
    if step.key:
        keys = "".join(f"* {part.field:20}: {_hex(part.value, part.bits)} " for part in step.key)
        yield DEBUG, f"Looking up key: {keys.rstrip()}"
    if step.entry is None:
        yield DEBUG, f"Table '{step.name}': miss"
    else:
        yield DEBUG, f"Table '{step.name}': hit with handle {step.entry}"


@_lines_of.register
def _(step: events.MemberEvent) -> Iterator[Line]:
    if step.group is not None and step.of:
        yield DEBUG, f"Choosing member {step.member} from group {step.group}"


@_lines_of.register
def _(step: events.ActionEvent) -> Iterator[Line]:
    yield TRACE, f"{_at(step.place)}Action {step.name}"


@_lines_of.register
def _(step: events.StatementEvent) -> Iterator[Line]:
    if step.text:
        yield TRACE, f"{_at(step.place)}Primitive {step.text}"


@_lines_of.register
def _(step: events.ConditionEvent) -> Iterator[Line]:
    yield TRACE, f'{_at(step.place)}Condition "{step.text}" ({step.name}) is {str(step.value).lower()}'


@_lines_of.register
def _(step: events.RegisterEvent) -> Iterator[Line]:
    if not step.inside:
        verb = "read" if step.access == "read" else "write"
        yield ERROR, f"Attempted to {verb} register '{step.name}' at out-of-bounds index {step.index}."
    elif step.access == "read":
        yield TRACE, f"Read register '{step.name}' at index {step.index} read value {step.value}"
    else:
        yield TRACE, f"Wrote register '{step.name}' at index {step.index} with value {step.value}"


@_lines_of.register
def _(step: events.CountEvent) -> Iterator[Line]:
    if step.inside:
        yield TRACE, f"Updated counter '{step.name}' at index {step.index}"
    else:
        yield ERROR, f"Attempted to update counter '{step.name}' at out-of-bounds index {step.index}."


@_lines_of.register
def _(step: events.MeterEvent) -> Iterator[Line]:
    colour = ("green", "yellow", "red").index(step.colour)
    index = "" if step.index is None else f" at index {step.index},"
    yield TRACE, f"Updated meter '{step.name}'{index} assigning dest field the color result {colour}"


@_lines_of.register
def _(step: events.RandomEvent) -> Iterator[Line]:
    yield TRACE, f"random(lo={step.low}, hi={step.high}) = {step.value}"


@_lines_of.register
def _(step: events.ChecksumEvent) -> Iterator[Line]:
    if step.action == "update":
        yield DEBUG, f"Updating checksum '{step.field}'"
    else:
        yield DEBUG, f"Verified checksum '{step.field}': {'passed' if step.right else 'failed'}"


@_lines_of.register
def _(step: events.CloneEvent) -> Iterator[Line]:
    yield DEBUG, f"Cloning packet to session {step.session}"


@_lines_of.register
def _(step: events.CopyEvent) -> Iterator[Line]:
    if step.port is not None:
        yield DEBUG, f"Replicating packet on port {step.port}"


@_lines_of.register
def _(_step: events.ResubmitEvent) -> Iterator[Line]:
    yield DEBUG, "Resubmitting packet"


@_lines_of.register
def _(_step: events.RecirculateEvent) -> Iterator[Line]:
    yield DEBUG, "Recirculating packet"


@_lines_of.register
def _(_step: events.MulticastEvent) -> Iterator[Line]:
    yield DEBUG, "Multicast requested for packet"


@_lines_of.register
def _(step: events.QueueEvent) -> Iterator[Line]:
    yield DEBUG, f"Egress port is {step.port}"


@_lines_of.register
def _(step: events.SentEvent) -> Iterator[Line]:
    size = len(step.frame) // 2 + step.virtual_bytes
    yield DEBUG, f"Transmitting packet of size {size} out of port {step.port}"


@_lines_of.register
def _(step: events.DropEvent) -> Iterator[Line]:
    if step.reason in ("ingress_drop", "egress_drop"):
        yield DEBUG, f"Dropping packet at the end of {step.reason.removesuffix('_drop')}"
    elif step.reason != "multicast_original":
        yield DEBUG, f"Dropping packet: {step.reason}"


@_lines_of.register
def _(step: events.TextEvent) -> Iterator[Line]:
    yield step.level, step.text


class PacketLogs:
    """The log of many packets, with packet and copy number in front of each line.

    Args:
        dump_bytes: limit of logged bytes of each received and sent packet; 0: none.
    """

    def __init__(self, drop_port: int, dump_bytes: int = 0) -> None:
        self._drop_port = drop_port
        self._dump_bytes = dump_bytes
        self._packets = itertools.count()
        self._logs: dict[int, tuple[Log, int, int]] = {}
        self._made: dict[int, tuple[int, int]] = {}
        """By packet: its copies so far, and the number of it and its copies in the switch."""

    def lines(self, number: int, step: Event) -> Iterator[Line]:
        """BMv2's lines of an event of a packet."""
        known = self._logs.get(number)
        if self._dump_bytes and isinstance(step, events.EnterEvent) and known is None:
            yield INFO, f"Received {self._bytes(step)}"
        if known is None:
            known = self._logs[number] = (Log(self._drop_port), next(self._packets), 0)
            self._made[known[1]] = (0, 1)
        log, packet, copy = known
        made, there = self._made[packet]
        if isinstance(step, events.CopyEvent):
            self._logs[step.packet] = (Log(self._drop_port), packet, made + 1)
            self._made[packet] = (made + 1, there + 1)
        elif isinstance(step, events.SentEvent | events.DropEvent):
            del self._logs[number]
            self._made[packet] = (made, there - 1)
            if there == 1:
                del self._made[packet]
        yield from ((level, f"[{packet}.{copy}] {text}") for level, text in log.lines(step))
        if self._dump_bytes and isinstance(step, events.SentEvent):
            yield INFO, f"Sending {self._bytes(step)}"

    def _bytes(self, step: events.EnterEvent | events.SentEvent) -> str:
        size = len(step.frame) // 2 + step.virtual_bytes
        return f"packet of length {size} on port {step.port}: {step.frame[: 2 * self._dump_bytes]}"
