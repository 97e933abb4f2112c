# SPDX-License-Identifier: Apache-2.0
"""One run from beginning to end, inside the sandbox: fabric, controller, traffic, result."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fabric_bmv2
import fabric_counters
import fabric_pfc
import fabric_switches
from fabric_control import ControllerProcess, reasons_to_distrust
from fabric_faults import schedule
from fabric_links import FabricLinks, add_delays
from fabric_live import FabricControl
from fabric_load import LoadWatch, interfaces
from fabric_net import FabricNet
from fabric_plan import BMV2, NATIVE, LinkPlan, SwitchPlan, command, make_plan, queue_depth, queue_packets
from fabric_process import FabricProcess, end_all
from fabric_report import FabricReport
from fabric_sandbox import note_run_file
from fabric_traffic import FabricTraffic
from fabric_watch import ProcessMonitor

from tailrace.codec.sizes import HEADER_BYTES
from tailrace.controller import runfile
from tailrace.p4rt import programs
from tailrace.sim.job import Job
from tailrace.spec.constants import NS_BITS
from tailrace.topology.timing import fabric_rate_bps

RESULT = "RESULT.json"
CAPTURE = Path(__file__).with_name("fabric_capture.py")
CAPTURE_S = 30.0


class FabricRun:
    """One run with its processes. Call `up`, then `traffic` any number of times, and `down` in any case."""

    def __init__(self, job_file: Path, job: Job, run_dir: Path, report: FabricReport) -> None:
        """Nothing is started yet.

        Args:
            job_file: file of the job, for other processes; the result and logs/ go into its folder.
            job: the job in this file.
            run_dir: folder for sockets and the files of child processes.

        Raises:
            ControllerError: its program is missing.
        """
        topology = job.topology
        self.job, self.topology, self.report = job, topology, report
        self.watch = ProcessMonitor()
        self._delays = True  # whether links have their delays; `up` sets it
        self.out = job_file.parent
        self._job_file, self._run_dir, self._logs = job_file, run_dir, self.out / "logs"
        self.run_file = (
            runfile.folder() / f"{job.target}-{run_dir.name.removeprefix(runfile.RUN_FOLDER)}.json"
        )
        self._programs = job.scheme.programs(topology)
        self._frame_bytes = job.nic.mtu_bytes + HEADER_BYTES
        self._plan = make_plan(topology, job.target, run_dir, self._logs, foreign=job.scheme.is_foreign)
        self.links = FabricLinks(self._plan, self._frame_bytes)
        self._control: FabricControl | None = None
        self._processes: list[FabricProcess] = []
        self._events: list[dict[str, Any]] = []
        self._reported = 0  # number of events before the traffic
        self._changed: dict[str, str] = {}  # changes of links by the user before the traffic
        self._started_s = time.monotonic()

    def up(self) -> FabricNet:
        """Brings up the fabric with its controller.

        Raises:
            FabricError: some part of it does not come up.
        """
        job = self.job
        self._logs.mkdir(parents=True, exist_ok=True)
        note_run_file(self._run_dir, self.run_file)
        if job.target == NATIVE:
            self.report.phase("compile")
            for path in dict.fromkeys(program.path for program in self._programs.values()):
                fabric_switches.compile_ahead(path)
        self.report.phase("fabric")
        net = FabricNet(self._plan, self._start_switch, foreign=job.scheme.is_foreign)
        fabric_switches.wait_ready(net.switches)
        for switch, process in net.switches.values():
            if job.target == BMV2:
                self._set_queues(switch)
            self.watch.guard(process)
        # the native switch implements delays itself
        self._delays = job.target != BMV2 or add_delays(self._plan)
        if job.pcap_dir is not None:
            self._capture(net, job.pcap_dir)
        self.report.phase("controller")
        path = self._run_dir / "control.sock"
        self._control = FabricControl(path, job.time_scale, net, self.links, self.report)
        self._control.start_thread()
        control = ControllerProcess(self._job_file, self._plan, self._run_dir, self._logs, self.run_file)
        self._processes.insert(0, control.process)
        control.wait_ready(self.watch, self.report)
        self._events = control.events
        return net

    def _set_queues(self, plan: SwitchPlan) -> None:
        recirculation: dict[int, int] = {}
        if not self.job.scheme.is_foreign:
            # RLB recirculates packets at the highest rate of a link between switches
            rate_bps = fabric_rate_bps(self.topology) if self.job.scheme.recirculates else None
            recirculation = fabric_bmv2.recirculation_rates(
                plan, self._programs[plan.name], self._frame_bytes, rate_bps, waits=self.job.pfc is not None
            )
        packets = queue_packets(self.job.scheme, self._frame_bytes)
        fabric_bmv2.set_queues(plan, packets, self._frame_bytes, recirculation)

    def _start_switch(self, plan: SwitchPlan) -> FabricProcess:
        job, more = self.job, []
        packets, limit_bytes = queue_depth(job.scheme)
        if job.pfc is not None:
            # lossless data may fill a queue as far as thresholds and memory allow
            hosts = [host.port for host in self.topology.hosts if host.switch == plan.name]
            packets = limit_bytes = 0
            links = [port.number for port in plan.ports if port.number not in hosts]
            more = fabric_pfc.options(job.pfc, job.nic.data_priority, plan.statistics, hosts, links)
        if job.scheme.recirculates:
            more = [*more, "--recirc-rate", f"{fabric_rate_bps(self.topology)}bps"]
        depth = str(packets) if packets else f"{limit_bytes}B"
        arguments = command(plan, job.switches, depth, more)  # job.switches: a p4rt.target.Target
        process = FabricProcess(plan.name, arguments, plan.log)
        self._processes.append(process)
        return process

    def _capture(self, net: FabricNet, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        pids = {host.name: net.pid(host.name) for host in self.topology.hosts}
        links = [
            {
                "file": str(folder / f"{link.name}.pcap"),
                "taps": [[end.interface, pids.get(end.node, 1)] for end in (link.a, link.b)],
            }
            for link in self._plan.links
        ]
        file = self._run_dir / "capture.json"
        file.write_text(json.dumps(links))
        arguments = [sys.executable, str(CAPTURE), str(file)]
        process = FabricProcess("capture", arguments, self._logs / "capture.log", piped=True)
        self._processes.insert(0, process)
        ready: list[object] = []
        self.watch.listen(process, ready.append)
        self.watch.guard(process)
        self.watch.wait(lambda: bool(ready), CAPTURE_S, "the capture is not ready")

    def traffic(self, net: FabricNet) -> dict[str, Any]:
        """Runs the job's flows to their end; returns the result and writes it to the job's folder.

        Raises:
            FabricError: the run failed.
        """
        self.report.phase("hosts")
        # delays while the fabric came up do not affect the measurement
        self._reported = len(self._events)
        self._changed = dict(self.links.changed)
        self.links.cut = set(self.links.down)
        traffic = FabricTraffic(self.job, net, self._run_dir, self._logs, self.watch)
        self._processes.insert(0, traffic.process)
        try:
            if self.job.sources:
                net.silence()
            traffic.wait_ready()
            pids = {name: process.pid for name, (_, process) in net.switches.items()}
            before, taken, _ = self._counts(net)
            pids["hosts"] = traffic.process.pid
            load = LoadWatch(pids, self._frame_ns(), taken)
            steps = schedule(self._plan, self.links, self.job.faults)
            report = traffic.run(steps, self.report, load.sample)
            cut = {end.interface for link in self._cut_links() for end in (link.a, link.b)}
            seen = {name: state for name, state in interfaces().items() if name not in cut}
            after, taken, pfc = self._counts(net)
        finally:
            # the driver's end is no failure, even if Ctrl-C at the prompt ended the flows
            self.watch.forget(traffic.process)
            traffic.process.end()
            self._processes.remove(traffic.process)
            if self.job.sources:
                net.silence(silent=False)
        return self._write(report, load.reasons(seen, taken), before, after, pfc)

    def _counts(self, net: FabricNet) -> tuple[dict[str, dict[str, int]], dict[str, int], dict[str, Any]]:
        """The programs' counts by switch, frames received by interface, and PFC counts."""
        cells = fabric_counters.read(self._plan, self._programs)
        sums = {name: fabric_counters.sums(self._programs[name], each) for name, each in cells.items()}
        if self.job.scheme.is_foreign:
            for name, drops in fabric_counters.drops(self._plan).items():
                sums[name] |= drops
        taken = fabric_counters.received(self._plan, cells)
        if self.job.pfc is None:
            return sums, taken, {}
        if self.job.target == BMV2:
            # BMv2's program receives pauses, too, and counts them with all other frames
            plans, program = self._plan.switches, self._programs[self._plan.switches[0].name]
            return sums, taken, fabric_pfc.emulated_counts(plans, program, cells, self.job.pfc.xoff_bytes)
        pfc = fabric_pfc.collect(net.switches)
        return sums, fabric_pfc.received(taken, pfc, self._plan.switches), pfc

    def _cut_links(self) -> list[LinkPlan]:
        """Links that were down in this run."""
        return [link for link in self._plan.links if link.name in self.links.cut]

    def _frame_ns(self) -> int:
        """How long a full data frame takes on the fastest link."""
        rates = [host.rate_bps for host in self.topology.hosts] + [k.rate_bps for k in self.topology.links]
        return self._frame_bytes * NS_BITS // max(rates)

    def _write(
        self,
        collected: Mapping[str, Any],
        load: Sequence[str],
        before: Mapping[str, Mapping[str, int]],
        after: Mapping[str, Mapping[str, int]],
        pfc: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Writes the result file, and returns its content.

        Args:
            collected: the result of the hosts' driver (tailrace.hosts.driver.report.make_result).
            load: signs of an overloaded machine, from the LoadWatch.
            before, after: the programs' counts by switch, before and after the traffic.
            pfc: PFC counts, from `_counts`.
        """
        reasons = [*collected["overload"], *load, *self._reasons_to_distrust()]
        result = {
            "flows": collected["flows"],
            "switches": {
                name: {counter: value - before[name].get(counter, 0) for counter, value in sums.items()}
                for name, sums in after.items()
            },
            "overloaded": {"reasons": reasons},
            "gaps": collected["gaps"],
            "learned": collected["learned"],
            "frames": collected["frames"],
            "applied": {
                "delays": self._delays,
                "changed": sorted((self._changed | self.links.changed).values()),
            },
            "events": self._events,
            "pfc": self._pfc(pfc, collected["wall_ns"]),
            "p4_sha256": programs.sha256_of(self._programs.values()),
            "wall_s": round(time.monotonic() - self._started_s, 3),
        }
        (self.out / RESULT).write_text(json.dumps(result, indent=1) + "\n")
        return result

    def _reasons_to_distrust(self) -> list[str]:
        """Signs in the link probes that the machine did not keep up."""
        ends = [(link.a.node, link.b.node) for link in self._cut_links()]
        failed = {f"{a}-{b}" for end in ends for a, b in (end, end[::-1])}
        return reasons_to_distrust(self._events[self._reported :], failed)

    def _pfc(self, counts: Mapping[str, Any], traffic_ns: int) -> dict[str, Any] | None:
        if not counts:
            return None
        return {"switches": counts, "traffic_ns": traffic_ns, "in_program": self.job.target == BMV2}

    def down(self) -> None:
        """Stops all processes in order; the network disappears with its namespaces."""
        if self._control is not None:
            self._control.end()
        end_all(self._processes)
