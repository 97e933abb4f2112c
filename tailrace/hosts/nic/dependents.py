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
        """Holds a flow back until flows with these numbers are complete, which are none twice."""
        for number in waits:
            others = self._waiting.get(number)
            if others is None:
                self._waiting[number] = flow
            elif isinstance(others, list):
                others.append(flow)
            else:
                self._waiting[number] = [others, flow]
        if len(waits) > 1:
            self._left[flow.id] = len(waits)

    def complete(self, number: int) -> list[FlowSpec]:
        """A flow is complete at this NIC; the flows that need not wait any more."""
        found = self._waiting.pop(number, None)
        if found is None:
            return []
        return [flow for flow in (found if isinstance(found, list) else [found]) if self._may_go(flow.id)]

    def _may_go(self, number: int) -> bool:
        left = self._left.get(number, 1) - 1
        if left:
            self._left[number] = left
        else:
            self._left.pop(number, None)
        return not left
