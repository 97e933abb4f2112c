# SPDX-License-Identifier: Apache-2.0
"""Flows that wait for one another, run on paper: each takes a time that a test has chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tailrace.hosts.flows.flow import FlowSpec


@dataclass(frozen=True)
class Span:
    """When a flow was under way; it ended before anything else of that instant began."""

    flow: FlowSpec
    begin_ns: int
    end_ns: int


def replay(flows: Sequence[FlowSpec], takes_ns: Callable[[FlowSpec], int]) -> list[Span]:
    """Every flow starts at its time, or when all, or enough, that it waits for have ended; those come before it."""
    ends_ns: dict[int, int] = {}
    spans = []
    for flow in flows:
        waits_ns = [0, *sorted(ends_ns[number] for number in flow.after)]
        begin_ns = max(flow.start_ns, waits_ns[flow.after_count or -1])
        ends_ns[flow.id] = begin_ns + takes_ns(flow)
        spans.append(Span(flow, begin_ns, ends_ns[flow.id]))
    return spans


def most_at_once(spans: Sequence[Span], weight: Callable[[Span], int] = lambda _span: 1) -> int:
    """The greatest sum of weights of flows under way together."""
    steps = [(span.begin_ns, 1, weight(span)) for span in spans]
    steps += [(span.end_ns, 0, -weight(span)) for span in spans]
    total = most = 0
    for _, _, change in sorted(steps):
        total += change
        most = max(most, total)
    return most
