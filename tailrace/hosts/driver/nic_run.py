# SPDX-License-Identifier: Apache-2.0
"""Runs a job's flows with emulated NICs, each on a packet socket."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tailrace.cbuild.errors import BuildError
from tailrace.hosts.driver.job import HostsJob, make_nics
from tailrace.hosts.driver.lag import Lag
from tailrace.hosts.driver.loop import EventLoop, StopSignals
from tailrace.hosts.driver.packet_socket import PacketSocket
from tailrace.hosts.driver.port import SocketPort
from tailrace.hosts.driver.report import flows_done, make_result
from tailrace.hosts.errors import DeviceError
from tailrace.hosts.frames.host import frame_host


class NicRun:
    """The NICs of one job. Call `run` once, then `result`."""

    def __init__(self, job: HostsJob, signals: StopSignals, stack: ExitStack) -> None:
        """Opens all sockets; `stack` closes them.

        Raises:
            ConfigError: a flow cannot be run.
            DeviceError: an interface cannot be used, or the codec in C cannot be compiled.
        """
        self._job = job
        self._lag = Lag()
        self._ports: list[SocketPort] = []
        for host, nic in zip(job.hosts, make_nics(job), strict=True):
            socket = PacketSocket(host.interface, host.netns)
            stack.callback(socket.close)
            try:
                around = frame_host(nic, job.sources, len(job.hosts))
                self._ports.append(SocketPort(host, around, socket, self._lag))
            except BuildError as error:
                raise DeviceError(f"the codec of NICs: {error}") from error
        self._loop = EventLoop(self._ports, signals, job.linger_ns)
        stack.callback(self._loop.close)

    def run(self, progress: Callable[[int], None]) -> None:
        """Runs until all flows are complete, a signal arrives, or the job's timeout expires.

        Raises:
            DeviceError: an interface has disappeared or is down.
        """

        def poll(now_ns: int) -> None:
            for port in self._ports:
                port.socket.count_dropped()
            progress(now_ns)

        self._loop.run(self._job.timeout_ns, self._job.progress_ns, poll)

    def done(self) -> int:
        """The number of flows that are complete at each of their hosts in this job."""
        return flows_done(self._ports)

    def lag_ns(self) -> int:
        """The 99th percentile of the frames' lateness."""
        return self._lag.quantile_ns(0.99)

    def result(self, ended_by: int | None) -> dict[str, Any]:
        """The result of the run: see `hosts.driver.report.make_result`."""
        return make_result(self._job, self._ports, self._loop, self._lag, ended_by)
