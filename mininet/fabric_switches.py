# SPDX-License-Identifier: Apache-2.0
"""Compiles the program of the switch processes, and waits until each of them serves P4Runtime."""

from __future__ import annotations

import time
from pathlib import Path

from fabric_plan import SwitchPlan
from fabric_process import FabricProcess
from fabric_report import FabricError

from tailrace.controller.inband.relay import listens

START_S = 30.0
"""Timeout until all switches listen, plus one second per switch."""

_POLL_S = 0.02


def wait_ready(switches: dict[str, tuple[SwitchPlan, FabricProcess]]) -> None:
    """Waits until all switches serve P4Runtime.

    Raises:
        FabricError: one of them ended, or does not listen in time.
    """
    deadline = time.monotonic() + START_S + len(switches)
    waiting = dict(switches)
    while waiting:
        for name, (plan, process) in list(waiting.items()):
            if listens(Path(plan.address.removeprefix("unix:"))):
                del waiting[name]
            else:
                process.check()
        if waiting and time.monotonic() > deadline:
            raise FabricError(f"{', '.join(waiting)}: no P4Runtime server in time")
        if waiting:
            time.sleep(_POLL_S)


def compile_ahead(program: Path) -> None:
    """Compiles a program for the native switch once, so that not every switch of a fabric does it.

    Raises:
        FabricError: there is no working C compiler, or the program is invalid.
    """
    from tailrace.switch.compiler import CompilerError, load_program
    from tailrace.switch.core import BuildError, SwitchConfig, V1ModelSwitch
    from tailrace.switch.daemon.ports import io_library

    try:
        V1ModelSwitch(load_program(program.read_bytes(), source=str(program)), SwitchConfig()).close()
        io_library()  # compiles the functions that send and receive on Linux interfaces
    except (BuildError, CompilerError, OSError) as error:
        raise FabricError(f"cannot compile {program.name}: {error}") from error
