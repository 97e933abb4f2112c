# SPDX-License-Identifier: Apache-2.0
"""Reads the programs' counters from all switches of a fabric over P4Runtime; reading needs no election.

Of p4rt.counters: `requests` are the entities that read all counters, `cells` decodes the response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import closing

from fabric_plan import FabricPlan, SwitchPlan
from fabric_report import FabricError

from tailrace.p4rt import counters
from tailrace.p4rt.channel import SwitchAddress
from tailrace.p4rt.client import connect
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.errors import ControllerError
from tailrace.p4rt.programs import P4Program

PORT_RX = "port_rx"
"""The counter of frames that a program received, by port."""

Cells = dict[str, dict[int, int]]
"""Packets of a switch by counter and index of the cell."""


def read(plan: FabricPlan, programs: Mapping[str, P4Program]) -> dict[str, Cells]:
    """The cells of all switches, read in parallel; `programs`: by switch.

    Raises:
        FabricError: a switch does not answer.
    """

    async def read_all() -> list[Cells]:
        return await asyncio.gather(*(_cells(switch, programs[switch.name]) for switch in plan.switches))

    try:
        cells = asyncio.run(read_all())
    except ControllerError as error:
        raise FabricError(str(error)) from error
    return {switch.name: each for switch, each in zip(plan.switches, cells, strict=True)}


def drops(plan: FabricPlan) -> dict[str, dict[str, int]]:
    """What native switches dropped by reason, as counters; BMv2 does not say. Raises SwitchError."""
    dropped = {}
    for switch in plan.switches:
        with closing(GrpcConnection(switch.name, switch.address, switch.device_id)) as connection:
            statistics = connection.statistics()
        dropped[switch.name] = counters.by_reason(statistics["drops"]) if statistics else {}
    return dropped


async def _cells(switch: SwitchPlan, program: P4Program) -> Cells:
    async with connect(switch.name, SwitchAddress(switch.address, switch.device_id)) as client:
        entities = await client.read(counters.requests(program))
    cells: Cells = {counter.preamble.alias: {} for counter in program.p4info.counters}
    for name, index, packets in counters.cells(program, entities):
        cells[name][index] = packets
    return cells


def sums(program: P4Program, cells: Cells) -> dict[str, int]:
    """The sums of a switch by counter (p4rt.counters)."""
    counted = ((name, *cell) for name, indexed in cells.items() for cell in indexed.items())
    return counters.sums(program, counted)


def received(plan: FabricPlan, cells: dict[str, Cells]) -> dict[str, int]:
    """Frames that programs received, by interface; only for ports at which the program counts them."""
    return {
        port.interface: cells[switch.name][PORT_RX][port.number]
        for switch in plan.switches
        for port in switch.ports
        if port.number in cells[switch.name].get(PORT_RX, {})
    }
