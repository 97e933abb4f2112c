# SPDX-License-Identifier: Apache-2.0
"""Flows of a NIC that may start only after other flows are complete (FlowSpec.after)."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.hosts.flows.flow import FlowSpec


class Dependents:
    """Records which flows of this NIC wait for which flows."""

    def __init__(self) -> None:
        """No flow waits."""
        # by the id of an incomplete flow: the flow that waits for it, or a list of several such flows
        self._waiting: dict[int, FlowSpec | list[FlowSpec]] = {}
        # by id of a flow that waits for several: how many more must be complete
        self._open: dict[int, int] = {}
        self._earliest_ns: dict[int, int] = {}  # by id of a flow with delays: the earliest start so far

    def add(self, flow: FlowSpec, waits: Sequence[int], count: int) -> None:
        """Delays a flow until `count` of the flows with the ids `waits`, which are distinct, are complete."""
        for number in waits:
            waiting = self._waiting.get(number)
            if waiting is None:
                self._waiting[number] = flow
            elif isinstance(waiting, list):
                waiting.append(flow)
            else:
                self._waiting[number] = [waiting, flow]
        if len(waits) > 1:
            self._open[flow.id] = count

    def complete(self, number: int, now_ns: int) -> list[tuple[FlowSpec, int]]:
        """Handles the completion of the flow with the id `number`; returns the flows that no longer wait,
        each with its start.
        """
        waiting = self._waiting.pop(number, None)
        if waiting is None:
            return []
        startable = []
        for flow in waiting if isinstance(waiting, list) else [waiting]:
            if flow.after_ns:
                earliest_ns = now_ns + flow.after_ns[flow.after.index(number)]
                self._earliest_ns[flow.id] = max(earliest_ns, self._earliest_ns.get(flow.id, 0))
            if self._count_down(flow):
                start_ns = max(now_ns, flow.start_ns, self._earliest_ns.pop(flow.id, 0))
                startable.append((flow, start_ns))
        return startable

    def _count_down(self, flow: FlowSpec) -> bool:
        """Counts one complete flow for a waiting flow; returns whether that flow may start now."""
        still_open = self._open.get(flow.id, 1) - 1
        # with `after_count` it goes below 0, at which nothing starts again
        if still_open or flow.after_count:
            self._open[flow.id] = still_open
        else:
            self._open.pop(flow.id, None)
        return not still_open
