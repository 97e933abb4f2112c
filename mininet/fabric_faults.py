# SPDX-License-Identifier: Apache-2.0
"""Faults of links: what slows one from the start, and what happens at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from fabric_job import Fault
from fabric_links import Links, share
from fabric_plan import LinkPlan, Plan, PortPlan, SwitchPlan


@dataclass(frozen=True, slots=True)
class Step:
    """Something to do `at_ns` after the start of the traffic."""

    at_ns: int
    text: str
    act: Callable[[], None]


def links_of(plan: Plan, fault: Fault) -> list[LinkPlan]:
    """The links that a fault is about."""
    return [link for link in plan.links if {link.a.node, link.b.node} == {fault.a, fault.b}]


def _permanent(fault: Fault) -> bool:
    return fault.kind == "link-slow" and fault.at_ns == 0 and fault.until_ns is None


def slowed(plan: Plan, faults: Sequence[Fault]) -> Plan:
    """The plan with the rates of links that are slow all the time."""
    factors = {
        (end.node, end.port): fault.factor
        for fault in faults
        if _permanent(fault)
        for link in links_of(plan, fault)
        for end in (link.a, link.b)
    }

    def port_of(switch: SwitchPlan, port: PortPlan) -> PortPlan:
        return replace(port, rate_bps=share(port.rate_bps, factors.get((switch.name, port.number), 1.0)))

    switches = tuple(replace(s, ports=tuple(port_of(s, port) for port in s.ports)) for s in plan.switches)
    return replace(plan, switches=switches)


def schedule(plan: Plan, links: Links, faults: Sequence[Fault]) -> list[Step]:
    """What to do when, in order."""
    steps: list[Step] = []
    for fault in faults:
        for link in links_of(plan, fault):
            if fault.kind == "link-down":
                down, up = partial(links.set_state, link, "down"), partial(links.set_state, link, "up")
                steps.append(Step(fault.at_ns, f"{link.name} is down", down))
                if fault.until_ns is not None:
                    steps.append(Step(fault.until_ns, f"{link.name} is up", up))
            elif not _permanent(fault):
                slow = partial(links.set_share, link, fault.factor)
                steps.append(Step(fault.at_ns, f"{link.name} is slow", slow))
                if fault.until_ns is not None:
                    fast = partial(links.set_share, link, 1.0)
                    steps.append(Step(fault.until_ns, f"{link.name} has its rate again", fast))
    return sorted(steps, key=lambda step: step.at_ns)
