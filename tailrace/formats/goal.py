# SPDX-License-Identifier: Apache-2.0
"""Schedules in GOAL text, as LogGOPSim and htsim's ATLAHS take them.

    num_ranks 2
    rank 0 {
    l1: calc 5000                       5000 ns
    l2: send 8192b to 1 tag 0
    l2 requires l1                      l2 starts when l1 is complete; irequires: when l1 starts
    }
    rank 1 {
    l1: recv 8192b from 0 tag 0
    }

Rank N is host N, from 0. A send and the recv that matches it, the next one with the same ranks and tag, are
one flow. A send is complete when it is acknowledged, a recv when the flow has arrived and the recv was
posted. The flow starts when all that its send requires is complete, after the computations in between.
Computations of one rank that do not require each other run in parallel, whatever their `cpu` is. Not
supported: operations besides send, recv and calc, several NICs of a rank, -1 for any source or any tag.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter

from tailrace.formats.flow_table import MOST_WAITS, FlowData, FlowTable
from tailrace.formats.registry import HEAD_CHARACTERS, Kind, Source, register
from tailrace.spec import SpecError
from tailrace.spec.limits import refuse_above
from tailrace.spec.text import shortened

_MOST_RANKS = 1 << 16

_FIRST = re.compile(r"^\s*num_ranks\s", re.MULTILINE)
_OPERATION = re.compile(
    r"(?:([A-Za-z]\w*) ?: ?)?(calc [0-9]+|(?:send|recv) [0-9]+b (?:to|from) [0-9]+)"
    r"((?: (?:tag|cpu|nic) [0-9]+)*)"
)
_DEPENDENCY = re.compile(r"([A-Za-z]\w*) (requires|irequires) ([A-Za-z]\w*)")
_RANK = re.compile(r"rank ([0-9]+) ?\{")

_When = tuple[int, Mapping[int, int]]
"""A moment: not before a time in ns, and, for each flow, not before this many ns after its completion."""


@dataclass(slots=True, eq=False)
class _Operation:
    """An operation: its line, kind (send, recv, calc), number of bytes or ns, flow (from 1; 0: none), the
    operations that it requires (True: only their start), and when it starts and is complete.
    """

    line: int
    kind: str
    size: int
    flow: int = 0
    requires: list[tuple[_Operation, bool]] = field(default_factory=list)
    start: _When = (0, {})
    end: _When = (0, {})


def _recognises(source: Source) -> bool:
    return _FIRST.search(source.text[:HEAD_CHARACTERS]) is not None


def _read(source: Source) -> FlowTable:
    reader = _Reader(source)
    if not reader.flows:
        raise source.error("", "no flows: no rank sends")
    reader.match()
    reader.schedule()
    return FlowTable(tuple(reader.flows), reader.count)


class _Reader:
    """Reads one file: its operations, and the flows that they send."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._operations: list[_Operation] = []
        # by sender, receiver and tag: sends and receives
        self._messages = defaultdict[tuple[int, ...], tuple[list[_Operation], ...]](lambda: ([], []))
        self.flows: list[FlowData] = []
        lines = replace(source, text=re.sub("//[^\n]*", "", source.text)).lines()
        line, words = next(lines)
        self.count = source.number(line, "num_ranks", " ".join(words[1:]), least=1)
        refuse_above(str(source.path), "ranks", self.count, _MOST_RANKS)
        ranks: set[int] = set()
        labels: dict[str, _Operation] | None = None
        for line, words in lines:
            row = " ".join(words)
            header = _RANK.fullmatch(row)
            if labels is None and header is not None:
                number, labels = source.number(line, "rank", header[1]), {}
                if number >= self.count or number in ranks:
                    raise source.error(line, f"rank {number}: expected each of 0 to {self.count - 1} once")
                ranks.add(number)
            elif labels is None:
                raise source.error(line, f"expected rank N {{, found {shortened(row, 60)!r}")
            elif row == "}":
                labels = None
            else:
                self._statement(line, row, number, labels)
        if labels is not None:
            raise source.error("", f"rank {number}: the closing brace is missing")

    def _statement(self, line: int, row: str, number: int, labels: dict[str, _Operation]) -> None:
        match = _OPERATION.fullmatch(row)
        dependency = _DEPENDENCY.fullmatch(row)
        if dependency is not None:
            for label in (dependency[1], dependency[3]):
                if label not in labels:
                    raise self._source.error(line, f"label {label[:40]} is not defined above")
            labels[dependency[1]].requires.append((labels[dependency[3]], dependency[2] == "irequires"))
        elif match is None or ("send" in match[2]) != (" to " in match[2]):
            problem = f"not supported: {shortened(row, 60)!r}; expected send, recv, calc or (i)requires"
            raise self._source.error(line, problem)
        elif match[1] in labels:
            raise self._source.error(line, f"label {match[1]} is defined twice")
        else:
            operation = self._operation(line, match[2].split(), match[3].split(), number)
            labels |= {match[1]: operation} if match[1] else {}
            self._operations.append(operation)

    def _operation(self, line: int, words: list[str], options: list[str], rank: int) -> _Operation:
        """An operation of a rank, such as send, 8b, to, 1; and options such as tag, 5."""
        values = dict(zip(options[::2], options[1::2], strict=True))
        size = self._source.number(line, words[0], words[1].removesuffix("b"))
        if values.get("nic", "0") != "0":
            raise self._source.error(line, "nic: not supported: a host has one NIC")
        operation = _Operation(line, words[0], size)
        if operation.kind == "calc":
            return operation
        peer = self._source.number(line, "rank", words[3])
        if peer >= self.count or peer == rank or not size:
            raise self._source.error(line, f"expected another rank below {self.count}, and at least 1 byte")
        tag = self._source.number(line, "tag", values.get("tag", "0"))
        if operation.kind == "recv":
            self._messages[peer, rank, tag][1].append(operation)
        else:
            self._messages[rank, peer, tag][0].append(operation)
            self.flows.append(FlowData(line, rank, peer, size))
            operation.flow = len(self.flows)
        return operation

    def match(self) -> None:
        """Finds the flow of each recv."""
        for sends, receives in self._messages.values():
            for send, receive in zip(sends, receives, strict=False):
                if send.size != receive.size:
                    raise self._source.error(receive.line, f"the send of line {send.line} has {send.size}b")
                receive.flow = send.flow
            for alone in (*sends[len(receives) :], *receives[len(sends) :]):
                raise self._source.error(alone.line, f"no operation matches this {alone.kind}")

    def schedule(self) -> None:
        """Computes when flows start."""
        graph = {each: [required for required, _ in each.requires] for each in self._operations}
        waits = 0
        try:
            for operation in TopologicalSorter(graph).static_order():
                for required, on_start in operation.requires:
                    operation.start = _later(operation.start, required.start if on_start else required.end)
                waits += len(operation.start[1])
                refuse_above(str(self._source.path), "dependencies", waits, MOST_WAITS)
                self._run(operation)
        except CycleError as error:
            raise self._source.error(error.args[1][0].line, "the operation requires itself") from None

    def _run(self, operation: _Operation) -> None:
        """Computes when an operation is complete, and the start of a send's flow."""
        earliest_ns, after = operation.start
        if operation.kind == "calc":
            after = {flow: delay_ns + operation.size for flow, delay_ns in after.items()}
            operation.end = (earliest_ns + operation.size, after)
        elif operation.kind == "recv":
            operation.end = _later((0, {operation.flow: 0}), operation.start)
        else:
            operation.end = (0, {operation.flow: 0})
            delays = tuple(after.values()) if any(after.values()) else ()
            flow = self.flows[operation.flow - 1]
            flow = replace(flow, start_ns=earliest_ns, after=tuple(after), after_ns=delays)
            self.flows[operation.flow - 1] = flow


def _later(a: _When, b: _When) -> _When:
    """The later of two moments."""
    delays = {flow: max(delay_ns, a[1].get(flow, 0)) for flow, delay_ns in b[1].items()}
    return max(a[0], b[0]), {**a[1], **delays}


def _write(table: FlowTable) -> str:
    """Starts are written as a chain of computations of each rank, since LogGOPSim runs one at a time."""
    rows: dict[int, list[str]] = defaultdict(list)
    requires: dict[int, list[str]] = defaultdict(list)
    last: dict[int, tuple[int, str]] = defaultdict(lambda: (0, ""))
    for number, flow in enumerate(table.flows, start=1):
        src, dst = int(flow.src), int(flow.dst)
        if any(flow.after_ns):
            raise SpecError(f"goal: cannot be written: flow {number} starts a time after others")
        rows[src].append(f"s{number}: send {flow.size_bytes}b to {dst} tag {number}")
        rows[dst].append(f"r{number}: recv {flow.size_bytes}b from {src} tag {number}")
        for earlier in flow.after:
            kind = "s" if table.flows[earlier - 1].src == src else "r"
            requires[src].append(f"s{number} requires {kind}{earlier}")
    for start_ns, number in sorted((flow.start_ns, i) for i, flow in enumerate(table.flows, start=1)):
        src = int(table.flows[number - 1].src)
        last_ns, label = last[src]
        if start_ns > last_ns:
            rows[src].append(f"c{number}: calc {start_ns - last_ns}")
            requires[src] += [f"c{number} requires {label}"] if label else []
            last[src] = _, label = start_ns, f"c{number}"
        requires[src] += [f"s{number} requires {label}"] if label else []
    ranks = ([f"rank {rank} {{", *rows[rank], *requires[rank], "}"] for rank in range(table.hosts))
    return "\n".join([f"num_ranks {table.hosts}", *(line for lines in ranks for line in lines)]) + "\n"


register("goal", Kind.WORKLOAD, "GOAL text", _recognises, _read, _write)
