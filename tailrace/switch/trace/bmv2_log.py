# SPDX-License-Identifier: Apache-2.0
"""Events as lines of BMv2's log, with the wording and log levels of p4lang's behavioral-model (src/bm_sim,
targets/simple_switch).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

from tailrace.switch.compiler.model import Source
from tailrace.switch.trace import events
from tailrace.switch.trace.events import Event

DEBUG, TRACE, INFO, ERROR = "debug", "trace", "info", "error"

Line = tuple[str, str]
"""Log level and text."""

_PIPELINES = {"ingress", "egress"}
_STAGE_ENDS = (
    events.QueueEvent,
    events.DropEvent,
    events.SentEvent,
    events.ResubmitEvent,
    events.RecirculateEvent,
    events.MulticastEvent,
)


class Log:
    """Writes the log of one packet; keeps track of the stage and parser state that the packet is in."""

    def __init__(self, drop_port: int) -> None:
        self._drop_port = drop_port
        self._stage = ""
        self._state = ""
        self._parsed_bytes = 0
        self._looked_up = False  # whether the last event was a table or member look-up

    def lines(self, step: Event) -> Iterator[Line]:
        """BMv2's lines of an event."""
        if isinstance(step, events.StateEvent):
            yield from self._end_state()
            self._state = step.name
        elif isinstance(step, events.ExtractEvent):
            self._parsed_bytes = step.offset + step.length
        elif isinstance(step, events.SelectEvent):
            key = "".join(_hex(part.value, part.bits) for part in step.key)
            yield DEBUG, f"Parser state '{self._state}': key is {key}"
            yield from self._parsed()
        elif isinstance(step, events.BeginEvent):
            yield from self._begin(step)
        elif isinstance(step, _STAGE_ENDS):
            yield from self._end()
            if isinstance(step, events.DropEvent) and step.reason == "ingress_drop":
                yield DEBUG, f"Egress port is {self._drop_port}"
        elif isinstance(step, events.ActionEvent) and self._looked_up:
            arguments = "".join(f"{argument.value:x}," for argument in step.arguments)
            yield DEBUG, f"Action entry is {step.name} - {arguments}"
        self._looked_up = isinstance(step, events.TableEvent | events.MemberEvent)
        if type(step) in _LINES:
            yield from _LINES[type(step)](step)

    def _end_state(self) -> Iterator[Line]:
        """The lines that end the present parser state, if it has not ended with a select."""
        if self._state:
            yield DEBUG, f"Parser state '{self._state}' has no switch, going to default next state"
            yield from self._parsed()

    def _parsed(self) -> Iterator[Line]:
        self._state = ""
        yield TRACE, f"Bytes parsed: {self._parsed_bytes}"

    def _begin(self, step: events.BeginEvent) -> Iterator[Line]:
        yield from self._end_state()
        if step.stage != "verify":  # BMv2 logs the verification of checksums as a part of parsing
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
        """The line that ends the present stage, if there is one."""
        if self._stage in _PIPELINES:
            yield DEBUG, f"Pipeline '{self._stage}': end"
        elif self._stage == "parser":
            yield DEBUG, "Parser 'parser': end"
        self._stage = ""


def _hex(value: int, bits: int) -> str:
    return (value & (1 << bits) - 1).to_bytes((bits + 7) // 8, "big").hex()


def _source_line(place: Source | None) -> str:
    return "" if place is None else f"{PurePath(place.file).name}({place.line}) "


def _table(step: events.TableEvent) -> Iterator[Line]:
    yield TRACE, f"Applying table '{step.name}'"
    if step.key:
        keys = "".join(f"* {part.field:20}: {_hex(part.value, part.bits)} " for part in step.key)
        yield DEBUG, f"Looking up key: {keys.rstrip()}"
    if step.entry is None:
        yield DEBUG, f"Table '{step.name}': miss"
    else:
        yield DEBUG, f"Table '{step.name}': hit with handle {step.entry}"


def _member(step: events.MemberEvent) -> Iterator[Line]:
    if step.group is not None and step.of:  # `of`: the size of the group
        yield DEBUG, f"Choosing member {step.member} from group {step.group}"


def _statement(step: events.StatementEvent) -> Iterator[Line]:
    if step.text:
        yield TRACE, f"{_source_line(step.place)}Primitive {step.text}"


def _register(step: events.RegisterEvent) -> Iterator[Line]:
    if not step.inside:
        yield ERROR, f"Attempted to {step.access} register '{step.name}' at out-of-bounds index {step.index}."
    elif step.access == "read":
        yield TRACE, f"Read register '{step.name}' at index {step.index} read value {step.value}"
    else:
        yield TRACE, f"Wrote register '{step.name}' at index {step.index} with value {step.value}"


def _count(step: events.CountEvent) -> Iterator[Line]:
    if step.inside:
        yield TRACE, f"Updated counter '{step.name}' at index {step.index}"
    else:
        yield ERROR, f"Attempted to update counter '{step.name}' at out-of-bounds index {step.index}."


def _meter(step: events.MeterEvent) -> Iterator[Line]:
    colour = ("green", "yellow", "red").index(step.colour)
    index = "" if step.index is None else f" at index {step.index},"
    yield TRACE, f"Updated meter '{step.name}'{index} assigning dest field the color result {colour}"


def _checksum(step: events.ChecksumEvent) -> Iterator[Line]:
    if step.action == "update":
        yield DEBUG, f"Updating checksum '{step.field}'"
    else:
        yield DEBUG, f"Verified checksum '{step.field}': {'passed' if step.right else 'failed'}"


def _copy(step: events.CopyEvent) -> Iterator[Line]:
    if step.port is not None:
        yield DEBUG, f"Replicating packet on port {step.port}"


def _sent(step: events.SentEvent) -> Iterator[Line]:
    size = len(step.frame) // 2 + step.virtual_bytes
    yield DEBUG, f"Transmitting packet of size {size} out of port {step.port}"


def _drop(step: events.DropEvent) -> Iterator[Line]:
    if step.reason in ("ingress_drop", "egress_drop"):
        yield DEBUG, f"Dropping packet at the end of {step.reason.removesuffix('_drop')}"
    elif step.reason != "multicast_original":
        yield DEBUG, f"Dropping packet: {step.reason}"


def _condition(step: events.ConditionEvent) -> str:
    value = str(step.value).lower()
    return f'{_source_line(step.place)}Condition "{step.text}" ({step.name}) is {value}'


def _one_line(level: str, text: Callable[[Any], str]) -> Callable[[Any], Iterator[Line]]:
    """A handler for events that have one line."""
    return lambda step: iter(((level, text(step)),))


_LINES: Mapping[type, Callable[[Any], Iterator[Line]]] = {
    events.EnterEvent: _one_line(DEBUG, lambda s: f"Processing packet received on port {s.port}"),
    events.StateEvent: _one_line(DEBUG, lambda s: f"Parser 'parser' entering state '{s.name}'"),
    events.ExtractEvent: _one_line(DEBUG, lambda s: f"Extracting header '{s.header}'"),
    events.ParserErrorEvent: _one_line(DEBUG, lambda s: f"Parser 'parser': error {s.name}"),
    events.TableEvent: _table,
    events.MemberEvent: _member,
    events.ActionEvent: _one_line(TRACE, lambda s: f"{_source_line(s.place)}Action {s.name}"),
    events.StatementEvent: _statement,
    events.ConditionEvent: _one_line(TRACE, _condition),
    events.RegisterEvent: _register,
    events.CountEvent: _count,
    events.MeterEvent: _meter,
    events.RandomEvent: _one_line(TRACE, lambda s: f"random(lo={s.low}, hi={s.high}) = {s.value}"),
    events.ChecksumEvent: _checksum,
    events.CloneEvent: _one_line(DEBUG, lambda s: f"Cloning packet to session {s.session}"),
    events.CopyEvent: _copy,
    events.ResubmitEvent: _one_line(DEBUG, lambda _: "Resubmitting packet"),
    events.RecirculateEvent: _one_line(DEBUG, lambda _: "Recirculating packet"),
    events.MulticastEvent: _one_line(DEBUG, lambda _: "Multicast requested for packet"),
    events.QueueEvent: _one_line(DEBUG, lambda s: f"Egress port is {s.port}"),
    events.SentEvent: _sent,
    events.DropEvent: _drop,
    events.TextEvent: lambda step: iter(((step.level, step.text),)),
}
"""By class of event: the lines that depend on this event alone."""


class PacketLogs:
    """The log of many packets. As in BMv2, each line begins with [packet.copy], both counted from 0.

    Args:
        dump_bytes: how many bytes of each received and sent packet are logged at most; 0: no packet dumps.
    """

    def __init__(self, drop_port: int, dump_bytes: int = 0) -> None:
        self._drop_port = drop_port
        self._dump_bytes = dump_bytes
        self._packets = itertools.count()
        self._logs: dict[int, tuple[Log, int, int]] = {}
        """By packet number in the trace: its log, and the numbers of packet and copy in the log's lines."""
        self._made: dict[int, tuple[int, int]] = {}
        """By packet: how many copies were made; how many of the packet and its copies are in the switch."""

    def lines(self, number: int, step: Event) -> Iterator[Line]:
        """BMv2's lines of an event of a packet, which has this number in the trace."""
        known = self._logs.get(number)
        if self._dump_bytes and isinstance(step, events.EnterEvent) and known is None:
            yield INFO, f"Received {self._bytes(step)}"
        if known is None:
            known = self._logs[number] = (Log(self._drop_port), next(self._packets), 0)
            self._made[known[1]] = (0, 1)
        log, packet, copy = known
        made, inside = self._made[packet]
        if isinstance(step, events.CopyEvent):
            self._logs[step.packet] = (Log(self._drop_port), packet, made + 1)
            self._made[packet] = (made + 1, inside + 1)
        elif isinstance(step, events.SentEvent | events.DropEvent):
            del self._logs[number]
            self._made[packet] = (made, inside - 1)
            if inside == 1:
                del self._made[packet]
        yield from ((level, f"[{packet}.{copy}] {text}") for level, text in log.lines(step))
        if self._dump_bytes and isinstance(step, events.SentEvent):
            yield INFO, f"Sending {self._bytes(step)}"

    def _bytes(self, step: events.EnterEvent | events.SentEvent) -> str:
        size = len(step.frame) // 2 + step.virtual_bytes
        return f"packet of length {size} on port {step.port}: {step.frame[: 2 * self._dump_bytes]}"
