# SPDX-License-Identifier: Apache-2.0
"""Connection matrices of htsim (.cm).

    Nodes 16
    Connections 2
    Triggers 1
    0->5 id 1 start 0 size 2000000 send_done_trigger 1     start in ps
    5->0 id 2 trigger 1 size 2000000
    trigger id 1 oneshot

A trigger starts flows: `oneshot` when the one flow that names it is done, `barrier count N` when N flows are,
`multishot` the first when any of them is done, the second when any two are, and so on, in the file's order.
Its flows must start at the source or the destination of each flow that they wait for, because a NIC sees no
other flows: at the source that flow is done when it is acknowledged, at the destination when it has arrived.
htsim starts them at the same moment anywhere. Starts are rounded to ns. Not supported: failures, priorities,
messages of a connection (`msg`) and flows without end (`size 0`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

from tailrace.formats.flow_table import MOST_WAITS, FlowData, FlowTable
from tailrace.formats.registry import Kind, Source, register
from tailrace.spec import SpecError
from tailrace.spec.limits import refuse_above
from tailrace.spec.units import MOST_NS

_COUNTS = ("Nodes", "Connections", "Triggers", "Failures")
_DONE = ("send_done_trigger", "recv_done_trigger")
_OF_FLOWS = {"id", "start", "size", "trigger", *_DONE}
_TYPES = ("oneshot", "multishot", "barrier")
_REFUSED = {
    "prio": "not supported: flows have no priorities",
    "msg": "not supported: a flow is one message",
    "failure": "not supported: failures are faults, such as --fault link-down:link=A-B",
}
_PS = 1000
_FLOW = re.compile("[0-9]+->[0-9]+")
_EXPECTED = f"expected SRC->DST start PS size BYTES, or {', '.join(_COUNTS[:3])} or trigger at the start"


def _recognises(source: Source) -> bool:
    firsts = {words[0] for words in source.head}
    return {"Nodes", "Connections"} <= firsts or any(map(_FLOW.fullmatch, firsts))


def _read(source: Source) -> FlowTable:
    counts: dict[str, int] = dict.fromkeys(_COUNTS, 0)
    flows: list[FlowData] = []
    # by trigger: line, type and count; flows that it starts, and that activate it
    kinds: dict[int, tuple[int, str, int]] = {}
    starts, done = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for line, words in source.lines():
        if words[0] in _COUNTS:
            counts[words[0]] = source.number(line, words[0], " ".join(words[1:]))
        elif "->" in words[0]:
            values = dict(zip(words[1::2], [*words[2::2], ""], strict=False))
            flows.append(_flow(source, line, words[0], values, counts["Nodes"]))
            if len(words) != 1 + 2 * len(values):
                raise source.error(line, "expected pairs of a key and a value after SRC->DST, each key once")
            for word in values.keys() & {"trigger", *_DONE}:
                numbers = starts if word == "trigger" else done
                numbers[source.number(line, word, values[word])].append(len(flows))
        elif words[0] == "trigger":
            number, kind = _trigger(source, line, words[1:])
            if kinds.setdefault(number, kind) != kind:
                raise source.error(line, f"trigger {number} is defined twice")
        else:
            problem = _REFUSED.get(words[0], f"unknown; {_EXPECTED}")
            raise source.error(line, f"{words[0][:40]}: {problem}")
    if counts["Failures"]:
        raise source.error("Failures", _REFUSED["failure"])
    for name, count in (("Connections", len(flows)), ("Triggers", len(kinds))):
        if count != counts[name] or not flows:
            raise source.error(name, f"expected {counts[name] if flows else 'at least 1'}, found {count}")
    waits = sum(len(started) * len(done[number]) for number, started in starts.items())
    refuse_above(str(source.path), "dependencies", waits, MOST_WAITS)
    for number, started in starts.items():
        if number not in kinds:
            raise source.error(flows[started[0] - 1].line, f"trigger {number} is not defined")
        _connect(source, kinds[number], flows, started, done[number])
    return FlowTable(tuple(flows), counts["Nodes"])


def _connect(
    source: Source, trigger: tuple[int, str, int], flows: list[FlowData], started: list[int], done: list[int]
) -> None:
    """Lets the flows `started` of a trigger wait for the flows `done` that activate it."""
    line, kind, count = trigger
    multishot = kind == "multishot"
    if len(done) < len(started) if multishot else len(done) != count:
        expected = f"{len(started)} or more" if multishot else count
        raise source.error(line, f"expected {expected} flows that activate it, found {len(done)}")
    after = tuple(done)
    for position, number in enumerate(started, start=1):
        flow = flows[number - 1]
        for earlier in (flows[each - 1] for each in done):
            if flow.src not in (earlier.src, earlier.dst):
                problem = f"host {flow.src} neither sends nor receives the flow of line {earlier.line}"
                raise source.error(flow.line, f"not supported: {problem}")
        flows[number - 1] = replace(flow, after=after, after_count=position if multishot else 0)


def _flow(source: Source, line: int, text: str, values: dict[str, str], nodes: int) -> FlowData:
    for word in (word for word in values if word not in _OF_FLOWS):
        known = f"unknown; expected {', '.join(sorted(_OF_FLOWS))}, each with a number"
        raise source.error(line, f"{word[:40]}: {_REFUSED.get(word, known)}")
    source.number(line, "id", values.get("id", "1"))
    start_ns = source.decimal(line, "start", values.get("start", "0")) / _PS
    if ("start" in values) == ("trigger" in values) or start_ns > MOST_NS:
        raise source.error(line, "expected either start, of at most 100 days, or trigger")
    size_bytes = source.number(line, "size", values.get("size", "0"))
    if not size_bytes:
        raise source.error(line, "size: expected at least 1; flows without end are not supported")
    src, dst = (source.number(line, "host", end) for end in (text.partition("->")[i] for i in (0, 2)))
    if max(src, dst) >= nodes:
        raise source.error(line, f"host {max(src, dst)}: there are {nodes} Nodes, from 0")
    return FlowData(line, src, dst, size_bytes, round(start_ns))


def _trigger(source: Source, line: int, words: list[str]) -> tuple[int, tuple[int, str, int]]:
    """The number of a trigger; its line, type and count."""
    kind = next((word for word in words if word in _TYPES), "")
    words = [word for word in words if word != kind]
    values = dict(zip(words[::2], words[1::2], strict=False))
    if not kind or not {"id"} <= values.keys() <= {"id", "count"} or len(words) != 2 * len(values):
        raise source.error(line, f"expected trigger id N and one of {', '.join(_TYPES)}")
    number, count = (source.number(line, key, values.get(key, "1"), least=1) for key in ("id", "count"))
    return number, (line, kind, count if kind == "barrier" else 1)


def _write(table: FlowTable) -> str:
    # by the flows that activate a trigger, and the host at which it starts flows
    numbers: dict[tuple[tuple[int, ...], str | int], int] = {}
    starts, done = [], defaultdict[int, dict[str, int]](dict)
    for number, flow in enumerate(table.flows, start=1):
        starts.append(f"start {flow.start_ns * _PS}")
        if flow.after:
            if flow.start_ns or any(flow.after_ns):
                raise SpecError(f"htsim-cm: cannot be written: flow {number} starts a time after others")
            trigger = numbers.setdefault((flow.after, flow.src), len(numbers) + 1)
            starts[-1] = f"trigger {trigger}"
            for earlier in flow.after:
                word = _DONE[table.flows[earlier - 1].src != flow.src]
                if done[earlier].setdefault(word, trigger) != trigger:
                    raise SpecError(f"htsim-cm: cannot be written: flow {earlier} is in several triggers")
    lines = [f"Nodes {table.hosts}", f"Connections {len(table.flows)}", f"Triggers {len(numbers)}"]
    for number, (flow, start) in enumerate(zip(table.flows, starts, strict=True), start=1):
        words = [f"{flow.src}->{flow.dst} id {number} {start} size {flow.size_bytes}"]
        lines.append(" ".join([*words, *(f"{word} {trigger}" for word, trigger in done[number].items())]))
    for (earlier_flows, _), trigger in numbers.items():
        count = len(earlier_flows)
        lines.append(f"trigger id {trigger} " + ("oneshot" if count == 1 else f"barrier count {count}"))
    return "\n".join(lines) + "\n"


register("htsim-cm", Kind.WORKLOAD, "connection matrix of htsim (.cm)", _recognises, _read, _write)
