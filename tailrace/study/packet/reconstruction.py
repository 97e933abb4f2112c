# SPDX-License-Identifier: Apache-2.0
"""A packet's story, from the crossings of wires of its flow and what its switches did."""

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
from tailrace.study.packet.headers import Names, of_leg, pause_of, stamped
from tailrace.study.packet.history import (
    Answer,
    AtSource,
    Before,
    Crossing,
    FlowPaused,
    Hop,
    InQueue,
    Overtaker,
    Passed,
    Story,
    Transmission,
)
from tailrace.study.packet.paths import Journey, journeys, overtakers
from tailrace.study.packet.rerun import FinishedRun, Seen, flow_log, follow
from tailrace.switch.trace.events import CountEvent
from tailrace.switch.trace.tracking import Arrival, QueueResidence, TrackedPacket

SWALLOWED = "a fault swallows it at the entry of the switch"


Reporting = Callable[[str], AbstractContextManager[Report]]
"""Shows one of two runs by its name, as `Display.run` does."""


def packet_story(run: FinishedRun, number: int, psn: int, reporting: Reporting) -> Story:
    """All that happened to one packet of a finished run.

    Args:
        number: of its flow.
        reporting: shows how far the runs are.

    Raises:
        SpecError: there is no such flow, or no such packet in it.
        RunError: it is another run now, or the packet was never sent.
    """
    flow = run.flow(number)
    last = run.packets(flow) - 1
    if not 0 <= psn <= last:
        raise SpecError(f"--psn: flow {number} has no packet {psn}; expected 0 to {last}")
    with reporting("again") as report:
        legs = flow_log(run, flow, report)
    source = run.plan.topology.host_by_ip(flow.src).name
    of_flow = journeys(legs, flow, source)
    if psn not in of_flow:
        raise RunError(f"{run.folder}: packet {psn} of flow {number} was not sent before the run ended")
    arrivals: dict[str, list[Arrival]] = {}
    hosts = {host.name for host in run.plan.topology.hosts}
    for leg in _came(of_flow[psn]):
        if leg.wire.target.node in hosts:
            continue
        assert leg.ended_ps is not None
        arrivals.setdefault(leg.wire.target.node, []).append((leg.ended_ps, leg.wire.target.port))
    teller = _Teller(run, flow, psn, legs, of_flow)
    with reporting("up to its end") as report:
        seen = follow(run, arrivals, flow, teller.sending_ps, report)
    return teller.story(seen)


def _came(sent: Sequence[Journey]) -> list[WireTransit]:
    """The crossings of a packet that it survived."""
    return [leg for journey in sent for leg in journey.legs if leg.fate is Fate.RECEIVED]


class _Teller:
    """Puts the parts together."""

    def __init__(
        self,
        run: FinishedRun,
        flow: FlowSpec,
        psn: int,
        legs: Sequence[WireTransit],
        of_flow: dict[int, list[Journey]],
    ) -> None:
        self._run, self._flow, self._psn = run, flow, psn
        self._legs, self._of_flow = legs, of_flow
        self._followed: Mapping[tuple[str, Arrival], TrackedPacket] = {}
        self._sender: Mapping[int, SenderObservation] = {}
        own = [(journey, self._before(journey)) for journey in of_flow[psn]]
        self.sending_ps = {journey.sent_ps for journey, _ in own} | {one.sent_ps for _, one in own if one}
        """When the packet was sent, and what the flow sent before it."""
        topology = run.plan.topology
        self._source = topology.host_by_ip(flow.src).name
        self._target = topology.host_by_ip(flow.dst).name
        self._all = [tuple(journey.legs) for journey in of_flow[psn]]
        self._hosts = {host.name for host in topology.hosts}
        self._names = Names(run.plan.job)
        self._program = programs.load(run.plan.job.scheme.program)

    def story(self, seen: Seen) -> Story:
        """All of it."""
        self._followed, self._sender = seen.followed, seen.sender
        summary = self._run.summary
        assert summary.trace_sha256 is not UNSET
        journey = self._of_flow[self._psn][0]
        return Story(
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
            before=self._before(journey),
            pauses=self._pauses(journey),
            transmissions=tuple(map(self._transmission, self._of_flow[self._psn])),
            acknowledged=self._answer(),
            untold=seen.untold,
        )

    # ---- one transmission ----

    def _transmission(self, journey: Journey) -> Transmission:
        first, hops, end = journey.legs[0], [], ""
        leg: WireTransit | None = first
        walked = [first]
        while leg is not None and leg.fate is Fate.RECEIVED and leg.wire.target.node not in self._hosts:
            hop, leg = self._hop(leg)
            hops.append(hop)
            if hop.dropped is not None:
                end = hop.dropped
            if leg is not None:
                walked.append(leg)
        journey.legs[:] = walked
        delivered_ps = journey.delivered_ps(self._target)
        crossings = [_crossing(first), *(hop.out for hop in hops if hop.out is not None)]
        if not end:
            whole = "delivered" if delivered_ps is not None else "delivered without its payload"
            end = whole if crossings[-1].arrived_ps is not None else crossings[-1].fate
        queues = [queue for hop in hops for queue in hop.queues]
        return Transmission(
            again=journey.header.again,
            sport=journey.header.sport,
            source=self._at_source(journey),
            first=crossings[0],
            hops=tuple(hops),
            end=end,
            delivered_ps=delivered_ps,
            waited_ps=sum(queue.waited_ps for queue in queues),
            paused_ps=sum(queue.paused_ps for queue in queues),
            round_ps=sum(hop.round_ps for hop in hops),
            transmission_ps=sum(each.transmission_ps or 0 for each in crossings),
            propagation_ps=sum(each.propagation_ps or 0 for each in crossings),
            path=journey.path,
            overtaken_by=tuple(
                Overtaker(psn, one.header.again, one.sent_ps, one.delivered_ps(self._target) or 0, one.path)
                for psn, one in overtakers(journey, self._of_flow, self._target)
            ),
        )

    def _at_source(self, journey: Journey) -> AtSource | None:
        """None: the source has gone on to something else before it was looked at."""
        before = self._before(journey)
        now = self._sender.get(journey.sent_ps)
        was = SenderObservation(self._flow, 0) if before is None else self._sender.get(before.sent_ps)
        if now is None or was is None or now.packets != was.packets + 1:
            return None
        names = [name for name in AtSource.__struct_fields__ if name != "since_ps"]
        done = {name: getattr(now, name) - getattr(was, name) for name in names}
        return AtSource(since_ps=None if before is None else before.sent_ps, **done)

    def _hop(self, leg: WireTransit) -> tuple[Hop, WireTransit | None]:
        """A switch that the packet has come to, and the wire by which it left."""
        assert leg.ended_ps is not None
        switch, port = leg.wire.target.node, leg.wire.target.port
        followed = self._followed.get((switch, (leg.ended_ps, port)))
        out: WireTransit | None = None
        if followed is None:
            followed = TrackedPacket(drop=SWALLOWED, end_ps=leg.ended_ps)
        dropped = self._why(followed)
        crossing: Crossing | None = None
        if followed.sent is not None:
            sent_ps, sent_port = followed.sent
            out = self._sent_by(switch, sent_port, sent_ps)
            crossing = self._under_way(switch, followed) if out is None else _crossing(out)
        elif dropped is None:
            dropped = "waits there when the run ends"
        queues = tuple(map(self._in_queue, followed.queues))
        inside_ps = 0 if crossing is None else crossing.sent_ps - leg.ended_ps
        hop = Hop(
            switch=switch,
            port=port,
            from_=leg.wire.source.node,
            arrived_ps=leg.ended_ps,
            queues=queues,
            rounds=followed.reentries,
            round_ps=inside_ps - sum(queue.waited_ps for queue in queues) if crossing is not None else 0,
            noted=stamped(followed.frame),
            dropped=dropped,
            dropped_ps=followed.end_ps if followed.drop else None,
            out=crossing,
            trace=followed.trace,
        )
        return hop, out

    def _why(self, followed: TrackedPacket) -> str | None:
        """Why a switch dropped it: in the program's own words, if there are any, else in the switch's."""
        for step in followed.trace.steps if followed.trace is not None and followed.drop else ():
            if isinstance(step, CountEvent) and step.name.rpartition(".")[2] == DROPS:
                return f"{followed.drop}, {drop_reason(self._program, step.index)}"
        return followed.drop or None

    def _sent_by(self, switch: str, port: int, sent_ps: int) -> WireTransit | None:
        """The crossing that began at a time; None: the run ended before it did.

        What began earlier on the wire came before the last bit of this one was out.
        """
        later = [
            leg
            for journey in self._all
            for leg in journey
            if (leg.wire.source.node, leg.wire.source.port) == (switch, port)
            and leg.ended_ps is not None
            # where links have no rate the last bit goes out with the first
            and leg.ended_ps - leg.wire.delay_ns * PS_PER_NS >= sent_ps + bool(leg.wire.nominal_rate_bps)
        ]
        found = min(later, key=lambda leg: leg.ended_ps or 0, default=None)
        if found is not None:
            found.sent_ps = sent_ps
        return found

    def _under_way(self, switch: str, followed: TrackedPacket) -> Crossing:
        assert followed.sent is not None
        sent_ps, port = followed.sent
        peer = self._run.plan.topology.ports_of(switch).get(port)
        return Crossing(
            to="nobody" if peer is None else peer.name,
            sent_ps=sent_ps,
            length=len(followed.frame) + followed.virtual_bytes,
            ecn="",
            fate="leaves by a port without a link" if peer is None else Fate.UNDER_WAY.value,
        )

    def _in_queue(self, visit: QueueResidence) -> InQueue:
        return InQueue(
            port=visit.port,
            priority=visit.priority,
            packets=visit.packets,
            bytes=visit.bytes,
            queued_ps=visit.queued_ps,
            left_ps=visit.left_ps,
            paused_ps=visit.paused_ps,
            passed_by=visit.overtakes,
            passed=tuple(
                Passed(self._names.of(each.frame), each.priority, each.queued_ps, each.left_ps)
                for each in visit.overtaking
            ),
        )

    # ---- what is around it ----

    def _before(self, journey: Journey) -> Before | None:
        earlier = [
            (one.sent_ps, psn, one)
            for psn, sent in self._of_flow.items()
            for one in sent
            if one.sent_ps < journey.sent_ps
        ]
        if not earlier:
            return None
        sent_ps, psn, one = max(earlier, key=lambda each: each[:2])
        return Before(psn, sent_ps, one.header.sport, one.path)

    def _pauses(self, journey: Journey) -> tuple[FlowPaused, ...]:
        """Pauses of the flow since the transmission before this one."""
        before = self._before(journey)
        since_ps = 0 if before is None else before.sent_ps
        flow = self._flow
        found = []
        for leg in self._legs:
            if leg.ip_at is None and leg.wire.target.node == self._source and leg.fate is Fate.RECEIVED:
                assert leg.ended_ps is not None
                op = pause_of(leg.frame, flow.src, flow.dst, flow.sport)
                if op is not None and since_ps < leg.ended_ps <= journey.sent_ps:
                    found.append(FlowPaused(op, leg.ended_ps))
        return tuple(found)

    def _answer(self) -> Answer | None:
        sent: dict[int, int] = {}
        first_ps = self._of_flow[self._psn][0].sent_ps
        for leg in self._legs:
            header = of_leg(leg)
            if header is None or not header.is_ack or header.qpn != self._flow.qpn:
                continue
            if header.dst != self._flow.src or header.psn < self._psn or leg.sent_ps < first_ps:
                continue
            if leg.wire.source.node == self._target:
                sent.setdefault(header.psn, leg.sent_ps)
            if leg.wire.target.node == self._source and leg.fate is Fate.RECEIVED:
                assert leg.ended_ps is not None
                return Answer(header.psn, sent.get(header.psn, leg.sent_ps), leg.ended_ps)
        return None


def _crossing(leg: WireTransit) -> Crossing:
    header = of_leg(leg)
    took_ps = None if leg.ended_ps is None else leg.ended_ps - leg.sent_ps
    delay_ps = leg.wire.delay_ns * PS_PER_NS
    return Crossing(
        to=leg.wire.target.node,
        sent_ps=leg.sent_ps,
        length=leg.length + leg.virtual_bytes,
        ecn="" if header is None else header.ecn.name.lower(),
        fate=leg.fate.value,
        arrived_ps=leg.ended_ps if leg.fate is Fate.RECEIVED else None,
        transmission_ps=None if took_ps is None else took_ps - delay_ps,
        propagation_ps=None if took_ps is None else delay_ps,
    )
