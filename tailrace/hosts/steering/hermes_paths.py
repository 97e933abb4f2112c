# SPDX-License-Identifier: Apache-2.0
"""The state of the paths to a place, as Hermes senses it at a NIC (Zhang et al., SIGCOMM 2017, §3.1).

    good         its share of marked packets is below T_ECN, and its RTT below T_RTT_low
    congested    its share of marked packets is above T_ECN, and its RTT above T_RTT_high
    grey         neither
    failed       for one host: more than 3 timeouts without an acknowledgment in between (a black hole);
                 for all: more than 1 % of its packets within 10 ms were retransmitted while not congested

All flows of a NIC to hosts at the same place share this state. A place (PathList.place) is a set of hosts
that are reached by the same paths.

DEVIATION: there are no probes, and NICs of a rack do not exchange their state. A path from which this NIC has
received no feedback for `stale_ns` counts as good, with the base RTT and no marks.

Assumptions where the description leaves a choice:

* RTT and share of marks are moving averages with their usual weights, 1/8 (TCP) and 1/16 (DCTCP). After
  `stale_ns` without feedback the RTT is that of the first packet, and the share begins at 0.
* Shares of retransmissions are computed over consecutive intervals. An interval is evaluated when the first
  packet after its end is sent to the place.
* A NAK or a timeout counts as one retransmission, even if several packets are retransmitted.
* A failed path can be used again after `failed_ns`.
"""

from __future__ import annotations

from typing import Final

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.dcqcn import HermesNicConfig
from tailrace.hosts.steering.base import ACK, ACK_ECN, NACK, TIMEOUT

# Kinds of paths.
GOOD: Final = 0
GREY: Final = 1
CONGESTED: Final = 2
FAILED: Final = 3

RTT_SHIFT: Final = 3  # weight 1/8
ECN_SHIFT: Final = 4  # weight 1/16
SHARE_BITS: Final = 20  # shares are in parts of 2^-20
SHARE_ONE: Final = 1 << SHARE_BITS
_NO_FEEDBACK: Final = -1
_METER_SHIFT: Final = 3  # a meter decays by 1/8 in each step
_METER_MOST: Final = 400  # after this number of steps nothing is left of 2^62 bytes


class RateMeter:
    """A sending rate as recently sent bytes: the discounting rate estimator of CONGA (SIGCOMM 2014).

    The value decays by 1/8 in every eighth of the averaging time, so for a steady rate it is the number of
    bytes sent during the averaging time.
    """

    __slots__ = ("_bytes", "_every_ns", "_since_ns")

    def __init__(self, time_ns: int) -> None:
        """Args: time_ns: averaging time."""
        self._every_ns = max(1, time_ns >> _METER_SHIFT)
        self._since_ns = 0
        self._bytes = 0

    def add(self, now_ns: int, sent_bytes: int) -> None:
        self._bytes = self.read(now_ns) + sent_bytes

    def read(self, now_ns: int) -> int:
        """The decayed number of bytes."""
        periods = (now_ns - self._since_ns) // self._every_ns
        if periods > 0:
            self._since_ns += periods * self._every_ns
            if periods >= _METER_MOST:
                self._bytes = 0
            for _ in range(periods if self._bytes else 0):
                self._bytes -= -(-self._bytes >> _METER_SHIFT)  # rounded up, so that 0 is reached
        return self._bytes


class HermesPaths:
    """All paths to a place."""

    __slots__ = (
        "_base_rtt_ns",
        "_ecn",
        "_ecn_better",
        "_ecn_threshold",
        "_failed_ns",
        "_failed_until_ns",
        "_feedback_ns",
        "_high_ns",
        "_hop_ns",
        "_index",
        "_interval_ends_ns",
        "_interval_ns",
        "_learns",
        "_least_packets",
        "_lost",
        "_lost_share",
        "_low_ns",
        "_meters",
        "_rtt_ns",
        "_sent",
        "_stale_ns",
    )

    def __init__(self, config: HermesNicConfig, paths: PathList) -> None:
        """There is no feedback from any path yet."""
        size = len(paths.evs)
        self._index: dict[int, int] = {ev: path for path, ev in enumerate(paths.evs)}
        self._learns: bool = config.base_rtt_ns == 0  # whether the least RTT sample becomes the base RTT
        self._base_rtt_ns: int = config.base_rtt_ns
        self._hop_ns: int = config.hop_ns  # Delta_RTT
        self._low_ns: int = int(config.rtt_low * config.hop_ns)  # above the base RTT
        self._high_ns: int = int(config.rtt_high * config.hop_ns)
        self._ecn_threshold: int = int(config.ecn_threshold * SHARE_ONE)
        self._ecn_better: int = int(config.ecn_better * SHARE_ONE)  # Delta_ECN
        self._stale_ns: int = config.stale_ns
        self._failed_ns: int = config.failed_ns
        self._interval_ns: int = config.interval_ns
        self._lost_share: float = config.lost_share
        self._least_packets: int = config.least_packets  # needed to classify a path by its retransmissions
        self._interval_ends_ns = 0
        self._feedback_ns: list[int] = [_NO_FEEDBACK] * size  # when the last feedback arrived
        self._rtt_ns: list[int] = [0] * size  # 0: no sample since the state was last stale
        self._ecn: list[int] = [0] * size  # share of marked packets, in parts of SHARE_ONE
        self._sent: list[int] = [0] * size  # packets in this interval
        self._lost: list[int] = [0] * size  # retransmissions in this interval
        self._failed_until_ns: list[int] = [0] * size
        self._meters: list[RateMeter] = [RateMeter(config.rate_ns) for _ in range(size)]

    def find(self, ev: int) -> int:
        """The index of the path with this entropy value (EV, the UDP source port); negative: none has it."""
        return self._index.get(ev, -1)

    # ---- sensing ----

    def on_frame(self, now_ns: int, path: int, frame_bytes: int) -> None:
        """Records a packet that is sent."""
        if now_ns >= self._interval_ends_ns:
            self._end_interval(now_ns)
        self._sent[path] += 1
        self._meters[path].add(now_ns, frame_bytes)

    def on_mark(self, now_ns: int, path: int, marked: bool) -> None:
        """Records an acknowledged packet, with or without a mark."""
        self._refresh(now_ns, path)
        ecn = self._ecn[path]
        self._ecn[path] = ecn + (((SHARE_ONE if marked else 0) - ecn) >> ECN_SHIFT)

    def on_rtt(self, now_ns: int, path: int, rtt_ns: int) -> None:
        """Records the RTT of an acknowledged packet."""
        self._refresh(now_ns, path)
        before = self._rtt_ns[path]
        self._rtt_ns[path] = max(1, before + ((rtt_ns - before) >> RTT_SHIFT) if before else rtt_ns)
        if self._learns and (self._base_rtt_ns == 0 or rtt_ns < self._base_rtt_ns):
            self._base_rtt_ns = rtt_ns

    def on_lost(self, path: int) -> None:
        """Records a retransmission."""
        self._lost[path] += 1

    def _refresh(self, now_ns: int, path: int) -> None:
        """Records that feedback has arrived; resets the path's state if it was stale."""
        if not self._is_fresh(now_ns, path):
            self._rtt_ns[path] = 0
            self._ecn[path] = 0
        self._feedback_ns[path] = now_ns

    def _end_interval(self, now_ns: int) -> None:
        """Classifies the paths with too many retransmissions in this interval as failed."""
        self._interval_ends_ns = now_ns + self._interval_ns
        for path in range(len(self._sent)):
            sent, lost = self._sent[path], self._lost[path]
            self._sent[path] = self._lost[path] = 0
            enough = sent >= self._least_packets
            if enough and lost > self._lost_share * sent and self.kind(now_ns, path) != CONGESTED:
                self._failed_until_ns[path] = now_ns + self._failed_ns

    # ---- classification ----

    def _is_fresh(self, now_ns: int, path: int) -> bool:
        """Whether feedback from a path has arrived within `stale_ns`."""
        feedback_ns = self._feedback_ns[path]
        return feedback_ns != _NO_FEEDBACK and now_ns - feedback_ns <= self._stale_ns

    def rtt_ns(self, now_ns: int, path: int) -> int:
        """Round-trip time of a path; the base RTT if the path's state is stale."""
        if self._is_fresh(now_ns, path) and self._rtt_ns[path]:
            return self._rtt_ns[path]
        return self._base_rtt_ns

    def ecn(self, now_ns: int, path: int) -> int:
        """Share of marked packets on a path, in parts of SHARE_ONE."""
        return self._ecn[path] if self._is_fresh(now_ns, path) else 0

    def kind(self, now_ns: int, path: int) -> int:
        """GOOD, GREY, CONGESTED or FAILED."""
        if now_ns < self._failed_until_ns[path]:
            return FAILED
        if not self._is_fresh(now_ns, path):
            return GOOD
        ecn, queued_ns = self._ecn[path], self.rtt_ns(now_ns, path) - self._base_rtt_ns
        if ecn < self._ecn_threshold and queued_ns < self._low_ns:
            return GOOD
        if ecn > self._ecn_threshold and queued_ns > self._high_ns:
            return CONGESTED
        return GREY

    def notably_better(self, now_ns: int, path: int, present: int) -> bool:
        """Whether `path` is better than `present` by more than Delta_RTT and by more than Delta_ECN."""
        return (
            self.rtt_ns(now_ns, present) - self.rtt_ns(now_ns, path) > self._hop_ns
            and self.ecn(now_ns, present) - self.ecn(now_ns, path) > self._ecn_better
        )

    def used_bytes(self, now_ns: int, path: int) -> int:
        """How fast this NIC sends on a path, as the bytes of its RateMeter."""
        return self._meters[path].read(now_ns)


class HermesHost:
    """The state of the paths to one host at the place. A black hole can affect single pairs of hosts.

    paths: the state for all hosts at the place.
    """

    __slots__ = ("_failed_ns", "_failed_until_ns", "_most_timeouts", "_timeouts", "paths")

    def __init__(self, config: HermesNicConfig, paths: HermesPaths, size: int) -> None:
        """Args: size: number of paths."""
        self.paths = paths
        self._most_timeouts: int = config.timeouts
        self._failed_ns: int = config.failed_ns
        self._timeouts: list[int] = [0] * size
        self._failed_until_ns: list[int] = [0] * size

    def kind(self, now_ns: int, path: int) -> int:
        """GOOD, GREY, CONGESTED or FAILED."""
        return FAILED if now_ns < self._failed_until_ns[path] else self.paths.kind(now_ns, path)

    def on_feedback(self, now_ns: int, feedback: int, path: int) -> bool:
        """Handles the outcome of a packet; returns whether the path has failed because of it."""
        if feedback in (ACK, ACK_ECN):
            self._timeouts[path] = 0
            self.paths.on_mark(now_ns, path, feedback == ACK_ECN)
            return False
        if feedback in (NACK, TIMEOUT):
            self.paths.on_lost(path)
        if feedback != TIMEOUT:
            return False
        self._timeouts[path] += 1
        if self._timeouts[path] <= self._most_timeouts:
            return False
        self._timeouts[path] = 0
        self._failed_until_ns[path] = now_ns + self._failed_ns
        return True
