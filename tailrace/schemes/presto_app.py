# SPDX-License-Identifier: Apache-2.0
"""Presto: the size of a flowcell."""

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
from tailrace.schemes.registry import PrestoConfig


def flowcell_config(plan: Plan, cell_bytes: int) -> P4Entity:
    """The bytes of a flowcell.

    Raises:
        IntentError: they are too many for the program.
    """
    return default_action(
        "flowcell_config",
        "set_flowcell",
        cell_bytes=fitting(plan, "cell", "set_flowcell", "cell_bytes", cell_bytes),
    )


def entities(plan: Plan) -> Iterator[P4Entity]:
    """What a switch holds, in the order in which it is to be written: routes last.

    Raises:
        IntentError: the cell is too large for the program.
    """
    config = plan.config
    assert isinstance(config, PrestoConfig)
    yield from configuration(plan)
    yield flowcell_config(plan, config.cell_bytes)
    yield from port_roles(plan)
    yield from group_members(plan)
    yield from routes(plan)
