# SPDX-License-Identifier: Apache-2.0
"""Runs jobs in virtual time, with compiled switches, NICs and links. Several processes (ranks, ranks.py) can
run one network together; each runs a part of it. The seed determines the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import msgspec
from msgspec.structs import replace

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
from tailrace.sim.faults import schedule_faults
from tailrace.sim.ideal_controller import IdealController
from tailrace.sim.job import Job
from tailrace.sim.link_faults import last_change_ns
from tailrace.sim.network import Network
from tailrace.sim.network.deadlock import QueueId
from tailrace.sim.network.ranks import RankLostError, RankTransport
from tailrace.sim.nics import attach_nics, flow_ids, frames_seen, gaps_seen, learned, recording, records
from tailrace.sim.no_gc import gc_disabled
from tailrace.sim.outcome import STOPPED, DataSeen, Outcome, Progress, RankWork, Report
from tailrace.sim.pfc import waiting_line
from tailrace.sim.progress import ProgressReporter, all_received, limit_ns, stalled_ns
from tailrace.sim.ranks import RankJob, other_ranks
from tailrace.sim.switches import guard_hosts, pfc_counts, switch_config
from tailrace.sim.timelines import Timelines, path_table, queue_table, record_table
from tailrace.spec import Error, SpecError
from tailrace.spec.units import format_time
from tailrace.topology.partition import check_ranks
from tailrace.topology.paths.shortest import Down
from tailrace.topology.pfc import DEADLOCK_STOPS
from tailrace.topology.timing import base_rtt_ns

_RESTARTED = "pipeline_replaced"
"""The core's drop reason for packets that a restarting switch drops."""

SAMPLES_A_STEP = 256
"""Samples of each port between two checks that there are not too many samples."""

CHECKS_A_RTT = 4
"""Checks of conditions of breakpoints in a base RTT."""

CHECK_RTTS = 5
"""Base RTTs between two checks whether all foreground flows are complete and whether PFC has a deadlock."""


class PausedRun(msgspec.Struct, frozen=True):
    """A run at a breakpoint.

    down, suppressed: the dead link ends and the suppressed paths that its controller knows
    reason: the condition that holds, and the row for which it holds; empty: the breakpoint is a time
    events: the events so far and their times in ns; grows while the run continues
    on_event: records an event
    at_end: registers a function that is called at the end of the run
    remote_addresses: P4Runtime addresses of the switches in other ranks, by switch name
    """

    network: Network
    job: Job
    control: ControlPlane
    events: Sequence[tuple[int, Event]]
    on_event: Callable[[Event], None]
    at_end: Callable[[Callable[[], None]], object]
    reason: str = ""
    down: Down = frozenset()
    suppressed: tuple[SuppressedPath, ...] = ()
    remote_addresses: Mapping[str, str] = msgspec.field(default_factory=dict)


class Condition(msgspec.Struct, frozen=True):
    """A condition as written, and a function of the network and its NICs: why it holds now; empty: it does
    not hold.
    """

    text: str
    holds: Callable[[Network, Sequence[Nic]], str]


class Breakpoints(msgspec.Struct, frozen=True):
    """Virtual times at which runs pause (after faults, before other events), and the callback of a pause. A
    run also pauses when it finds, at one of CHECKS_A_RTT checks in a base RTT, that a condition holds for the
    first time.
    """

    times_ns: tuple[int, ...]
    on_pause: Callable[[PausedRun], None]
    conditions: tuple[Condition, ...] = ()


MakeControl = Callable[[Network, Job, Callable[[Event], None]], ControlPlane]
"""Makes the controller of a network before it runs; the last argument receives the controller's events."""


class _Moment(msgspec.Struct, frozen=True):
    """A time, or the difference of two, in seconds: wall clock, CPU, and time waited for other ranks."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    waited_s: float = 0.0

    @staticmethod
    def now(network: Network) -> _Moment:
        return _Moment(time.perf_counter(), time.process_time(), network.rank_counts.waited_s)

    def __add__(self, other: _Moment) -> _Moment:
        return _Moment(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s, self.waited_s + other.waited_s)

    def __sub__(self, other: _Moment) -> _Moment:
        return _Moment(self.wall_s - other.wall_s, self.cpu_s - other.cpu_s, self.waited_s - other.waited_s)


class VirtualBackend(msgspec.Struct, frozen=True):
    """Runs jobs in virtual time, one after the other.

    observe: called with each network before its traffic begins, for example to tap links.
    breakpoints: virtual times of pauses; `on_pause` is called in this process.
    ranks: number of processes that run one network, started by this one; or the transport between ranks that
        are already started. Several ranks cannot be observed.
    control: makes the controller, instead of the one that the job names.
    afterwards: called with each network after its traffic; it may advance virtual time.
    """

    observe: Callable[[Network], None] | None = None
    breakpoints: Breakpoints | None = None
    ranks: int | RankTransport = 1
    control: MakeControl | None = None
    afterwards: Callable[[Network], None] | None = None

    def run(self, job: Job, report: Report) -> Outcome:
        """Run one job to its end, or until it is clear that some flows never finish.

        Raises:
            SpecError: topology, scheme and faults are incompatible, or the topology cannot be divided into as
                many parts as there are ranks.
            RunError: the controller, the network or another rank failed.
        """
        ranks = self.ranks
        check_ranks(job.topology, ranks if isinstance(ranks, int) else ranks.ranks)
        if ranks != 1 and self.breakpoints is not None and self.breakpoints.conditions:
            raise SpecError("--stop-at: a run with conditions must have one rank; give times")
        if job.real_controller is not None and (ranks != 1 or self.breakpoints is not None):
            raise SpecError("controller: real: such a run must have one rank and no breakpoints")
        if job.record is not None and ranks != 1:
            raise SpecError("record: such a run must have one rank")
        if ranks == 1:
            with _user_errors():
                return _Run(job, report, self).measure()
        if self.observe is not None:
            raise SpecError("ranks: a network with observers must have one rank")
        if not isinstance(ranks, int):
            with _user_errors():
                return _Run(job, report, VirtualBackend(), ranks).measure()
        part = RankJob(job, () if self.breakpoints is None else self.breakpoints.times_ns)
        with other_ranks(part, ranks) as transport, _user_errors():
            return _Run(job, report, VirtualBackend(breakpoints=self.breakpoints), transport).measure()


def run_part(part: RankJob, transport: RankTransport, on_pause: Callable[[PausedRun], None]) -> None:
    """Runs one rank other than the first to its end; its measurements go to its peers.

    Args:
        on_pause: called at breakpoints; it sends the addresses of this rank's switches to its peers.

    Raises:
        SpecError, RunError: as `VirtualBackend.run`.
        RankLostError: another rank has ended.
    """
    with _user_errors():
        backend = VirtualBackend(breakpoints=Breakpoints(part.breakpoints_ns, on_pause))
        _Run(part.job, lambda _progress: None, backend, transport).measure()


@contextmanager
def _user_errors() -> Iterator[None]:
    """Turns errors of NICs and of the network into the errors that `VirtualBackend.run` declares."""
    try:
        yield
    except ConfigError as error:
        raise SpecError(str(error)) from error
    except (RankLostError, RunError, SpecError):
        raise
    except Error as error:
        raise RunError(str(error)) from error


class _Run:
    """One run: its network and all that is attached to it, from set-up to results."""

    def __init__(
        self, job: Job, report: Report, backend: VirtualBackend, transport: RankTransport | None = None
    ) -> None:
        self._job = job
        self._transport = transport
        self._report = report
        self._backend = backend
        self._topology, self._scheme = job.topology, job.scheme
        self._programs = self._scheme.programs(self._topology)
        self._events: list[tuple[int, Event]] = []
        self._now_ns: Callable[[], int] = lambda: 0
        self._at_end = ExitStack()
        self._unmet: dict[str, None] = {}  # conditions of breakpoints that did not hold yet
        self._watcher = self._scheme.watch(self._topology, self._job.switches, self._on_event)
        self._paused_time = _Moment()
        self._observed_hops = 0
        self._deadlock: tuple[QueueId, ...] = ()

    def measure(self) -> Outcome:
        """Build the network, run it, read what it counted."""
        backend = self._backend
        self._report(Progress("starting"))
        began_s = time.perf_counter()
        last_ns = limit_ns(self._job)  # rejects runs that are too large before set-up
        with ExitStack() as at_end:
            network = Network(
                self._topology,
                config=switch_config(self._job),
                seed=self._job.seed,
                transport=self._transport,
            )
            at_end.enter_context(network)
            self._now_ns = lambda: network.now_ns
            self._at_end = at_end
            self._configure(network)
            guard_hosts(network, self._job)  # stricter PFC watchdogs on ports to hosts
            nics = attach_nics(network, self._job)
            if self._job.pcap_dir is not None:
                if network.rank == 0:
                    self._job.pcap_dir.mkdir(parents=True, exist_ok=True)
                network.capture(self._job.pcap_dir / "all.pcapng")
            control = self._control(network)
            at_end.callback(control.stop)
            schedule_faults(network, self._job.faults, self._job.flows, control)
            if backend.observe is not None:
                backend.observe(network)
            if self._job.sample_ns is not None:
                network.sample(self._job.sample_ns)
            if self._job.record is not None:
                network.record(packets=self._job.record == "packets")
            watches = self._watches(network)
            reporter = ProgressReporter(network, self._job, nics, self._report)
            if backend.breakpoints is not None:
                self._schedule_breakpoints(network, control, nics, reporter, backend.breakpoints)
            network.all_gather(None)  # wait until all ranks are ready
            before = _Moment.now(network)
            self._report(Progress("traffic"))
            with gc_disabled():
                self._advance(network, nics, reporter, last_ns)
            control.check()
            for condition in self._unmet:
                note = f"warning: the run ended before it could stop at {condition}"
                self._report(Progress("traffic", note=note))
            elapsed = _Moment.now(network) - before - self._paused_time
            if backend.afterwards is not None:
                backend.afterwards(network)
            reporter.report_now(network.now_ns, network.events)
            wall_s = time.perf_counter() - began_s - self._paused_time.wall_s
            timelines = self._timelines(network, nics, watches)
            return self._outcome(network, nics, wall_s, elapsed, timelines)

    # ---- before the traffic ----

    def _configure(
        self, network: Network, down: Down = frozenset(), names: Collection[str] | None = None
    ) -> None:
        """Writes the intent (desired table entries) of all or the named switches, given the dead links."""
        chosen = {item.name for item in network.switches if names is None or item.name in names}
        with gc_disabled():
            intents = intent(
                self._topology,
                self._scheme,
                self._job.switches,
                down,
                suppressed=self._watcher.suppressed_ports,
                names=chosen,
            )
            install_all(network.p4rt, intents)

    def _watches(self, network: Network) -> dict[int, int]:
        """Starts to record the path of each flow of `Job.watch`; returns the watches by flow id."""
        flows = {flow.id: flow for flow in self._job.flows}
        watches = {}
        for flow_id in self._job.watch:
            flow = flows.get(flow_id)
            if flow is None:
                raise SpecError(f"follow: there is no flow {flow_id}; the run has {len(flows)} flows")
            # any source port matches: a NIC may change the port in order to change the path
            watches[flow_id] = network.watch_flow(flow.src, flow.dst)
        return watches

    def _control(self, network: Network) -> ControlPlane:
        """Makes the controller and starts it."""
        control: ControlPlane
        if self._backend.control is not None:
            control = self._backend.control(network, self._job, self._on_event)
        elif self._job.real_controller is not None:
            # imported only here: loading gRPC takes longer than many runs
            from tailrace.sim.real_controller import RealController

            control = RealController(network, self._job, self._job.real_controller, self._on_event)
        else:
            control = IdealController(
                network,
                self._programs[self._topology.switches[0].name],
                self._watcher,
                partial(self._configure, network),
                reaction_ns(self._topology, self._scheme.frame_bytes),
                lossless=self._job.pfc is not None,
                reacts=not self._scheme.is_foreign,
            )
        control.start()
        return control

    def _on_event(self, event: Event) -> None:
        self._events.append((self._now_ns(), event))
        self._report(Progress("traffic", note=event.text))

    def _schedule_breakpoints(
        self,
        network: Network,
        control: ControlPlane,
        nics: Sequence[Nic],
        reporter: ProgressReporter,
        breakpoints: Breakpoints,
    ) -> None:
        def stop(reason: str = "") -> None:
            began, hops = _Moment.now(network), network.traffic().packet_hops
            # the controller takes its pending digests, so that an inspecting client does not receive them
            control.catch_up()
            reporter.report_now(network.now_ns, network.events, STOPPED)
            of_run = self._job, control, self._events, self._on_event, self._at_end.callback
            paused = PausedRun(network, *of_run, reason, control.down, tuple(control.suppressed))
            if network.rank == 0:
                addresses: dict[str, str] = {}
                # the other ranks send theirs in serve_part (pause.py)
                for each in network.all_gather(addresses):
                    addresses = addresses | each
                breakpoints.on_pause(replace(paused, remote_addresses=addresses))
                network.all_gather(None)  # the other ranks wait for this call in serve_part
            else:
                breakpoints.on_pause(paused)
            # packets of in-band queries do not belong to the run
            self._observed_hops += network.traffic().packet_hops - hops
            self._paused_time += _Moment.now(network) - began
            reporter.report_now(network.now_ns, network.events)

        for time_ns in sorted(set(breakpoints.times_ns)):
            network.call_at(time_ns, stop)
        period_ns = max(1, base_rtt_ns(self._topology, self._scheme.frame_bytes) // CHECKS_A_RTT)

        def check(condition: Condition) -> None:
            row = condition.holds(network, nics)
            if not row:
                network.call_at(network.now_ns + period_ns, partial(check, condition))
                return
            del self._unmet[condition.text]
            stop(f"{condition.text} ({row})")

        self._unmet = dict.fromkeys(condition.text for condition in breakpoints.conditions)
        for condition in breakpoints.conditions:
            network.call_at(period_ns, partial(check, condition))

    # ---- while it runs, and after ----

    def _advance(self, network: Network, nics: list[Nic], reporter: ProgressReporter, last_ns: int) -> None:
        """Runs until no event is left, all foreground flows are complete, or `last_ns`."""
        step_ns = CHECK_RTTS * base_rtt_ns(self._topology, self._scheme.frame_bytes)
        # nothing needs a check before the first flow, which starts at 2 s in ConWeave's files
        first_ns = min((flow.start_ns for flow in self._job.flows), default=0) // step_ns * step_ns
        # a failing link empties its queues, so until the last fault no deadlock is permanent
        changes_ns = max(map(last_change_ns, self._job.faults), default=0)
        background, pfc = self._job.background, self._job.pfc
        ends_deadlocked = pfc is not None and pfc.deadlock == DEADLOCK_STOPS
        # probes of the real controller take much real time: with it a run ends as soon as it has stalled
        real = self._job.real_controller is not None
        if not background and not ends_deadlocked and not real:
            if self._job.sample_ns is None:
                network.run(last_ns, progress=reporter.report)
                return
            # samples fill the memory even while no packet moves, so check their number at each step
            step_ns, first_ns = max(step_ns, SAMPLES_A_STEP * self._job.sample_ns), 0
        waiting = list(nics)
        while network.now_ns < last_ns:
            until_ns = max(network.now_ns + step_ns, first_ns)
            if network.run(min(last_ns, until_ns), progress=reporter.report):
                break
            # a step may have fewer events than there are between two calls of `progress`
            reporter.report(network.now_ns, network.events)
            while background and waiting and all_received(waiting[-1], self._job):
                waiting.pop()
            if not any(network.all_gather(bool(waiting))):
                break
            if ends_deadlocked and network.now_ns >= changes_ns and self._is_deadlocked(network):
                break
            if real and reporter.has_stalled(network.now_ns):
                since = format_time(stalled_ns(self._job))
                text = f"nothing arrived for {since}: given up at {format_time(network.now_ns)}"
                self._report(Progress("traffic", note=text))
                break

    def _is_deadlocked(self, network: Network) -> bool:
        """Whether PFC has a deadlock; reports it as an event."""
        self._deadlock = network.deadlock()
        if not self._deadlock:
            return False
        queues = tuple(map(str, self._deadlock))
        text = f"deadlocked at {format_time(network.now_ns)}: {waiting_line(queues)}"
        self._on_event(Event("deadlock", self._deadlock[0].switch, text, {"queues": queues}))
        return True

    def _by_rank(self, network: Network, elapsed: _Moment) -> tuple[RankWork, ...]:
        """The work of each rank; empty if there is only one."""
        if self._transport is None:
            return ()
        counts = network.rank_counts
        work = RankWork(elapsed.cpu_s, elapsed.waited_s, counts.meetings, counts.frames, counts.bytes)
        return tuple(network.all_gather(work))

    def _timelines(self, network: Network, nics: list[Nic], watches: Mapping[int, int]) -> Timelines:
        job, topology = self._job, self._topology
        sights = {flow: network.sights(watch) for flow, watch in watches.items()}
        return Timelines(
            queues=None if job.sample_ns is None else queue_table(network.samples(), topology),
            paths=path_table(sights, topology) if watches else None,
            record=None
            if job.record is None
            else record_table(network.recorded(flow_ids(job)), recording(nics), topology),
        )

    def _outcome(
        self, network: Network, nics: list[Nic], wall_s: float, elapsed: _Moment, timelines: Timelines
    ) -> Outcome:
        traffic = network.traffic()
        local_queue_drops = sum(
            network.switch(switch.name).port_stats(port).dropped
            for switch in network.switches
            for port in self._topology.ports_of(switch.name)
        )
        queue_drops = sum(network.all_gather(local_queue_drops))
        restart_drops = network.account().reasons.get(_RESTARTED, 0)
        data = network.data()
        # a restarting switch has no program, and so no counters
        by_switch = {
            switch.id: (switch.name, self._counters(network, switch.name))
            for switch in network.switches
            if network.switch(switch.name).program is not None
        }
        by_name = dict(network.gathered(by_switch).values())
        data_seen = DataSeen(
            data.dropped + data.lost, data.dropped_trimmed + data.lost_trimmed, data.under_way
        )
        # counters.dropped: drops that the P4 programs counted; with a user's program, all drops in switches
        all_dropped = counters.dropped(by_name.values())
        if not self._scheme.is_foreign:
            all_dropped += queue_drops + restart_drops
        all_dropped += traffic.lost + traffic.unwired
        return Outcome(
            records=records(network, nics),
            wall_s=wall_s,
            traffic_s=elapsed.wall_s,
            by_rank=self._by_rank(network, elapsed),
            counters=by_name,
            # a plug-in's P4 program need not count every drop; then the core's count (`data`) is larger
            dropped=max(all_dropped, data_seen.dropped + data_seen.trimmed),
            data=data_seen,
            virtual_ns=network.now_ns,
            packet_hops=traffic.packet_hops - self._observed_hops,
            trace_sha256=network.trace_sha256,
            p4_sha256=programs.sha256_of(self._programs.values()),
            not_applied=self._scheme.notes,
            timelines=timelines,
            events=tuple(event for _, event in self._events),
            pfc=pfc_counts(network, self._job),
            deadlock=tuple(map(str, self._deadlock)),
            gaps=gaps_seen(network, nics, self._job),
            frames=frames_seen(network, self._job),
            learned=learned(network, nics),
            nics=IMPLEMENTATION,
        )

    def _counters(self, network: Network, switch: str) -> dict[str, int]:
        # read from the core, because P4Runtime would return millions of cells, nearly all of them 0
        core, program = network.switch(switch), self._programs[switch]
        aliases = {counter.preamble.name: counter.preamble.alias for counter in program.p4info.counters}
        cells = [
            (aliases[counter.name], index, packets)
            for counter in core.model.counters
            if counter.name in aliases
            for index, packets in core.counter_packets(counter.index)
        ]
        sums = counters.sums(program, cells)
        return sums | counters.by_reason(core.drops()) if self._scheme.is_foreign else sums
