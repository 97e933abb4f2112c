# SPDX-License-Identifier: Apache-2.0
"""How much can be under way at once, where flows wait for others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tailrace.hosts.flows.flow import FlowSpec


def most_at_once(flows: Iterable[FlowSpec], weight: Callable[[FlowSpec], int]) -> int:
    """A bound for the sum of the weights of flows that are under way at the same time.

    Flows are put into chains in which each waits for the one before it, so that only one of a chain is under
    way; the bound is the sum over all chains of their heaviest flow. Flows that wait for none are chains of
    their own. Whoever waits for several joins the first of them that nobody has joined yet.

    Args:
        flows: each after all that it waits for.
        weight: of a flow, 0 or more.
    """
    heaviest: list[int] = []
    chain_ending_in: dict[int, int] = {}
    for flow in flows:
        before = next((number for number in flow.after if number in chain_ending_in), None)
        if before is None:
            chain = len(heaviest)
            heaviest.append(weight(flow))
        else:
            chain = chain_ending_in.pop(before)
            heaviest[chain] = max(heaviest[chain], weight(flow))
        chain_ending_in[flow.id] = chain
    return sum(heaviest)
