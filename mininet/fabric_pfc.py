# SPDX-License-Identifier: Apache-2.0
"""Priority flow control (PFC) of a fabric, and the switches' PFC counts. Native switches have PFC in their
traffic manager and get options; on BMv2 the P4 program emulates it (p4src/pfc).
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fabric_bmv2 import pfc_registers
from fabric_counters import Cells
from fabric_plan import BMV2, DATA_PRIORITY, SwitchPlan
from fabric_process import FabricProcess
from fabric_report import FabricError

from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.target import target
from tailrace.topology.pfc import Thresholds

NO_WAITING_ROOM = "NO_WAITING_ROOM"
"""The program's reason for dropping lossless packets."""

PROGRAM_COUNTERS = ("pfc_sent", "pfc_pauses_sent", "pfc_received", "pfc_storms", "pfc_storm_drops")
REPORT_S = 30.0
"""Timeout until a switch has written its counts."""

_POLL_S = 0.02


def options(
    pfc: Thresholds, priority: int, statistics: Path, hosts: Sequence[int], links: Sequence[int]
) -> list[str]:
    """Options of a native switch: thresholds and watchdogs of its ports, and the file for its counts.

    With virtual channels, a packet's priority rises by `pfc.rise` from one switch to the next.

    Args:
        priority: the priority of data.
        hosts: the ports that lead to hosts.
        links: the ports that lead to switches, where all virtual channels (priorities) are lossless.
    """
    sizes = f"xoff={pfc.xoff_bytes}B,xon={pfc.xon_bytes}B,headroom={pfc.headroom_bytes}B"
    arguments = ["--pfc", f"{priority}:{sizes}", "--statistics", str(statistics)]
    channels = ",".join(map(str, pfc.lossless(priority)))
    for port in links if pfc.rise else ():
        arguments += ["--pfc", f"{port}:{channels}:{sizes},rise={pfc.rise}"]
    arguments += ["--pfc-watchdog", pfc.watchdog.spec()]
    if hosts and pfc.watchdog.detect_ns:
        arguments += ["--pfc-watchdog", f"{','.join(map(str, hosts))}:host,action={pfc.watchdog.action}"]
    if pfc.buffer_bytes is not None:
        share = "" if pfc.alpha is None else f",alpha={pfc.alpha}"
        arguments += ["--buffer", f"{pfc.buffer_bytes}B{share},port={pfc.port_bytes}B"]
    return arguments


def received(
    counted: Mapping[str, int], collected: Mapping[str, Any], plans: Iterable[SwitchPlan]
) -> dict[str, int]:
    """Frames received by interface: those that programs counted, and pauses, which no program sees.

    Args:
        counted: the programs' counts, by interface.
        collected: from `collect`; empty if there is no PFC.
    """
    pauses = {
        port.interface: count["pfc_received"] + count["pfc_ignored"]
        for plan in plans
        if plan.name in collected
        for port in plan.ports
        for count in [collected[plan.name]["ports"][str(port.number)]]
    }
    return {interface: count + pauses.get(interface, 0) for interface, count in counted.items()}


def emulated_counts(
    plans: Iterable[SwitchPlan], program: P4Program, switches: Mapping[str, Cells], xoff_bytes: int
) -> dict[str, dict[str, Any]]:
    """The counts in the form of `collect`, from the program's counters and registers.

    The peak of a whole switch's buffer is not known: the sum of its ports' peaks is given instead.

    Raises:
        FabricError: a switch does not answer.
    """
    lost = program.enum("DropReason_t", NO_WAITING_ROOM)
    statistics = {}
    for plan in plans:
        cells = switches[plan.name]
        counts = _of_program(plan, cells, pfc_registers(plan), xoff_bytes)
        statistics[plan.name] = {**counts, "drops": {NO_WAITING_ROOM: cells["drops"].get(lost, 0)}}
    return statistics


def _of_program(
    plan: SwitchPlan,
    cells: Cells,
    registers: Mapping[str, Sequence[int]],
    xoff_bytes: int,
) -> dict[str, Any]:
    most = {port.number: registers["most_bytes"][port.number] for port in plan.ports}
    above = {port: max(0, size - xoff_bytes) for port, size in most.items()}
    ports = {}
    for port in most:
        sent, pauses, received, storms, dropped = (
            cells.get(name, {}).get(port, 0) for name in PROGRAM_COUNTERS
        )
        paused_ns = registers["closed_ticks"][port] * target(BMV2).tick_ns
        ports[str(port)] = {
            "pfc_sent": sent,
            "pfc_received": received,
            "pfc_ignored": 0,
            "paused_ns": paused_ns,
            "pfc": {
                str(DATA_PRIORITY): {
                    "most_bytes": most[port],
                    "headroom_most_bytes": above[port],
                    "xoff_sent": pauses,
                    "xon_sent": sent - pauses,
                    "received": received,
                    "paused_ns": paused_ns,
                    "storms": storms,
                    "storm_dropped": dropped,
                }
            },
        }
    headroom = sum(above.values())
    return {
        "ports": ports,
        "buffer": {
            "shared_most_bytes": sum(most.values()) - headroom,
            "headroom_most_bytes": headroom,
        },
    }


def collect(switches: Mapping[str, tuple[SwitchPlan, FabricProcess]]) -> dict[str, dict[str, Any]]:
    """The counts of all switches so far, in the form of tailrace/switch/p4runtime/statistics.py.

    Raises:
        FabricError: a switch has ended, or does not write its counts in time.
    """
    for plan, process in switches.values():
        process.check()
        plan.statistics.unlink(missing_ok=True)
        os.kill(process.pid, signal.SIGUSR1)
    deadline = time.monotonic() + REPORT_S
    counts = {}
    for name, (plan, process) in switches.items():
        while not plan.statistics.exists():
            process.check()
            if time.monotonic() > deadline:
                raise FabricError(f"{name}: no counts in time")
            time.sleep(_POLL_S)
        counts[name] = json.loads(plan.statistics.read_text())
    return counts
