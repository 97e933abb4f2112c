# SPDX-License-Identifier: Apache-2.0
"""A host in the network: its NIC, and the serialisation of what the NIC sends."""

from __future__ import annotations

from native.virtual.events import EventQueue, RankClass, rank
from native.virtual.nic import NicLike
from native.virtual.switch_node import Transmit
from native.virtual.wire import Wire

_NS_PER_S = 1_000_000_000


class HostNode:
    """One host. Without a NIC it is silent, and what arrives is gone."""

    def __init__(self, name: str, index: int, wire: Wire, queue: EventQueue, transmit: Transmit) -> None:
        self.name = name
        self.nic: NicLike | None = None
        self.wire = wire
        self.rate_bps = wire.nominal_rate_bps
        self._queue = queue
        self._rank = rank(RankClass.HOST, index)
        self._transmit = transmit
        self._free_ns = 0
        self._remainder = 0
        self._wake_ns: int | None = None

    def receive(self, now_ns: int, data: bytes, virtual_bytes: int) -> None:
        """A frame has arrived."""
        if self.nic is not None:
            self.nic.on_frame(now_ns, data, virtual_bytes)
            self.poll(now_ns)

    def poll(self, now_ns: int) -> None:
        """Sends if the wire is free and the NIC has something, and schedules when to look again."""
        nic = self.nic
        if nic is None:
            return
        if now_ns < self._free_ns:
            self._wake_at(self._free_ns)
            return
        frame = nic.next_frame(now_ns)
        if frame is None:
            next_ns = nic.next_time_ns(now_ns)
            if next_ns is not None:
                self._wake_at(max(next_ns, now_ns + 1))
            return
        data, virtual_bytes = frame.data, frame.virtual_bytes
        self._occupy(now_ns, len(data) + virtual_bytes)
        self._transmit(self.wire, now_ns, self._free_ns + self.wire.delay_ns, data, virtual_bytes)
        self._wake_at(self._free_ns)

    def _occupy(self, now_ns: int, nbytes: int) -> None:
        """Serialises; the remainder is carried on while the wire stays busy, so rounding never adds up."""
        if self._free_ns < now_ns:
            self._free_ns = now_ns
            self._remainder = 0
        duration, self._remainder = divmod(nbytes * 8 * _NS_PER_S + self._remainder, self.rate_bps)
        self._free_ns += duration

    def _wake_at(self, time_ns: int) -> None:
        if self._wake_ns is None or time_ns < self._wake_ns:
            self._wake_ns = time_ns
            self._queue.push(time_ns, self._rank, self._wake)

    def _wake(self, now_ns: int, _: object) -> None:
        if now_ns == self._wake_ns:
            self._wake_ns = None
            self.poll(now_ns)
