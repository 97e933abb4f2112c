# SPDX-License-Identifier: Apache-2.0
"""Connection matrices of htsim (.cm).

    Nodes 16
    Connections 2
    Triggers 1
    0->5 id 1 start 0 size 2000000 send_done_trigger 1     start in ps
    5->0 id 2 trigger 1 size 2000000
    trigger id 1 oneshot

A trigger starts flows: `oneshot` when the one flow that names it is done, `barrier count N` when N flows
are. Its flows must start at the source or the destination of each flow that they wait for, because a NIC
sees no other flows: at the source that flow is done when it is acknowledged, at the destination when it has
arrived. htsim starts them at the same moment anywhere. Starts are rounded to ns. Not supported: `multishot`
triggers with several flows (which of them starts is known only during a run), failures, priorities,
messages of a connection (`msg`) and flows without end (`size 0`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tailrace.formats.flow_table import FlowData, FlowTable
from tailrace.formats.registry import Format, Kind, Source, register
from tailrace.spec import SpecError
from tailrace.spec.units import MOST_NS

NAME = "htsim-cm"

_COUNTS = ("Nodes", "Connections", "Triggers", "Failures")
_NUMBERS = ("id", "size", "trigger", "send_done_trigger", "recv_done_trigger")
_REFUSED = {
    "prio": "flows have no priorities",
    "msg": "a flow is one message",
    "failure": "failures are faults, such as --fault link-down:link=A-B",
}
_PS = 1000
ONESHOT, MULTISHOT, BARRIER = "oneshot", "multishot", "barrier"
TYPES = (ONESHOT, MULTISHOT, BARRIER)


@dataclass(slots=True)
class _Trigger:
    """A trigger: its line and type (0 and "" before its definition), the flows that activate it (by number,
    with the host that knows of the flow's end), and those that it starts.
    """

    line: int = 0
    type: str = ""
    count: int = 0
    activated_by: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)


def _recognises(source: Source) -> bool:
    firsts = {words[0] for words in source.head}
    return "Nodes" in firsts and ("Connections" in firsts or any("->" in word for word in firsts))


def _read(source: Source) -> FlowTable:
    return _Reader(source).read()


class _Reader:
    """Reads one file."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._counts: dict[str, int] = {}
        self._flows: list[FlowData] = []
        self._triggers: dict[int, _Trigger] = defaultdict(_Trigger)

    def read(self) -> FlowTable:
        for line, words in self._source.lines():
            if words[0] in _COUNTS:
                self._counts[words[0]] = self._value(line, words, 0)
            elif "->" in words[0]:
                self._flow(line, words)
            elif words[0] == "trigger":
                self._trigger(line, words)
            else:
                self._refuse(line, words[0])
        if self._counts.get("Failures"):
            raise self._source.error("Failures", f"not supported: {_REFUSED['failure']}")
        defined = sum(trigger.line > 0 for trigger in self._triggers.values())
        for name, count in (("Connections", len(self._flows)), ("Triggers", defined)):
            if count != self._counts.get(name, 0):
                raise self._source.error(name, f"expected {self._counts.get(name, 0)}, found {count}")
        if not self._flows:
            raise self._source.error("", "no flows")
        for number, trigger in self._triggers.items():
            self._apply(number, trigger)
        return FlowTable(tuple(self._flows), self._counts["Nodes"])

    def _refuse(self, line: int, word: str) -> None:
        reason = f"not supported: {_REFUSED[word]}" if word in _REFUSED else "unknown"
        raise self._source.error(line, f"{word[:40]}: {reason}")

    def _value(self, line: int, words: list[str], index: int, least: int = 0) -> int:
        """The number that follows a word."""
        if index + 1 >= len(words):
            raise self._source.error(line, f"{words[index]}: expected a number after it")
        return self._source.number(line, words[index], words[index + 1], least)

    def _flow(self, line: int, words: list[str]) -> None:
        ends = words[0].split("->")
        if len(ends) != 2:
            raise self._source.error(line, f"expected SRC->DST, found {words[0][:40]!r}")
        src, dst = (self._host(line, text) for text in ends)
        values: dict[str, int] = {}
        for index in range(1, len(words), 2):
            word = words[index]
            if word == "start":
                values[word] = self._start_ns(line, words[index + 1 : index + 2])
            elif word in _NUMBERS:
                values[word] = self._value(line, words, index)
            else:
                self._refuse(line, word)
        if ("start" in values) == ("trigger" in values):
            raise self._source.error(line, "expected either start or trigger")
        if not values.get("size"):
            raise self._source.error(line, "size: expected at least 1; flows without end are not supported")
        self._flows.append(FlowData(line, src, dst, values["size"], values.get("start", 0)))
        number = len(self._flows)
        if "trigger" in values:
            self._triggers[values["trigger"]].starts.append(number)
        for word in ("send_done_trigger", "recv_done_trigger"):
            if word in values:
                self._triggers[values[word]].activated_by.append(number)

    def _host(self, line: int, text: str) -> int:
        host = self._source.number(line, "host", text)
        if host >= self._counts.get("Nodes", 0):
            raise self._source.error(
                line, f"host {host}: there are {self._counts.get('Nodes', 0)} Nodes, from 0"
            )
        return host

    def _start_ns(self, line: int, text: list[str]) -> int:
        start_ns = self._source.decimal(line, "start", "".join(text)) / _PS
        if start_ns > MOST_NS:
            raise self._source.error(line, "start: more than 100 days")
        return round(start_ns)

    def _trigger(self, line: int, words: list[str]) -> None:
        values = {"id": 0, "count": 0}
        types = [word for word in words if word in TYPES]
        for index, word in enumerate(words):
            if word in values:
                values[word] = self._value(line, words, index, least=1)
        known = 1 + len(types) + 2 * sum(word in values for word in words)
        if len(types) != 1 or not values["id"] or len(words) != known:
            raise self._source.error(line, f"expected trigger id N and one of {', '.join(TYPES)}")
        trigger = self._triggers[values["id"]]
        if trigger.line:
            raise self._source.error(line, f"trigger {values['id']} is defined twice")
        trigger.line, trigger.type, trigger.count = line, types[0], values["count"]

    def _apply(self, number: int, trigger: _Trigger) -> None:
        """Makes the flows that a trigger starts wait for those that activate it."""
        if not trigger.starts:
            return  # it has no effect
        place: str | int = trigger.line or f"trigger {number}"
        if not trigger.line:
            raise self._source.error(place, "used but not defined")
        many = len(trigger.activated_by)
        if trigger.type == MULTISHOT and (many > 1 or len(trigger.starts) > 1):
            problem = (
                f"{MULTISHOT} triggers with several flows are not supported: which flow starts is not fixed"
            )
            raise self._source.error(place, problem)
        needed = trigger.count if trigger.type == BARRIER else 1
        if many != needed or not needed:
            raise self._source.error(
                place, f"expected {needed or 'count'} flows that activate it, found {many}"
            )
        for started in trigger.starts:
            flow = self._flows[started - 1]
            for done in trigger.activated_by:
                earlier = self._flows[done - 1]
                if flow.src not in (earlier.src, earlier.dst):
                    problem = f"host {flow.src} neither sends nor receives the flow of line {earlier.line}"
                    raise self._source.error(flow.line, f"trigger {number}: not supported: {problem}")
            self._flows[started - 1] = replace(flow, after=tuple(trigger.activated_by))


def _write(table: FlowTable) -> str:
    triggers = _written_triggers(table)
    waits: dict[int, str] = {}
    activates: dict[int, list[str]] = defaultdict(list)
    lines = []
    for number, (earlier, src, started) in enumerate(triggers, start=1):
        waits |= dict.fromkeys(started, f"trigger {number}")
        for done in earlier:
            word = "send_done_trigger" if table.flows[done - 1].src == src else "recv_done_trigger"
            if any(text.startswith(word) for text in activates[done]):
                problem = f"the end of flow {done} starts flows that wait for different flows"
                raise SpecError(f"{NAME}: {problem}, which cannot be written")
            activates[done].append(f"{word} {number}")
        kind = ONESHOT if len(earlier) == 1 else f"{BARRIER} count {len(earlier)}"
        lines.append(f"trigger id {number} {kind}")
    rows = []
    for number, flow in enumerate(table.flows, start=1):
        start = waits.get(number, f"start {flow.start_ns * _PS}")
        words = [f"{flow.src}->{flow.dst}", f"id {number}", start, f"size {flow.size_bytes}"]
        rows.append(" ".join([*words, *activates[number]]))
    counts = [f"Nodes {table.hosts}", f"Connections {len(rows)}"]
    counts += [f"Triggers {len(lines)}"] if lines else []
    return "\n".join([*counts, *rows, *lines]) + "\n"


def _written_triggers(table: FlowTable) -> Iterator[tuple[tuple[int, ...], str | int, list[int]]]:
    """For each trigger: the flows that activate it, the host at which it starts flows, and these flows."""
    groups: dict[tuple[tuple[int, ...], str | int], list[int]] = defaultdict(list)
    for number, flow in enumerate(table.flows, start=1):
        if flow.after:
            if flow.start_ns or any(flow.after_ns):
                problem = f"flow {number} starts after others and at a time, or after a delay"
                raise SpecError(f"{NAME}: {problem}, which cannot be written")
            groups[flow.after, flow.src].append(number)
    return iter((earlier, src, started) for (earlier, src), started in groups.items())


register(Format(NAME, Kind.WORKLOAD, "connection matrix of htsim (.cm)", _recognises, _read, _write))
