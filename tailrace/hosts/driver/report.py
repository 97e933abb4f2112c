# SPDX-License-Identifier: Apache-2.0
"""The result of a run of the driver, and whether the machine was fast enough for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tailrace.codec.sizes import HEADER_BYTES
from tailrace.hosts.driver.job import HostsJob
from tailrace.hosts.driver.loop import EventLoop
from tailrace.hosts.driver.port import Lag, SocketPort
from tailrace.hosts.flows.observation import ReceiverObservation, SenderObservation
from tailrace.hosts.frames.host import FrameHost
from tailrace.hosts.gaps.histogram import merged_bins
from tailrace.hosts.nic.nic import Nic
from tailrace.spec.constants import NS_BITS  # bytes * NS_BITS / (bit/s) is a time in ns

_MIN_LAG_NS = 2_000_000
_LAG_FRAMES = 5
_LATE_SHARE = 0.99
_BUSY_SHARE = 0.9


def flows_done(ports: Sequence[SocketPort]) -> int:
    """The number of flows that are complete at each of their hosts in this job."""
    observations = _observations(ports)
    incomplete = {observation.flow.id for observation in observations if not _is_done(observation)}
    return len({observation.flow.id for observation in observations} - incomplete)


def _observations(ports: Sequence[SocketPort]) -> list[SenderObservation | ReceiverObservation]:
    return [observation for port in ports for observation in port.nic.records()]


def _is_done(observation: SenderObservation | ReceiverObservation) -> bool:
    if isinstance(observation, SenderObservation):
        return observation.done
    return observation.end_ns is not None


def overload_lag_ns(job: HostsJob) -> int:
    """The limit on lateness: a run counts as overloaded if more than 1 % of its frames leave later."""
    if job.overload_lag_ns is not None:
        return job.overload_lag_ns
    slowest_bps = min(host.rate_bps for host in job.hosts)
    frame_ns = (HEADER_BYTES + job.nic.mtu_bytes) * NS_BITS // slowest_bps
    return max(_MIN_LAG_NS, _LAG_FRAMES * frame_ns)


def overload(job: HostsJob, ports: Sequence[SocketPort], loop: EventLoop, lag: Lag) -> list[str]:
    """The reasons, one line each, why the results of this run cannot be trusted; empty if they can."""
    reasons: list[str] = []
    limit_ns = overload_lag_ns(job)
    late_ns = lag.quantile_ns(_LATE_SHARE)
    if late_ns > limit_ns:
        reasons.append(
            f"1 % of the hosts' frames left {late_ns / 1e6:.1f} ms late or more, "
            f"{limit_ns / 1e6:.1f} ms is allowed"
        )
    if loop.wall_ns and loop.busy_ns > _BUSY_SHARE * loop.wall_ns:
        reasons.append(
            f"the hosts' driver was busy for {100 * loop.busy_ns / loop.wall_ns:.0f} % of the time"
        )
    for port in ports:
        if port.socket.dropped:
            reasons.append(
                f"host {port.host.name}: the kernel dropped {port.socket.dropped} frames, not read in time"
            )
        if port.refused:
            reasons.append(f"host {port.host.name}: the kernel's send queue was full {port.refused} times")
    return reasons


def make_result(
    job: HostsJob, ports: Sequence[SocketPort], loop: EventLoop, lag: Lag, ended_by: int | None
) -> dict[str, Any]:
    """The result of the run, as it is written to the result file.

    flows: FlowRecords.
    overload: reasons, none if the machine was fast enough.
    counters: by host, the counters of its NIC.
    lag_ns, wake_lag_ns: how late frames left, and how late the event loop woke up.
    wall_ns, busy_ns: duration of the run, and processor time used in it.
    gaps: histogram of the gaps between data packets of a flow, over all hosts, as (lower edge of a bin in ns,
        count); null: not measured.
    learned: for each NIC that stretches gaps, its threshold T, or 0 if T has not been learnt, and how
        often T was learnt (hosts.gaps.hf2t).
    frames: by host, what it sent and received besides flows; empty if no host sends such frames.
    unfinished: number of flows that are not complete.
    ended_by: number of the signal that ended the run, or null.
    """
    for port in ports:
        port.socket.count_dropped()
    nics = [port.nic for port in ports]
    learners = [nic.learner for nic in nics]
    measured = [nic.gaps for nic in nics] if job.nic.measure_gaps else []
    return {
        "flows": Nic.merge(*nics),
        "overload": overload(job, ports, loop, lag),
        "counters": {port.host.name: dict(port.nic.counters) for port in ports},
        "lag_ns": {"p50": lag.quantile_ns(0.5), "p99": lag.quantile_ns(_LATE_SHARE), "max": lag.max_ns},
        "wake_lag_ns": {"p99": loop.wake_lag.quantile_ns(_LATE_SHARE), "max": loop.wake_lag.max_ns},
        "wall_ns": loop.wall_ns,
        "busy_ns": loop.busy_ns,
        "gaps": merged_bins(gaps.bins() for gaps in measured if gaps is not None) if measured else None,
        "learned": [
            {"t_ns": learner.t_ns, "trainings": learner.trainings}
            for learner in learners
            if learner is not None
        ],
        "frames": {port.host.name: port.end.seen() for port in ports if isinstance(port.end, FrameHost)},
        "unfinished": len(job.flows) - flows_done(ports),
        "ended_by": ended_by,
    }
