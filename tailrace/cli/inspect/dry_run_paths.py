# SPDX-License-Identifier: Apache-2.0
"""Paths from one host to another by dry runs, for programs other than those of the schemes.

The switch of the source makes a dry run of a UDP packet, with all outcomes: members of groups, colours of
meters, random numbers. Each frame that it would send is then run at the next switch, and so on. A frame
counts as delivered if every outcome at every switch sends a copy that is delivered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tailrace.cli.inspect.packet_walk import MOST_HOPS, flattened, sent_by
from tailrace.controller.inspect.paths import PathWalk
from tailrace.p4rt.values import SwitchPort
from tailrace.switch.trace import MOST_OUTCOMES
from tailrace.switch.trace.events import ActionEvent, DropEvent, Trace
from tailrace.tables.listing import Row
from tailrace.topology import Host, Peer, Topology

DryRun = Callable[[str, int, bytes], Sequence[Trace]]
"""Makes a dry run of a frame at a switch and ingress port; returns the traces of all outcomes."""


class FrameArrival(NamedTuple):
    """A frame that arrives at a switch on a port."""

    switch: str
    port: int
    frame: bytes


class _Sent(NamedTuple):
    """A frame that a switch would send; `peer` None: the port has no link."""

    port: int
    peer: Peer | None
    frame: bytes

    @property
    def place(self) -> FrameArrival | None:
        """Its arrival at the next switch; None if it is not sent to a switch."""
        peer = self.peer
        return (
            FrameArrival(peer.name, peer.port, self.frame)
            if peer is not None and peer.kind == "switch"
            else None
        )


@dataclass(slots=True)
class _DryRunNode:
    """What a switch would do with a frame.

    hop: count of switches up to this one, from 1
    before: the arrival at the previous switch; None at the first switch
    outcomes: the frames sent in each outcome
    problem: why paths from here were not followed, or not completely
    """

    hop: int
    before: FrameArrival | None
    outcomes: tuple[tuple[_Sent, ...], ...] = ()
    actions: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    problem: str | None = None


class DryRunPaths:
    """Dry runs from one host to another."""

    def __init__(self, topology: Topology, src: Host, dst: Host, dry_run: DryRun) -> None:
        self._topology, self._src, self._dst, self._dry_run_at = topology, src, dst, dry_run
        self._steps: dict[FrameArrival, _DryRunNode] = {}

    def walk(self, frame: bytes) -> PathWalk:
        """All paths of a frame. Raises what the dry runs raise."""
        start = FrameArrival(self._src.switch, self._src.port, frame)
        self._follow(start)
        delivering = self._delivering()
        rows: list[Row] = []
        for place, step in self._steps.items():
            row = self._row(place, step)
            if row not in rows:
                rows.append(row)
        names = f"{self._src.name} to {self._dst.name}"
        problems = list(dict.fromkeys(self._problems(start, delivering)))
        if not problems and start not in delivering:
            problems.append(f"loop among {' '.join(dict.fromkeys(place.switch for place in self._steps))}")
        return PathWalk(tuple(rows), tuple(f"{names}: {problem}" for problem in problems))

    def _follow(self, start: FrameArrival) -> None:
        """Makes dry runs at all switches that the frame reaches, nearest first."""
        waiting = deque([start])
        self._steps[start] = _DryRunNode(1, None)
        while waiting:
            place = waiting.popleft()
            step, path = self._steps[place], self._path_to(place)
            step.problem = _loop(path, place)
            if step.problem is None and len(self._steps) > MOST_HOPS:
                step.problem = f"more than {MOST_HOPS} frames: not followed further"
            if step.problem is not None:
                continue
            self._dry_run(place, step)
            for next_place in (sent.place for outcome in step.outcomes for sent in outcome):
                if next_place in (*path, place):
                    step.problem = _loop((*path, place), next_place)
                elif next_place is not None and next_place not in self._steps:
                    self._steps[next_place] = _DryRunNode(step.hop + 1, place)
                    waiting.append(next_place)

    def _path_to(self, place: FrameArrival) -> list[FrameArrival]:
        """The arrivals that led to this one, in order from the first switch, without this one."""
        path: list[FrameArrival] = []
        before = self._steps[place].before
        while before is not None:
            path.append(before)
            before = self._steps[before].before
        return path[::-1]

    def _dry_run(self, place: FrameArrival, step: _DryRunNode) -> None:
        traces, peers = self._dry_run_at(*place), self._topology.ports_of(place.switch)
        if len(traces) >= MOST_OUTCOMES or any(trace.cut for trace in traces):
            step.problem = "more outcomes or steps than the switch lists"
        step.outcomes = tuple(
            tuple(_Sent(port, peers.get(port), frame) for port, frame in sent_by(trace)) for trace in traces
        )
        events = [event for trace in traces for event in flattened(trace.steps)]
        step.actions = tuple(
            dict.fromkeys(e.name.rpartition(".")[2] for e in events if isinstance(e, ActionEvent))
        )
        step.drops = tuple(dict.fromkeys(event.reason for event in events if isinstance(event, DropEvent)))

    def _is_delivered(self, outcome: Sequence[_Sent], delivering: set[FrameArrival]) -> bool:
        """Whether an outcome delivers a copy to the destination host."""
        return any(
            sent.place in delivering or (sent.peer is not None and sent.peer.name == self._dst.name)
            for sent in outcome
        )

    def _delivering(self) -> set[FrameArrival]:
        """The arrivals from which all outcomes deliver the frame; computed from the host backwards."""
        delivering: set[FrameArrival] = set()
        remaining = dict(self._steps)
        while True:
            more = [
                place
                for place, step in reversed(remaining.items())
                if step.outcomes and all(self._is_delivered(outcome, delivering) for outcome in step.outcomes)
            ]
            if not more:
                return delivering
            delivering.update(more)
            for place in more:
                del remaining[place]

    def _problems(self, start: FrameArrival, delivering: set[FrameArrival]) -> Iterator[str]:
        """Why frames are not delivered, with the switches where they are lost."""
        waiting, seen = deque([start]), {start}
        while waiting:
            place = waiting.popleft()
            step = self._steps[place]
            if step.problem is not None:
                yield step.problem if step.problem.startswith("loop") else f"{place.switch}: {step.problem}"
            for outcome in step.outcomes:
                if self._is_delivered(outcome, delivering):
                    continue
                if not outcome:
                    yield f"{place.switch}: {_dropped(step)}"
                for sent in outcome:
                    next_place = sent.place
                    if next_place is None:
                        yield f"{place.switch}: {self._end(place.switch, sent)}"
                    elif next_place not in seen:
                        seen.add(next_place)
                        waiting.append(next_place)

    def _end(self, switch: str, sent: _Sent) -> str:
        """What happens to a frame that is not sent to another switch."""
        if sent.peer is not None:
            here = sent.peer.name == self._dst.name
            return "delivered" if here else f"delivered to {sent.peer.name}, not {self._dst.name}"
        if sent.port == self._topology.switch(switch).cpu_port:
            return "sent to the controller"
        return f"port {sent.port} leads nowhere"

    def _row(self, place: FrameArrival, step: _DryRunNode) -> Row:
        all_sent = [sent for outcome in step.outcomes for sent in outcome]
        notes = [] if step.problem is None else [step.problem]
        notes += [self._end(place.switch, sent) for sent in all_sent if sent.place is None]
        if not all(step.outcomes):
            notes.append(_dropped(step))
        ports = {SwitchPort(sent.port, None if sent.peer is None else sent.peer.name) for sent in all_sent}
        return {
            "src": self._src.name,
            "dst": self._dst.name,
            "hop": step.hop,
            "switch": place.switch,
            "prefix": None,
            "action": ", ".join(step.actions) or None,
            "group": None,
            "ports": tuple(sorted(ports)),
            "note": ", ".join(dict.fromkeys(notes)) or None,
        }


def _dropped(step: _DryRunNode) -> str:
    return f"dropped: {', '.join(step.drops)}" if step.drops else "nothing is sent"


def _loop(path: Sequence[FrameArrival], place: FrameArrival) -> str | None:
    """The switches of a loop; None if the path has not visited this port before."""
    for index, before in enumerate(path):
        if before[:2] == place[:2]:
            return f"loop {' '.join(each.switch for each in (*path[index:], place))}"
    return None
