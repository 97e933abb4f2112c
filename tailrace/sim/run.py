# SPDX-License-Identifier: Apache-2.0
"""Runs jobs in virtual time: compiled switches, NICs and wires in this process, or its part of them where
several share the work (ranks.py); the seed decides all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from tailrace.controller.reconcile import install_all
from tailrace.hosts import IMPLEMENTATION
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.nic.nic import Nic
from tailrace.p4rt import counters, programs
from tailrace.p4rt.events import Event
from tailrace.schemes.intent import intent
from tailrace.schemes.watch import SuppressedPath
from tailrace.sim.control import ControlPlane, reaction_ns
from tailrace.sim.errors import RunError
from tailrace.sim.faults import VirtualFaults
from tailrace.sim.ideal_controller import IdealController
from tailrace.sim.job import Job
from tailrace.sim.link_faults import last_change_ns
from tailrace.sim.network import Network
from tailrace.sim.network.deadlock import Stuck
from tailrace.sim.network.observation import FlowWatch
from tailrace.sim.network.ranks import RankLostError, RankTransport
from tailrace.sim.nics import attach_nics, gaps_seen, learned, records
from tailrace.sim.no_gc import gc_disabled
from tailrace.sim.outcome import DataSeen, Outcome, Progress, RankWork, Report
from tailrace.sim.pfc import waits
from tailrace.sim.progress import ProgressReporter, limit_ns, served, stalled_ns
from tailrace.sim.ranks import RankJob, other_ranks
from tailrace.sim.switches import guard_hosts, pfc_counts, switch_config
from tailrace.sim.timeline_tables import path_table, queue_table
from tailrace.sim.timelines import Timelines
from tailrace.spec import Error, SpecError
from tailrace.spec.units import format_time
from tailrace.topology.partition import check_ranks
from tailrace.topology.paths.shortest import Down
from tailrace.topology.pfc import DEADLOCK_STOPS
from tailrace.topology.timing import base_rtt_ns

_RESTARTED = "pipeline_replaced"
"""Why a switch that restarts drops what is in it, in the core's words."""

SAMPLES_A_STEP = 256
"""Of each port, between two looks at how many samples there are."""

LOOK_RTTS = 5
"""Base RTTs between two looks at whether all is done, where there are flows that nobody waits for, and at
whether switches are deadlocked, where they pause each other.
"""


@dataclass(frozen=True, slots=True)
class PausedRun:
    """A run that stands still: its network, its job, the ends of links that its controller knows dead, and
    the paths that it suppresses. `elsewhere` are addresses of P4Runtime of switches in other ranks, by name.
    """

    network: Network
    job: Job
    down: Down
    suppressed: tuple[SuppressedPath, ...] = ()
    elsewhere: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Breakpoints:
    """Where runs stop, in virtual ns, before anything but faults happens then, and what is done meanwhile."""

    times_ns: tuple[int, ...]
    halt: Callable[[PausedRun], None]


MakeControl = Callable[[Network, Job, Callable[[Event], None]], ControlPlane]
"""Makes the controller of a network that is not running yet; the last argument is told what it tells."""


@dataclass(frozen=True, slots=True)
class _Moment:
    """Seconds from some beginning on, or between two moments: on the clock, of the processor, waited for
    other ranks.
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0
    waited_s: float = 0.0

    @staticmethod
    def now(network: Network) -> _Moment:
        return _Moment(time.perf_counter(), time.process_time(), network.met.waited_s)

    def __add__(self, other: _Moment) -> _Moment:
        return _Moment(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s, self.waited_s + other.waited_s)

    def __sub__(self, other: _Moment) -> _Moment:
        return _Moment(self.wall_s - other.wall_s, self.cpu_s - other.cpu_s, self.waited_s - other.waited_s)


class VirtualBackend:
    """Runs one network after the other."""

    def __init__(
        self,
        observe: Callable[[Network], None] | None = None,
        stops: Breakpoints | None = None,
        *,
        ranks: int | RankTransport = 1,
        control: MakeControl | None = None,
        afterwards: Callable[[Network], None] | None = None,
    ) -> None:
        """Args:
        observe: is handed each network before its traffic begins, to tap its wires for one.
        stops: where runs stop; `halt` is called in this process.
        control: makes another controller than jobs say.
        afterwards: is handed each network when its traffic is over, and may let time pass in it.
        ranks: processes that run one network, of which this one starts the others; or what they speak by,
            where somebody else has started all of them. With several nobody observes.
        """
        self._observe = observe
        self._stops = stops
        self._control = control
        self._afterwards = afterwards
        self._ranks = ranks

    def run(self, job: Job, report: Report) -> Outcome:
        """Run one job to its end, or until it is clear that some flows never finish.

        Raises:
            SpecError: topology, scheme and faults do not go together, or there are not so many parts.
            RunError: the controller or the network failed, or another rank did.
        """
        ranks = self._ranks
        check_ranks(job.topology, ranks if isinstance(ranks, int) else ranks.ranks)
        if job.live is not None and (ranks != 1 or self._stops is not None):
            raise SpecError("controller: live: such a run has one rank, and does not stop on its way")
        if ranks == 1:
            with _in_one_line():
                run = _Run(job, report, control=self._control, afterwards=self._afterwards)
                return run.measure(self._observe, self._stops)
        if self._observe is not None:
            raise SpecError("ranks: a network that somebody observes has one")
        if not isinstance(ranks, int):
            with _in_one_line():
                return _Run(job, report, ranks).measure(None, None)
        part = RankJob(job, () if self._stops is None else self._stops.times_ns)
        with other_ranks(part, ranks) as transport, _in_one_line():
            return _Run(job, report, transport).measure(None, self._stops)


def run_part(part: RankJob, transport: RankTransport, halt: Callable[[PausedRun], None]) -> None:
    """Runs one rank that is not the first to its end; what it measured goes to the others.

    Args:
        halt: is called where all of them stop, and tells the others where this rank's switches are served.

    Raises:
        SpecError, RunError: as `VirtualBackend.run`.
        RankLostError: another rank has gone.
    """
    with _in_one_line():
        _Run(part.job, lambda _progress: None, transport).measure(None, Breakpoints(part.stops_ns, halt))


@contextmanager
def _in_one_line() -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise SpecError(str(error)) from error
    except (RankLostError, RunError, SpecError):
        raise
    except Error as error:
        raise RunError(str(error)) from error


class _Run:
    """One network with all that is attached to it, from beginning to end."""

    def __init__(
        self,
        job: Job,
        report: Report,
        transport: RankTransport | None = None,
        *,
        control: MakeControl | None = None,
        afterwards: Callable[[Network], None] | None = None,
    ) -> None:
        self._job = job
        self._transport = transport
        self._report = report
        self._make_control = control
        self._afterwards = afterwards
        self._topology, self._scheme = job.topology, job.scheme
        self._program = programs.load(self._scheme.program)
        self._events: list[Event] = []
        self._paths = self._scheme.watch(self._topology, self._job.switches, self._happened)
        self._stood = _Moment()
        self._observed_hops = 0
        self._deadlock: tuple[Stuck, ...] = ()

    def measure(self, observe: Callable[[Network], None] | None, stops: Breakpoints | None) -> Outcome:
        """Build the network, run it, read what it counted."""
        self._report(Progress("starting"))
        began_s = time.perf_counter()
        last_ns = limit_ns(self._job)  # a run that is too large is refused before it is built
        with ExitStack() as at_end:
            network = Network(
                self._topology,
                config=switch_config(self._job),
                seed=self._job.seed,
                transport=self._transport,
            )
            at_end.enter_context(network)
            self._configure(network)
            guard_hosts(network, self._job)
            nics = attach_nics(network, self._job)
            if self._job.pcap_dir is not None:
                if network.rank == 0:
                    self._job.pcap_dir.mkdir(parents=True, exist_ok=True)
                network.capture(self._job.pcap_dir / "all.pcapng")
            control = self._control(network)
            at_end.callback(control.stop)
            VirtualFaults(network, self._topology, self._job.flows, control).schedule(self._job.faults)
            if observe is not None:
                observe(network)
            if self._job.sample_ns is not None:
                network.sample(self._job.sample_ns)
            watches = self._watches(network)
            teller = ProgressReporter(network, self._job, nics, self._report)
            if stops is not None:
                self._schedule_stops(network, control, teller, stops)
            network.everywhere(None)  # until all are ready
            before = _Moment.now(network)
            with gc_disabled():
                self._go(network, nics, teller, last_ns)
            control.check()
            took = _Moment.now(network) - before - self._stood
            if self._afterwards is not None:
                self._afterwards(network)
            teller.tell_now(network.now_ns, network.events)
            wall_s = time.perf_counter() - began_s - self._stood.wall_s
            sampled = self._job.sample_ns is not None
            queues = queue_table(network.samples(), self._topology) if sampled else None
            sights = {flow: watch.sights() for flow, watch in watches.items()}
            paths = path_table(sights, self._topology) if watches else None
            return self._outcome(network, nics, wall_s, took, Timelines(queues, paths))

    # ---- before the traffic ----

    def _configure(
        self, network: Network, down: Down = frozenset(), names: Collection[str] | None = None
    ) -> None:
        """Makes all switches, or some, hold what they should while the links in `down` are dead."""
        own = {item.name for item in network.switches if names is None or item.name in names}
        with gc_disabled():
            wanted = intent(
                self._topology,
                self._scheme,
                self._job.switches,
                down,
                suppressed=self._paths.suppressed_ports,
                names=own,
            )
            install_all(network.p4rt, wanted)

    def _watches(self, network: Network) -> dict[int, FlowWatch]:
        """Watches of the flows whose paths are wanted, by number of the flow."""
        flows = {flow.id: flow for flow in self._job.flows}
        watches = {}
        for number in self._job.watch:
            flow = flows.get(number)
            if flow is None:
                raise SpecError(f"follow: there is no flow {number}; there are {len(flows)}")
            # whatever its source port, for a NIC may change that to change the path
            watches[number] = network.watch_flow(flow.src, flow.dst)
        return watches

    def _control(self, network: Network) -> ControlPlane:
        """The controller, at work."""
        control: ControlPlane
        if self._make_control is not None:
            control = self._make_control(network, self._job, self._happened)
        elif self._job.live is not None:
            # gRPC takes longer to load than many a run takes
            from tailrace.sim.real_controller import RealController

            control = RealController(network, self._job, self._job.live, self._happened)
        else:
            control = IdealController(
                network,
                self._program,
                self._paths,
                partial(self._configure, network),
                reaction_ns(self._topology, self._scheme.frame_bytes),
                lossless=self._job.pfc is not None,
            )
        control.start()
        return control

    def _happened(self, event: Event) -> None:
        self._events.append(event)
        self._report(Progress("traffic", note=event.text))

    def _schedule_stops(
        self, network: Network, control: ControlPlane, teller: ProgressReporter, stops: Breakpoints
    ) -> None:
        def stop() -> None:
            began, hops = _Moment.now(network), network.traffic().packet_hops
            # nobody who looks is to be told instead of the run's own controller
            control.catch_up()
            teller.tell_now(network.now_ns, network.events, "stopped")
            standing = PausedRun(network, self._job, control.down, tuple(control.suppressed))
            if network.rank == 0:
                addresses: dict[str, str] = {}
                for each in network.everywhere(addresses):
                    addresses = addresses | each
                stops.halt(replace(standing, elsewhere=addresses))
                network.everywhere(None)
            else:
                stops.halt(standing)
            # what was asked by packets is no part of the run
            self._observed_hops += network.traffic().packet_hops - hops
            self._stood += _Moment.now(network) - began

        for time_ns in sorted(set(stops.times_ns)):
            network.call_at(time_ns, stop)

    # ---- while it runs, and after ----

    def _go(self, network: Network, nics: list[Nic], teller: ProgressReporter, last_ns: int) -> None:
        """Runs until nothing is left to do, all flows are complete that somebody waits for, or `last_ns`."""
        step_ns = LOOK_RTTS * base_rtt_ns(self._topology, self._scheme.frame_bytes)
        # a link that fails empties queues, so until then nothing is for good
        changes_ns = max(map(last_change_ns, self._job.faults), default=0)
        background, pfc = self._job.background, self._job.pfc
        stops = pfc is not None and pfc.deadlock == DEADLOCK_STOPS
        # its probes cost so much that a run must not wait in vain for as long as others
        live = self._job.live is not None
        if not background and not stops and not live:
            if self._job.sample_ns is None:
                network.run(last_ns, progress=teller.tell)
                return
            # samples are taken, and fill the memory, whether anything happens or not
            step_ns = max(step_ns, SAMPLES_A_STEP * self._job.sample_ns)
        waiting = list(nics)
        while network.now_ns < last_ns:
            if network.run(min(last_ns, network.now_ns + step_ns), progress=teller.tell):
                break
            # a step may be over before it is time to report progress
            teller.tell(network.now_ns, network.events)
            while background and waiting and served(waiting[-1], self._job):
                waiting.pop()
            if not any(network.everywhere(bool(waiting))):
                break
            if stops and network.now_ns >= changes_ns and self._is_deadlocked(network):
                break
            if live and teller.has_stalled(network.now_ns):
                since = format_time(stalled_ns(self._job))
                text = f"nothing arrived for {since}: given up at {format_time(network.now_ns)}"
                self._report(Progress("traffic", note=text))
                break

    def _is_deadlocked(self, network: Network) -> bool:
        """Whether switches wait for each other for good; tells of it."""
        self._deadlock = network.deadlock()
        if not self._deadlock:
            return False
        queues = tuple(map(str, self._deadlock))
        text = f"deadlocked at {format_time(network.now_ns)}: {waits(queues)}"
        self._happened(Event("deadlock", self._deadlock[0].switch, text, {"queues": queues}))
        return True

    def _by_rank(self, network: Network, took: _Moment) -> tuple[RankWork, ...]:
        if self._transport is None:
            return ()
        met = network.met
        own = RankWork(took.cpu_s, took.waited_s, met.meetings, met.frames, met.bytes)
        return tuple(network.everywhere(own))

    def _outcome(
        self, network: Network, nics: list[Nic], wall_s: float, took: _Moment, timelines: Timelines
    ) -> Outcome:
        # a switch that is restarting has no program, and so no counters
        by_switch = {
            switch.id: (switch.name, self._counters(network, switch.name))
            for switch in network.switches
            if network.switch(switch.name).program is not None
        }
        found = dict(network.gathered(by_switch).values())
        traffic = network.traffic()
        dropped = sum(
            network.switch(switch.name).port_stats(port).dropped
            for switch in network.switches
            for port in self._topology.ports_of(switch.name)
        )
        queues = sum(network.everywhere(dropped))
        restarts = network.account().reasons.get(_RESTARTED, 0)
        data = network.data()
        seen = DataSeen(data.dropped + data.lost, data.dropped_trimmed + data.lost_trimmed, data.under_way)
        all_dropped = counters.dropped(found.values()) + queues + restarts + traffic.lost + traffic.unwired
        return Outcome(
            records=records(network, nics),
            wall_s=wall_s,
            traffic_s=took.wall_s,
            by_rank=self._by_rank(network, took),
            counters=found,
            # some reasons are not counted by programs that are not ours
            dropped=max(all_dropped, seen.dropped + seen.trimmed),
            data=seen,
            virtual_ns=network.now_ns,
            packet_hops=traffic.packet_hops - self._observed_hops,
            trace_sha256=network.trace_sha256,
            p4_sha256=self._program.sha256,
            timelines=timelines,
            events=tuple(self._events),
            pfc=pfc_counts(network, self._job),
            deadlock=tuple(map(str, self._deadlock)),
            gaps=gaps_seen(network, nics, self._job),
            learned=learned(network, nics),
            nics=IMPLEMENTATION,
        )

    def _counters(self, network: Network, switch: str) -> dict[str, int]:
        # not by P4Runtime: a large network has millions of cells, nearly all of them 0
        core = network.switch(switch)
        aliases = {counter.preamble.name: counter.preamble.alias for counter in self._program.p4info.counters}
        return counters.sums(
            self._program,
            (
                (aliases[counter.name], index, packets)
                for counter in core.model.counters
                if counter.name in aliases
                for index, packets in core.counter_packets(counter.index)
            ),
        )
