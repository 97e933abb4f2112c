# SPDX-License-Identifier: Apache-2.0
"""Runs jobs in virtual time: compiled switches, NICs and wires in this process; the seed decides all."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial

from tailrace.controller.reconcile import install_all
from tailrace.controller.virtual_time import VirtualAlerts
from tailrace.experiments.backends.job import Job
from tailrace.experiments.backends.outcome import Outcome, PfcSeen, Progress, Report
from tailrace.experiments.backends.virtual.faults import VirtualFaults, reaction_ns
from tailrace.experiments.backends.virtual.observed import learned, path_table, queue_table
from tailrace.experiments.backends.virtual.uncollected import uncollected
from tailrace.experiments.errors import RunError
from tailrace.experiments.faults.fault import LinkSlow, last_change_ns
from tailrace.experiments.plan.pfc import Thresholds
from tailrace.experiments.plan.reckon import check_samples
from tailrace.experiments.results.gaps import Gaps
from tailrace.experiments.results.ideal import Ideal
from tailrace.experiments.results.pfc import pfc_seen
from tailrace.experiments.results.timelines import Timelines
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.observation import ReceiverObservation
from tailrace.hosts.nic.nic import Nic
from tailrace.native.runtime import BufferConfig, PfcConfig, SwitchConfig
from tailrace.native.server.statistics import statistics
from tailrace.native.virtual import Network, NetworkError
from tailrace.native.virtual.network import SWITCH_CONFIG
from tailrace.native.virtual.observing import Watch
from tailrace.p4rt import counters, programs
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.errors import ControllerError
from tailrace.p4rt.events import Event
from tailrace.p4rt.inprocess import InProcess
from tailrace.p4rt.status import P4RtError
from tailrace.schemes.intent import intent
from tailrace.schemes.watch import SuppressedPath
from tailrace.topology import GATEWAY_MAC
from tailrace.topology.paths.shortest import Down
from tailrace.topology.timing import base_rtt_ns, fabric_rate_bps
from tailrace.words import SpecError
from tailrace.words.constants import NS_PER_S
from tailrace.words.watchdog import of_port

PATIENCE = 50
"""A run ends with flows unfinished after so many times the ideal time of all flows one after the other."""

_MOST_NS = 100 * 24 * 3600 * NS_PER_S
"""Time counts picoseconds in 64 bits: 213 days."""

_RESTARTED = "pipeline_replaced"
"""Why a switch that restarts drops what is in it, in the core's words."""

LOOK_RTTS = 5
"""Base RTTs between two looks at whether all is done, where there are flows that nobody waits for."""

TELL_S = 0.25
"""Real time between two reports of progress, at least."""

TELL_SHARE = 20
"""So many times as long as a report takes, the run goes on before the next one."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A run that stands still: its network, its job, the ends of links that its controller knows dead, and
    the paths that it suppresses.
    """

    network: Network
    job: Job
    down: Down
    suppressed: tuple[SuppressedPath, ...] = ()


@dataclass(frozen=True, slots=True)
class Stops:
    """Where runs stop, in virtual ns, before anything but faults happens then, and what is done meanwhile."""

    times_ns: tuple[int, ...]
    halt: Callable[[Standing], None]


class VirtualBackend:
    """Runs one network after the other."""

    def __init__(self, observe: Callable[[Network], None] | None = None, stops: Stops | None = None) -> None:
        """`observe` is handed each network before its traffic begins, to tap its wires for one."""
        self._observe = observe
        self._stops = stops

    def run(self, job: Job, report: Report) -> Outcome:
        """Run one job to its end, or until it is clear that some flows never finish.

        Raises:
            SpecError: topology, scheme and faults do not go together.
            RunError: the controller or the network failed.
        """
        try:
            return _Run(job, report).measure(self._observe, self._stops)
        except ConfigError as error:
            raise SpecError(str(error)) from error
        except (ControllerError, NetworkError, P4RtError) as error:
            raise RunError(str(error)) from error


class _Run:
    """One network with all that is attached to it, from beginning to end."""

    def __init__(self, job: Job, report: Report) -> None:
        self._job = job
        self._report = report
        self._topology, self._scheme = job.topology, job.scheme
        self._program = programs.load(self._scheme.program)
        self._events: list[Event] = []
        self._paths = self._scheme.watch(self._topology, self._job.switches, self._happened)
        self._stood_s = 0.0
        self._observed_hops = 0

    def measure(self, observe: Callable[[Network], None] | None, stops: Stops | None) -> Outcome:
        """Build the network, run it, read what it counted."""
        self._report(Progress("starting"))
        began_s = time.perf_counter()
        with Network(self._topology, config=self._switch_config(), seed=self._job.seed) as network:
            self._configure(network)
            self._guard_hosts(network)
            nics = self._attach(network)
            if self._job.pcap_dir is not None:
                self._job.pcap_dir.mkdir(parents=True, exist_ok=True)
                network.capture(self._job.pcap_dir / "all.pcapng")
            faults, alerts = self._schedule_faults(network)
            if observe is not None:
                observe(network)
            if self._job.sample_ns is not None:
                network.sample(self._job.sample_ns)
            watches = self._watches(network)
            teller = _Teller(self._job, nics, self._report)
            if stops is not None:
                self._schedule_stops(network, faults, alerts, teller, stops)
            with uncollected():
                self._go(network, nics, teller)
            teller.tell_now(network.now_ns, network.events)
            wall_s = time.perf_counter() - began_s - self._stood_s
            sampled = self._job.sample_ns is not None
            queues = queue_table(network.samples(), self._topology) if sampled else None
            sights = {flow: watch.sights() for flow, watch in watches.items()}
            paths = path_table(sights, self._topology) if watches else None
            return self._outcome(network, nics, wall_s, Timelines(queues, paths))

    # ---- before the traffic ----

    def _configure(
        self, network: Network, down: Down = frozenset(), names: Collection[str] | None = None
    ) -> None:
        """Makes all switches, or some, hold what they should while the links in `down` are dead."""
        with uncollected():
            intents = intent(
                self._topology, self._scheme, self._job.switches, down, suppressed=self._paths.ends
            )
            wanted = {name: found for name, found in intents.items() if names is None or name in names}
            install_all(network.p4rt, wanted)

    def _switch_config(self) -> SwitchConfig:
        """How switches are set up: with PFC of the data class, and a rate at which packets go round, where
        that is wanted.
        """
        rate_bps = fabric_rate_bps(self._topology) if self._scheme.recirculates else 0
        config = replace(SWITCH_CONFIG, recirc_rate_bps=rate_bps)
        wanted = self._job.pfc
        if wanted is None:
            return config
        pfc = self._pfc_config(wanted)
        size = wanted.buffer_bytes
        buffer = None if size is None else BufferConfig(size, wanted.alpha, wanted.port_bytes)
        return replace(config, pfc=pfc, buffer=buffer)

    def _pfc_config(self, wanted: Thresholds) -> PfcConfig:
        """PFC of ports between switches."""
        classes = (self._job.nic.data_priority,)
        sizes = (wanted.xoff_bytes, wanted.xon_bytes, wanted.headroom_bytes)
        return PfcConfig(classes, *sizes, watchdog=wanted.watchdog)

    def _guard_hosts(self, network: Network) -> None:
        """Pauses of hosts are watched more closely."""
        wanted = self._job.pfc
        if wanted is None:
            return
        config = self._pfc_config(wanted)
        for host in self._topology.hosts:
            watchdog = of_port(
                wanted.watchdog, host=True, rate_bps=host.rate_bps, xoff_bytes=wanted.xoff_bytes
            )
            network.switch(host.switch).port_pfc(host.port, replace(config, watchdog=watchdog))

    def _pfc_seen(self, network: Network) -> PfcSeen | None:
        if self._job.pfc is None:
            return None
        found = [
            statistics(network.switch(switch.name), self._topology.ports_of(switch.name), network.now_ns)
            for switch in self._topology.switches
        ]
        return pfc_seen(found, self._job.nic.data_priority, network.now_ns)

    def _attach(self, network: Network) -> list[Nic]:
        """A NIC in every host, with its flows."""
        nics = {}
        table = self._scheme.paths(self._topology)
        for host in self._topology.hosts:
            nic = Nic(
                ip=host.ip,
                mac=host.mac,
                gateway_mac=GATEWAY_MAC,
                config=replace(self._job.nic, link_rate_bps=host.rate_bps, virtual_payload=True),
                rng=random.Random(f"nic {host.name} {self._job.seed}"),
                paths=None if table is None else partial(table.of, host.ip),
            )
            network.attach(host.name, nic)
            nics[host.ip] = nic
        for flow in self._job.flows:
            nics[flow.src].add_flow(flow)
            nics[flow.dst].expect_flow(flow)
        return list(nics.values())

    def _watches(self, network: Network) -> dict[int, Watch]:
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

    def _schedule_faults(self, network: Network) -> tuple[VirtualFaults, VirtualAlerts]:
        """What happens to links, and what the controller does about that and about what switches tell."""
        configure = partial(self._configure, network)
        faults = VirtualFaults(network, self._topology, self._job.flows, configure, lambda: alerts.poll())
        alerts = VirtualAlerts(
            network,
            self._program,
            self._paths,
            delay_ns=reaction_ns(self._topology),
            down=lambda: faults.down,
            rewrite=faults.write,
            lossless=self._job.pfc is not None,
        )
        alerts.start()
        faults.schedule(self._job.faults)
        return faults, alerts

    def _happened(self, event: Event) -> None:
        self._events.append(event)
        self._report(Progress("traffic", note=event.text))

    def _schedule_stops(
        self, network: Network, faults: VirtualFaults, alerts: VirtualAlerts, teller: _Teller, stops: Stops
    ) -> None:
        def stop() -> None:
            began_s, hops = time.perf_counter(), network.traffic().packet_hops
            # nobody who looks is to be told instead of the run's own controller
            alerts.take()
            teller.tell_now(network.now_ns, network.events, "stopped")
            stops.halt(Standing(network, self._job, faults.down, tuple(self._paths.suppressed)))
            # what was asked by packets is no part of the run
            self._observed_hops += network.traffic().packet_hops - hops
            self._stood_s += time.perf_counter() - began_s

        for time_ns in sorted(set(stops.times_ns)):
            network.call_at(time_ns, stop)

    def _limit_ns(self) -> int:
        """When it is given up to wait for flows."""
        ideal = Ideal(self._topology, self._job.nic.mtu_bytes)
        factors = [fault.factor for fault in self._job.faults if isinstance(fault, LinkSlow)]
        times_ns = [ideal.fct_ns(flow) for flow in self._job.flows]
        last_flow_ns = max(t + flow.start_ns for t, flow in zip(times_ns, self._job.flows, strict=True))
        if max(times_ns) > _MOST_NS:
            raise SpecError("a flow would take longer than 100 days, which virtual time does not hold")
        if last_flow_ns > _MOST_NS:
            raise SpecError("the last flow would end after 100 days, which virtual time does not hold")
        check_samples(self._topology, self._job.sample_ns, last_flow_ns)
        in_turn_ns = sum(times_ns)
        last_start_ns = max(flow.start_ns for flow in self._job.flows)
        last_ns = max([last_start_ns, *map(last_change_ns, self._job.faults)])
        if last_ns > _MOST_NS:
            raise SpecError("a fault changes after 100 days, which virtual time does not hold")
        limit_ns = last_ns + PATIENCE * (round(in_turn_ns / min(factors, default=1.0)) + self._job.nic.rto_ns)
        return min(limit_ns, _MOST_NS)

    # ---- while it runs, and after ----

    def _go(self, network: Network, nics: list[Nic], teller: _Teller) -> None:
        """Runs until nothing is left to do, or all flows are complete that somebody waits for."""
        limit_ns, step_ns = self._limit_ns(), LOOK_RTTS * base_rtt_ns(self._topology)
        if not self._job.background:
            network.run(limit_ns, progress=teller.tell)
            return
        waiting = list(nics)
        while network.now_ns < limit_ns:
            if network.run(min(limit_ns, network.now_ns + step_ns), progress=teller.tell):
                break
            while waiting and self._served(waiting[-1]):
                waiting.pop()
            if not waiting:
                break

    def _served(self, nic: Nic) -> bool:
        """Whether a NIC has received all flows that somebody waits for."""
        return all(
            seen.end_ns is not None
            for seen in nic.records()
            if isinstance(seen, ReceiverObservation) and seen.flow.id not in self._job.background
        )

    def _outcome(self, network: Network, nics: list[Nic], wall_s: float, timelines: Timelines) -> Outcome:
        found = {switch.name: self._counters(network, switch.name) for switch in self._topology.switches}
        traffic = network.traffic()
        queues = sum(
            network.switch(switch.name).port_stats(port).dropped
            for switch in self._topology.switches
            for port in self._topology.ports_of(switch.name)
        )
        restarts = network.account().reasons.get(_RESTARTED, 0)
        return Outcome(
            records=tuple(Nic.merge(*nics)),
            wall_s=wall_s,
            counters=found,
            dropped=counters.dropped(found.values()) + queues + restarts + traffic.lost,
            virtual_ns=network.now_ns,
            packet_hops=traffic.packet_hops - self._observed_hops,
            trace_sha256=network.trace_sha256,
            p4_sha256=self._program.sha256,
            timelines=timelines,
            events=tuple(self._events),
            pfc=self._pfc_seen(network),
            gaps=self._gaps(nics),
            learned=learned(nics),
        )

    def _gaps(self, nics: list[Nic]) -> Gaps | None:
        if not self._job.nic.measure_gaps:
            return None
        return Gaps.merged(nic.gaps.bins() for nic in nics if nic.gaps is not None)

    def _counters(self, network: Network, switch: str) -> dict[str, int]:
        endpoint = InProcess(network.p4rt(switch))
        requests = counters.requests(self._program)
        return counters.sums(self._program, run_at_once(endpoint.read(requests)))


class _Teller:
    """Reports how far a run is, seldom enough to cost nothing that matters."""

    def __init__(self, job: Job, nics: list[Nic], report: Report) -> None:
        self._nics = nics
        self._report = report
        self._mtu_bytes = job.nic.mtu_bytes
        self._background = job.background
        waited = [flow for flow in job.flows if flow.id not in job.background]
        self._flows = len(waited)
        self._total_bytes = sum(flow.bytes for flow in waited)
        self._next_s = 0.0

    def tell(self, now_ns: int, events: int) -> None:
        """Reports, unless that was done a short while ago."""
        began_s = time.monotonic()
        if began_s >= self._next_s:
            self.tell_now(now_ns, events)
            ended_s = time.monotonic()
            self._next_s = ended_s + max(TELL_S, TELL_SHARE * (ended_s - began_s))

    def tell_now(self, now_ns: int, events: int, phase: str = "traffic") -> None:
        """Reports how many flows, and what share of all bytes, their receivers have."""
        done = arrived_bytes = 0
        for record in Nic.merge(*self._nics):
            if record.id in self._background:
                continue
            complete = record.end_ns is not None
            done += complete
            arrived = record.bytes if complete else record.received * self._mtu_bytes
            arrived_bytes += min(arrived, record.bytes)
        share = arrived_bytes / self._total_bytes
        self._report(Progress(phase, done, self._flows, share, now_ns, events))
