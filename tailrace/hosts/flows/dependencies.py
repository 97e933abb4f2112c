# SPDX-License-Identifier: Apache-2.0
"""Dependencies between flows (FlowSpec.after): checks that every flow of a run can start.

A flow may only come after flows that have an end at its own source host, because a NIC does not know of
others. It waits at most for the completion of each of them, so in a run without a cycle every flow starts.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence

from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.flow import FlowSpec


def check_dependencies(flows: Iterable[FlowSpec]) -> None:
    """Checks all flows of a run.

    Raises:
        ConfigError: a flow comes after a flow that does not exist or has no end at its source host, or after
            itself via others; or two flows have the same id although there are dependencies.
    """
    every = list(flows)
    if not any(flow.after for flow in every):
        return
    if _in_order(every):
        return
    by_id = {flow.id: flow for flow in every}
    if len(by_id) != len(every):
        twice = min(number for number, count in Counter(flow.id for flow in every).items() if count > 1)
        raise ConfigError(f"flow {twice}: there are two flows with this id")
    waits: dict[int, int] = {}
    dependents: dict[int, list[int]] = {}
    for flow in every:
        earlier = set(flow.after)
        waits[flow.id] = len(earlier)
        for number in earlier:
            _check_visible(flow, number, by_id.get(number))
            dependents.setdefault(number, []).append(flow.id)
    startable = deque(number for number, count in waits.items() if not count)
    while startable:
        number = startable.popleft()
        del waits[number]
        for dependent in dependents.get(number, ()):
            waits[dependent] -= 1
            if not waits[dependent]:
                startable.append(dependent)
    if waits:
        raise ConfigError(f"flow {_in_a_cycle(waits, by_id)}: it comes after itself, via other flows")


def _in_order(flows: Sequence[FlowSpec]) -> bool:
    """Whether ids count from 1 and each flow comes only after earlier flows of its source: then all is valid.

    This quick test suffices for the flows of workloads, which may be a million.
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
    """A flow of a cycle: follows dependencies from a flow that never starts, until a flow comes again."""
    number = min(waits)
    passed: set[int] = set()
    while number not in passed:
        passed.add(number)
        number = min(earlier for earlier in by_id[number].after if earlier in waits)
    return number
