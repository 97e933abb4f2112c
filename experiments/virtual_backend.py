# SPDX-License-Identifier: Apache-2.0
"""Runs jobs in virtual time: compiled switches, NICs and wires in this process; the seed decides all."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace

from controller import programs
from controller.defaults import base_rtt_ns
from controller.endpoint import run_at_once
from controller.errors import ControllerError
from controller.inprocess import InProcess, install_all
from controller.intent import intent
from controller.scheme import parse_scheme
from controller.target import target
from experiments import counters
from experiments.backend import Job, Outcome, Progress, Report
from experiments.errors import RunError
from experiments.fault import AckLoss, Drop, LinkDown, LinkFault, LinkSlow
from experiments.ideal import Ideal
from experiments.scale import scaled
from hosts.errors import ConfigError
from hosts.nic import Nic
from hosts.packets.local import ETHER_TYPE, Subtype
from native.switchd.p4rt.errors import P4RtError
from native.virtual import Network, NetworkError
from spec import SpecError
from topology import GATEWAY_MAC, parse_topology
from topology.routing import Down

REACTION_RTTS = 10
"""How many base RTTs after a link has gone or come back the controller has written other routes. In real time
it finds out by missing LLDP frames (controller/linkwatch.py); here it is told."""

PATIENCE = 50
"""A run ends with flows unfinished after so many times the ideal time of all flows one after the other."""

_ETHER_TYPE_AT = 12
_FLOWCUT_ACK = ETHER_TYPE.to_bytes(2, "big") + bytes([Subtype.FLOWCUT_ACK])


def is_flowcut_ack(frame: bytes) -> bool:
    """Whether a frame is a Flowcut ACK between switches."""
    return frame[_ETHER_TYPE_AT : _ETHER_TYPE_AT + len(_FLOWCUT_ACK)] == _FLOWCUT_ACK


def is_of_flows(frame: bytes) -> bool:
    """Whether a frame is a flow's own, data or acknowledgment, and none that switches send each other."""
    own = frame[_ETHER_TYPE_AT : _ETHER_TYPE_AT + 2] == ETHER_TYPE.to_bytes(2, "big")
    return not own or frame[_ETHER_TYPE_AT + 2] == Subtype.DATA_SHIM


class VirtualBackend:
    """Runs one network after the other."""

    def __init__(self, look: Callable[[Network], None] | None = None) -> None:
        """`look` is handed each network before its traffic begins, to tap its wires for one."""
        self._look = look

    def run(self, job: Job, report: Report) -> Outcome:
        """Run one job to its end, or until it is clear that some flows never finish.

        Raises:
            SpecError: topology, scheme and faults do not go together.
            RunError: the controller or the network failed.
        """
        try:
            return _Run(job, report).measure(self._look)
        except ConfigError as error:
            raise SpecError(str(error)) from error
        except (ControllerError, NetworkError, P4RtError) as error:
            raise RunError(str(error)) from error


class _Run:
    """One network with all that is attached to it, from beginning to end."""

    def __init__(self, job: Job, report: Report) -> None:
        self._job = job
        self._report = report
        self._topology = scaled(parse_topology(job.topology), job.time_scale)
        self._scheme = scaled(parse_scheme(job.scheme), job.time_scale)
        self._program = programs.load(self._scheme.program)
        self._down: Down = frozenset()

    def measure(self, look: Callable[[Network], None] | None) -> Outcome:
        """Build the network, run it, read what it counted."""
        self._report(Progress("starting"))
        began_s = time.perf_counter()
        with Network(self._topology, seed=self._job.seed) as network:
            self._configure(network)
            nics = self._attach(network)
            if self._job.pcap_dir is not None:
                self._job.pcap_dir.mkdir(parents=True, exist_ok=True)
                network.capture(self._job.pcap_dir / "all.pcapng")
            for fault in self._job.faults:
                self._apply(network, fault)
            if look is not None:
                look(network)
            network.run(self._limit_ns(), progress=lambda _now_ns, _events: self._tell(nics))
            self._tell(nics)
            return self._outcome(network, nics, time.perf_counter() - began_s)

    # ---- before the traffic ----

    def _configure(self, network: Network) -> None:
        """Makes every switch hold what it should while the links in `_down` are dead."""
        intents = intent(self._topology, self._scheme, target("virtual"), self._down)
        install_all(network.p4rt, intents, refused=P4RtError)

    def _attach(self, network: Network) -> list[Nic]:
        """A NIC in every host, with its flows."""
        nics = {}
        for host in self._topology.hosts:
            nic = Nic(
                ip=host.ip,
                mac=host.mac,
                gateway_mac=GATEWAY_MAC,
                config=replace(self._job.nic, link_rate_bps=host.rate_bps, virtual_payload=True),
                rng=random.Random(f"nic {host.name} {self._job.seed}"),
            )
            network.attach(host.name, nic)
            nics[host.ip] = nic
        for flow in self._job.flows:
            nics[flow.src].add_flow(flow)
            nics[flow.dst].expect_flow(flow)
        return list(nics.values())

    def _apply(self, network: Network, fault: LinkFault) -> None:
        """Schedules a fault, and what the controller does about it."""
        match fault:
            case LinkSlow():
                network.link_rate(fault.a, fault.b, fault.factor)
            case Drop():
                network.drop(fault.a, fault.b, fault.rate, matches=is_of_flows)
            case AckLoss():
                network.drop(fault.a, fault.b, fault.rate, matches=is_flowcut_ack)
            case LinkDown():
                network.link_down(fault.a, fault.b, fault.at_ns)
                self._react(network, fault, fault.at_ns, dead=True)
                if fault.until_ns is not None:
                    network.link_up(fault.a, fault.b, fault.until_ns)
                    self._react(network, fault, fault.until_ns, dead=False)

    def _react(self, network: Network, fault: LinkDown, at_ns: int, *, dead: bool) -> None:
        """Has the controller write other routes some time after a link has gone, or has come back."""
        ends = frozenset(
            (link.a, link.a_port) for link in self._topology.links if {link.a, link.b} == {fault.a, fault.b}
        )

        def reroute() -> None:
            self._down = self._down | ends if dead else self._down - ends
            self._configure(network)

        network.call_at(at_ns + REACTION_RTTS * base_rtt_ns(self._topology), reroute)

    def _limit_ns(self) -> int:
        """When it is given up to wait for flows."""
        ideal = Ideal(self._topology, self._job.nic.mtu_bytes)
        factors = [fault.factor for fault in self._job.faults if isinstance(fault, LinkSlow)]
        in_turn_ns = sum(ideal.fct_ns(flow) for flow in self._job.flows)
        last_start_ns = max(flow.start_ns for flow in self._job.flows)
        return last_start_ns + PATIENCE * (
            round(in_turn_ns / min(factors, default=1.0)) + self._job.nic.rto_ns
        )

    # ---- while it runs, and after ----

    def _tell(self, nics: list[Nic]) -> None:
        """Reports how many flows their receivers have completely."""
        done = sum(record.end_ns is not None for record in Nic.merge(*nics))
        self._report(Progress("traffic", done, len(self._job.flows)))

    def _outcome(self, network: Network, nics: list[Nic], wall_s: float) -> Outcome:
        found = {switch.name: self._counters(network, switch.name) for switch in self._topology.switches}
        traffic = network.traffic()
        queues = sum(
            network.switch(switch.name).port_stats(port).dropped
            for switch in self._topology.switches
            for port in self._topology.ports_of(switch.name)
        )
        return Outcome(
            records=tuple(Nic.merge(*nics)),
            wall_s=wall_s,
            counters=found,
            dropped=counters.dropped(found.values()) + queues + traffic.lost,
            virtual_ns=network.now_ns,
            packet_hops=traffic.packet_hops,
            trace_sha256=network.trace_sha256,
            p4_sha256=self._program.sha256,
        )

    def _counters(self, network: Network, switch: str) -> dict[str, int]:
        endpoint = InProcess(network.p4rt(switch), P4RtError)
        requests = counters.requests(self._program)
        return counters.sums(self._program, run_at_once(endpoint.read(requests)))
