# SPDX-License-Identifier: Apache-2.0
"""A network of compiled switches and NICs on one virtual clock.

    network = Network(topology, seed=7)
    network.p4rt("leaf1").set_pipeline(request)        # or Network(topology, program)
    network.attach("h1", nic)
    network.link_rate("leaf1", "spine1", factor=0.1, at_ns=50_000)
    network.run()                                      # until every NIC is idle and nothing is under way
    network.now_ns, network.trace_sha256

A switch is native.runtime.Switch, and its traffic manager holds rates, queues and delays. Everything follows
from the arguments and the seed: the same calls give the same trace hash, on every machine. All times are
integer nanoseconds from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from native.compiler import Program
from native.runtime import Switch, SwitchConfig
from native.switchd.p4rt.device import Prepared
from native.virtual.endpoint import Endpoint
from native.virtual.errors import NetworkError
from native.virtual.events import RankClass, rank
from native.virtual.host_node import HostNode
from native.virtual.loop import Loop, Progress
from native.virtual.nic import NicLike
from native.virtual.pcap import Capture
from native.virtual.prng import SplitMix64, threshold
from native.virtual.switch_node import SwitchNode
from native.virtual.wire import End, FrameTest, RandomDrop, Tap, Wire
from topology import Topology

PROGRESS_EVENTS = 20_000
"""Events between two calls of a progress callback."""

SWITCH_CONFIG = SwitchConfig(cpu_port=510, priority_queues=8, tick_ns=1, queue_depth_packets=0)
"""How switches are set up unless told otherwise: no queue limit but the program's own."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Counts since the start: frames that switches took in, that wires delivered, that faults took."""

    packet_hops: int
    delivered: int
    lost: int
    unwired: int


class Network:
    """A virtual network. Close it when it is no longer needed, or use it in a ``with`` statement."""

    def __init__(
        self,
        topology: Topology,
        programs: Program | Mapping[str, Program] | None = None,
        *,
        config: SwitchConfig = SWITCH_CONFIG,
        seed: int = 0,
    ) -> None:
        """Makes the switches and the wires; hosts stay silent until a NIC is attached.

        Args:
            programs: what the switches run, one for all or by name; None: nothing, until a pipeline is set.
            config: of every switch; device id and seed are replaced by the switch's own.
            seed: of everything random in the network.

        Raises:
            NetworkError: `programs` names no program for some switch.
        """
        self.topology = topology
        self.wires: list[Wire] = []
        self._seed = seed
        self._config = config
        self._captures: list[Capture] = []
        self._drops = 0
        self._hosts: dict[str, HostNode] = {}
        self._nodes: dict[str, SwitchNode] = {}
        self._endpoints: dict[str, Endpoint] = {}
        self._loop = Loop(self._hosts_idle)
        self._add_switches(programs)
        for host in topology.hosts:
            self._add_host(host.name, End(host.switch, host.port), host.rate_bps, host.delay_ns)
        for link in topology.links:
            a, b = End(link.a, link.a_port), End(link.b, link.b_port)
            self._add_wire(a, b, link.rate_bps, link.delay_ns)
            self._add_wire(b, a, link.rate_bps, link.delay_ns)

    # ---- assembly ----

    def _add_switches(self, programs: Program | Mapping[str, Program] | None) -> None:
        prepared: dict[bytes, Prepared] = {}
        for index, item in enumerate(self.topology.switches):
            seed = SplitMix64(self._seed, item.id).next()
            program = programs.get(item.name) if isinstance(programs, Mapping) else programs
            if program is None and programs is not None:
                raise NetworkError(f"there is no program for {item.name}")
            switch = Switch(program, replace(self._config, device_id=item.id, seed=seed))
            cpu_port = self._config.cpu_port
            node = SwitchNode(item.name, index, switch, self._loop.queue, self._loop.transmit, cpu_port)
            self._nodes[item.name] = node
            self._endpoints[item.name] = Endpoint(
                node,
                device_id=item.id,
                cpu_port=cpu_port,
                ports=frozenset(self.topology.ports_of(item.name)),
                clock=lambda: self.now_ns,
                prepared=prepared,
            )

    def _add_host(self, name: str, end: End, rate_bps: int, delay_ns: int) -> None:
        up = self._add_wire(End(name, 0), end, rate_bps, delay_ns)
        node = HostNode(name, len(self._hosts), up, self._loop.queue, self._loop.transmit)
        self._hosts[name] = node
        self._add_wire(end, End(name, 0), rate_bps, delay_ns).deliver = node.receive

    def _add_wire(self, source: End, target: End, rate_bps: int, delay_ns: int) -> Wire:
        wire = Wire(len(self.wires), source, target, rate_bps, delay_ns)
        self.wires.append(wire)
        sender, receiver = self._nodes.get(source.node), self._nodes.get(target.node)
        if sender is not None:
            sender.wires_out[source.port] = wire
            sender.switch.port_config(source.port, rate_bps=rate_bps, delay_ns=delay_ns)
        if receiver is not None:
            wire.deliver = receiver.receiver(target.port)
        return wire

    def attach(self, host: str, nic: NicLike) -> None:
        """Puts a NIC into a host.

        Raises:
            NetworkError: there is no such host.
        """
        node = self._hosts.get(host)
        if node is None:
            raise NetworkError(f"there is no host {host}")
        node.nic = nic

    def close(self) -> None:
        """Frees the switches and ends captures."""
        for endpoint in self._endpoints.values():
            endpoint.device.close()
        for node in self._nodes.values():
            node.switch.close()
        for capture in self._captures:
            capture.close()

    def __enter__(self) -> Network:
        """The network itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Frees the switches."""
        self.close()

    # ---- parts ----

    def switch(self, name: str) -> Switch:
        """The switch itself; KeyError where there is none."""
        return self._nodes[name].switch

    def p4rt(self, name: str) -> Endpoint:
        """P4Runtime of a switch; KeyError where there is none."""
        return self._endpoints[name]

    def wires_between(self, a: str, b: str) -> list[Wire]:
        """The wires from `a` to `b`, both switches or hosts, by port.

        Raises:
            NetworkError: there is none.
        """
        found = [wire for wire in self.wires if wire.source.node == a and wire.target.node == b]
        if not found:
            raise NetworkError(f"there is no link between {a} and {b}")
        return sorted(found, key=lambda wire: wire.source.port)

    def _both_ways(self, a: str, b: str) -> list[Wire]:
        return self.wires_between(a, b) + self.wires_between(b, a)

    # ---- time ----

    @property
    def now_ns(self) -> int:
        """The virtual time."""
        return self._loop.now_ns

    @property
    def events(self) -> int:
        """Events handled since the start."""
        return self._loop.events

    @property
    def at_rest(self) -> bool:
        """Whether every NIC is idle and no frame is under way."""
        return self._loop.at_rest

    @property
    def trace_sha256(self) -> str:
        """A hash of everything that every wire has delivered, and when."""
        return self._loop.trace.hexdigest()

    def traffic(self) -> Traffic:
        """What has happened since the start."""
        return Traffic(
            packet_hops=sum(node.frames_in for node in self._nodes.values()),
            delivered=sum(wire.received for wire in self.wires),
            lost=sum(wire.lost for wire in self.wires),
            unwired=sum(node.unwired for node in self._nodes.values()),
        )

    def _hosts_idle(self) -> bool:
        return all(host.nic is None or host.nic.idle for host in self._hosts.values())

    def run(
        self,
        until_ns: int | None = None,
        *,
        progress: Progress | None = None,
        progress_events: int = PROGRESS_EVENTS,
    ) -> bool:
        """Runs until every NIC is idle and nothing is under way, or until nothing can happen any more.

        Args:
            until_ns: stop at this time; the network can be run on.
            progress: called with the virtual time and the number of events every `progress_events` events.

        Returns:
            whether the network is at rest.
        """
        self._poll_hosts()
        self._loop.run(until_ns, stop_at_rest=True, progress=progress, progress_every=progress_events)
        return self.at_rest

    def advance_to(self, time_ns: int) -> None:
        """Lets time pass up to `time_ns`, whether anything happens or not."""
        self._poll_hosts()
        self._loop.run(time_ns, stop_at_rest=False, progress=None, progress_every=PROGRESS_EVENTS)

    def _poll_hosts(self) -> None:
        for host in self._hosts.values():
            host.poll(self.now_ns)

    def call_at(self, time_ns: int | None, callback: Callable[[], None]) -> None:
        """Calls back at a virtual time, before anything else that happens then; None or a past time: now."""
        if time_ns is None or time_ns <= self.now_ns:
            callback()
        else:
            self._loop.queue.push(time_ns, rank(RankClass.CONTROL, 0), lambda _now, _none: callback())

    # ---- faults ----

    def link_rate(self, a: str, b: str, factor: float, at_ns: int | None = None) -> None:
        """Sets the rate of all links between `a` and `b`, both ways, to a multiple of what it was at first.

        A frame that is being sent ends as it began.

        Raises:
            NetworkError: there is no such link, or the rate would be less than 1 bit/s.
        """
        wires = self._both_ways(a, b)
        rates = [round(wire.nominal_rate_bps * factor) for wire in wires]
        if min(rates) < 1:
            raise NetworkError(f"factor {factor} leaves no rate on the link between {a} and {b}")

        def apply() -> None:
            for wire, rate_bps in zip(wires, rates, strict=True):
                self._set_rate(wire, rate_bps)

        self.call_at(at_ns, apply)

    def _set_rate(self, wire: Wire, rate_bps: int) -> None:
        node = self._nodes.get(wire.source.node)
        if node is not None:
            node.switch.port_config(wire.source.port, rate_bps=rate_bps)
        else:
            self._hosts[wire.source.node].rate_bps = rate_bps

    def link_down(self, a: str, b: str, at_ns: int | None = None) -> None:
        """Takes all links between `a` and `b` down: what is on them and in their queues is lost."""
        wires = self._both_ways(a, b)
        self.call_at(at_ns, lambda: self._set_links(wires, up=False))

    def link_up(self, a: str, b: str, at_ns: int | None = None) -> None:
        """Takes all links between `a` and `b` up again."""
        wires = self._both_ways(a, b)
        self.call_at(at_ns, lambda: self._set_links(wires, up=True))

    def _set_links(self, wires: list[Wire], *, up: bool) -> None:
        for wire in wires:
            if wire.up == up:
                continue
            wire.up = up
            wire.cuts += not up
            node = self._nodes.get(wire.source.node)
            if node is not None:
                node.switch.port_set(wire.source.port, up)
                self._endpoints[node.name].device.port_changed(wire.source.port, up=up)
                node.settle(self.now_ns)

    def drop(
        self,
        a: str,
        b: str,
        rate: float,
        *,
        matches: FrameTest | None = None,
        from_ns: int = 0,
        until_ns: int | None = None,
        one_way: bool = False,
    ) -> None:
        """Loses a share of the frames on the links between `a` and `b`, or only from `a` to `b`.

        Args:
            rate: the share, from 0 to 1, of the frames that `matches` (None: of all).
            from_ns, until_ns: when frames are lost, by the time of their arrival.

        Raises:
            NetworkError: there is no such link, or `rate` is no share.
        """
        if not 0 <= rate <= 1:
            raise NetworkError(f"drop rate {rate} is not between 0 and 1")
        self._drops += 1
        for wire in self.wires_between(a, b) if one_way else self._both_ways(a, b):
            # each wire and fault has numbers of its own: what one loses does not change what another loses
            prng = SplitMix64(self._seed, wire.index, self._drops)
            wire.drops.append(RandomDrop(threshold(rate), prng, matches, from_ns, until_ns))

    # ---- looking on ----

    def tap(self, tap: Tap, wires: list[Wire] | None = None) -> None:
        """Calls `tap` for everything that happens on some wires, or on all."""
        for wire in self.wires if wires is None else wires:
            wire.taps.append(tap)

    def capture(self, path: Path, wires: list[Wire] | None = None) -> None:
        """Writes what arrives on some wires, or on all, to a pcapng file, which `close` ends.

        Raises:
            NetworkError: the file cannot be written.
        """
        capture = Capture(path)
        self._captures.append(capture)
        self.tap(capture, wires)
