# SPDX-License-Identifier: Apache-2.0
"""Packet tracking: what a running switch does to chosen packets, and which packets overtake them in queues.

The switch makes full records of the chosen packets, and brief records of all others (TR_TRACE_BRIEF).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tailrace.switch.core.lib import C
from tailrace.switch.core.switch import V1ModelSwitch
from tailrace.switch.trace.events import Trace
from tailrace.switch.trace.records import DescribeEntity, TraceRecord, drop_name, no_description, octets
from tailrace.switch.trace.watcher import PacketWatcher

BUFFER_FIELDS = 1 << 21
"""Size of the record buffer, which is read at each poll: 16 MiB."""

MOST_OVERTAKING = 1000
"""How many overtaking packets are listed for a packet in a queue; more are only counted."""

Arrival = tuple[int, int]
"""Time in ps, and port, of a packet's arrival or departure."""


@dataclass(slots=True)
class Overtaking:
    """A packet that joined a port's queues later than a tracked packet, and left them earlier."""

    priority: int
    queued_ps: int
    left_ps: int
    frame: bytes = b""


@dataclass(slots=True)
class QueueResidence:
    """A packet's stay in a queue.

    packets, bytes: what waited in the queue when the packet joined it
    queued_ps, left_ps: when it joined and left; None: it has not left
    paused_before_ps: the total time for which the queue had been paused before the stay
    paused_ps: how long the queue was paused during the stay
    overtakes: how many packets overtook it
    """

    port: int
    priority: int
    packets: int
    bytes: int
    queued_ps: int
    paused_before_ps: int
    left_ps: int | None = None
    paused_ps: int = 0
    overtakes: int = 0
    overtaking: list[Overtaking] = field(default_factory=list)
    later: dict[int, Overtaking] = field(default_factory=dict)
    """By packet number: packets that have joined the port's queues since, and are still there."""


@dataclass(slots=True)
class TrackedPacket:
    """What a switch did to one packet.

    reentries: how often it was resubmitted or recirculated
    sent: time and port of its departure
    frame, virtual_bytes: the bytes sent, and the number of further bytes, which are not stored
    drop: why it was dropped; "": it was not
    end_ps: when it was sent or dropped
    """

    queues: list[QueueResidence] = field(default_factory=list)
    reentries: int = 0
    sent: Arrival | None = None
    drop: str = ""
    end_ps: int | None = None
    trace: Trace | None = None
    frame: bytes = b""
    virtual_bytes: int = 0

    @property
    def ended(self) -> bool:
        return self.sent is not None or bool(self.drop)


class PacketTracker:
    """Tracks packets through a switch, until `close`, which must be called before the switch is closed.

    Meanwhile the switch runs the tracing build of its program, which takes several times as long per packet.

    Args:
        arrivals: the packets to track, by time and port of arrival.
        describe: describes entries, members and groups as the controller wrote them; called by `close`.

    Raises:
        TraceError: the switch has no program, or memory is exhausted.
        CompilerError: the program's tracing build cannot be compiled.
    """

    def __init__(
        self, switch: V1ModelSwitch, arrivals: Sequence[Arrival], describe: DescribeEntity = no_description
    ) -> None:
        self._switch = switch
        self._watcher = PacketWatcher(switch, BUFFER_FIELDS, describe)
        self._watcher.select(arrivals)
        self._watcher.attach()
        self._arrivals = set(arrivals)
        self._tracked: dict[int, TrackedPacket] = {}
        self._records: list[TraceRecord] = []
        self._leaving: dict[int, list[Overtaking]] = {}
        """By packet number: overtaking packets that have left a queue and are not sent yet."""
        self.packets: dict[Arrival, TrackedPacket] = {}
        """The tracked packets so far, by arrival."""
        self.overflows = 0
        """How many polls found that the record buffer had overflowed."""
        self._previous_callback = switch.on_program
        switch.on_program = self._program_replaced

    def _program_replaced(self) -> None:
        """Called when the switch gets another program: all packets in it are lost, so tracking ends."""
        self.poll()
        for packet in self._tracked.values():
            if not packet.ended:
                packet.drop = drop_name(C.TR_DROP_RELOAD)
        if self._previous_callback is not None:
            self._previous_callback()

    def close(self) -> None:
        """Takes the last records, and lets the switch run the regular build again."""
        self.poll()
        self._switch.on_program = self._previous_callback
        self._watcher.detach()
        events = self._watcher.events(self._records)
        for number, packet in self._tracked.items():
            packet.trace = self._watcher.trace(events, number, cut=bool(self.overflows))

    def poll(self) -> None:
        """Takes the records since the last poll; must be called before the buffer overflows."""
        for record in self._watcher.take():
            number = record.packet & ~C.TR_TRACE_BRIEF
            if number == record.packet:
                if record.kind == C.TR_RECORD_ENTER:
                    self._enter(number, (record.time_ps, record.payload[0]))
                self._records.append(record)
            self._take(record.kind, number, record.time_ps, record.payload)
        # the buffer had no space for some records (cut), or for all records of some packets (missed)
        self.overflows += bool(self._watcher.cut or self._watcher.missed)

    def _enter(self, number: int, arrival: Arrival) -> None:
        if number in self._tracked:
            self._tracked[number].reentries += 1
        elif arrival in self._arrivals and arrival not in self.packets:
            self._tracked[number] = self.packets[arrival] = TrackedPacket()

    def _take(self, kind: int, number: int, time_ps: int, payload: Sequence[int]) -> None:
        """Applies a record of packet `number`; tr_tracer.h lists the payload of each kind of record."""
        packet = self._tracked.get(number)
        if kind == C.TR_RECORD_QUEUE:
            self._queued(packet, number, time_ps, payload)
        elif kind == C.TR_RECORD_EGRESS:
            self._left(packet, number, time_ps, payload)
        elif kind == C.TR_RECORD_SENT:
            port, length, virtual_bytes, *limbs = payload
            frame = octets(limbs, length)
            for overtaking in self._leaving.pop(number, []):
                overtaking.frame = frame
            if packet is not None:
                packet.sent, packet.end_ps = (time_ps, port), time_ps
                packet.frame, packet.virtual_bytes = frame, virtual_bytes
        elif kind == C.TR_RECORD_DROP:
            self._leaving.pop(number, None)
            for tracked in self._tracked.values():
                for residence in tracked.queues[-1:]:  # the last stay, if there is one
                    residence.later.pop(number, None)
            if packet is not None:
                packet.drop = drop_name(payload[0])
                packet.end_ps = time_ps

    def _waiting(self, port: int) -> list[QueueResidence]:
        """The stays of tracked packets that wait at a port now."""
        return [
            residence
            for tracked in self._tracked.values()
            if not tracked.ended
            for residence in tracked.queues[-1:]
            if residence.left_ps is None and residence.port == port
        ]

    def _queued(
        self, packet: TrackedPacket | None, number: int, time_ps: int, payload: Sequence[int]
    ) -> None:
        port, priority, packets, waiting_bytes, paused_ps = payload
        for residence in self._waiting(port):
            residence.later[number] = Overtaking(priority, time_ps, 0)
        if packet is not None:
            packet.queues.append(QueueResidence(port, priority, packets, waiting_bytes, time_ps, paused_ps))

    def _left(self, packet: TrackedPacket | None, number: int, time_ps: int, payload: Sequence[int]) -> None:
        port, _priority, _ticks, paused_ps = payload
        if packet is not None and packet.queues:
            residence = packet.queues[-1]
            residence.left_ps, residence.paused_ps = time_ps, paused_ps - residence.paused_before_ps
            residence.later.clear()
        for residence in self._waiting(port):
            overtaking = residence.later.pop(number, None)
            if overtaking is None:
                continue
            overtaking.left_ps = time_ps
            residence.overtakes += 1
            if len(residence.overtaking) < MOST_OVERTAKING:
                residence.overtaking.append(overtaking)
                self._leaving.setdefault(number, []).append(overtaking)
