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
        self._open: dict[int, int] = {}  # by id of a flow that waits for several: how many are not complete

    def add(self, flow: FlowSpec, waits: Sequence[int]) -> None:
        """Delays a flow until the flows with the ids `waits`, which are distinct, are complete."""
        for number in waits:
            waiting = self._waiting.get(number)
            if waiting is None:
                self._waiting[number] = flow
            elif isinstance(waiting, list):
                waiting.append(flow)
            else:
                self._waiting[number] = [waiting, flow]
        if len(waits) > 1:
            self._open[flow.id] = len(waits)

    def complete(self, number: int) -> list[FlowSpec]:
        """Handles the completion of the flow with the id `number`; returns the flows that may start now."""
        waiting = self._waiting.pop(number, None)
        if waiting is None:
            return []
        return [
            flow
            for flow in (waiting if isinstance(waiting, list) else [waiting])
            if self._count_down(flow.id)
        ]

    def _count_down(self, number: int) -> bool:
        """Counts one complete flow for a waiting flow; returns whether that flow may start."""
        still_open = self._open.get(number, 1) - 1
        if still_open:
            self._open[number] = still_open
        else:
            self._open.pop(number, None)
        return not still_open
