# SPDX-License-Identifier: Apache-2.0
"""Runs a job's flows as TCP connections of the kernel: they are made first, then each sends at its time.

Times are those at which this process sees things happen. The kernel's own clocks (its least timeout of
200 ms, delayed answers) know nothing of a time scale.
"""

from __future__ import annotations

import heapq
import select
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from tailrace.codec.templates import ip_number
from tailrace.hosts.driver.job import HostsJob
from tailrace.hosts.driver.lag import Lag
from tailrace.hosts.driver.loop import Signals
from tailrace.hosts.driver.netns import inside
from tailrace.hosts.driver.tcp_flow import MOST_SEGMENT_BYTES, TcpFlow, open_flow
from tailrace.hosts.driver.tcp_tap import Ends, TcpTap
from tailrace.hosts.errors import ConfigError, DeviceError
from tailrace.hosts.flows.dependencies import check_dependencies
from tailrace.hosts.gaps.histogram import merged_bins
from tailrace.words.constants import NS_PER_S

UNOBSERVED: Final = (
    *("first_received", "out_of_order", "out_of_order_raw", "ood_max", "overtaken", "path_changes"),
    *("ce_marked", "trimmed"),
)
"""Fields of FlowRecord that nobody has counted: packets are the kernel's, and it tells of none of these."""

CONNECT_S: Final = 60.0
_FIRST_PORT: Final = 1024
_LAST_PORT: Final = 65_535
_ROOM_BYTES: Final = 1 << 18
_IDLE_S: Final = 0.2
_MOST_LAG_NS: Final = 50_000_000
_NO_METRICS: Final = Path("/proc/sys/net/ipv4/tcp_no_metrics_save")


class TcpRun:
    """The flows of one job. Make it, `run` it once, then take its `result`."""

    def __init__(self, job: HostsJob, signals: Signals, stack: ExitStack) -> None:
        """Makes all connections; `stack` closes them.

        Raises:
            ConfigError: flows that cannot be run.
            DeviceError: the kernel refuses, or a connection is not made in time.
        """
        assert job.kernel_tcp is not None
        self._job, self._signals, self._stack = job, signals, stack
        self._hosts = {host.ip: host for host in job.hosts}
        check_dependencies(job.flows)
        for spec in job.flows:
            if spec.src not in self._hosts or spec.dst not in self._hosts:
                raise ConfigError(f"flow {spec.id}: {spec.src} and {spec.dst} are not both hosts of this job")
        self._segment_bytes = min(job.nic.mtu_bytes, MOST_SEGMENT_BYTES)
        self._room = bytearray(_ROOM_BYTES)
        self._flows: dict[int, TcpFlow] = {}
        self._starts: list[tuple[int, int]] = []  # a heap: when, and which flow
        self._dependents: dict[tuple[str, int], list[TcpFlow]] = {}  # by host and the flow that they wait for
        self._by_descriptor: dict[int, TcpFlow | TcpTap] = {}
        self._lag = Lag()
        self._start_ns = 0
        self._wall_ns = 0
        self._busy_ns = 0
        self._poll = select.epoll()
        stack.callback(self._poll.close)
        self._open()
        self._taps: list[TcpTap] = []
        if self._connect():
            if job.nic.measure_gaps:
                self._listen()
            for flow in self._flows.values():
                self._enlist(flow)

    # ---- making connections ----

    def _open(self) -> None:
        assert self._job.kernel_tcp is not None
        for ip in {spec.src for spec in self._job.flows}:
            self._forget_metrics(ip)
        ports = self._ports()
        for spec, port in zip(self._job.flows, ports, strict=True):
            flow = open_flow(spec, self._hosts, port, self._segment_bytes, self._job.kernel_tcp)
            self._stack.callback(flow.close)
            self._flows[spec.id] = flow

    def _ports(self) -> Sequence[int]:
        """Where each flow's destination listens: on none that a source sends from."""
        taken = {spec.sport for spec in self._job.flows}
        free = [port for port in range(_FIRST_PORT, _LAST_PORT + 1) if port not in taken]
        if len(free) < len(self._job.flows):
            count = len(self._job.flows)
            raise ConfigError(f"{count} flows are too many for TCP's ports, at most {len(free)}")
        return free[: len(self._job.flows)]

    def _forget_metrics(self, ip: str) -> None:
        """No flow begins with what the kernel has learnt from another one to the same place."""
        with inside(self._hosts[ip].netns):
            try:
                _NO_METRICS.write_text("1\n")
            except OSError as error:
                raise DeviceError(f"{_NO_METRICS}: {error.strerror}") from error

    def _connect(self) -> bool:
        """Waits for all connections; False: a signal came first."""
        deadline_s = time.monotonic() + CONNECT_S
        waiting = dict(self._flows)
        for flow in waiting.values():
            self._poll.register(flow.listener.fileno(), select.EPOLLIN)
            self._poll.register(flow.source.fileno(), select.EPOLLOUT | select.EPOLLONESHOT)
        self._poll.register(self._signals.fileno(), select.EPOLLIN)
        by_listener = {flow.listener.fileno(): flow for flow in waiting.values()}
        while waiting and not self._signals.came():
            for descriptor, _ in self._poll.poll(_IDLE_S):
                if descriptor in by_listener:
                    self._poll.unregister(descriptor)
                    by_listener.pop(descriptor).accept()
            connected = [number for number, flow in waiting.items() if flow.check() and flow.destination]
            for number in connected:
                del waiting[number]
            if waiting and time.monotonic() > deadline_s:
                spec = next(iter(waiting.values())).spec
                text = f"no TCP connection from {spec.src} to {spec.dst} within {CONNECT_S:.0f} s"
                raise DeviceError(f"flow {spec.id}: {text}")
        return not waiting

    def _listen(self) -> None:
        for host in self._job.hosts:
            own = [flow for flow in self._flows.values() if flow.spec.src == host.ip]
            ends: dict[Ends, int] = {}
            for flow in own:
                _, dport = flow.source.getpeername()
                address = ip_number(flow.spec.dst).to_bytes(4, "big")
                ends[address, flow.spec.sport, dport] = flow.spec.id
            if ends:
                tap = TcpTap(host.interface, host.netns, ends, self._segment_bytes)
                self._stack.callback(tap.close)
                self._by_descriptor[tap.fileno()] = tap
                self._poll.register(tap.fileno(), select.EPOLLIN)
                self._taps.append(tap)

    def _enlist(self, flow: TcpFlow) -> None:
        assert flow.destination is not None, "it was waited for"
        for one in (flow.source, flow.destination):
            self._by_descriptor[one.fileno()] = flow
        self._poll.modify(flow.source.fileno(), select.EPOLLIN)
        self._poll.register(flow.destination.fileno(), select.EPOLLIN)
        flow.waits = len(set(flow.spec.after))
        for number in set(flow.spec.after):
            self._dependents.setdefault((flow.spec.src, number), []).append(flow)
        if not flow.waits:
            heapq.heappush(self._starts, (flow.spec.start_ns, flow.spec.id))

    # ---- sending ----

    def run(self, progress: Callable[[int], None]) -> None:
        """Runs until all flows are complete, a signal comes, or the job's time is over.

        Raises:
            DeviceError: a connection or an interface went away.
        """
        self._start_ns = time.monotonic_ns()
        cpu_ns, next_progress_ns = time.process_time_ns(), self._job.progress_ns
        while not self._signals.came() and self.done() < len(self._flows):
            now_ns = self._now_ns()
            if self._job.timeout_ns is not None and now_ns >= self._job.timeout_ns:
                break
            if now_ns >= next_progress_ns:
                next_progress_ns = now_ns + self._job.progress_ns
                progress(now_ns)
            self._begin(now_ns)
            wait_s = _IDLE_S
            if self._starts:
                wait_s = min(wait_s, max(0, self._starts[0][0] - self._now_ns()) / NS_PER_S)
            # epoll itself counts in whole ms
            select.select([self._poll], [], [], wait_s)
            for descriptor, events in self._poll.poll(0):
                self._serve(descriptor, events)
        self._wall_ns = self._now_ns()
        self._busy_ns = time.process_time_ns() - cpu_ns

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._start_ns

    def _begin(self, now_ns: int) -> None:
        """Lets the flows send whose time has come."""
        while self._starts and self._starts[0][0] <= now_ns:
            due_ns, number = heapq.heappop(self._starts)
            flow = self._flows[number]
            flow.start_ns = due_ns
            self._lag.add(now_ns - due_ns)
            self._send(flow)

    def _send(self, flow: TcpFlow) -> None:
        more = 0 if flow.send() else select.EPOLLOUT
        self._poll.modify(flow.source.fileno(), select.EPOLLIN | more)

    def _serve(self, descriptor: int, events: int) -> None:
        one = self._by_descriptor.get(descriptor)
        if isinstance(one, TcpTap):
            one.take()
        elif one is not None:
            self._serve_flow(one, descriptor, events)

    def _serve_flow(self, flow: TcpFlow, descriptor: int, events: int) -> None:
        spec = flow.spec
        if descriptor != flow.source.fileno():
            if flow.end_ns is None and flow.receive(self._room):
                flow.end_ns = self._now_ns()
                self._complete(spec.dst, spec.id)
            return
        if events & select.EPOLLOUT:
            self._send(flow)
        if events & ~select.EPOLLOUT and not flow.done and flow.hear():
            flow.done = True
            self._complete(spec.src, spec.id)

    def _complete(self, host: str, number: int) -> None:
        """A flow is complete at this host: others there may have waited for it."""
        for flow in self._dependents.pop((host, number), []):
            flow.waits -= 1
            if not flow.waits:
                due_ns = max(self._now_ns(), flow.spec.start_ns)
                heapq.heappush(self._starts, (due_ns, flow.spec.id))

    # ---- what was seen ----

    def done(self) -> int:
        """Flows that are complete at both ends."""
        return sum(flow.done for flow in self._flows.values())

    def lag_ns(self) -> int:
        """The time that 99 % of the flows were not later than."""
        return self._lag.quantile_ns(0.99)

    def _reasons(self) -> list[str]:
        """Why the numbers of this run are not to be trusted."""
        reasons = []
        if self.lag_ns() > _MOST_LAG_NS:
            reasons.append(f"1 % of the flows began {self.lag_ns() / 1e6:.1f} ms late or more")
        for tap in self._taps:
            tap.take()
            tap.count_dropped()
            if tap.dropped:
                reasons.append(f"interface {tap.interface}: {tap.dropped} packets were not looked at in time")
            if tap.uncut:
                reasons.append(f"interface {tap.interface}: {tap.uncut} packets were cut after they had left")
        return reasons

    def result(self, ended_by: int | None) -> dict[str, Any]:
        """What `hosts.driver.report.make_result` has, as far as it is known; lag_ns: how late flows began."""
        reasons = self._reasons()
        for flow in self._flows.values():
            flow.close()
        measured = self._job.nic.measure_gaps
        unknown = {name for flow in self._flows.values() for name in flow.unknown()}
        quantiles = {name: self._lag.quantile_ns(share) for name, share in (("p50", 0.5), ("p99", 0.99))}
        return {
            "flows": [flow.record() for _, flow in sorted(self._flows.items())],
            "unobserved": [*UNOBSERVED, *sorted(unknown)],
            "overload": reasons,
            "counters": {host.name: {} for host in self._job.hosts},
            "lag_ns": {**quantiles, "max": self._lag.max_ns},
            "wall_ns": self._wall_ns,
            "busy_ns": self._busy_ns,
            "gaps": merged_bins(tap.gaps.bins() for tap in self._taps) if measured else None,
            "learned": [],
            "unfinished": len(self._flows) - self.done(),
            "ended_by": ended_by,
        }
