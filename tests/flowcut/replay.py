# SPDX-License-Identifier: Apache-2.0
"""Compares what one switch did with what the model says, packet by packet.

Data that came in and never left was dropped by the queue's limit; everything else must be explained. The order
of what happens at one instant is not always that of the events: a port that becomes free takes its next packet
before an arrival at the same time is looked at. So the load of a queue is known between two bounds.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass

from tailrace.topology import Topology, next_hops
from tests.flowcut.dump import Dump, DumpedEntry
from tests.flowcut.frames import Key, Kind, Parsed, Stamp
from tests.flowcut.oracle import Bucket, Entry, Mark, MismatchError, Oracle
from tests.flowcut.watch import Event, Watch

_ANY_PORT = -1
_MOST_CONTROL_BYTES = 200
_TICKS_MASK = 0xFFFFFFFF

Control = tuple[object, ...]
"""Of an ACK: bytes, hops, stamps, congested, hops back; of a flow pause: operation, credit; of PFC: quanta."""


def _ack(nbytes: int, hops: int, stamps: tuple[Stamp, ...], congested: bool, hops_back: int) -> Control:
    return nbytes, hops, stamps, congested, hops_back


@dataclass(frozen=True)
class Place:
    """A switch in its network: its hosts' ports by address, its next hops to every other host."""

    local: dict[str, int]
    next_hops: dict[str, tuple[int, ...]]

    @staticmethod
    def of(topology: Topology, switch: str) -> Place:
        hops = next_hops(topology)[switch]
        local = {host.ip: host.port for host in topology.hosts_of(switch)}
        return Place(local, {h.ip: hops[h.switch] for h in topology.hosts if h.switch != switch})


class Replay:
    """One switch against its model."""

    def __init__(self, watch: Watch, oracle: Oracle, *, full: bool, limit_bytes: int) -> None:
        self._place = Place.of(watch.network.topology, watch.switch)
        self._name = watch.switch
        self._events = watch.events
        self._oracle = oracle
        self._full = full
        self._limit_bytes = limit_bytes
        self._departures = {
            e.frame.packet: e.port
            for e in watch.events
            if e.what == "out" and e.frame and e.frame.kind is Kind.DATA
        }
        self._arrivals: dict[int, Event] = {}
        self._marks: dict[int, Mark] = {}
        """What the stamps of packets are to say."""
        self._ecmp: dict[Key, int] = {}
        self._expected: defaultdict[tuple[int, Kind, Key], deque[Control]] = defaultdict(deque)
        self._control: Counter[int] = Counter()
        """Control frames that wait, by port."""
        self._data_bytes: Counter[int] = Counter()
        """Data that waits, by port, in bytes on arrival."""
        self._at = 0
        self.decisions = 0

    def check(self) -> None:
        """Raises MismatchError at the first event that the model does not explain."""
        for at, event in enumerate(self._events):
            self._at = at
            frame = event.frame
            try:
                if event.dump is not None:
                    if event.what == "sweep":
                        self._oracle.sweep(event.now, event.dump.bucket)
                    self._compare(event.dump)
                elif frame is None or frame.kind in (Kind.OTHER, Kind.REPLY):
                    continue
                elif event.what == "in":
                    {Kind.DATA: self._data_in, Kind.ACK: self._ack_in}[frame.kind](event, frame)
                elif frame.kind is Kind.DATA:
                    self._data_out(event, frame)
                else:
                    self._control_out(event, frame)
            except MismatchError as error:
                raise MismatchError(
                    f"{self._name} at {event.now} ns, event {at}: {error}\n  {event}"
                ) from None
        left = {place: queue for place, queue in self._expected.items() if queue}
        if left:
            raise MismatchError(f"{self._name}: never sent: {left}")

    # ---- data ----

    def _data_in(self, event: Event, frame: Parsed) -> None:
        port = self._departures.get(frame.packet)
        local = self._place.local.get(frame.key[1])
        self._arrivals[frame.packet] = event
        if local is not None:
            self._expect(port in (None, local), f"data for port {local} left by {port}")
        else:
            candidates = self._place.next_hops[frame.key[1]]
            if self._full or not frame.shim:
                self._tracked_in(event, frame, port, candidates)
            elif port is None:
                self._check_drop(frame, candidates)
            else:
                self._expect(port in candidates, f"port {port} does not lead there")
                same = self._ecmp.setdefault(frame.key, port)
                self._expect(port == same, f"ECMP path {same} became {port}")
        if port is None:
            if local is not None:
                self._check_drop(frame, (local,))
        else:
            low, _ = self._load(port)
            over = self._limit_bytes and low + frame.wire_bytes > self._limit_bytes
            self._expect(
                not over, f"queue of port {port} takes more than its limit: {low} bytes and this one"
            )
            self._data_bytes[port] += frame.wire_bytes

    def _tracked_in(self, event: Event, frame: Parsed, port: int | None, candidates: tuple[int, ...]) -> None:
        self.decisions += 1
        if frame.stamps and frame.stamps[0].drained:
            self._oracle.heed(event.now, frame.key)
        choice = self._oracle.may_go(event.now, frame.key, candidates)
        if port is None:
            if choice.ports:
                self._check_drop(frame, choice.ports)
            return
        self._expect(port in choice.ports, f"sent to {port}, not to one of {choice.ports}")
        if choice.by_load:
            low, _ = self._load(port)
            best = min(choice.ports, key=lambda other: self._load(other)[1])
            most = self._load(best)[1]
            self._expect(low <= most, f"port {port} has {low} bytes waiting, port {best} at most {most}")
        sent = event.now, frame.key, frame.nbytes, event.port, port, frame.left, candidates
        self._marks[frame.packet] = self._oracle.sent(*sent)

    def _check_drop(self, frame: Parsed, ports: tuple[int, ...]) -> None:
        most = max(self._load(port)[1] for port in ports)
        full = self._limit_bytes and most + frame.wire_bytes > self._limit_bytes
        self._expect(bool(full), f"dropped although no queue of {ports} has more than {most} bytes")

    def _data_out(self, event: Event, frame: Parsed) -> None:
        arrival = self._arrivals.get(frame.packet)
        if arrival is None or arrival.frame is None:
            raise MismatchError("left before it came, or was invented")
        before = arrival.frame
        self._data_bytes[event.port] -= before.wire_bytes
        self._expect(frame.key == before.key and frame.nbytes == before.nbytes, "changed on its way")
        if event.port in self._place.local.values():
            self._expect(not frame.shim, "a host gets a shim")
            if before.shim:
                turned = _ack(frame.nbytes, before.hops, before.stamps, False, 0)
                self._wait_for(arrival.port, Kind.ACK, frame.key, turned)
            return
        stamps, hops = before.stamps, before.hops + 1
        if self._full or not before.shim:
            mark = self._marks[frame.packet]
            new_stamp = Stamp(
                arrival.now & _TICKS_MASK, arrival.port, untracked=mark.untracked, drained=mark.drained
            )
            stamps = (new_stamp, *stamps)
        self._expect(frame.shim, "no shim between switches")
        self._expect((frame.stamps, frame.hops) == (stamps, hops), f"not stamped {stamps}, {hops} hops")

    # ---- ACKs and pauses ----

    def _ack_in(self, event: Event, frame: Parsed) -> None:
        at_source = frame.key[0] in self._place.local
        if not (self._full or at_source):
            back = frame.hops_back + 1
            passed = _ack(frame.acked_bytes, frame.hops, frame.stamps, frame.congested, back)
            self._wait_for(_ANY_PORT, Kind.ACK, frame.key, passed)
            return
        newest, *rest = frame.stamps
        self._expect(at_source == (not rest), "the source's switch is the one that stamped first")
        rtt = (event.now - newest.ticks) & _TICKS_MASK
        hops = frame.hops - len(rest)
        reaction = self._oracle.acknowledged(
            event.now, frame.key, frame.acked_bytes, rtt, hops, frame.congested, at_source, newest.untracked
        )
        if rest:
            onward = _ack(frame.acked_bytes, frame.hops, tuple(rest), reaction.congested, frame.hops_back)
            self._wait_for(newest.in_port, Kind.ACK, frame.key, onward)
        elif reaction.quanta is not None:
            self._wait_for(newest.in_port, Kind.PFC, Parsed(Kind.PFC, 0).key, (reaction.quanta,))
        elif reaction.op:
            self._wait_for(newest.in_port, Kind.PAUSE, frame.key, (reaction.op, reaction.credit_bytes))

    def _wait_for(self, port: int, kind: Kind, key: Key, content: Control) -> None:
        self._expected[port, kind, key].append(content)
        self._control[port] += 1

    def _control_out(self, event: Event, frame: Parsed) -> None:
        content: Control = (frame.op, frame.credit_bytes)
        if frame.kind is Kind.PFC:
            content = (frame.quanta,)
        if frame.kind is Kind.ACK:
            content = _ack(frame.acked_bytes, frame.hops, frame.stamps, frame.congested, frame.hops_back)
        for port in (event.port, _ANY_PORT):
            queue = self._expected[port, frame.kind, frame.key]
            if queue:
                first = queue.popleft()
                self._control[port] -= 1
                self._expect(first == content, f"expected {first}")
                return
        raise MismatchError("nothing called for it")

    # ---- dumps ----

    def _compare(self, dump: Dump) -> None:
        bucket = self._oracle.buckets.get(dump.bucket) or Bucket()
        self._expect(dump.untracked == bucket.untracked, f"model has {bucket.untracked} untracked bytes")
        for way, entry in zip(dump.ways, bucket.ways, strict=True):
            if entry is None:
                self._expect(way.in_flight == 0, f"model knows nothing of {way}")
                continue
            self._expect(_shown(entry) == way, f"model has {_shown(entry)}")

    # ---- parts ----

    def _load(self, port: int) -> tuple[int, int]:
        """At least and at most so many bytes wait for a port when the current event's packet is looked at."""
        high = self._data_bytes[port]
        leaving = 0
        now = self._events[self._at].now
        for index in range(self._at + 1, len(self._events)):
            event = self._events[index]
            if event.now != now:
                break
            frame = event.frame
            if event.what == "out" and event.port == port and frame is not None and frame.kind is Kind.DATA:
                arrival = self._arrivals.get(frame.packet)
                if (
                    arrival is not None
                    and arrival.frame is not None
                    and arrival is not self._events[self._at]
                ):
                    leaving += arrival.frame.wire_bytes
        control = self._control[port] + self._control[_ANY_PORT]
        return high - leaving, high + control * _MOST_CONTROL_BYTES

    @staticmethod
    def _expect(good: bool, otherwise: str) -> None:
        if not good:
            raise MismatchError(otherwise)


def _shown(entry: Entry) -> DumpedEntry:
    rtt = entry.rtt
    return DumpedEntry(
        entry.key,
        entry.state.value,
        entry.in_port,
        entry.out_port,
        entry.in_flight,
        entry.last,
        rtt.average,
        rtt.last,
        rtt.growth,
        entry.left,
        rtt.samples,
    )
