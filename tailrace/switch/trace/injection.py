# SPDX-License-Identifier: Apache-2.0
"""Packet injection: a running switch receives a packet, and its processing is traced."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tailrace.switch.core.lib import C
from tailrace.switch.core.switch import V1ModelSwitch
from tailrace.switch.trace.dry_run import MOST_RECORD_FIELDS
from tailrace.switch.trace.events import Trace
from tailrace.switch.trace.records import (
    PACKET_ENDS,
    DescribeEntity,
    TraceRecord,
    no_description,
    octets,
)
from tailrace.switch.trace.watcher import PacketWatcher, TraceError

MOST_S = 2.0
"""How long an injected packet and its copies are traced at most."""

POLL_S = 0.005
"""Time between two polls."""

BUFFER_FIELDS = 1 << 20
"""Size of the record buffer, which is read at each poll: 8 MiB. Packets that arrive meanwhile use it, too."""

InjectFrame = Callable[[int, bytes], None]
"""Injects a frame into the switch, as if a port received it now."""


def send_packet(
    switch: V1ModelSwitch,
    inject: InjectFrame,
    port: int,
    data: bytes,
    *,
    most_s: float = MOST_S,
    ended: threading.Event | None = None,
    describe: DescribeEntity = no_description,
) -> Trace:
    """Injects a packet into a switch that runs in real time, and waits until it and its copies have left.

    The packet is a real one: it waits in queues, is counted, changes registers, and leaves on the wire.
    Until then the switch runs the tracing build of its program, which takes several times as long per packet.
    Other packets are not traced.

    Args:
        most_s: limit of the wait; `Trace.inside` is how many packets and copies are in the switch then.
        ended: an event that ends the wait.
        describe: describes entries, members and groups as the controller wrote them; called at the end.

    Raises:
        TraceError: the switch has no program or no such port, or did not accept the packet.
        CompilerError: the program's tracing build cannot be compiled.
    """
    if switch.on_program is not None:
        raise TraceError("the switch traces every packet already: see its log or its coverage")
    ended = ended or threading.Event()
    watcher, packet = PacketWatcher(switch, BUFFER_FIELDS, describe), _InjectedPacket(port, data)
    try:
        watcher.attach()
        # packets that arrive between these two calls are recorded as well; `_InjectedPacket` ignores them
        inject(port, data)
        watcher.attach(recording=False)  # later packets are not recorded
        ends_s = time.monotonic() + most_s
        while packet.poll(watcher) and time.monotonic() < ends_s and switch.program is watcher.program:
            if ended.wait(POLL_S):
                break
    finally:
        watcher.detach()
    assert packet.number is not None
    events = watcher.events(packet.records)
    return watcher.trace(events, packet.number, cut=packet.cut, inside=len(packet.inside))


class _InjectedPacket:
    """The records of a packet and its copies; `inside`: numbers of those that are still in the switch."""

    def __init__(self, port: int, data: bytes) -> None:
        self._port, self._data, self._size = port, data, 0
        self.number: int | None = None
        self.records: list[TraceRecord] = []
        self.inside: set[int] = set()
        self.cut = False

    def poll(self, watcher: PacketWatcher) -> bool:
        """Takes the records since the last poll; returns whether more are to be expected.

        Raises:
            TraceError: the switch did not accept the packet.
        """
        for record in watcher.take():
            if self.number is None and self._is_arrival(record):
                self.number = record.packet
                self.inside.add(record.packet)
            if record.packet not in self.inside:
                continue
            self.records.append(record)
            self._size += record.size
            if record.kind == C.TR_RECORD_COPY:
                self.inside.add(record.payload[0])  # the number of the copy
            elif record.kind in PACKET_ENDS:
                self.inside.discard(record.packet)
        # without a limit, a packet that recirculates for ever would be recorded for ever
        self.cut = watcher.cut or self._size > MOST_RECORD_FIELDS
        if self.number is None:
            if self.cut:
                raise TraceError("too many packets arrived at the same time: try again")
            raise TraceError(
                f"port {self._port}: the switch did not accept the packet: a PAUSE frame, or a buffer is full"
            )
        return bool(self.inside) and not self.cut

    def _is_arrival(self, record: TraceRecord) -> bool:
        if record.kind != C.TR_RECORD_ENTER:
            return False
        port, length, _virtual_bytes, *limbs = record.payload
        return port == self._port and octets(limbs, length) == self._data
