# SPDX-License-Identifier: Apache-2.0
"""Lab 3: the first drain of Flowcut in NICs, from its start to the flow's next path."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, NamedTuple

import tailrace
from tailrace.labs.answers import require
from tailrace.labs.lab import Lab, Values, lab, reordered
from tailrace.sim.run import PausedRun
from tailrace.spec.constants import PRIORITIES
from tailrace.tables.arrow import rows_of


class Drain(NamedTuple):
    """A drain; spines before and after it are empty if the flow sent nothing then."""

    flow: int
    start_ns: int
    end_ns: int
    before: str
    after: str


@lab
class FirstDrain(Lab):
    """A drain ends when nothing of the flow is in flight: earlier arrivals came by the path before it."""

    number = 3
    values: ClassVar[Values] = {
        "flow": lambda self: self.first.flow,
        "at_us": lambda self: self.first.start_ns / 1e3,
        "lasts_us": lambda self: (self.first.end_ns - self.first.start_ns) / 1e3,
        "before": lambda self: self.first.before,
        "after": lambda self: self.first.after,
        "drains": lambda self: sum(row.drains for row in self.run().rows),
        "order": lambda self: reordered(self.run()),
    }

    def problem(self) -> str:
        """Whether the first drain changes a path."""
        changes = self.first.before and self.first.after and self.first.before != self.first.after
        return "" if changes else "the first drain changes no path"

    @cached_property
    def first(self) -> Drain:
        """The first drain."""
        events = [*rows_of(self.run().timelines.record, ("what", "flow", "time_ns"))]
        drains = ((flow, time_ns) for what, flow, time_ns in events if what == "drain")
        flow, start_ns = next(drains, (0, 0))
        ends = (time_ns for what, ended, time_ns in events if (what, ended) == ("resume", flow))
        end_ns = next(ends, 0)
        paths = self.run(follow=[flow]).timelines.paths if flow else None
        spines = [each for each in rows_of(paths, ("switch", "time_ns")) if each[0].startswith("spine")]
        before = [spine for spine, time_ns in spines if time_ns < end_ns]
        after = [spine for spine, time_ns in spines if time_ns > end_ns]
        return Drain(flow, start_ns, end_ns, *("".join(path) for path in (before[-1:], after[:1])))

    def longest(self, answer: str) -> str:
        """The port with the longest queue when a run stops at the first drain."""
        queues: dict[str, int] = {}

        def measure(paused: PausedRun) -> None:
            for name in (switch.name for switch in self.job.topology.switches):
                for port, peer in self.job.topology.ports_of(name).items():
                    depths = (
                        paused.network.switch(name).queue_depth(port, each) for each in range(PRIORITIES)
                    )
                    queues[f"{name}-{peer.name}"] = sum(size_bytes for _, size_bytes in depths)

        tailrace.run(self.experiment(), stop_at=("drain",), at_stop=measure)
        require(answer in queues, "expected SWITCH-NEIGHBOUR, such as leaf1-h1")
        text = f"{answer} has {queues[answer]} bytes"
        require(queues[answer] == max(queues.values()), f"{text}, and the queue of another port is longer")
        return f"{text}; the drain lasts until they have left"
