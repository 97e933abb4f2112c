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
supported: operations besides send, recv and calc, several NICs of a rank, and -1 for any source or any tag.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tailrace.formats.flow_table import FlowData, FlowTable
from tailrace.formats.registry import HEAD_CHARACTERS, MOST_SHOWN, Format, Kind, Source, register
from tailrace.spec import SpecError
from tailrace.spec.limits import refuse_above
from tailrace.spec.text import shortened
from tailrace.spec.units import MOST_NS

NAME = "goal"

_MOST_RANKS = 1 << 16
_MOST_WAITS = 20_000_000
"""Limit on the flows for which operations wait, over all operations."""

_LINE_COMMENT = re.compile("//[^\n]*")
_FIRST = re.compile(r"^\s*num_ranks\s", re.MULTILINE)
_OPERATION = re.compile(
    r"(?:([A-Za-z]\w*)\s*:\s*)?(send|recv|calc)\s+([0-9]+)\s*b?(?:\s+(to|from)\s+([0-9]+))?"
    r"((?:\s+(?:tag|cpu|nic)\s+[0-9]+)*)"
)
_DEPENDENCY = re.compile(r"([A-Za-z]\w*)\s+(requires|irequires)\s+([A-Za-z]\w*)")
_RANK = re.compile(r"rank\s+([0-9]+)\s*\{")
_PEERS = {"send": "to", "recv": "from", "calc": ""}

_Key = tuple[int, int, int]
"""Sender, receiver and tag."""


@dataclass(slots=True)
class _Operation:
    """An operation: its line, kind (send, recv, calc), number of bytes or ns, and flow (from 1; 0: none)."""

    line: int
    kind: str
    size: int
    flow: int = 0


@dataclass(slots=True)
class _Rank:
    """The operations of a rank, the index of each label, and the dependencies: (index, index of the required
    one, whether on its start only) with their lines.
    """

    operations: list[_Operation] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    requires: list[tuple[int, int, bool]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _When:
    """A moment: not before `earliest_ns`, and, for each flow, this many ns after its completion."""

    earliest_ns: int = 0
    after: Mapping[int, int] = field(default_factory=dict)

    def plus(self, delay_ns: int) -> _When:
        if not delay_ns:
            return self
        after = {flow: delay + delay_ns for flow, delay in self.after.items()}
        return _When(self.earliest_ns + delay_ns, after)

    def joined(self, other: _When) -> _When:
        """The later of two moments."""
        if not other.after and other.earliest_ns <= self.earliest_ns:
            return self
        after = {**self.after}
        for flow, delay in other.after.items():
            after[flow] = max(delay, after.get(flow, 0))
        return _When(max(self.earliest_ns, other.earliest_ns), after)


_START = _When()


def _recognises(source: Source) -> bool:
    return _FIRST.search(source.text[:HEAD_CHARACTERS]) is not None


def _read(source: Source) -> FlowTable:
    return _Reader(source).table()


class _Reader:
    """Reads one file."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._ranks: dict[int, _Rank] = {}
        self._flows: list[FlowData] = []
        self._sends: dict[_Key, list[_Operation]] = defaultdict(list)
        self._receives: dict[_Key, list[_Operation]] = defaultdict(list)
        self._waits = 0
        self._count = self._read_lines()

    def _read_lines(self) -> int:
        """Reads the operations and dependencies; returns the number of ranks."""
        text = _LINE_COMMENT.sub("", self._without_block_comments())
        lines = replace(self._source, text=text).lines()
        line, words = next(lines)
        count = self._source.number(line, "num_ranks", " ".join(words[1:]), least=1)
        refuse_above(str(self._source.path), "ranks", count, _MOST_RANKS)
        number = -1
        for line, words in lines:
            row = " ".join(words)
            rank = _RANK.fullmatch(row)
            if rank is not None and number < 0:
                number = self._new_rank(line, rank[1], count)
            elif row == "}" and number >= 0:
                number = -1
            elif number < 0:
                raise self._source.error(line, f"expected rank N {{, found {shortened(row, MOST_SHOWN)!r}")
            else:
                self._statement(line, row, number, count)
        if number >= 0:
            raise self._source.error("", f"rank {number}: the closing brace is missing")
        return count

    def _without_block_comments(self) -> str:
        """The text with the line ends of block comments only, so that lines keep their numbers."""
        text, pieces, place = self._source.text, [], 0
        while (begin := text.find("/*", place)) >= 0:
            end = text.find("*/", begin + 2)
            if end < 0:
                raise self._source.error("", "a comment has no end")
            pieces += [text[place:begin], "\n" * text.count("\n", begin, end)]
            place = end + 2
        return "".join([*pieces, text[place:]])

    def _new_rank(self, line: int, text: str, count: int) -> int:
        number = self._source.number(line, "rank", text)
        if number >= count or number in self._ranks:
            raise self._source.error(line, f"rank {number}: expected each of 0 to {count - 1} once")
        self._ranks[number] = _Rank()
        return number

    def _statement(self, line: int, row: str, number: int, count: int) -> None:
        rank = self._ranks[number]
        dependency = _DEPENDENCY.fullmatch(row)
        operation = _OPERATION.fullmatch(row)
        if dependency is not None:
            ends = [self._index(line, rank, dependency[group]) for group in (1, 3)]
            rank.requires.append((ends[0], ends[1], dependency[2] == "irequires"))
        elif operation is not None and (operation[4] or "") == _PEERS[operation[2]]:
            if operation[1] in rank.labels:
                raise self._source.error(line, f"label {operation[1]} is defined twice")
            if operation[1]:
                rank.labels[operation[1]] = len(rank.operations)
            rank.operations.append(self._operation(line, operation, number, count))
        else:
            expected = "expected send, recv, calc, requires or irequires"
            raise self._source.error(line, f"{expected}; not supported: {shortened(row, MOST_SHOWN)!r}")

    def _index(self, line: int, rank: _Rank, label: str) -> int:
        if label not in rank.labels:
            raise self._source.error(line, f"label {label[:40]} is not defined above")
        return rank.labels[label]

    def _operation(self, line: int, match: re.Match[str], number: int, count: int) -> _Operation:
        kind = match[2]
        size = self._source.number(line, kind, match[3])
        words = match[6].split()
        options = {
            key: self._source.number(line, key, text)
            for key, text in zip(words[::2], words[1::2], strict=True)
        }
        operation = _Operation(line, kind, size)
        if options.get("nic"):
            raise self._source.error(line, "nic: not supported: a host has one NIC")
        if kind == "calc":
            if size > MOST_NS:
                raise self._source.error(line, "calc: more than 100 days")
            return operation
        peer = self._source.number(line, "rank", match[5])
        if peer >= count or peer == number or not size:
            raise self._source.error(line, f"expected another rank of 0 to {count - 1}, and at least 1 byte")
        ends = (number, peer) if kind == "send" else (peer, number)
        queue = self._sends if kind == "send" else self._receives
        key = (*ends, options.get("tag", 0))
        queue[key].append(operation)
        if kind == "send":
            self._flows.append(FlowData(line, *ends, size))
            operation.flow = len(self._flows)
        return operation

    def table(self) -> FlowTable:
        """The flows of all ranks."""
        if not self._flows:
            raise self._source.error("", "no flows: no rank sends")
        self._match()
        for number, rank in self._ranks.items():
            self._schedule(number, rank)
        return FlowTable(tuple(self._flows), self._count)

    def _match(self) -> None:
        """Finds the flow of each recv."""
        for key in {**self._sends, **self._receives}:
            sends, receives = self._sends[key], self._receives[key]
            for send, receive in zip(sends, receives, strict=False):
                if send.size != receive.size:
                    problem = f"recv {receive.size}b matches send {send.size}b of line {send.line}"
                    raise self._source.error(receive.line, problem)
                receive.flow = send.flow
            if len(sends) != len(receives):
                many, few = (sends, receives) if len(sends) > len(receives) else (receives, sends)
                alone = many[len(few)]
                raise self._source.error(
                    alone.line, f"no rank has the operation that matches this {alone.kind}"
                )

    def _schedule(self, number: int, rank: _Rank) -> None:
        """Computes when the flows of a rank start."""
        needed: list[list[tuple[int, bool]]] = [[] for _ in rank.operations]
        dependents: list[list[int]] = [[] for _ in rank.operations]
        for index, required, on_start in rank.requires:
            needed[index].append((required, on_start))
            dependents[required].append(index)
        open_counts = [len(each) for each in needed]
        ready = deque(index for index, count in enumerate(open_counts) if not count)
        starts: list[_When] = [_START] * len(needed)
        ends: list[_When] = [_START] * len(needed)
        done = 0
        while ready:
            index = ready.popleft()
            done += 1
            for required, on_start in needed[index]:
                starts[index] = starts[index].joined(starts[required] if on_start else ends[required])
            ends[index] = self._end(rank.operations[index], starts[index])
            for dependent in dependents[index]:
                open_counts[dependent] -= 1
                if not open_counts[dependent]:
                    ready.append(dependent)
        if done < len(needed):
            stuck = next(index for index, count in enumerate(open_counts) if count)
            line = rank.operations[stuck].line
            raise self._source.error(line, f"rank {number}: the operation requires itself, via others")

    def _end(self, operation: _Operation, start: _When) -> _When:
        """When an operation is complete; records the start of a send's flow."""
        self._waits += len(start.after) + 1
        refuse_above(str(self._source.path), "dependencies", self._waits, _MOST_WAITS)
        if operation.kind == "calc":
            return start.plus(operation.size)
        complete = _When(0, {operation.flow: 0})
        if operation.kind == "recv":
            return complete.joined(start)
        flow = self._flows[operation.flow - 1]
        after_ns = tuple(start.after.values()) if any(start.after.values()) else ()
        self._flows[operation.flow - 1] = replace(
            flow, start_ns=start.earliest_ns, after=tuple(start.after), after_ns=after_ns
        )
        return complete


def _write(table: FlowTable) -> str:
    """Starts are written as a chain of computations of each rank, since LogGOPSim runs one at a time."""
    operations: dict[int, list[str]] = defaultdict(list)
    requires: dict[int, list[str]] = defaultdict(list)
    for number, flow in enumerate(table.flows, start=1):
        src, dst = int(flow.src), int(flow.dst)
        if any(flow.after_ns):
            raise SpecError(f"{NAME}: flow {number} starts a time after other flows, which cannot be written")
        operations[src].append(f"s{number}: send {flow.size_bytes}b to {dst} tag {number}")
        operations[dst].append(f"r{number}: recv {flow.size_bytes}b from {src} tag {number}")
        for earlier in flow.after:
            kind = "s" if table.flows[earlier - 1].src == src else "r"
            requires[src].append(f"s{number} requires {kind}{earlier}")
    times: dict[int, tuple[int, str]] = defaultdict(lambda: (0, ""))
    for start_ns, number in sorted(
        (flow.start_ns, number) for number, flow in enumerate(table.flows, start=1)
    ):
        src = int(table.flows[number - 1].src)
        last_ns, last = times[src]
        if start_ns > last_ns:
            operations[src].append(f"c{number}: calc {start_ns - last_ns}")
            requires[src] += [f"c{number} requires {last}"] if last else []
            times[src] = last_ns, last = start_ns, f"c{number}"
        requires[src] += [f"s{number} requires {last}"] if last else []
    lines = [f"num_ranks {table.hosts}"]
    for rank in range(table.hosts):
        lines += [f"rank {rank} {{", *operations[rank], *requires[rank], "}"]
    return "\n".join(lines) + "\n"


register(Format(NAME, Kind.WORKLOAD, "GOAL text", _recognises, _read, _write))
