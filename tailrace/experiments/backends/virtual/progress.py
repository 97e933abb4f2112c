# SPDX-License-Identifier: Apache-2.0
"""How far a run in virtual time is: whether it is over, when it is given up, and what is told of it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

from tailrace.experiments.backends.job import Job
from tailrace.experiments.backends.outcome import Progress, Report
from tailrace.experiments.faults.fault import LinkSlow, last_change_ns
from tailrace.experiments.plan.reckon import check_samples
from tailrace.experiments.results.ideal import Ideal
from tailrace.hosts.flows.observation import ReceiverObservation
from tailrace.hosts.nic.nic import Nic
from tailrace.native.virtual import Network
from tailrace.words import SpecError
from tailrace.words.constants import NS_PER_S

PATIENCE = 50
"""A run ends with flows unfinished after so many times the ideal time of all flows one after the other."""

_MOST_NS = 100 * 24 * 3600 * NS_PER_S
"""Time counts picoseconds in 64 bits: 213 days."""

TELL_S = 0.25
"""Real time between two reports of progress, at least."""

TELL_SHARE = 20
"""So many times as long as a report takes, the run goes on before the next one."""


def limit_ns(job: Job) -> int:
    """When it is given up to wait for flows.

    Raises:
        SpecError: virtual time, or the memory, does not hold the run.
    """
    ideal = Ideal(job.topology, job.nic.mtu_bytes)
    factors = [fault.factor for fault in job.faults if isinstance(fault, LinkSlow)]
    in_turn_ns = longest_ns = last_start_ns = last_flow_ns = 0
    for flow in job.flows:
        time_ns = ideal.fct_ns(flow)
        in_turn_ns += time_ns
        longest_ns = max(longest_ns, time_ns)
        last_start_ns = max(last_start_ns, flow.start_ns)
        last_flow_ns = max(last_flow_ns, flow.start_ns + time_ns)
    if longest_ns > _MOST_NS:
        raise SpecError("a flow would take longer than 100 days, which virtual time does not hold")
    if last_flow_ns > _MOST_NS:
        raise SpecError("the last flow would end after 100 days, which virtual time does not hold")
    check_samples(job.topology, job.sample_ns, last_flow_ns)
    last_ns = max([last_start_ns, *map(last_change_ns, job.faults)])
    if last_ns > _MOST_NS:
        raise SpecError("a fault changes after 100 days, which virtual time does not hold")
    late_ns = last_ns + PATIENCE * (round(in_turn_ns / min(factors, default=1.0)) + job.nic.rto_ns)
    return min(late_ns, _MOST_NS)


def served(nic: Nic, job: Job) -> bool:
    """Whether a NIC has received all flows that somebody waits for."""
    return all(
        seen.end_ns is not None
        for seen in nic.records()
        if isinstance(seen, ReceiverObservation) and seen.flow.id not in job.background
    )


class Teller:
    """Reports how far a run is, seldom enough to cost nothing that matters."""

    def __init__(self, network: Network, job: Job, nics: Sequence[Nic], report: Report) -> None:
        """Of a run with all NICs that this process has. Each process tells at the same virtual times."""
        self._network = network
        self._nics = nics
        self._report = report
        self._job = job
        self._mtu_bytes = job.nic.mtu_bytes
        self._background = job.background
        waited = [flow for flow in job.flows if flow.id not in job.background]
        self._flows = len(waited)
        self._total_bytes = sum(flow.bytes for flow in waited)
        self._next_s = 0.0

    def tell(self, now_ns: int, events: int) -> None:
        """Reports, unless that was done a short while ago.

        Raises:
            SpecError: the run goes on for so long that samples would fill the memory.
        """
        check_samples(self._job.topology, self._job.sample_ns, now_ns)
        began_s = time.monotonic()
        # whether it is time for that the first of several ranks says
        if self._network.everywhere(began_s >= self._next_s)[0]:
            self.tell_now(now_ns, events)
            ended_s = time.monotonic()
            self._next_s = ended_s + max(TELL_S, TELL_SHARE * (ended_s - began_s))

    def tell_now(self, now_ns: int, events: int, phase: str = "traffic") -> None:
        """Reports how many flows, and what share of all bytes, their receivers have."""
        done = arrived_bytes = 0
        for seen in itertools.chain.from_iterable(nic.received() for nic in self._nics):
            if seen.flow.id in self._background:
                continue
            complete = seen.end_ns is not None
            done += complete
            arrived = seen.flow.bytes if complete else seen.packets * self._mtu_bytes
            arrived_bytes += min(arrived, seen.flow.bytes)
        own = (done, arrived_bytes, events)
        done, arrived_bytes, events = map(sum, zip(*self._network.everywhere(own), strict=True))
        share = arrived_bytes / self._total_bytes
        self._report(Progress(phase, done, self._flows, share, now_ns, events))
