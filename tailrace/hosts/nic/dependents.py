# SPDX-License-Identifier: Apache-2.0
"""Flows of a NIC that come after other flows (FlowSpec.after)."""

from __future__ import annotations

from tailrace.codec.calls import NEVER
from tailrace.hosts.nic.sender import FlowSender


class Dependents:
    """Who waits for which flow at this NIC."""

    def __init__(self) -> None:
        """Nobody waits, and nothing is complete."""
        self._complete: set[int] = set()  # numbers of flows
        self._waiting: dict[int, list[FlowSender]] = {}  # by the number of the flow that they wait for

    def add(self, sender: FlowSender) -> None:
        """Holds a flow back while flows that it comes after are not complete."""
        waits = [number for number in sender.flow.after if number not in self._complete]
        for number in waits:
            self._waiting.setdefault(number, []).append(sender)
        sender.waits = len(waits)
        if waits:
            sender.start_ns = NEVER

    def complete(self, now_ns: int, number: int) -> list[FlowSender]:
        """A flow is complete at this NIC; the flows that may start now, or at their own start time."""
        self._complete.add(number)
        free: list[FlowSender] = []
        for sender in self._waiting.pop(number, []):
            sender.waits -= 1
            if not sender.waits:
                sender.start_ns = max(now_ns, sender.flow.start_ns)
                free.append(sender)
        return free
