# SPDX-License-Identifier: Apache-2.0
"""Flowcut on the NIC alone (Flowcut §II-D): a flow's bytes in flight, its RTTs, and when it drains its path.

    sending --congestion, and enough packets unsent--> draining
    draining --nothing in flight--> sending, with a new source port
    draining --timeout (§IV-A)--> sending, with the old source port

The switches' ECMP chooses the path by the source port, so packets arrive in order as long as the port changes
only when no packet of the flow is in the network. The bytes in flight are the bytes sent minus the bytes that
NIC ACKs have reported. Lost data and lost NIC ACKs would count as in flight forever. Therefore the bytes in
flight are set to 0 `age_ns` after the last packet was sent, when no packet can be in flight any more. A drain
after a loss lasts until then.

A NIC ACK reports the bytes of one packet, or with `ack_every` of several packets with the same length and hop
count that arrived in order. Its timestamp is that of the last packet plus the delay of the ACK, so that this
delay is not part of the RTT. At the start of a drain, ACKs of packets in flight may also be delayed, so the
drain and `age_ns` are longer by at most that delay. The growth of the RTT is computed per packet.

RTTs are divided by r_min(h) + p·h·t (§II-B), where p·h·t is the transmission time of a packet of p bytes at h
hops, each of t per byte, and r_min(h) is the smallest RTT measured for h hops, minus the p·h·t of its packet.
"""

from __future__ import annotations

import random
from typing import Final

from tailrace.codec.calls import BYTE_MASK, COUNT_SHIFT, NEVER
from tailrace.codec.layout import HeaderLayout
from tailrace.codec.numbers import FIRST_PORT, LAST_PORT
from tailrace.hosts.options.nic import FlowcutNicConfig

TICKS_MASK: Final[int] = HeaderLayout("NicShim").mask("NicShim.ticks")


class MinRtt:
    """The smallest round-trip time for each hop count, of all flows of a NIC (Flowcut §II-B)."""

    __slots__ = ("_full_bytes", "_known_ns", "_min_ns", "_ns_per_byte")

    def __init__(self, ns_per_byte: float, known_ns: tuple[int, ...] = (), full_bytes: int = 0) -> None:
        """Args:
        ns_per_byte: transmission time of a byte at one hop.
        known_ns: r_min(h) by the number of hops h; 0, or no entry: r_min(h) is measured.
        full_bytes: length of a full frame; only full frames share a NIC ACK. 0: every frame has a NIC ACK.
        """
        self._ns_per_byte = ns_per_byte
        self._full_bytes = full_bytes
        # both: r_min(h) by h; given, and measured
        self._known_ns: dict[int, float] = {hops: float(ns) for hops, ns in enumerate(known_ns) if ns}
        self._min_ns: dict[int, float] = {}

    def packets(self, data_bytes: int) -> int:
        """The number of packets, 1 or more, that a NIC ACK of `data_bytes` acknowledges."""
        full_bytes = self._full_bytes
        if not full_bytes or data_bytes % full_bytes:
            return 1
        return max(1, data_bytes // full_bytes)

    def normalise(self, rtt_ns: int, frame_bytes: int, hops: int) -> float:
        """An RTT divided by the smallest possible RTT: 1 or more."""
        transmission_ns = frame_bytes * hops * self._ns_per_byte
        # at least 1, because this is a divisor below, and could be 0 if `ns_per_byte` is too large
        remaining_ns = max(1.0, rtt_ns - transmission_ns)
        smallest_ns = self._known_ns.get(hops, 0.0)
        if smallest_ns == 0:
            smallest_ns = min(remaining_ns, self._min_ns.get(hops, remaining_ns))
            self._min_ns[hops] = smallest_ns
        return max(1.0, rtt_ns / (smallest_ns + transmission_ns))

    def on_nic_ack(self, now_ns: int, count: int, ticks: int, from_ns: int) -> None:
        """Handles a NIC ACK of a flow that has ended; ignored if its packet was sent before `from_ns`.

        Args:
            count: bytes of the acknowledged frames << COUNT_SHIFT | hops.
            ticks: sending time of the last packet plus the delay of the NIC ACK, in ns modulo 2^32.
        """
        rtt_ns = (now_ns - ticks) & TICKS_MASK
        if now_ns - rtt_ns >= from_ns:
            data_bytes = count >> COUNT_SHIFT
            self.normalise(rtt_ns, data_bytes // self.packets(data_bytes), count & BYTE_MASK)


class FlowcutSender:
    """Flowcut of one flow, at its source.

    wire_sport: the current source port.
    drains: number of drains; drained_ns: total duration of the drains that have ended.
    reroutes: number of changes of the source port.
    timeouts: number of drains that ended by their timeout.
    """

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
        pause_timeout_ns: maximum duration of a drain.
        sport: the flow's original source port, with which it begins.
        rng: chooses later source ports.
        held_ns: the maximum delay of a NIC ACK.
        """
        self._rtt_threshold = config.rtt_threshold
        self._growth_threshold = config.growth_threshold
        self._alpha = config.alpha
        self._age_ns = config.age_ns + held_ns
        self._min_left = max(1, config.min_left)  # unsent packets without which no drain begins
        self._resume_bytes = config.resume_bytes  # bytes in flight at which a drain ends
        self._move: bool = config.move
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
        # when the bytes in flight were set to 0: NIC ACKs of earlier packets do not change them
        self._counted_from_ns = 0
        # when the last drain ended: NIC ACKs of earlier packets do not change the averages
        self.sampled_from_ns = 0
        self._average = 1.0  # of normalised RTTs
        self._growth = 0.0  # average growth of the normalised RTT from packet to packet
        self._previous_rtt: float | None = None

    @property
    def draining(self) -> bool:
        """Whether the flow is draining: no packet may be sent."""
        return self._drain_since_ns is not None

    def on_sent(self, now_ns: int, frame_bytes: int) -> None:
        """Records a data packet that was sent with the current source port."""
        self.in_flight_bytes += frame_bytes
        self._last_sent_ns = now_ns

    def on_nic_ack(self, now_ns: int, *, data_bytes: int, hops: int, ticks: int, left: int) -> None:
        """Handles a NIC ACK of this flow.

        Args:
            data_bytes: total length of the data frames that the NIC ACK acknowledges.
            hops: number of switches that these frames crossed.
            ticks: the sending time of the last frame plus the delay of the NIC ACK, in ns modulo 2^32.
            left: number of packets of the flow that have not been sent yet.
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
                self._end_drain(now_ns)
        elif self._congested() and left >= self._min_left:
            self._start_drain(now_ns)

    def deadline_ns(self) -> int:
        """When a drain ends without a NIC ACK; NEVER: the flow is not draining."""
        if self._drain_since_ns is None:
            return NEVER
        return min(self._forget_ns(), self._drain_since_ns + self._pause_timeout_ns)

    def on_time(self, now_ns: int) -> None:
        """Ends a drain after `age_ns`, with a new path, or after the timeout, with the old path."""
        if self._drain_since_ns is None:
            return
        if now_ns >= self._forget_ns():
            self.in_flight_bytes = 0
            self._counted_from_ns = now_ns
            self._end_drain(now_ns)
        elif now_ns >= self._drain_since_ns + self._pause_timeout_ns:
            self.timeouts += 1
            self._resume(now_ns)

    def finish(self, now_ns: int) -> None:
        """Ends the time counted as draining, since the flow has nothing left to send."""
        if self._drain_since_ns is not None:
            self._resume(now_ns)

    def total_ns(self, now_ns: int) -> int:
        """Time spent draining so far."""
        return self.drained_ns + (0 if self._drain_since_ns is None else now_ns - self._drain_since_ns)

    def _forget_ns(self) -> int:
        return self._last_sent_ns + self._age_ns

    def _sample(self, rtt: float, packets: int) -> None:
        """Updates both averages of Flowcut §II-B; the first sample of a path becomes the average.

        Args:
            rtt: normalised RTT.
            packets: number of packets of the sample.
        """
        alpha = self._alpha
        if self._previous_rtt is None:
            self._average = rtt
        else:
            self._average = alpha * rtt + (1 - alpha) * self._average
            self._growth = alpha * (rtt - self._previous_rtt) / packets + (1 - alpha) * self._growth
        self._previous_rtt = rtt

    def _congested(self) -> bool:
        growth_threshold = self._growth_threshold
        too_long = self._average > self._rtt_threshold
        return too_long or (growth_threshold is not None and self._growth > growth_threshold)

    def _start_drain(self, now_ns: int) -> None:
        self.drains += 1
        self._drain_since_ns = now_ns
        if self.in_flight_bytes <= self._resume_bytes:
            self._end_drain(now_ns)

    def _end_drain(self, now_ns: int) -> None:
        """Resumes, with another source port unless the flow keeps its path."""
        if self._move:
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
        self._previous_rtt = None
