# SPDX-License-Identifier: Apache-2.0
"""Faults of links: changes at given times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from fabric_links import FabricLinks
from fabric_plan import FabricPlan

from tailrace.sim.link_faults import LinkDown, LinkFault, LinkSlow


@dataclass(frozen=True, slots=True)
class FaultStep:
    """An action to do `at_ns` after the start of the traffic, and its description."""

    at_ns: int
    text: str
    act: Callable[[], None]


def schedule(plan: FabricPlan, links: FabricLinks, faults: Sequence[LinkFault]) -> list[FaultStep]:
    """The steps of some faults, in the order of their times."""
    steps: list[FaultStep] = []
    for fault in faults:
        match fault:
            case LinkDown():
                begin = partial(links.set_state, state="down"), "is down"
                end = partial(links.set_state, state="up"), "is up"
            case LinkSlow():
                begin = partial(links.set_share, factor=fault.factor), "is slow"
                end = partial(links.set_share, factor=1.0), "has its rate again"
            case _:
                continue
        for link in plan.between(fault.a, fault.b):
            for at_ns, (act, text) in ((fault.at_ns, begin), (fault.until_ns, end)):
                if at_ns is not None:
                    steps.append(FaultStep(at_ns, f"{link.name} {text}", partial(act, link)))
    return sorted(steps, key=lambda step: step.at_ns)
