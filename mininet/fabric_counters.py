# SPDX-License-Identifier: Apache-2.0
"""Reads the programs' counters from all switches of a fabric over P4Runtime; reading needs no election."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from fabric_plan import FabricPlan, SwitchPlan
from fabric_report import FabricError
from finsy.proto import p4r

from tailrace.p4rt import counters
from tailrace.p4rt.channel import SwitchAddress
from tailrace.p4rt.client import connect
from tailrace.p4rt.errors import ControllerError
from tailrace.p4rt.programs import P4Program

PORT_RX = "port_rx"
"""The counter of frames that a program took, by port."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Sums by counter's name for each switch, the frames taken from each interface, and, by switch and
    counter, packets by the index of the cell.
    """

    sums: dict[str, dict[str, int]]
    taken: dict[str, int]
    cells: dict[str, dict[str, dict[int, int]]]


def read(plan: FabricPlan, program: P4Program) -> Reading:
    """All switches at once.

    Raises:
        FabricError: a switch does not answer.
    """
    try:
        entities_of = asyncio.run(_read_all(plan, program))
    except ControllerError as error:
        raise FabricError(str(error)) from error
    taken: dict[str, int] = {}
    for switch, entities in zip(plan.switches, entities_of, strict=True):
        taken |= _taken(switch, program, entities)
    return Reading(
        {
            s.name: counters.sums(program, counters.cells(program, entities))
            for s, entities in zip(plan.switches, entities_of, strict=True)
        },
        taken,
        {s.name: _cells(program, entities) for s, entities in zip(plan.switches, entities_of, strict=True)},
    )


def _cells(program: P4Program, entities: list[p4r.Entity]) -> dict[str, dict[int, int]]:
    counts: dict[str, dict[int, int]] = {counter.preamble.alias: {} for counter in program.p4info.counters}
    for name, index, packets in counters.cells(program, entities):
        counts[name][index] = packets
    return counts


async def _read_all(plan: FabricPlan, program: P4Program) -> list[list[p4r.Entity]]:
    async def one(switch: SwitchPlan) -> list[p4r.Entity]:
        async with connect(switch.name, SwitchAddress(switch.address, switch.device_id)) as client:
            return await client.read(counters.requests(program))

    return await asyncio.gather(*(one(switch) for switch in plan.switches))


def _taken(switch: SwitchPlan, program: P4Program, entities: list[p4r.Entity]) -> dict[str, int]:
    """Frames taken by interface; none where the program does not count them."""
    ids = {c.preamble.id for c in program.p4info.counters if c.preamble.alias == PORT_RX}
    interfaces = {port.number: port.interface for port in switch.ports}
    cells = (e.counter_entry for e in entities if e.counter_entry.counter_id in ids)
    return {
        interfaces[cell.index.index]: cell.data.packet_count
        for cell in cells
        if cell.index.index in interfaces
    }
