# SPDX-License-Identifier: Apache-2.0
"""MP-RDMA: one flow on many paths at once, chosen by its acknowledgments (MP-RDMA §3, NSDI'18).

A path is a UDP source port, which the switches' ECMP maps to a route. There is no state per path.

* Congestion window, in packets (§3): an ACK without ECN echo adds 1/cwnd, an ACK with ECN echo subtracts 1/2.
* ACK clocking (§3): an ACK echoes the source port of its packet, and the packets sent because of this ACK use
  that port. Thus a path carries new packets at the rate at which it delivers packets, and a path that marks
  packets carries fewer. With probability `probe` a packet uses a new random port instead.
* Out-of-order limit (§3): if the PSN of an acknowledged packet is more than `delta_packets` below the highest
  PSN that has arrived, its path is slow. The ACK subtracts 1 from the window, so that no packet follows on
  that path.
* The receiver has a bitmap, accepts packets in any order, and acknowledges each at once: the ACK contains the
  expected PSN, the packet's PSN, its port and its mark.

Assumptions where the description leaves a choice:

* The window begins with `initial_bytes`, and is between one packet and the receiver's bitmap. Each packet of
  the initial window uses a random port.
* If the NIC's link is too slow for all packets that the window allows, the ports of the newest ACKs are used.
* As in selective repeat, a packet is lost when a packet at least `reorder_packets` later has arrived, or
  at a timeout. A timeout halves the window, and packets use random ports again.
* The synchronise flag (a message is delivered only after all earlier messages) is not needed: a flow is one
  message.
"""

from __future__ import annotations

import random
from collections import deque

from tailrace.codec.numbers import FIRST_PORT, LAST_PORT
from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.transport.base import ACK, NOTHING, SILENCE
from tailrace.hosts.transport.selective_repeat import SelectiveRepeatReceiver, SelectiveRepeatSender


class MpRdmaSender(SelectiveRepeatSender):
    """Sends on the paths whose ports acknowledgments echo.

    cwnd: congestion window in packets.
    """

    __slots__ = ("_delta_packets", "_most", "_paths", "_probe", "_rng", "cwnd")

    def __init__(self, packets: int, config: NicConfig, sport: int, rng: random.Random) -> None:
        """Args:
        packets: length of the flow, 1 or more.
        sport: the flow's original UDP source port; not used.
        rng: chooses source ports.
        """
        super().__init__(packets, config, sport)
        self._rng = rng
        self._delta_packets: int = config.mp_rdma.delta_packets
        self._probe: float = config.mp_rdma.probe
        self._most: int = config.bitmap_packets
        self.cwnd = float(config.initial_packets)
        # the receiver's bitmap limits the outstanding packets, the congestion window the packets in flight
        self._window_packets = self._most
        # source ports of the packets that may be sent now, oldest first; the newest port is used first
        self._paths: deque[int] = deque()
        self._draw_paths()

    @property
    def in_flight(self) -> int:
        """The number of packets that were sent and have neither arrived nor been declared lost."""
        # `_lost` before this position has been sent again; `fresh` is the first packet that was never sent
        lost = 0
        for position in range(self._next_lost_position, len(self._lost)):
            index = self._lost[position]
            if index >= self.acked and index not in self._arrived:
                lost += 1
        return self.fresh - self.acked - len(self._arrived) - lost

    def peek(self) -> int:
        """A lost packet, or else the first new packet, if there is a path for it."""
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
        """Handles an ACK; an ACK that was overtaken by later ACKs still reports its packet."""
        expected = max(expected, self.acked)
        # an ACK of a packet beyond `expected` has the information of a selective-repeat NAK
        super().on_response(now_ns, nak or arrived > expected, expected, arrived)

    def on_echo(self, arrived: int, sport: int, marked: bool) -> None:
        """Changes the window, and allows packets on the path of packet `arrived`."""
        if not 0 <= arrived < self.fresh:
            return
        cwnd = self.cwnd + (-0.5 if marked else 1.0 / self.cwnd)
        self._top = max(self._top, arrived)
        slow = arrived < self._top - self._delta_packets
        if slow:
            cwnd -= 1.0
        self.cwnd = min(max(cwnd, 1.0), float(self._most))
        paths, allowed = self._paths, int(self.cwnd) - self.in_flight
        if paths and not (slow or marked):
            # unused ports remain, since the link is slower than the window: this port replaces the oldest
            paths.append(self._next_port(sport))
        while len(paths) < allowed:
            paths.append(self._next_port(sport))
        while len(paths) > max(allowed, 0):
            paths.popleft()

    def _on_timeout(self) -> None:
        super()._on_timeout()
        self.cwnd = max(self.cwnd / 2.0, 1.0)
        self._paths.clear()
        self._draw_paths()

    def _draw_paths(self) -> None:
        """Draws a random port for each packet that the window allows."""
        for _ in range(min(int(self.cwnd) - self.in_flight, self.packets - self.acked)):
            self._paths.append(self._random_port())

    def _next_port(self, sport: int) -> int:
        return self._random_port() if self._rng.random() < self._probe else sport

    def _random_port(self) -> int:
        port: int = self._rng.randint(FIRST_PORT, LAST_PORT)
        return port


class MpRdmaReceiver(SelectiveRepeatReceiver):
    """Accepts packets in any order within its bitmap, and acknowledges each at once.

    In the subclass DctcpReceiver, packets in order share an ACK if NicConfig.ack_every is above 1.
    """

    __slots__ = ()

    def __init__(self, packets: int, config: NicConfig) -> None:
        """Args: packets: length of the flow, 1 or more."""
        super().__init__(packets, config)
        self.reports_arrival = True

    def _beyond(self) -> int:
        """Records a packet beyond the expected packet, if the bitmap has space, and acknowledges it."""
        return self._respond(ACK) if self._keep() else SILENCE
