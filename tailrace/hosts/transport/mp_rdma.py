# SPDX-License-Identifier: Apache-2.0
"""MP-RDMA: one flow on many paths at once, steered by its acknowledgments (MP-RDMA §3, NSDI'18).

A path is a UDP source port: the switches' ECMP makes of it what it does. Nothing is kept for a path.

* Congestion window, in packets (§3): every acknowledgment without ECN echo adds 1/cwnd, every one with it
  takes 1/2 off.
* ACK clocking (§3): an acknowledgment echoes the source port of its packet, and the packets that it lets go
  take that port. So a path gets the next packet as fast as it delivered the last one, and one that marks
  packets gets less. With probability `probe` a packet takes a new random port instead.
* Out-of-order limit (§3): an acknowledgment of a packet more than `delta_packets` below the highest one that
  has arrived takes 1 off the window, so that nothing follows on that slow path.
* The receiver keeps a bitmap, takes packets in any order, and acknowledges every packet at once: what it has
  in order, the packet itself, its port and its mark.

Assumptions where the description leaves a choice: the window begins with `initial_bytes`, every packet of it
on a random port, and stays between one packet and the receiver's bitmap; where the NIC's own link holds
packets back, the newest acknowledgments count; a packet is taken for lost as in
selective repeat, when one `reorder_packets` later has arrived, or at a timeout; a timeout halves the window
and begins anew on random ports. A flow is one message, so nothing needs the synchronise flag.
"""

from __future__ import annotations

import random
from collections import deque

from tailrace.codec.numbers import FIRST_PORT, LAST_PORT
from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.transport.base import ACK, NOTHING, SILENCE
from tailrace.hosts.transport.selective_repeat import SelectiveRepeatReceiver, SelectiveRepeatSender


class MpRdmaSender(SelectiveRepeatSender):
    """Sends on the paths that acknowledgments came from.

    cwnd: congestion window in packets.
    """

    __slots__ = ("_delta_packets", "_most", "_paths", "_probe", "_rng", "cwnd")

    def __init__(self, packets: int, config: NicConfig, sport: int, rng: random.Random) -> None:
        """Args:
        packets: length of the flow, 1 or more.
        sport: the flow's own UDP source port, which it does not use.
        rng: chooses source ports.
        """
        super().__init__(packets, config, sport)
        self._rng = rng
        self._delta_packets: int = config.mp_rdma.delta_packets
        self._probe: float = config.mp_rdma.probe
        self._most: int = config.bitmap_packets
        self.cwnd = float(config.initial_packets)
        # the receiver's bitmap bounds what may be outstanding, the congestion window what is in flight
        self._window_packets = self._most
        # source ports of the packets that may be sent; the newest goes first, for it knows best
        self._paths: deque[int] = deque()
        self._spread()

    @property
    def in_flight(self) -> int:
        """Packets that were sent and have neither arrived nor been taken for lost."""
        waiting = 0
        for position in range(self._lost_at, len(self._lost)):
            index = self._lost[position]
            if index >= self.acked and index not in self._arrived:
                waiting += 1
        return self.fresh - self.acked - len(self._arrived) - waiting

    def peek(self) -> int:
        """A lost packet or the first fresh one, if there is a path for it."""
        if not self._paths:
            return NOTHING
        index = super().peek()
        if index != NOTHING:
            self.sport = self._paths[-1]
        return index

    def _advance(self, index: int) -> None:
        super()._advance(index)
        self._paths.pop()

    def on_response(self, now_ns: int, nak: bool, expected: int, arrived: int) -> None:
        """What the receiver has; an acknowledgment that was overtaken still tells of its own packet."""
        expected = max(expected, self.acked)
        super().on_response(now_ns, nak or arrived > expected, expected, arrived)

    def on_echo(self, arrived: int, sport: int, marked: bool) -> None:
        """Changes the window, and lets packets go on the path of the packet that has arrived."""
        if not 0 <= arrived < self.fresh:
            return
        cwnd = self.cwnd + (-0.5 if marked else 1.0 / self.cwnd)
        self._top = max(self._top, arrived)
        slow = arrived < self._top - self._delta_packets
        if slow:
            cwnd -= 1.0
        self.cwnd = min(max(cwnd, 1.0), float(self._most))
        paths, room = self._paths, int(self.cwnd) - self.in_flight
        if paths and not (slow or marked):
            # the link has not kept up with the window: this path instead of the one that waits longest
            paths.append(self._next_port(sport))
        while len(paths) < room:
            paths.append(self._next_port(sport))
        while len(paths) > max(room, 0):
            paths.popleft()

    def _on_timeout(self) -> None:
        super()._on_timeout()
        self.cwnd = max(self.cwnd / 2.0, 1.0)
        self._paths.clear()
        self._spread()

    def _spread(self) -> None:
        for _ in range(min(int(self.cwnd) - self.in_flight, self.packets - self.acked)):
            self._paths.append(self._random_port())

    def _next_port(self, sport: int) -> int:
        return self._random_port() if self._rng.random() < self._probe else sport

    def _random_port(self) -> int:
        port: int = self._rng.randint(FIRST_PORT, LAST_PORT)
        return port


class MpRdmaReceiver(SelectiveRepeatReceiver):
    """Takes packets in any order within its bitmap, and acknowledges each of them, or as NicConfig has it."""

    __slots__ = ()

    def __init__(self, packets: int, config: NicConfig) -> None:
        """Args: packets: length of the flow, 1 or more."""
        super().__init__(packets, config)
        self.reports_arrival = True

    def _beyond(self) -> int:
        return self._respond(ACK) if self._keep() else SILENCE
