# SPDX-License-Identifier: Apache-2.0
"""The nodes and wires of a virtual network, and its clock. Several processes, the *ranks*, can run one
network; each runs a part of it.
"""

from __future__ import annotations

import heapq
import itertools
import pickle
from collections.abc import Callable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from tailrace.codec.nic import Nic, port
from tailrace.sim.network.core import NEVER_PS, RUNNING_WINDOW, Stop, new_net
from tailrace.sim.network.deferred_signals import DeferredSignals
from tailrace.sim.network.endpoint import CpuPort, PreparedCache, SwitchEndpoint
from tailrace.sim.network.errors import NetworkError
from tailrace.sim.network.prng import SplitMix64
from tailrace.sim.network.ranks import ExchangeCounts, RankTransport, TimedTransport
from tailrace.sim.network.wire import NodePort, Wire
from tailrace.spec.constants import PS_PER_NS
from tailrace.spec.watchdog import of_host
from tailrace.switch.core import SwitchConfig, V1ModelSwitch
from tailrace.topology import Topology
from tailrace.topology import model as topology_model
from tailrace.topology.partition import parts

T = TypeVar("T")

Progress = Callable[[int, int], None]
"""progress(now_ns, events)"""

PROGRESS_EVENTS = 20_000
"""Events between two calls of a progress callback."""

_NO_CPU_PORT = -1


class Fabric:
    """Switches, hosts and wires (a wire is one direction of a link), and callbacks at virtual times."""

    def __init__(
        self,
        topology: Topology,
        config: SwitchConfig,
        seed: int,
        transport: RankTransport | None,
    ) -> None:
        self.topology = topology
        self.wires: list[Wire] = []
        self._seed = seed
        self._config = config
        self._net = new_net()
        self._transport: TimedTransport | None = None
        # by name of a switch or host: the rank that runs it; empty with one rank
        self._part_of: dict[str, int] = {}
        if transport is not None:
            self._transport = TimedTransport(transport)
            self._net.set_ranks(self._transport, transport.rank, transport.ranks)
            self._part_of = parts(topology, transport.ranks)
        self._numbers: dict[str, int] = {}  # indices of nodes in tv_net
        self._hosts: set[str] = set()
        self._switches: dict[str, V1ModelSwitch] = {}
        self._endpoints: dict[str, SwitchEndpoint] = {}
        self._nics: dict[str, Nic] = {}
        # a heap of (time in ns, sequence number, callback)
        self._callbacks: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = itertools.count()
        self._add_switches()
        for host in topology.hosts:
            name, local = host.name, self.has(host.name)
            self._numbers[name] = self._net.add_host(name) if local else self._add_absent(name)
            self._hosts.add(name)
        for host in topology.hosts:
            end = NodePort(host.switch, host.port)
            self._add_wire(NodePort(host.name, 0), end, host.rate_bps, host.delay_ns)
            self._add_wire(end, NodePort(host.name, 0), host.rate_bps, host.delay_ns)
        self._guard_hosts()
        for link in topology.links:
            a, b = NodePort(link.a, link.a_port), NodePort(link.b, link.b_port)
            self._add_wire(a, b, link.rate_bps, link.delay_ns)
            self._add_wire(b, a, link.rate_bps, link.delay_ns)

    # ---- ranks ----

    @property
    def rank(self) -> int:
        """The rank of this process: the index, from 0, of its part of the network."""
        return 0 if self._transport is None else self._transport.rank

    @property
    def rank_counts(self) -> ExchangeCounts:
        """Counts of this process's message exchanges with other ranks."""
        waited_s = 0.0 if self._transport is None else self._transport.waited_s
        return ExchangeCounts(*self._net.rank_counts, waited_s)

    def has(self, name: str) -> bool:
        """Whether a switch or host is in the part of this rank."""
        return self._part_of.get(name, 0) == self.rank

    @property
    def switches(self) -> tuple[topology_model.Switch, ...]:
        """The switches of this rank, in the order of the topology."""
        return tuple(item for item in self.topology.switches if self.has(item.name))

    @property
    def hosts(self) -> tuple[topology_model.Host, ...]:
        """The hosts of this rank, in the order of the topology."""
        return tuple(item for item in self.topology.hosts if self.has(item.name))

    def all_gather(self, value: T) -> list[T]:
        """Sends a picklable value to all ranks; returns the values of all ranks, by rank (MPI: allgather).
        All ranks must make this call.
        """
        if self._transport is None:
            return [value]
        message = pickle.dumps(value)
        messages = self._transport.exchange([message] * self._transport.ranks)
        return [pickle.loads(each) for each in messages]  # noqa: S301 - our own processes have made it

    def gathered(self, values: Mapping[int, T]) -> dict[int, T]:
        """Merges the mappings of all ranks, sorted by key; each rank must make this call."""
        merged = {number: value for each in self.all_gather(dict(values)) for number, value in each.items()}
        return dict(sorted(merged.items()))

    # ---- assembly ----

    def _add_absent(self, name: str) -> int:
        """Reserves the index of a node that belongs to another rank."""
        return self._net.add_absent(name, self._part_of[name])

    def _add_switches(self) -> None:
        # verified pipeline configurations, which the endpoints of all switches share
        prepared: PreparedCache = {}
        for item in self.topology.switches:
            if not self.has(item.name):
                self._numbers[item.name] = self._add_absent(item.name)
                continue
            seed = SplitMix64(self._seed, item.id).next()
            config = replace(self._config, device_id=item.id, seed=seed)
            for key in ("cpu_port", "priority_queues"):  # of a topology file
                value = getattr(item, key)
                config = config if value is None else replace(config, **{key: value})
            cpu_port = config.cpu_port
            switch = V1ModelSwitch(None, config)
            number = self._net.add_switch(
                item.name, switch.address, _NO_CPU_PORT if cpu_port is None else cpu_port
            )
            self._numbers[item.name] = number
            self._switches[item.name] = switch
            cpu = CpuPort(self._net, item.name, number, cpu_port, lambda: self.now_ns)
            ports = frozenset(self.topology.ports_of(item.name))
            self._endpoints[item.name] = SwitchEndpoint(item.name, item.id, switch, cpu, ports, prepared)

    def _guard_hosts(self) -> None:
        """Sets PFC watchdogs on ports to hosts, by the port's rate, unless the configuration has one."""
        pfc = self._config.pfc
        if pfc is None or pfc.watchdog is not None:
            return
        for host in self.hosts:
            watchdog = of_host(host.rate_bps, pfc.least_xoff_bytes)
            self.switch(host.switch).port_pfc(host.port, replace(pfc, watchdog=watchdog))

    def _add_wire(self, source: NodePort, target: NodePort, rate_bps: int, delay_ns: int) -> None:
        """Connects two ports; the latency of a switch is added to the delay of each wire that leads to it."""
        if target.node not in self._hosts:
            delay_ns += self.topology.latency_ns
        number = self._net.add_wire(
            self._numbers[source.node],
            source.port,
            self._numbers[target.node],
            target.port,
            rate_bps,
            delay_ns * PS_PER_NS,
        )
        self.wires.append(Wire(self._net, number, source, target, rate_bps, delay_ns))

    def attach(self, host: str, nic: Nic) -> None:
        """Attaches a NIC to a host.

        Raises:
            NetworkError: there is no such host, or it belongs to another rank.
        """
        if host not in self._hosts:
            raise NetworkError(f"there is no host {host}")
        if not self.has(host):
            raise NetworkError(f"{host} is in another rank")
        self._net.attach(self._numbers[host], port(nic))
        self._nics[host] = nic

    def nic(self, host: str) -> Nic:
        """The NIC of a host; KeyError if it has none or belongs to another rank."""
        return self._nics[host]

    # ---- parts ----

    def switch(self, name: str) -> V1ModelSwitch:
        """The switch of this name; KeyError if it does not exist or belongs to another rank."""
        return self._switches[name]

    def p4rt(self, name: str) -> SwitchEndpoint:
        """The P4Runtime endpoint of a switch; KeyError if it does not exist or belongs to another rank."""
        return self._endpoints[name]

    def wires_between(self, a: str, b: str) -> list[Wire]:
        """The wires from `a` to `b` (names of switches or hosts), sorted by `a`'s port.

        Raises:
            NetworkError: there is no such wire.
        """
        wires = [wire for wire in self.wires if wire.source.node == a and wire.target.node == b]
        if not wires:
            raise NetworkError(f"there is no link between {a} and {b}")
        return sorted(wires, key=lambda wire: wire.source.port)

    def _both_directions(self, a: str, b: str) -> list[Wire]:
        return self.wires_between(a, b) + self.wires_between(b, a)

    # ---- time ----

    @property
    def now_ps(self) -> int:
        """The virtual time in picoseconds."""
        return self._net.now_ps

    @property
    def now_ns(self) -> int:
        """The virtual time in whole nanoseconds."""
        return self._net.now_ps // PS_PER_NS

    @property
    def events(self) -> int:
        """Events of this rank since the start: arrivals of frames, and requests to NICs for a frame."""
        return self._net.events

    @property
    def at_rest(self) -> bool:
        """Whether every NIC is idle and no frame is under way.

        Frames that a control call sends to another rank are counted from the next run on.
        """
        return all(self.all_gather(self._net.at_rest()))

    def call_at(self, time_ns: int | None, callback: Callable[[], None]) -> None:
        """Calls `callback` at a virtual time, before all other events of that time; None or a past time: now.

        Raises:
            NetworkError: a NIC calls this while the network runs: other nodes may be past that time.
        """
        if self._net.running == RUNNING_WINDOW or (self._net.running and self._transport is not None):
            raise NetworkError("a NIC cannot change the network or schedule a callback while it runs")
        if time_ns is None or time_ns <= self.now_ns:
            callback()
        else:
            heapq.heappush(self._callbacks, (time_ns, next(self._sequence), callback))
            self._net.cut(time_ns * PS_PER_NS)  # the present run ends before this time

    def _next_callback_ps(self) -> int:
        return self._callbacks[0][0] * PS_PER_NS if self._callbacks else NEVER_PS

    def _call_back(self, now_ps: int) -> None:
        """Runs the callbacks that are due at a time, before the other events of that time."""
        self._net.set_now(now_ps)
        while self._next_callback_ps() <= now_ps:
            heapq.heappop(self._callbacks)[2]()

    def _report_progress(self, progress: Progress, mark: int) -> int:
        """Calls `progress` for each mark (a number of events) that was passed; returns the next mark. With
        several ranks, rank 0 decides when the marks are passed.
        """
        events = self._net.events
        if self._transport is not None:
            progress(self.now_ns, events)
            return events + PROGRESS_EVENTS
        while events >= mark:
            progress(self.now_ns, mark)
            mark += PROGRESS_EVENTS
        return mark

    def _advance(self, until_ns: int | None, *, stop_at_rest: bool, progress: Progress | None) -> None:
        """Runs up to and including a time, or without end; `stop_at_rest` also stops when all is at rest."""
        net = self._net
        limit_ps = NEVER_PS if until_ns is None else until_ns * PS_PER_NS + 1
        mark = NEVER_PS if progress is None else net.events + PROGRESS_EVENTS
        net.poll()  # NICs may have new frames to send
        # a signal stops the run by cut(0); its handler runs after that
        with DeferredSignals(lambda: bool(net.running), lambda: net.cut(0)) as signals:
            while True:
                stop = net.run(min(limit_ps, self._next_callback_ps()), stop_at_rest, mark)
                if signals.run_handlers():
                    continue
                if progress is not None and (stop == Stop.MARK or self._transport is None):
                    mark = self._report_progress(progress, mark)
                if stop == Stop.REST:
                    return
                callback_ps = self._next_callback_ps()
                if stop == Stop.LIMIT and callback_ps < limit_ps:
                    self._call_back(callback_ps)
                elif stop == Stop.LIMIT:
                    if until_ns is not None:
                        net.set_now(until_ns * PS_PER_NS)
                    return
