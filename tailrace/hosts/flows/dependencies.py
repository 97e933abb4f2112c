# SPDX-License-Identifier: Apache-2.0
"""Dependencies between flows (FlowSpec.after): checks that every flow of a run can start.

A flow may wait only for flows that its source host sends or receives, because that host's NIC does not see
other flows. Every flow starts if no flow waits, directly or via other flows, for itself.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence

from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.flow import FlowSpec


def check_dependencies(flows: Iterable[FlowSpec]) -> None:
    """Checks all flows of a run.

    Raises:
        ConfigError: a flow waits for a flow that does not exist, for a flow that its source host neither
            sends nor receives, or, via other flows, for itself; or two flows have the same id although there
            are dependencies.
    """
    all_flows = list(flows)
    if not any(flow.after for flow in all_flows):
        return
    if _in_order(all_flows):
        return
    by_id = {flow.id: flow for flow in all_flows}
    if len(by_id) != len(all_flows):
        twice = min(number for number, count in Counter(flow.id for flow in all_flows).items() if count > 1)
        raise ConfigError(f"flow {twice}: there are two flows with this id")
    waits: dict[int, int] = {}
    dependents: dict[int, list[int]] = {}
    for flow in all_flows:
        earlier = set(flow.after)
        waits[flow.id] = flow.after_count or len(earlier)
        for number in earlier:
            _check_visible(flow, number, by_id.get(number))
            dependents.setdefault(number, []).append(flow.id)
    startable = deque(number for number, count in waits.items() if not count)
    while startable:
        number = startable.popleft()
        del waits[number]
        for dependent in dependents.get(number, ()):
            still_open = waits.get(dependent, 0) - 1  # with `after_count` it may be startable already
            if still_open >= 0:
                waits[dependent] = still_open
            if not still_open:
                startable.append(dependent)
    if waits:
        raise ConfigError(f"flow {_in_a_cycle(waits, by_id)}: it comes after itself, via other flows")


def _in_order(flows: Sequence[FlowSpec]) -> bool:
    """Whether ids count from 1 and each flow waits only for flows with lower ids, at its source host.

    If so, all dependencies are valid. This quick test suffices for the flows of most workloads, which may
    have a million flows.
    """
    for number, flow in enumerate(flows, start=1):
        if flow.id != number:
            return False
        for before in flow.after:
            if not 0 < before < number or flow.src not in (flows[before - 1].src, flows[before - 1].dst):
                return False
    return True


def _check_visible(flow: FlowSpec, number: int, earlier: FlowSpec | None) -> None:
    if earlier is None:
        raise ConfigError(f"flow {flow.id}: it comes after flow {number}, which does not exist")
    if flow.src not in (earlier.src, earlier.dst):
        raise ConfigError(
            f"flow {flow.id}: it comes after flow {number}, which {flow.src} neither sends nor receives"
        )


def _in_a_cycle(waits: dict[int, int], by_id: dict[int, FlowSpec]) -> int:
    """The id of a flow in a cycle: follows dependencies from a flow that never starts until a flow recurs."""
    number = min(waits)
    passed: set[int] = set()
    while number not in passed:
        passed.add(number)
        number = min(earlier for earlier in by_id[number].after if earlier in waits)
    return number
