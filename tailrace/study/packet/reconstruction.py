# SPDX-License-Identifier: Apache-2.0
"""Reconstructs a packet's history from the wire transits of its flow and the traces of its switches. A wire
is one direction of a link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from msgspec import UNSET

from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.flows.observation import SenderObservation
from tailrace.p4rt import programs
from tailrace.p4rt.counters import DROPS, drop_reason
from tailrace.sim.errors import RunError
from tailrace.sim.network.transits import Fate, WireTransit
from tailrace.sim.outcome import Report
from tailrace.spec import SpecError
from tailrace.spec.constants import PS_PER_NS
from tailrace.study.packet.headers import PacketNames, flow_pause_op, header_of, shim_flags
from tailrace.study.packet.history import (
    Acknowledgement,
    FlowPaused,
    Hop,
    LinkTransit,
    Overtaker,
    PacketHistory,
    PreviousTransmission,
    QueueOvertaker,
    QueueWait,
    SourceActivity,
    Transmission,
)
from tailrace.study.packet.paths import WirePath, overtakers, wire_paths
from tailrace.study.packet.rerun import FinishedRun, RunObservations, flow_log, track_packets
from tailrace.switch.trace.events import CountEvent
from tailrace.switch.trace.tracking import Arrival, QueueResidence, TrackedPacket

FAULT_AT_ENTRY = "a fault drops it at the entry of the switch"


Reporting = Callable[[str], AbstractContextManager[Report]]
"""Shows the progress of a run of the given name, as `Display.run` does."""


def packet_history(run: FinishedRun, number: int, psn: int, reporting: Reporting) -> PacketHistory:
    """The history of one packet of a finished run.

    Args:
        number: the id of its flow.
        reporting: shows the progress of the runs.

    Raises:
        SpecError: there is no such flow, or no such packet in it.
        RunError: the repeated run has another trace, or the packet was never sent.
    """
    flow = run.flow(number)
    last = run.packets(flow) - 1
    if not 0 <= psn <= last:
        raise SpecError(f"--psn: flow {number} has no packet {psn}; expected 0 to {last}")
    with reporting("again") as report:
        transits = flow_log(run, flow, report)
    source = run.plan.topology.host_by_ip(flow.src).name
    of_flow = wire_paths(transits, flow, source)
    if psn not in of_flow:
        raise RunError(f"{run.folder}: packet {psn} of flow {number} was not sent before the run ended")
    arrivals: dict[str, list[Arrival]] = {}
    hosts = {host.name for host in run.plan.topology.hosts}
    for transit in (transit for transmission in of_flow[psn] for transit in transmission.transits):
        target = transit.wire.target
        if transit.fate is Fate.RECEIVED and target.node not in hosts:
            assert transit.ended_ps is not None
            arrivals.setdefault(target.node, []).append((transit.ended_ps, target.port))
    builder = _HistoryBuilder(run, flow, psn, transits, of_flow)
    with reporting("up to its end") as report:
        observed = track_packets(run, arrivals, flow, builder.sending_ps, report)
    return builder.history(observed)


class _HistoryBuilder:
    """Builds the history of a packet."""

    def __init__(
        self,
        run: FinishedRun,
        flow: FlowSpec,
        psn: int,
        transits: Sequence[WireTransit],
        of_flow: dict[int, list[WirePath]],
    ) -> None:
        self._run, self._flow, self._psn = run, flow, psn
        self._transits, self._of_flow = transits, of_flow
        self._tracked: Mapping[tuple[str, Arrival], TrackedPacket] = {}
        self._sender: Mapping[int, SenderObservation] = {}
        previous = map(self._previous, of_flow[psn])
        self.sending_ps = {sent.sent_ps for sent in (*of_flow[psn], *previous) if sent is not None}
        """Times of the packet's transmissions, and of the flow's transmission before each of them."""
        topology = run.plan.topology
        self._source = topology.host_by_ip(flow.src).name
        self._target = topology.host_by_ip(flow.dst).name
        self._all = [tuple(sent.transits) for sent in of_flow[psn]]
        self._hosts = {host.name for host in topology.hosts}
        self._names = PacketNames(run.plan.job)
        self._program = programs.load(run.plan.job.scheme.program)

    def history(self, observed: RunObservations) -> PacketHistory:
        """The history, with the traces of its switches."""
        self._tracked, self._sender = observed.tracked, observed.sender
        summary = self._run.summary
        assert summary.trace_sha256 is not UNSET
        first = self._of_flow[self._psn][0]
        return PacketHistory(
            scheme=summary.scheme,
            topology=summary.topology,
            seed=summary.seed,
            trace_sha256=str(summary.trace_sha256),
            flow=self._flow.id,
            src=self._source,
            dst=self._target,
            bytes=self._flow.bytes,
            packets=self._run.packets(self._flow),
            psn=self._psn,
            before=self._previous(first),
            pauses=self._pauses(first),
            transmissions=tuple(map(self._transmission, self._of_flow[self._psn])),
            acknowledged=self._acknowledgement(),
            untold=observed.overflows,
        )

    # ---- one transmission ----

    def _transmission(self, transmission: WirePath) -> Transmission:
        first, hops, end = transmission.transits[0], [], ""
        transit: WireTransit | None = first
        walked = [first]
        while (
            transit is not None
            and transit.fate is Fate.RECEIVED
            and transit.wire.target.node not in self._hosts
        ):
            hop, transit = self._hop(transit)
            hops.append(hop)
            if hop.dropped is not None:
                end = hop.dropped
            if transit is not None:
                walked.append(transit)
        transmission.transits[:] = walked
        delivered_ps = transmission.delivered_ps(self._target)
        link_transits = [_link_transit(first), *(hop.out for hop in hops if hop.out is not None)]
        if not end:
            arrival = "delivered" if delivered_ps is not None else "delivered without its payload"
            end = arrival if link_transits[-1].arrived_ps is not None else link_transits[-1].fate
        queues = [queue for hop in hops for queue in hop.queues]
        return Transmission(
            again=transmission.header.retransmitted,
            sport=transmission.header.sport,
            source=self._at_source(transmission),
            first=link_transits[0],
            hops=tuple(hops),
            end=end,
            delivered_ps=delivered_ps,
            waited_ps=sum(queue.waited_ps for queue in queues),
            paused_ps=sum(queue.paused_ps for queue in queues),
            round_ps=sum(hop.round_ps for hop in hops),
            transmission_ps=sum(each.transmission_ps or 0 for each in link_transits),
            propagation_ps=sum(each.propagation_ps or 0 for each in link_transits),
            path=transmission.path,
            overtaken_by=tuple(
                self._overtaker(psn, sent)
                for psn, sent in overtakers(transmission, self._of_flow, self._target)
            ),
        )

    def _overtaker(self, psn: int, sent: WirePath) -> Overtaker:
        delivered_ps = sent.delivered_ps(self._target) or 0
        return Overtaker(psn, sent.header.retransmitted, sent.sent_ps, delivered_ps, sent.path)

    def _at_source(self, transmission: WirePath) -> SourceActivity | None:
        """The NIC's activity before a transmission; None if more was sent before the counters were read."""
        before = self._previous(transmission)
        now = self._sender.get(transmission.sent_ps)
        earlier = SenderObservation(self._flow, 0) if before is None else self._sender.get(before.sent_ps)
        if now is None or earlier is None or now.packets != earlier.packets + 1:
            return None
        names = [name for name in SourceActivity.__struct_fields__ if name != "since_ps"]
        counts = {name: getattr(now, name) - getattr(earlier, name) for name in names}
        return SourceActivity(since_ps=None if before is None else before.sent_ps, **counts)

    def _hop(self, transit: WireTransit) -> tuple[Hop, WireTransit | None]:
        """A switch that the packet reached, and the transit by which it left."""
        assert transit.ended_ps is not None
        switch, port = transit.wire.target.node, transit.wire.target.port
        tracked = self._tracked.get((switch, (transit.ended_ps, port)))
        out: WireTransit | None = None
        if tracked is None:
            tracked = TrackedPacket(drop=FAULT_AT_ENTRY, end_ps=transit.ended_ps)
        dropped = self._drop_reason(tracked)
        link_transit: LinkTransit | None = None
        if tracked.sent is not None:
            sent_ps, sent_port = tracked.sent
            out = self._sent_by(switch, sent_port, sent_ps)
            link_transit = self._under_way(switch, tracked) if out is None else _link_transit(out)
        elif dropped is None:
            dropped = "is still in the switch when the run ends"
        queues = tuple(map(self._in_queue, tracked.queues))
        inside_ps = 0 if link_transit is None else link_transit.sent_ps - transit.ended_ps
        hop = Hop(
            switch=switch,
            port=port,
            from_=transit.wire.source.node,
            arrived_ps=transit.ended_ps,
            queues=queues,
            rounds=tracked.reentries,
            round_ps=inside_ps - sum(queue.waited_ps for queue in queues) if link_transit is not None else 0,
            noted=shim_flags(tracked.frame),
            dropped=dropped,
            dropped_ps=tracked.end_ps if tracked.drop else None,
            out=link_transit,
            trace=tracked.trace,
        )
        return hop, out

    def _drop_reason(self, tracked: TrackedPacket) -> str | None:
        """Why a switch dropped the packet: the switch's reason, with the reason that its P4 program counted,
        if any; None if the packet was not dropped.
        """
        for step in tracked.trace.steps if tracked.trace is not None and tracked.drop else ():
            if isinstance(step, CountEvent) and step.name.rpartition(".")[2] == DROPS:
                return f"{tracked.drop}, {drop_reason(self._program, step.index)}"
        return tracked.drop or None

    def _sent_by(self, switch: str, port: int, sent_ps: int) -> WireTransit | None:
        """The transit that a switch started at `sent_ps`; None if the run ended before the transit.

        That is the first transit on the wire that ends after `sent_ps` plus the propagation delay: earlier
        transits have ended by then.
        """
        later = [
            transit
            for transits in self._all
            for transit in transits
            if (transit.wire.source.node, transit.wire.source.port) == (switch, port)
            and transit.ended_ps is not None
            # on links without a rate the last bit is sent together with the first
            and transit.ended_ps - transit.wire.delay_ns * PS_PER_NS
            >= sent_ps + bool(transit.wire.nominal_rate_bps)
        ]
        first = min(later, key=lambda transit: transit.ended_ps or 0, default=None)
        if first is not None:
            first.sent_ps = sent_ps
        return first

    def _under_way(self, switch: str, tracked: TrackedPacket) -> LinkTransit:
        assert tracked.sent is not None
        sent_ps, port = tracked.sent
        peer = self._run.plan.topology.ports_of(switch).get(port)
        return LinkTransit(
            to="nobody" if peer is None else peer.name,
            sent_ps=sent_ps,
            length=len(tracked.frame) + tracked.virtual_bytes,
            ecn="",
            fate="leaves by a port without a link" if peer is None else Fate.UNDER_WAY.value,
        )

    def _in_queue(self, residence: QueueResidence) -> QueueWait:
        return QueueWait(
            port=residence.port,
            priority=residence.priority,
            packets=residence.packets,
            bytes=residence.bytes,
            queued_ps=residence.queued_ps,
            left_ps=residence.left_ps,
            paused_ps=residence.paused_ps,
            passed_by=residence.overtakes,
            passed=tuple(
                QueueOvertaker(self._names.of(each.frame), each.priority, each.queued_ps, each.left_ps)
                for each in residence.overtaking
            ),
        )

    # ---- other packets ----

    def _previous(self, transmission: WirePath) -> PreviousTransmission | None:
        earlier = [
            (sent.sent_ps, psn, sent)
            for psn, of_psn in self._of_flow.items()
            for sent in of_psn
            if sent.sent_ps < transmission.sent_ps
        ]
        if not earlier:
            return None
        sent_ps, psn, sent = max(earlier, key=lambda each: each[:2])
        return PreviousTransmission(psn, sent_ps, sent.header.sport, sent.path)

    def _pauses(self, transmission: WirePath) -> tuple[FlowPaused, ...]:
        """Pauses of the flow since the transmission before this one."""
        before = self._previous(transmission)
        since_ps = 0 if before is None else before.sent_ps
        flow = self._flow
        pauses = []
        for transit in self._transits:
            if (
                transit.ip_at is None
                and transit.wire.target.node == self._source
                and transit.fate is Fate.RECEIVED
            ):
                assert transit.ended_ps is not None
                op = flow_pause_op(transit.frame, flow.src, flow.dst, flow.sport)
                if op is not None and since_ps < transit.ended_ps <= transmission.sent_ps:
                    pauses.append(FlowPaused(op, transit.ended_ps))
        return tuple(pauses)

    def _acknowledgement(self) -> Acknowledgement | None:
        sent: dict[int, int] = {}
        first_ps = self._of_flow[self._psn][0].sent_ps
        for transit in self._transits:
            header = header_of(transit)
            if header is None or not header.is_ack or header.qpn != self._flow.qpn:
                continue
            if header.dst != self._flow.src or header.psn < self._psn or transit.sent_ps < first_ps:
                continue
            if transit.wire.source.node == self._target:
                sent.setdefault(header.psn, transit.sent_ps)
            if transit.wire.target.node == self._source and transit.fate is Fate.RECEIVED:
                assert transit.ended_ps is not None
                return Acknowledgement(header.psn, sent.get(header.psn, transit.sent_ps), transit.ended_ps)
        return None


def _link_transit(transit: WireTransit) -> LinkTransit:
    header = header_of(transit)
    took_ps = None if transit.ended_ps is None else transit.ended_ps - transit.sent_ps
    delay_ps = transit.wire.delay_ns * PS_PER_NS
    return LinkTransit(
        to=transit.wire.target.node,
        sent_ps=transit.sent_ps,
        length=transit.length + transit.virtual_bytes,
        ecn="" if header is None else header.ecn.name.lower(),
        fate=transit.fate.value,
        arrived_ps=transit.ended_ps if transit.fate is Fate.RECEIVED else None,
        transmission_ps=None if took_ps is None else took_ps - delay_ps,
        propagation_ps=None if took_ps is None else delay_ps,
    )
