# SPDX-License-Identifier: Apache-2.0
"""LetFlow: the gap that starts a new flowlet."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.p4entity import P4Entity

from tailrace.schemes.blocks.entries import (
    Plan,
    configuration,
    default_action,
    fitting,
    group_members,
    port_roles,
    routes,
)
from tailrace.schemes.defaults import known
from tailrace.schemes.registry import LetflowConfig


def flowlet_config(plan: Plan, gap_ns: int) -> P4Entity:
    """The pause that begins a new flowlet.

    Raises:
        IntentError: it is too long for the program.
    """
    gap_ticks = plan.target.ticks(gap_ns)
    return default_action(
        "flowlet_config",
        "set_flowlet_gap",
        gap_ticks=fitting(plan, "gap", "set_flowlet_gap", "gap_ticks", gap_ticks),
    )


def entities(plan: Plan) -> Iterator[P4Entity]:
    """What a switch holds, in the order in which it is to be written: routes last.

    Raises:
        IntentError: the gap is too long for the program.
    """
    config = plan.config
    assert isinstance(config, LetflowConfig)
    yield from configuration(plan)
    yield flowlet_config(plan, known(config.gap_ns))
    yield from port_roles(plan)
    yield from group_members(plan)
    yield from routes(plan)
