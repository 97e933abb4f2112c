# SPDX-License-Identifier: Apache-2.0
"""A run once more, and then a second time up to the end of one packet, whose switches are watched.

    run = open_run(folder)
    legs = flow_log(run, run.flow(7), report)   # the whole run: crossings of wires by a flow's packets
    follow(run, arrivals, flow, sent, report)   # what switches do to those that come to them at some times,
                                                # and what the NIC of a flow has done when it has sent some

In virtual time a run is the same whenever it is made again, so the first time tells where to look and the
second looks there. Only the switches that the packet comes to are watched, each until it has left.
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
from tailrace.hosts.nic.nic import Nic
from tailrace.results.result import FLOWS, SUMMARY, read_summary
from tailrace.results.rows import FlowRow, read_rows
from tailrace.results.summary import Summary
from tailrace.sim.errors import RunError
from tailrace.sim.network import Network
from tailrace.sim.network.transits import WireTransit
from tailrace.sim.outcome import Report
from tailrace.sim.run import VirtualBackend
from tailrace.spec import SpecError, plugins
from tailrace.spec.constants import PS_PER_NS
from tailrace.spec.errors import FileError
from tailrace.switch.compiler.errors import CompilerError
from tailrace.switch.trace import TraceError
from tailrace.switch.trace.tracking import Arrival, PacketTracker, TrackedPacket

LOOK_NS = 1000
"""Between two looks at a switch that is watched: of 64 ports at 400 Gb/s it tells less meanwhile than there
is room for, where packets have 1 KiB.
"""

_DIGITS = 12
"""Of a hash, where it is shown."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run in a folder, and the plan by which it runs again."""

    folder: Path
    summary: Summary
    rows: Mapping[int, FlowRow]
    plan: Plan

    def flow(self, number: int) -> FlowSpec:
        """A flow by its number.

        Raises:
            SpecError: there is none.
        """
        for flow in self.plan.job.flows:
            if flow.id == number:
                return flow
        numbers = [flow.id for flow in self.plan.job.flows]
        raise SpecError(
            f"--flow: {self.folder} has no flow {number}; expected {min(numbers)} to {max(numbers)}"
        )

    def packets(self, flow: FlowSpec) -> int:
        """The packets of a flow, each counted once."""
        return -(-flow.bytes // self.plan.job.nic.mtu_bytes)


def open_run(folder: Path) -> FinishedRun:
    """A finished run in virtual time.

    Raises:
        FileError: the folder has none, or a file in it is not what was written.
        SpecError: its words cannot be used here.
    """
    path = folder / SUMMARY
    if not path.is_file():
        raise FileError(path, "", "no such file: expected the folder of a run, as --out of tailrace run")
    summary = read_summary(path)
    if summary.target != "virtual":
        raise FileError(path, "target", f"{summary.target}: only runs in virtual time can be repeated")
    if summary.trace_sha256 is UNSET or not summary.words:
        raise FileError(
            path, "words", "missing, or trace_sha256 is: a run by this version of Tailrace has both"
        )
    rows = {row.id: row for row in read_rows(folder / FLOWS)}
    try:
        planned = plan(read_option_string(summary.words), summary.target)
    except FileError:
        raise
    except SpecError as error:
        raise FileError(path, "words", str(error)) from error
    if {flow.id: flow.bytes for flow in planned.job.flows} != {row.id: row.bytes for row in rows.values()}:
        raise FileError(folder / FLOWS, "", "has other flows than the words of summary.json now make")
    return FinishedRun(folder, summary, rows, planned)


def flow_log(run: FinishedRun, flow: FlowSpec, report: Report) -> list[WireTransit]:
    """Each crossing of a wire by packets between the two hosts of a flow, by the time of sending.

    Raises:
        RunError: it is another run now.
    """
    legs: list[WireTransit] = []
    backend = VirtualBackend(
        observe=lambda network: network.log_flow(flow.src, flow.dst),
        afterwards=lambda network: legs.extend(network.transits()),
    )
    with plugins.blamed(run.summary.scheme):
        outcome = backend.run(run.plan.job, report)
    if outcome.trace_sha256 != run.summary.trace_sha256:
        raise RunError(f"{run.folder}: {_why(run, outcome.trace_sha256 or '', outcome.p4_sha256)}")
    return legs


def _why(run: FinishedRun, sha256: str, p4_sha256: str | None) -> str:
    """Why a run is another one now, as far as anybody knows."""
    was = str(run.summary.trace_sha256)
    other = (
        "the P4 program has changed since"
        if p4_sha256 != run.summary.p4_sha256
        else "code, plug-ins or files that the words name have changed since"
    )
    return (
        f"its words make another run now (trace {sha256[:_DIGITS]}, it was {was[:_DIGITS]}): {other};"
        " run it again"
    )


class _SeenError(Exception):
    """All that was to be seen has been: nobody needs the rest of the run."""


class _Watching:
    """Watches switches while the packets are there that are followed."""

    def __init__(self, arrivals: Mapping[str, Sequence[Arrival]]) -> None:
        self._arrivals = {switch: sorted(each) for switch, each in arrivals.items()}
        self._active: dict[str, PacketTracker] = {}
        self._left = sum(map(len, arrivals.values()))
        self._looking = False
        self.found: dict[tuple[str, Arrival], TrackedPacket] = {}
        self.untold = 0

    def start(self, network: Network) -> None:
        """Begins when the first one comes."""
        for switch, arrivals in self._arrivals.items():
            for time_ps, _ in arrivals:
                # before anything else of that nanosecond
                network.call_at(time_ps // PS_PER_NS, partial(self._watch, network, switch))

    def _watch(self, network: Network, switch: str) -> None:
        self._left -= 1
        if switch not in self._active:
            written = network.p4rt(switch).device.entity_text
            self._active[switch] = PacketTracker(network.switch(switch), self._arrivals[switch], written)
        if not self._looking:
            self._looking = True
            network.call_at(network.now_ns + LOOK_NS, lambda: self._look(network))

    def _look(self, network: Network) -> None:
        for switch, following in list(self._active.items()):
            following.poll()
            came = [one for one in self._arrivals[switch] if one[0] < network.now_ps]
            # what did not come in was swallowed at the entry
            if all(one not in following.packets or following.packets[one].ended for one in came):
                self._end(switch)
        self._looking = bool(self._active)
        if self._active:
            network.call_at(network.now_ns + LOOK_NS, lambda: self._look(network))
        elif not self._left:
            raise _SeenError

    def _end(self, switch: str) -> None:
        following = self._active.pop(switch)
        following.close()
        self.untold += following.overflows
        self.found |= {(switch, arrival): each for arrival, each in following.packets.items()}

    def finish(self) -> None:
        """Takes what there is of packets that the run's end has caught in a switch."""
        for switch in list(self._active):
            self._end(switch)


class Seen(NamedTuple):
    """What was seen of some packets.

    followed: what switches did to them, by switch and arrival
    untold: looks between which more happened than could be told
    sender: what the NIC of the flow had done when it had sent, by the time of sending in ps
    """

    followed: dict[tuple[str, Arrival], TrackedPacket]
    untold: int
    sender: dict[int, SenderObservation]


def follow(
    run: FinishedRun,
    arrivals: Mapping[str, Sequence[Arrival]],
    flow: FlowSpec,
    sent_ps: Collection[int],
    report: Report,
) -> Seen:
    """What switches do to packets that come to them at known times, and what the source of a flow has done.

    Args:
        flow: whose packets are sent at `sent_ps`.

    Raises:
        RunError: a switch cannot be watched.
    """
    watching = _Watching(arrivals)
    sender: dict[int, SenderObservation] = {}

    def start(network: Network) -> None:
        watching.start(network)
        nic = network.nic(run.plan.topology.host_by_ip(flow.src).name)
        assert isinstance(nic, Nic)

        def look(time_ps: int) -> None:
            for seen in nic.records():
                if isinstance(seen, SenderObservation) and seen.flow.id == flow.id:
                    sender[time_ps] = seen

        for time_ps in sent_ps:
            # when all of that nanosecond has happened
            network.call_at(time_ps // PS_PER_NS + 1, partial(look, time_ps))

    backend = VirtualBackend(observe=start, afterwards=lambda _network: watching.finish())
    try:
        with plugins.blamed(run.summary.scheme):
            backend.run(run.plan.job, report)
    except _SeenError:
        pass
    except (TraceError, CompilerError) as error:
        raise RunError(f"{run.folder}: {error}") from error
    return Seen(watching.found, watching.untold, sender)
