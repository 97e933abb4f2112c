# SPDX-License-Identifier: Apache-2.0
"""Runs the flows of a job with the hosts' driver: one process, a packet socket in each host's namespace."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from fabric_faults import FaultStep
from fabric_net import FabricNet
from fabric_plan import host_interface
from fabric_process import FabricProcess
from fabric_report import FabricError, FabricReport
from fabric_sandbox import path_of
from fabric_watch import POLL_S, ProcessMonitor

from tailrace.hosts.driver.job import HostJob, HostsJob
from tailrace.hosts.flows.paths import PathList
from tailrace.sim.job import Job
from tailrace.sim.progress import limit_ns
from tailrace.spec.constants import NS_PER_S
from tailrace.topology import GATEWAY_MAC
from tailrace.topology.timing import base_rtt_ns

DRIVER = "tailrace.hosts.driver"
READY_S = 60.0
LINGER_S, LINGER_RTTS = 0.5, 20
"""How long hosts wait for the last frames if nobody knows how many are under way; in base RTTs at least."""

LEAST_LIMIT_S = 10
"""The limit of virtual time may be milliseconds; this machine may be busy for seconds."""

START = "start\n"


def _linger_ns(job: Job) -> int:
    if not job.sources and not job.nic.kind.unreliable:
        return 0
    return max(round(LINGER_S * NS_PER_S), LINGER_RTTS * base_rtt_ns(job.topology, job.scheme.frame_bytes))


def _timeout_ns(job: Job) -> int | None:
    """When a run ends in which a user's program may drop all packets of a flow; None: no limit."""
    return max(limit_ns(job), LEAST_LIMIT_S * NS_PER_S) if job.scheme.is_foreign else None


class FabricTraffic:
    """The hosts' driver. Construct it, call `wait_ready`, make a LoadWatch, then call `run`. The LoadWatch
    reads the machine's counters when it is made, and compares them after the traffic (fabric_load).
    """

    def __init__(self, job: Job, net: FabricNet, run_dir: Path, logs: Path, watch: ProcessMonitor) -> None:
        """Starts the driver.

        Raises:
            FabricError: it cannot be started.
        """
        self._watch = watch
        self._result = run_dir / "traffic-result.json"
        self._events: set[str] = set()
        self._done, self._flows = 0, len(job.flows)
        file = run_dir / "hosts.json"
        file.write_bytes(msgspec.json.encode(self._job(job, net)))
        command = [sys.executable, "-m", DRIVER, str(file)]
        self.process = FabricProcess("hosts", command, logs / "hosts.log", piped=True)
        watch.listen(self.process, self._handle)
        watch.guard(self.process)

    def wait_ready(self) -> None:
        """Waits until all sockets of the driver are open; no frame is sent yet.

        Raises:
            FabricError: it cannot open them.
        """
        self._watch.wait(lambda: "ready" in self._events, READY_S, "the hosts are not ready")

    def _job(self, job: Job, net: FabricNet) -> HostsJob:
        table = job.scheme.paths(job.topology)  # paths among which NICs choose; None: switches choose
        paths: dict[str, dict[str, PathList]] = {}
        if table is not None:
            for flow in job.flows:
                paths.setdefault(flow.src, {})[flow.dst] = table.of(flow.src, flow.dst)
        hosts = tuple(
            HostJob(
                name=host.name,
                interface=host_interface(host.name),
                netns=path_of(net.pid(host.name)),
                ip=host.ip,
                mac=host.mac,
                gateway_mac=GATEWAY_MAC,
                rate_bps=host.rate_bps,
                # its frames enter a switch, which has a latency
                delay_ns=host.delay_ns + job.topology.latency_ns,
                paths=paths.get(host.ip, {}),  # by the address of the receiver
                macs=job.macs(host),
            )
            for host in job.topology.hosts
        )
        return HostsJob(
            hosts=hosts,
            flows=job.flows,
            nic=job.nic,
            seed=job.seed,
            result=str(self._result),
            sources=job.sources,
            timeout_ns=_timeout_ns(job),
            linger_ns=_linger_ns(job),
        )

    def _handle(self, message: dict[str, Any]) -> None:
        event = message["event"]
        self._events.add(event)
        if event == "failed":
            raise FabricError(message["text"])
        if event == "progress":
            self._done = message["done"]
        if event == "done":
            self._watch.release(self.process)  # its exit is no failure from now on

    def run(
        self, steps: Sequence[FaultStep], report: FabricReport, poll: Callable[[], None]
    ) -> dict[str, Any]:
        """Runs all flows to their end, with the steps at their times; returns the driver's result.

        Args:
            poll: called repeatedly while traffic runs.

        Raises:
            FabricError: a process of the run has ended, or a step cannot be done.
        """
        waiting, shown = list(steps), -1

        def act(now_ns: int) -> None:
            while waiting and waiting[0].at_ns <= now_ns:
                step = waiting.pop(0)
                step.act()
                report.event("fault", step.text)

        act(0)  # before the first frame
        self.process.stdin.write(START)
        self.process.stdin.flush()
        self._watch.wait(lambda: "started" in self._events, READY_S, "the hosts do not start")
        start_ns = time.monotonic_ns()
        while "done" not in self._events:
            now_ns = time.monotonic_ns() - start_ns
            act(now_ns)
            if self._done != shown:
                shown = self._done
                report.phase("traffic", done=shown, flows=self._flows)
            next_s = (waiting[0].at_ns - now_ns) / 1e9 if waiting else POLL_S
            self._watch.poll(max(0.0, min(POLL_S, next_s)))
            poll()
        result: dict[str, Any] = json.loads(self._result.read_text())
        return result
