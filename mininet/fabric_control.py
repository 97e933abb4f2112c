# SPDX-License-Identifier: Apache-2.0
"""Starts the controller's process and reads its events."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import msgspec
from fabric_plan import FabricPlan
from fabric_process import FabricProcess
from fabric_report import FabricError, FabricReport
from fabric_watch import ProcessMonitor

from tailrace.p4rt.channel import SwitchAddress
from tailrace.p4rt.events import LATE, LINK_DOWN

SCRIPT = Path(__file__).with_name("serve_controller.py")
START_S = 300.0
"""Timeout for a controller that hangs; any other controller gives up by itself long before."""


def reasons_to_distrust(events: Sequence[Mapping[str, Any]], failed: AbstractSet[str]) -> list[str]:
    """Reasons to distrust a run, from its controller's events: links that it took for dead without any
    failure, and switches, or the controller itself, that did not keep up.

    Args:
        events: the events of the controller's process.
        failed: links that went down on purpose, as `leaf1-spine1` and as `spine1-leaf1`.
    """
    declared_down = dict.fromkeys(message["subject"] for message in events if message["event"] == LINK_DOWN)
    wrong = [name for name in declared_down if name not in failed]
    reasons = []
    if wrong:
        reasons.append(
            f"the controller took {', '.join(wrong)} for dead, and rerouted, though nothing had failed"
        )
    late: dict[str, float] = {}
    for message in events:
        if message["event"] == LATE:
            late[message["subject"]] = max(late.get(message["subject"], 0.0), message["late_s"])
    if late:
        worst = max(late, key=lambda name: late[name])
        more = f" and {len(late) - 1} more" if len(late) > 1 else ""
        reasons.append(f"{worst}{more} did not keep up with the watching of links for {late[worst]:.1f} s")
    return reasons


class ControllerProcess:
    """The controller of a fabric. `events`: its events of links, paths and failures."""

    def __init__(self, job_file: Path, plan: FabricPlan, run_dir: Path, logs: Path, run_file: Path) -> None:
        """Starts the process.

        Args:
            job_file: the file of the run's job.
            plan: the fabric, with the addresses of its switches.
            run_dir: folder for the file of these addresses and for the controller's relay socket.
            logs: folder for the controller's log.
            run_file: the run file that the controller writes.
        """
        switches = {switch.name: SwitchAddress(switch.address, switch.device_id) for switch in plan.switches}
        file = run_dir / "switches.json"
        file.write_bytes(msgspec.json.encode(switches))
        command = [sys.executable, str(SCRIPT), str(job_file), str(file), str(run_file)]
        self.process = FabricProcess("controller", command, logs / "controller.log", piped=True)
        self.events: list[dict[str, Any]] = []
        self._ready = False

    def wait_ready(self, watch: ProcessMonitor, report: FabricReport) -> None:
        """Guards the process, and waits until every switch has its entries.

        Raises:
            FabricError: the controller has failed, or is not ready in time.
        """

        def handle(message: dict[str, Any]) -> None:
            event, text = message["event"], message["text"]
            if event == "failed":
                raise FabricError(text)
            if event == "ready":
                self._ready = True
            elif event != "switch-ready":
                self.events.append(message)
                report.event(event, text, message["subject"])

        watch.listen(self.process, handle)
        watch.guard(self.process)
        watch.wait(lambda: self._ready, START_S, "the controller is not ready")
