# SPDX-License-Identifier: Apache-2.0
"""Flows of a NIC that come after other flows (FlowSpec.after)."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.hosts.flows.flow import FlowSpec


class Dependents:
    """Who waits for which flow at this NIC."""

    def __init__(self) -> None:
        """Nobody waits."""
        # by the number of the flow that they wait for; a list where there are several
        self._waiting: dict[int, FlowSpec | list[FlowSpec]] = {}
        self._left: dict[int, int] = {}  # flows that a flow still waits for, where these are several

    def add(self, flow: FlowSpec, waits: Sequence[int]) -> None:
        """Delays a flow until the flows with these distinct numbers are complete."""
        for number in waits:
            waiting = self._waiting.get(number)
            if waiting is None:
                self._waiting[number] = flow
            elif isinstance(waiting, list):
                waiting.append(flow)
            else:
                self._waiting[number] = [waiting, flow]
        if len(waits) > 1:
            self._left[flow.id] = len(waits)

    def complete(self, number: int) -> list[FlowSpec]:
        """Handles a complete flow of this NIC; returns the flows that may start now."""
        waiting = self._waiting.pop(number, None)
        if waiting is None:
            return []
        return [
            flow for flow in (waiting if isinstance(waiting, list) else [waiting]) if self._may_go(flow.id)
        ]

    def _may_go(self, number: int) -> bool:
        left = self._left.get(number, 1) - 1
        if left:
            self._left[number] = left
        else:
            self._left.pop(number, None)
        return not left
