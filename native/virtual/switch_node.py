# SPDX-License-Identifier: Apache-2.0
"""A compiled switch in the network: frames in from wires, frames out to wires, the CPU port to an endpoint.

The fast way into the core: native.runtime.Switch takes a lock for every call, which one thread does not need.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref

from native.runtime import Switch, lib
from native.virtual.errors import NetworkError
from native.virtual.events import EventQueue, RankClass, rank
from native.virtual.wire import Deliver, Wire

_string_at = ctypes.string_at
# tr_run returns early when packets circle without time passing; so often it is called again
_IDLE_ROUNDS = 64

Transmit = Callable[[Wire, int, int, bytes, int], None]
"""transmit(wire, now_ns, arrival_ns, frame, virtual_bytes)"""


class SwitchNode:
    """One switch; `wires_out` by port. Frames for `cpu_port` are handed to `to_cpu`."""

    def __init__(
        self,
        name: str,
        index: int,
        switch: Switch,
        queue: EventQueue,
        transmit: Transmit,
        cpu_port: int | None,
    ) -> None:
        self.name = name
        self.switch = switch
        self.wires_out: dict[int, Wire] = {}
        self.to_cpu: Callable[[bytes], None] = _ignore
        self.frames_in = 0
        self.unwired = 0
        """Frames sent to a port without a wire."""
        self._queue = queue
        self._rank = rank(RankClass.SWITCH, index)
        self._transmit = transmit
        self._cpu_port = cpu_port
        self._wake_ns = lib.NEVER
        self._handle = switch.handle
        core = lib.load()
        self._rx, self._run = core.tr_rx_virtual, core.tr_run
        self._pop, self._release = core.tr_pop, core.tr_release
        self._out = lib.COut()
        self._out_ref = byref(self._out)

    def receiver(self, port: int) -> Deliver:
        """What a wire to a port delivers to."""

        def deliver(now_ns: int, data: bytes, virtual_bytes: int) -> None:
            self.receive(now_ns, port, data, virtual_bytes)

        return deliver

    def receive(self, now_ns: int, port: int, data: bytes, virtual_bytes: int) -> None:
        """A frame has arrived on a port.

        Raises:
            NetworkError: the core takes no such frame.
        """
        self.frames_in += 1
        if self._rx(self._handle, port, data, len(data), virtual_bytes, now_ns) != lib.OK:
            raise NetworkError(f"{self.name}: port {port} takes no frame of {len(data)} bytes")
        self.settle(now_ns)

    def settle(self, now_ns: int) -> None:
        """Lets the switch do what is due, takes out what it sent, and schedules its next event."""
        handle, out = self._handle, self._out
        next_ns = self._run(handle, now_ns)
        for _ in range(_IDLE_ROUNDS):
            if next_ns > now_ns:
                break
            next_ns = self._run(handle, now_ns)
        while self._pop(handle, self._out_ref):
            data = _string_at(out.data, out.len) if out.len else b""
            port, virtual_bytes, time_ns = out.port, out.virt, out.time_ns
            self._release(handle, out.slot)
            wire = self.wires_out.get(port)
            if wire is not None:
                self._transmit(wire, now_ns, time_ns, data, virtual_bytes)
            elif port == self._cpu_port:
                self.to_cpu(data)
            else:
                self.unwired += 1
        if next_ns <= now_ns:
            raise NetworkError(f"{self.name}: packets circle through the switch without time passing")
        if next_ns < self._wake_ns:
            self._wake_ns = next_ns
            self._queue.push_traffic(next_ns, self._rank, self._wake)

    def _wake(self, now_ns: int, _: object) -> None:
        self._queue.traffic -= 1
        # an earlier event may have been scheduled after this one, and made it superfluous
        if now_ns == self._wake_ns:
            self._wake_ns = lib.NEVER
            self.settle(now_ns)


def _ignore(_: bytes) -> None:
    return None
