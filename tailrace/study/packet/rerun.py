# SPDX-License-Identifier: Apache-2.0
"""Repeats a finished run twice: to log the wire transits of a flow (a wire is one direction of a link), then
to trace one of the flow's packets.

    run = open_run(folder)
    transits = flow_log(run, run.flow(7), report)      # the whole run: wire transits of a flow's packets
    track_packets(run, arrivals, flow, sent, report)   # traces of packets by arrival at a switch, and
                                                       # the counts of the source's NIC at some transmissions

A run in virtual time is deterministic, so the first repetition shows when the packet arrives at switches. The
second repetition traces only these switches, each until the packet has left it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET

from tailrace.experiments.plan.experiment_file import read_option_string
from tailrace.experiments.plan.plan import Plan, plan
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.flows.observation import SenderObservation
from tailrace.hosts.frames.host import FrameHost
from tailrace.hosts.nic.nic import Nic
from tailrace.results.result import FLOWS, SUMMARY, read_summary
from tailrace.results.rows import FlowRow, read_rows
from tailrace.results.summary import Summary
from tailrace.sim.errors import RunError
from tailrace.sim.network import Network
from tailrace.sim.network.transits import WireTransit
from tailrace.sim.outcome import Outcome, Report
from tailrace.sim.run import VirtualBackend
from tailrace.spec import SpecError, plugins
from tailrace.spec.constants import PS_PER_NS
from tailrace.spec.errors import FileError
from tailrace.switch.compiler.errors import CompilerError
from tailrace.switch.trace import TraceError
from tailrace.switch.trace.tracking import Arrival, PacketTracker, TrackedPacket

POLL_NS = 1000
"""Interval at which the trace of a switch is polled: in this time 64 ports at 400 Gb/s with packets of 1 KiB
do not fill the trace buffer.
"""

_DIGITS = 12
"""Hexadecimal digits of a hash that messages show."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run in a folder, and the plan that repeats it."""

    folder: Path
    summary: Summary
    rows: Mapping[int, FlowRow]
    plan: Plan

    def flow(self, number: int) -> FlowSpec:
        """The flow with the given id.

        Raises:
            SpecError: there is no such flow.
        """
        for flow in self.plan.job.flows:
            if flow.id == number:
                return flow
        numbers = [flow.id for flow in self.plan.job.flows]
        raise SpecError(
            f"--flow: {self.folder} has no flow {number}; expected {min(numbers)} to {max(numbers)}"
        )

    def packets(self, flow: FlowSpec) -> int:
        """The number of packets of a flow, without retransmissions."""
        return -(-flow.bytes // self.plan.job.nic.mtu_bytes)


def open_run(folder: Path) -> FinishedRun:
    """The finished run in virtual time that a folder contains.

    Raises:
        FileError: the folder contains no such run, or a file in it was changed.
        SpecError: the run's specs cannot be used here.
    """
    path = folder / SUMMARY
    if not path.is_file():
        raise FileError(path, "", "no such file: expected the folder of a run, as --out of tailrace run")
    summary = read_summary(path)
    if summary.target != "virtual":
        raise FileError(path, "target", f"{summary.target}: only runs in virtual time can be repeated")
    if summary.trace_sha256 is UNSET or not summary.option_string:
        raise FileError(
            path, "words", "this key or trace_sha256 is missing: runs of this version of Tailrace have both"
        )
    rows = {row.id: row for row in read_rows(folder / FLOWS)}
    try:
        planned = plan(read_option_string(summary.option_string), summary.target)
    except FileError:
        raise
    except SpecError as error:
        raise FileError(path, "words", str(error)) from error
    if {flow.id: flow.bytes for flow in planned.job.flows} != {row.id: row.bytes for row in rows.values()}:
        raise FileError(folder / FLOWS, "", "its flows differ from those of the specs in summary.json")
    return FinishedRun(folder, summary, rows, planned)


def flow_log(run: FinishedRun, flow: FlowSpec, report: Report) -> list[WireTransit]:
    """Each wire transit of packets between the two hosts of a flow, in the order of sending.

    Raises:
        RunError: the trace differs from that of the finished run.
    """
    transits: list[WireTransit] = []
    # `observe` is called before the traffic begins, `afterwards` when it has ended
    backend = VirtualBackend(
        observe=lambda network: network.log_flow(flow.src, flow.dst),
        afterwards=lambda network: transits.extend(network.transits()),
    )
    with plugins.blamed(run.summary.scheme):
        outcome = backend.run(run.plan.job, report)
    check_same(str(run.folder), run.summary, outcome)
    return transits


def check_same(name: str, summary: Summary, outcome: Outcome) -> None:
    """Checks that a repetition is the same run as that of the summary.

    Raises:
        RunError: the trace differs from that of the finished run.
    """
    if outcome.trace_sha256 != summary.trace_sha256:
        raise RunError(f"{name}: {_difference(summary, outcome)}")


def _difference(summary: Summary, outcome: Outcome) -> str:
    """The message that the trace of a run differs, with the probable cause."""
    former, latter = (str(each.trace_sha256)[:_DIGITS] for each in (summary, outcome))
    if changes := summary.changes:
        cause = f"it was changed by hand, which its specs do not repeat: {changes[0]}"
    elif outcome.p4_sha256 != summary.p4_sha256:
        cause = "the P4 program has changed since; run it again"
    else:
        cause = "code, plug-ins or files that the specs name have changed since; run it again"
    return f"its specs now give another run (trace {latter}, formerly {former}): {cause}"


class _ObservedError(Exception):
    """Raised to stop the repeated run once all tracked packets have been observed."""


class _SwitchWatcher:
    """Traces switches while tracked packets are in them."""

    def __init__(self, arrivals: Mapping[str, Sequence[Arrival]]) -> None:
        self._arrivals = {switch: sorted(each) for switch, each in arrivals.items()}
        self._active: dict[str, PacketTracker] = {}
        self._pending = sum(map(len, arrivals.values()))
        self._polling = False
        self.tracked: dict[tuple[str, Arrival], TrackedPacket] = {}
        self.overflows = 0

    def start(self, network: Network) -> None:
        """Schedules the traces: each begins with the first arrival."""
        for switch, arrivals in self._arrivals.items():
            for time_ps, _ in arrivals:
                # before all other events of that nanosecond
                network.call_at(time_ps // PS_PER_NS, partial(self._watch, network, switch))

    def _watch(self, network: Network, switch: str) -> None:
        self._pending -= 1
        if switch not in self._active:
            entity_text = network.p4rt(switch).device.entity_text
            self._active[switch] = PacketTracker(network.switch(switch), self._arrivals[switch], entity_text)
        if not self._polling:
            self._polling = True
            network.call_at(network.now_ns + POLL_NS, lambda: self._poll(network))

    def _poll(self, network: Network) -> None:
        for switch, tracker in list(self._active.items()):
            tracker.poll()
            past = [arrival for arrival in self._arrivals[switch] if arrival[0] < network.now_ps]
            # a packet that the tracker does not have was lost at the switch's entry
            if all(arrival not in tracker.packets or tracker.packets[arrival].ended for arrival in past):
                self._end(switch)
        self._polling = bool(self._active)
        if self._active:
            network.call_at(network.now_ns + POLL_NS, lambda: self._poll(network))
        elif not self._pending:
            raise _ObservedError

    def _end(self, switch: str) -> None:
        tracker = self._active.pop(switch)
        tracker.close()
        self.overflows += tracker.overflows
        self.tracked |= {(switch, arrival): packet for arrival, packet in tracker.packets.items()}

    def finish(self) -> None:
        """Stops the traces of packets that are in a switch when the run ends."""
        for switch in list(self._active):
            self._end(switch)


class RunObservations(NamedTuple):
    """Observations of some packets.

    tracked: the packets in each switch, by switch and arrival
    overflows: number of polls before which a trace buffer had overflowed
    sender: counters of the flow's source NIC after a transmission, by the time of sending in ps
    """

    tracked: dict[tuple[str, Arrival], TrackedPacket]
    overflows: int
    sender: dict[int, SenderObservation]


def track_packets(
    run: FinishedRun,
    arrivals: Mapping[str, Sequence[Arrival]],
    flow: FlowSpec,
    sent_ps: Collection[int],
    report: Report,
) -> RunObservations:
    """Traces packets that arrive at switches at known times, and reads the counters of a flow's source NIC.

    Args:
        flow: its source NIC is read after each of the transmissions at `sent_ps`.

    Raises:
        RunError: a switch cannot be traced.
    """
    watcher = _SwitchWatcher(arrivals)
    sender: dict[int, SenderObservation] = {}

    def start(network: Network) -> None:
        watcher.start(network)
        nic = network.nic(run.plan.topology.host_by_ip(flow.src).name)
        if isinstance(nic, FrameHost):
            nic = nic.nic
        assert isinstance(nic, Nic)

        def read_counts(time_ps: int) -> None:
            for record in nic.records():
                if isinstance(record, SenderObservation) and record.flow.id == flow.id:
                    sender[time_ps] = record

        for time_ps in sent_ps:
            # after all events of that nanosecond
            network.call_at(time_ps // PS_PER_NS + 1, partial(read_counts, time_ps))

    backend = VirtualBackend(observe=start, afterwards=lambda _network: watcher.finish())
    try:
        with plugins.blamed(run.summary.scheme):
            backend.run(run.plan.job, report)
    except _ObservedError:
        pass
    except (TraceError, CompilerError) as error:
        raise RunError(f"{run.folder}: {error}") from error
    return RunObservations(watcher.tracked, watcher.overflows, sender)
