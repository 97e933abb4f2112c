# SPDX-License-Identifier: Apache-2.0
"""Progress of a run in virtual time: completion, time limit, reports. Several processes, the *ranks*, can run
one network.
"""

from __future__ import annotations

import bisect
import itertools
import time
from collections.abc import Sequence

from tailrace.hosts.flows.observation import ReceiverObservation
from tailrace.hosts.nic.nic import Nic
from tailrace.sim.control import probe_interval_ns
from tailrace.sim.ideal import Ideal
from tailrace.sim.job import Job
from tailrace.sim.link_faults import LinkSlow, last_change_ns
from tailrace.sim.network import Network
from tailrace.sim.outcome import Progress, Report
from tailrace.spec import SpecError
from tailrace.spec.limits import refuse_above
from tailrace.spec.units import MOST_NS
from tailrace.topology import Topology

PATIENCE = 50
"""The time limit of a run, as a multiple of the sum of all flows' ideal completion times. The run ends then,
even if flows are unfinished."""

STALLED_TIMEOUTS = 2
"""A run has stalled if nothing arrives for this many of the longest retransmission timeouts: in two of them
at least one timeout expires after the last change."""

MOST_RETRANSMISSIONS = 100_000_000
"""Limit on retransmissions while nothing arrives and flows wait for the end of a fault."""

MOST_SAMPLES = 10_000_000
"""Limit on queue samples of all ports: a sample takes some 330 bytes until the table is written, so all
samples take 3.3 GB."""

MOST_PROBES = 2_000_000
"""Limit on link probes of the real controller, which runs in Python."""

REPORT_S = 0.25
"""Least real time between two reports of progress, in seconds."""

REPORT_SHARE = 20
"""Least real time between two reports of progress, as a multiple of the time that a report takes."""


def last_event_ns(job: Job) -> int:
    """The time at which the last flow starts, or the last other frame or fault begins or ends, if later."""
    starts = (flow.start_ns for flow in job.flows)
    sent = (source.last_ns for source in job.sources)
    return max(itertools.chain([0], starts, sent, map(last_change_ns, job.faults)))


def stalled_ns(job: Job) -> int:
    """The time without arrivals after which a run has stalled: STALLED_TIMEOUTS of the longest
    retransmission timeouts, and the longest time for which a flow waits after others.
    """
    # without progress the timeout doubles up to `rto_backoff` times
    longest_ns = max((max(flow.after_ns) for flow in job.flows if flow.after_ns), default=0)
    return STALLED_TIMEOUTS * (job.nic.rto_ns << job.nic.rto_backoff) + longest_ns


def limit_ns(job: Job) -> int:
    """The virtual time limit of a run.

    Raises:
        SpecError: the run exceeds the range of virtual time (100 days), or its samples the memory.
    """
    ideal = Ideal(job.topology, job.nic.mtu_bytes)
    factors = [fault.factor for fault in job.faults if isinstance(fault, LinkSlow)]
    sequential_ns = longest_ns = last_flow_ns = 0
    for flow in job.flows:
        time_ns = ideal.fct_ns(flow)
        sequential_ns += time_ns + max(flow.after_ns, default=0)
        longest_ns = max(longest_ns, time_ns)
        last_flow_ns = max(last_flow_ns, flow.start_ns + time_ns)
    if longest_ns > MOST_NS:
        raise SpecError("a flow would take longer than 100 days, the limit of virtual time")
    if last_flow_ns > MOST_NS:
        raise SpecError("the last flow would end after 100 days, the limit of virtual time")
    check_samples(job.topology, job.sample_ns, last_flow_ns)
    check_probes(job, last_flow_ns)
    last_ns = last_event_ns(job)
    if last_ns > MOST_NS:
        raise SpecError("a fault begins or ends after 100 days, the limit of virtual time")
    late_ns = last_ns + PATIENCE * (round(sequential_ns / min(factors, default=1.0)) + job.nic.rto_ns)
    return min(late_ns, MOST_NS)


def check_samples(topology: Topology, period_ns: int | None, least_ns: int) -> None:
    """Refuses queue samples that would fill the memory; `least_ns` is the least virtual time that the run
    takes, or the time that has passed so far.

    Raises:
        SpecError: there would be more than MOST_SAMPLES.
    """
    if period_ns is not None:
        ports = len(topology.hosts) + 2 * len(topology.links)
        refuse_above("sample", "samples", ports * (least_ns // period_ns), MOST_SAMPLES)


def check_probes(job: Job, time_ns: int) -> None:
    """Refuses more link probes than a run can compute in reasonable real time.

    Raises:
        SpecError: there would be more than MOST_PROBES in `time_ns`.
    """
    if job.real_controller is not None:
        usual_ns = probe_interval_ns(job.topology, job.scheme.frame_bytes)
        interval_ns = job.real_controller.interval_ns or usual_ns
        probes = 2 * len(job.topology.links) * (time_ns // interval_ns)
        refuse_above("controller real", "probes", probes, MOST_PROBES)


def all_received(nic: Nic, job: Job) -> bool:
    """Whether a NIC has received all its foreground flows."""
    # with an unreliable transport it is not known whether more will come
    return not nic.config.kind.unreliable and all(
        record.end_ns is not None
        for record in nic.records()
        if isinstance(record, ReceiverObservation) and record.flow.id not in job.background
    )


class ProgressReporter:
    """Reports the progress of a run, at a rate that costs no measurable time."""

    def __init__(self, network: Network, job: Job, nics: Sequence[Nic], report: Report) -> None:
        """`nics` are those of this rank. All ranks report at the same virtual times."""
        self._network = network
        self._nics = nics
        self._report = report
        self._job = job
        self._mtu_bytes = job.nic.mtu_bytes
        self._background = job.background
        foreground = [flow for flow in job.flows if flow.id not in job.background]
        self._flows = len(foreground)
        self._total_bytes = sum(flow.bytes for flow in foreground)
        self._starts_ns = sorted(flow.start_ns for flow in foreground)
        self._last_ns, self._stalled_ns = last_event_ns(job), stalled_ns(job)
        self._fault_ns = max(map(last_change_ns, job.faults), default=0)
        self._largest = max((flow.bytes for flow in job.flows), default=0)
        self._arrived_bytes, self._arrived_ns = 0, 0
        self._next_s = 0.0

    def report(self, now_ns: int, events: int) -> None:
        """Reports progress, unless the last report is recent; `events`: number of events so far in this rank.

        Raises:
            SpecError: the run goes on for so long that samples would fill the memory.
        """
        check_samples(self._job.topology, self._job.sample_ns, now_ns)
        began_s = time.monotonic()
        # the first of several ranks decides for all whether it is time to report
        if self._network.all_gather(began_s >= self._next_s)[0]:
            self.report_now(now_ns, events)
            ended_s = time.monotonic()
            self._next_s = ended_s + max(REPORT_S, REPORT_SHARE * (ended_s - began_s))

    def _arrived(self) -> tuple[int, int]:
        """The number of complete flows, and of bytes that have arrived, at the NICs of this rank."""
        done = arrived_bytes = 0
        for record in itertools.chain.from_iterable(nic.received() for nic in self._nics):
            if record.flow.id in self._background:
                continue
            complete = record.end_ns is not None
            done += complete
            arrived = record.flow.bytes if complete else record.packets * self._mtu_bytes
            arrived_bytes += min(arrived, record.flow.bytes)
        return done, arrived_bytes

    def has_stalled(self, now_ns: int) -> bool:
        """Whether nothing has arrived in this rank for `stalled_ns`, and all flows and faults have begun."""
        self._note_arrival(now_ns, self._arrived()[1])
        return now_ns >= max(self._arrived_ns, self._last_ns) + self._stalled_ns

    def _note_arrival(self, now_ns: int, arrived_bytes: int) -> None:
        if arrived_bytes != self._arrived_bytes:
            self._arrived_bytes, self._arrived_ns = arrived_bytes, now_ns

    def _check_waiting(self, now_ns: int, done: int, arrived_bytes: int) -> None:
        """Refuses to wait for the end of a fault while flows only retransmit, if that takes too long.

        Flows that have not started send nothing while they wait.

        Raises:
            SpecError: there would be too many retransmissions or link probes until then.
        """
        self._note_arrival(now_ns, arrived_bytes)
        wait_ns, nic = self._stalled_ns, self._job.nic
        unfinished = bisect.bisect_right(self._starts_ns, now_ns) - done
        if unfinished <= 0 or now_ns < self._arrived_ns + wait_ns:
            return
        packets = min(nic.window_packets, -(-self._largest // nic.mtu_bytes))
        timeouts = STALLED_TIMEOUTS * max(0, self._fault_ns - now_ns) // wait_ns
        what = "retransmissions while nothing arrives until the fault ends"
        refuse_above("fault", what, unfinished * packets * timeouts, MOST_RETRANSMISSIONS)
        check_probes(self._job, self._last_ns - now_ns)

    def report_now(self, now_ns: int, events: int, phase: str = "traffic") -> None:
        """Reports the number of complete flows and the share of all bytes that have arrived."""
        counts = (*self._arrived(), events)
        done, arrived_bytes, events = map(sum, zip(*self._network.all_gather(counts), strict=True))
        self._check_waiting(now_ns, done, arrived_bytes)
        share = arrived_bytes / self._total_bytes if self._total_bytes else 1.0
        self._report(Progress(phase, done, self._flows, share, now_ns, events))
