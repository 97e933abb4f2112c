# SPDX-License-Identifier: Apache-2.0
"""Priority flow control of a fabric of native switches: their options, and what they counted."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fabric_errors import FabricError
from fabric_job import Pfc
from fabric_plan import SwitchPlan
from fabric_process import Process

REPORT_S = 30.0
"""A switch that has not written its counts by then is given up."""

_POLL_S = 0.02


def options(pfc: Pfc, priority: int, statistics: Path) -> list[str]:
    """What a native switch is told: thresholds of all its ports, and where to write what it counts.

    Args:
        priority: the lossless one.
    """
    sizes = f"xoff={pfc.xoff_bytes}B,xon={pfc.xon_bytes}B,headroom={pfc.headroom_bytes}B"
    words = ["--pfc", f"{priority}:{sizes}", "--statistics", str(statistics)]
    if pfc.buffer_bytes is not None:
        share = "" if pfc.alpha is None else f",alpha={pfc.alpha}"
        words += ["--buffer", f"{pfc.buffer_bytes}B{share},port={pfc.port_bytes}B"]
    return words


def taken(
    counted: Mapping[str, int], found: Mapping[str, Any], plans: Iterable[SwitchPlan]
) -> dict[str, int]:
    """Frames taken from each interface: those that programs counted, and pauses, which no program sees.

    Args:
        counted: by interface, what programs counted.
        found: from `collect`; empty where there is no PFC.
    """
    pauses = {
        port.interface: count["pfc_received"] + count["pfc_ignored"]
        for plan in plans
        if plan.name in found
        for port in plan.ports
        for count in [found[plan.name]["ports"][str(port.number)]]
    }
    return {interface: count + pauses.get(interface, 0) for interface, count in counted.items()}


def collect(switches: Mapping[str, tuple[SwitchPlan, Process]]) -> dict[str, dict[str, Any]]:
    """What all switches have counted by now, as native/switchd/statistics.py has it.

    Raises:
        FabricError: one of them does not say.
    """
    for plan, process in switches.values():
        process.check()
        plan.statistics.unlink(missing_ok=True)
        os.kill(process.pid, signal.SIGUSR1)
    deadline = time.monotonic() + REPORT_S
    found = {}
    for name, (plan, process) in switches.items():
        while not plan.statistics.exists():
            process.check()
            if time.monotonic() > deadline:
                raise FabricError(f"{name}: no counts in time")
            time.sleep(_POLL_S)
        found[name] = json.loads(plan.statistics.read_text())
    return found
