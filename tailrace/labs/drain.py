# SPDX-License-Identifier: Apache-2.0
"""Lab 3: the first drain of Flowcut in NICs, from its start to the flow's next path."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import tailrace
from tailrace.labs.answers import compare
from tailrace.labs.lab import Lab, Values, reordered
from tailrace.sim.run import PausedRun
from tailrace.spec.constants import PRIORITIES
from tailrace.tables.arrow import rows_of


class FirstDrain(Lab):
    number = 3
    values: ClassVar[Values] = {
        "flow": lambda self: self.first[0],
        "at_us": lambda self: self.first[1] / 1e3,
        "lasts_us": lambda self: (self.first[2] - self.first[1]) / 1e3,
        "before": lambda self: self.spines[0],
        "after": lambda self: self.spines[1],
        "drains": lambda self: sum(row.drains for row in self.run().rows),
        "order": lambda self: reordered(self.run()),
    }

    def problem(self) -> str:
        shown = len({*self.spines}) == 2 and [*self.queues.values()].count(max(self.queues.values())) == 1
        return "" if shown else "the first drain changes no path, or waits for no queue"

    def longest(self, answer: str) -> str:
        """The port with the longest queue, of those on the path before the drain."""
        self.earlier("before")
        ports = f"the ports are {', '.join(self.queues)}. {self.sheet.questions['longest'][1]}"
        return compare(answer, max(self.queues, key=self.queues.__getitem__), "", ports)

    @cached_property
    def first(self) -> tuple[Any, ...]:
        """The first drain: its flow, start and end in ns; (0, 0, 0) without a drain that ends."""
        events = [*rows_of(self.run().timelines.record, ("what", "flow", "time_ns"))]
        flow, start_ns = next((event[1:] for event in events if event[0] == "drain"), (0, 0))
        ends = (time_ns for what, ended, time_ns in events if (what, ended) == ("resume", flow))
        end_ns = next(ends, 0)
        return (flow, start_ns, end_ns) if end_ns else (0, 0, 0)

    @cached_property
    def spines(self) -> list[str]:
        """The spines before and after the first drain. Nothing is in flight when it ends."""
        flow, _, end_ns = self.first
        paths = self.run(follow=[flow]).timelines.paths if flow else None
        hops = [hop for hop in rows_of(paths, ("switch", "time_ns")) if hop[0].startswith("spine")]
        before = [spine for spine, time_ns in hops if time_ns < end_ns]
        return before[-1:] + [spine for spine, time_ns in hops if time_ns > end_ns][:1]

    @cached_property
    def queues(self) -> dict[str, int]:
        """The bytes queued at each port of the flow's path when a run stops at the first drain."""
        row, topology = self.run().rows[self.first[0] - 1], self.job.topology
        source, target = (topology.host(name).switch for name in (row.src, row.dst))
        hops = [(source, self.spines[0]), (self.spines[0], target), (target, row.dst)]
        queues: dict[str, int] = {}

        def measure(paused: PausedRun) -> None:
            for name, neighbour in hops:
                port = next(port for port, peer in topology.ports_of(name).items() if peer.name == neighbour)
                depths = (paused.network.switch(name).queue_depth(port, each) for each in range(PRIORITIES))
                queues[f"{name}-{neighbour}"] = sum(size_bytes for _, size_bytes in depths)

        tailrace.run(self.experiment(), stop_at=("drain",), at_stop=measure)
        return queues
