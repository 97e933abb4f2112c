# SPDX-License-Identifier: Apache-2.0
"""Flowcut on the NIC alone (Flowcut §II-D): a flow's bytes in flight, its round-trip times, and its draining.

    following --congestion, and enough left--> draining
    draining --nothing in flight--> following, by a new source port
    draining --timeout (§IV-A)--> following, by the old source port

The path is what the switches' ECMP makes of the source port, so the order is kept as long as the port
changes only when nothing of the flow is in the network. In flight is what was sent less what NIC ACKs have
told of. Lost data and lost NIC ACKs would stay in flight for ever: what remains is forgotten `age_ns` after
the last packet was sent, for then nothing can be under way any more. That is long; so a drain after a loss
lasts that long.

A NIC ACK is for one packet, or with `ack_every` for several of one length and one hop count that came in
order: it takes off the bytes of all, and its stamp is that of the last, moved on by the time for which the
ACK was delayed, so that this is no part of the round-trip time. What is in flight when a drain begins may
be delayed, too: the drain, and the age, last so much longer at most. The growth of the round-trip time is
that for each packet.

Round-trip times are normalised by r_min(h) + p·h·t (§II-B): r_min(h) is the smallest time seen for h hops,
less the transmission time p·h·t of a packet of p bytes.
"""

from __future__ import annotations

import random
from typing import Final

from tailrace.codec.calls import BYTE_MASK, COUNT_SHIFT, NEVER
from tailrace.codec.layers.nic_shim import NicShim
from tailrace.codec.layout import HeaderLayout
from tailrace.codec.numbers import FIRST_PORT, LAST_PORT
from tailrace.hosts.options.nic import FlowcutNicConfig

TICKS_MASK: Final[int] = HeaderLayout(NicShim).mask("NicShim.ticks")


class MinRtt:
    """The smallest round-trip time for each hop count, of all flows of a NIC (Flowcut §II-B)."""

    __slots__ = ("_full_bytes", "_known_ns", "_min_ns", "_ns_per_byte")

    def __init__(self, ns_per_byte: float, known_ns: tuple[int, ...] = (), full_bytes: int = 0) -> None:
        """Args:
        ns_per_byte: transmission time of a byte at one hop.
        known_ns: r_min(h) by the hops h, where it need not be observed; 0: it must be.
        full_bytes: length of the frames of which one NIC ACK may be for several; 0: of none.
        """
        self._ns_per_byte = ns_per_byte
        self._full_bytes = full_bytes
        self._known_ns: dict[int, float] = {hops: float(ns) for hops, ns in enumerate(known_ns) if ns}
        self._min_ns: dict[int, float] = {}

    def packets(self, data_bytes: int) -> int:
        """How many packets a NIC ACK of so many bytes is for, at least 1: only full ones share one."""
        full_bytes = self._full_bytes
        if not full_bytes or data_bytes % full_bytes:
            return 1
        return max(1, data_bytes // full_bytes)

    def normalise(self, rtt_ns: int, frame_bytes: int, hops: int) -> float:
        """A round-trip time over the smallest possible one: 1 or more."""
        transmission_ns = frame_bytes * hops * self._ns_per_byte
        # the smallest time is at least 1, lest a rate that is set too low lead to a division by nothing
        own_ns = max(1.0, rtt_ns - transmission_ns)
        smallest_ns = self._known_ns.get(hops, 0.0)
        if smallest_ns == 0:
            smallest_ns = min(own_ns, self._min_ns.get(hops, own_ns))
            self._min_ns[hops] = smallest_ns
        return max(1.0, rtt_ns / (smallest_ns + transmission_ns))

    def on_nic_ack(self, now_ns: int, count: int, ticks: int, from_ns: int) -> None:
        """A NIC ACK of a flow that has ended; of a packet that was sent before `from_ns` it says nothing."""
        rtt_ns = (now_ns - ticks) & TICKS_MASK
        if now_ns - rtt_ns >= from_ns:
            data_bytes = count >> COUNT_SHIFT
            self.normalise(rtt_ns, data_bytes // self.packets(data_bytes), count & BYTE_MASK)


class FlowcutSender:
    """Flowcut of one flow, at its source."""

    def __init__(
        self,
        config: FlowcutNicConfig,
        min_rtt: MinRtt,
        pause_timeout_ns: int,
        sport: int,
        rng: random.Random,
        *,
        held_ns: int = 0,
    ) -> None:
        """Args:
        min_rtt: shared by all flows of the NIC.
        pause_timeout_ns: how long a drain lasts at most.
        sport: the flow's own source port, and its first one on the wire.
        rng: chooses the other ones.
        held_ns: the maximum delay of a NIC ACK.
        """
        self._rtt_threshold = config.rtt_threshold
        self._growth_threshold = config.growth_threshold
        self._alpha = config.alpha
        self._age_ns = config.age_ns + held_ns
        self._min_left = max(1, config.min_left)
        self._resume_bytes = config.resume_bytes
        self._min_rtt = min_rtt
        self._pause_timeout_ns = pause_timeout_ns
        self._rng = rng
        self.wire_sport = sport
        self.in_flight_bytes = 0
        self.drains = 0
        self.drained_ns = 0
        self.reroutes = 0
        self.timeouts = 0
        self._drain_since_ns: int | None = None
        self._last_sent_ns = 0
        # NIC ACKs of packets sent before these moments do not count: for the bytes in flight (these were
        # forgotten), and for the averages (another path).
        self._counted_from_ns = 0
        self.sampled_from_ns = 0
        self._average = 1.0
        self._growth = 0.0
        self._previous: float | None = None

    @property
    def draining(self) -> bool:
        """Whether nothing of the flow may be sent."""
        return self._drain_since_ns is not None

    def on_sent(self, now_ns: int, frame_bytes: int) -> None:
        """A data packet left with the present source port."""
        self.in_flight_bytes += frame_bytes
        self._last_sent_ns = now_ns

    def on_nic_ack(self, now_ns: int, *, data_bytes: int, hops: int, ticks: int, left: int) -> None:
        """A NIC ACK of this flow.

        Args:
            data_bytes: length of the data frames that it is for.
            hops: switches that they crossed.
            ticks: the sending time of the last one, ns modulo 2^32, and the delay of the NIC ACK.
            left: packets of the flow that have never been sent.
        """
        rtt_ns = (now_ns - ticks) & TICKS_MASK
        sent_ns = now_ns - rtt_ns
        if sent_ns >= self._counted_from_ns:
            self.in_flight_bytes = max(0, self.in_flight_bytes - data_bytes)
        if sent_ns >= self.sampled_from_ns:
            packets = self._min_rtt.packets(data_bytes)
            self._sample(self._min_rtt.normalise(rtt_ns, data_bytes // packets, hops), packets)
        if self._drain_since_ns is not None:
            if self.in_flight_bytes <= self._resume_bytes:
                self._reroute(now_ns)
        elif self._congested() and left >= self._min_left:
            self._start_drain(now_ns)

    def deadline_ns(self) -> int:
        """When a drain ends by itself; NEVER: there is none."""
        if self._drain_since_ns is None:
            return NEVER
        return min(self._forget_ns(), self._drain_since_ns + self._pause_timeout_ns)

    def on_time(self, now_ns: int) -> None:
        """A drain is over after its age, with a new path, or after the timeout, with the old one."""
        if self._drain_since_ns is None:
            return
        if now_ns >= self._forget_ns():
            self.in_flight_bytes = 0
            self._counted_from_ns = now_ns
            self._reroute(now_ns)
        elif now_ns >= self._drain_since_ns + self._pause_timeout_ns:
            self.timeouts += 1
            self._resume(now_ns)

    def finish(self, now_ns: int) -> None:
        """The flow has nothing left to send: a drain counts no further."""
        if self._drain_since_ns is not None:
            self._resume(now_ns)

    def total_ns(self, now_ns: int) -> int:
        """Time spent draining so far."""
        return self.drained_ns + (0 if self._drain_since_ns is None else now_ns - self._drain_since_ns)

    def _forget_ns(self) -> int:
        return self._last_sent_ns + self._age_ns

    def _sample(self, rtt: float, packets: int) -> None:
        """Both averages of Flowcut §II-B; the first sample of a path is its average.

        Args: packets: how many it stands for.
        """
        alpha = self._alpha
        if self._previous is None:
            self._average = rtt
        else:
            self._average = alpha * rtt + (1 - alpha) * self._average
            self._growth = alpha * (rtt - self._previous) / packets + (1 - alpha) * self._growth
        self._previous = rtt

    def _congested(self) -> bool:
        growth_threshold = self._growth_threshold
        too_long = self._average > self._rtt_threshold
        return too_long or (growth_threshold is not None and self._growth > growth_threshold)

    def _start_drain(self, now_ns: int) -> None:
        self.drains += 1
        self._drain_since_ns = now_ns
        if self.in_flight_bytes <= self._resume_bytes:
            self._reroute(now_ns)

    def _reroute(self, now_ns: int) -> None:
        """Goes on by another source port."""
        old = self.wire_sport
        while self.wire_sport == old:
            self.wire_sport = self._rng.randint(FIRST_PORT, LAST_PORT)
        self.reroutes += 1
        self._resume(now_ns)

    def _resume(self, now_ns: int) -> None:
        assert self._drain_since_ns is not None
        self.drained_ns += now_ns - self._drain_since_ns
        self._drain_since_ns = None
        self.sampled_from_ns = now_ns
        self._average = 1.0
        self._growth = 0.0
        self._previous = None
