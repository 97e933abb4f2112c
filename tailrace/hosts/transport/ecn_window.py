# SPDX-License-Identifier: Apache-2.0
"""The window of the transport dctcp: DCTCP as in MP-RDMA, with QuickAdapt and FastIncrease (Spritz §IV-C).

* An ACK without a mark adds mtu²/cwnd bytes, an ACK with a mark subtracts mtu/2 (MP-RDMA §3), or another
  share of a packet (REPS's simulator: a quarter).
* FastIncrease (of the transport SMaRTT, arXiv 2404.01630): after a whole window was acknowledged without a
  mark or a loss, each further ACK adds `increase_packets` packets, until the next mark or loss.
* QuickAdapt (SMaRTT, too): a lost packet subtracts its bytes. Time is divided into intervals of `adapt_rtts`
  round-trip times. At the end of an interval with losses, the window is set to `adapt_scale` times the bytes
  that arrived during the interval, since the network can carry that much. ACKs and losses of bytes that are
  in flight at that time relate to the old window, and are ignored. The first interval begins with the first
  ACK or loss, since no byte can arrive earlier.

Assumptions: SMaRTT's fast increase also requires an RTT near the minimum; here only marks count, because
paths have different lengths (§V-A). Without the condition on the RTT, an increase by a whole packet is too
large: flows that share a link lose packets repeatedly; with half a packet they do not. If an interval lasted
longer than `adapt_rtts`, because no ACK arrived, its bytes are scaled down to that length. Each packet counts
as a full packet. The window begins at its maximum, and is at least one packet.

If full queues trim packets, timeouts do not count as losses (NicConfig.timeout): they then indicate "failures
or corruption" (Spritz §V-A). Measured with 2 % of the links dead, on 342 hosts of a Dragonfly: if timeouts
counted as losses, the window of OPS (w), weighted spraying (hosts.steering.oblivious), would stay small for
the whole flow. The p99 FCT would be 59.7 ms instead of 1.7 ms, which is 225 instead of 6.6 times that of
Spritz-Spray. When the Spritz authors repeated their experiment, the best other scheme had 7.7 times Spray's
p99 on a Dragonfly, and 4.3 times on a Slim Fly (permutation).
"""

from __future__ import annotations

from tailrace.codec.calls import NEVER
from tailrace.hosts.options.nic import NicConfig


class EcnWindow:
    """One flow's window.

    cwnd_bytes: payload that may be in flight.
    packets: cwnd_bytes in whole packets, 1 or more.
    """

    __slots__ = (
        "_adapt_rtts",
        "_adapt_scale",
        "_arrived_bytes",
        "_clear_bytes",
        "_cut_bytes",
        "_fast",
        "_ignore_bytes",
        "_increase_bytes",
        "_interval_ns",
        "_interval_since_ns",
        "_learns",
        "_lossy",
        "_most_bytes",
        "_mtu_bytes",
        "cwnd_bytes",
        "packets",
    )

    def __init__(self, config: NicConfig) -> None:
        """Args: config: only window_bytes, mtu_bytes, path_rtt_ns and dctcp are used."""
        dctcp = config.dctcp
        self._mtu_bytes: float = float(config.mtu_bytes)
        self._most_bytes: float = float(max(config.window_bytes, config.mtu_bytes))
        self._increase_bytes: float = dctcp.increase_packets * config.mtu_bytes
        self._adapt_rtts: float = dctcp.adapt_rtts
        self._adapt_scale: float = dctcp.adapt_scale
        self._cut_bytes: float = dctcp.cut_packets * config.mtu_bytes
        self._learns: bool = config.path_rtt_ns == 0
        self._interval_ns: int = NEVER if self._learns else max(1, int(config.path_rtt_ns * dctcp.adapt_rtts))
        self._interval_since_ns = NEVER  # no ACK or loss yet
        self._arrived_bytes = 0.0  # in this interval
        self._lossy = False  # whether packets were lost in this interval
        self._ignore_bytes = 0.0  # bytes sent before QuickAdapt, whose ACKs and losses are ignored
        self._clear_bytes = 0.0  # bytes acknowledged since the last mark or loss
        self._fast = False  # whether FastIncrease is active
        self.cwnd_bytes = 0.0
        self.packets = 1
        self._set(self._most_bytes)

    def learn(self, rtt_ns: int) -> None:
        """Records an RTT sample, if the minimum RTT is to be measured."""
        if self._learns:
            self._interval_ns = min(self._interval_ns, max(1, int(rtt_ns * self._adapt_rtts)))

    def on_ack(self, now_ns: int, marked: bool, in_flight: int) -> None:
        """Handles an acknowledged packet; in_flight: number of packets that are still in flight."""
        mtu_bytes = self._mtu_bytes
        if self._interval_since_ns == NEVER:
            self._interval_since_ns = now_ns
        self._arrived_bytes += mtu_bytes
        if now_ns - self._interval_since_ns >= self._interval_ns and self._end_interval(now_ns, in_flight):
            return
        if self._ignore_bytes > 0:
            self._ignore_bytes -= mtu_bytes
        elif marked:
            self._stop_increase()
            self._set(self.cwnd_bytes - self._cut_bytes)
        else:
            cwnd_bytes = self.cwnd_bytes
            self._clear_bytes += mtu_bytes
            if self._clear_bytes > cwnd_bytes:
                self._fast = self._increase_bytes > 0
            step = self._increase_bytes if self._fast else mtu_bytes * mtu_bytes / cwnd_bytes
            self._set(cwnd_bytes + step)

    def on_loss(self, now_ns: int, in_flight: int) -> None:
        """Handles a lost packet; in_flight: number of packets that are still in flight."""
        if self._interval_since_ns == NEVER:
            self._interval_since_ns = now_ns
        self._stop_increase()
        if self._ignore_bytes > 0:
            self._ignore_bytes -= self._mtu_bytes
            return
        self._lossy = self._adapt_scale > 0
        self._set(self.cwnd_bytes - self._mtu_bytes)
        if now_ns - self._interval_since_ns >= self._interval_ns:
            self._end_interval(now_ns, in_flight)

    def narrow(self) -> None:
        """Takes a packet that timed out off the window (NicConfig.timeout: SIZE).

        It is in flight no more, so QuickAdapt expects one ACK fewer to ignore: else a window of one packet
        would stay so for as many round trips as packets are missing.
        With PATH the window does not learn of timeouts, and ignores as many ACKs more: it is wide then, and
        mean FCTs differ by 0.3 % at most (72 hosts, 4 % of the directed links dead).
        """
        self._ignore_bytes = max(0.0, self._ignore_bytes - self._mtu_bytes)
        self._set(self.cwnd_bytes - self._mtu_bytes)

    def _stop_increase(self) -> None:
        """Ends FastIncrease, or restarts the count of bytes without a mark or loss."""
        self._clear_bytes = 0.0
        self._fast = False

    def _end_interval(self, now_ns: int, in_flight: int) -> bool:
        """Ends an interval; returns whether QuickAdapt has set the window."""
        adapts = self._lossy
        if adapts:
            lasted_ns = now_ns - self._interval_since_ns
            arrived_bytes = self._arrived_bytes * self._interval_ns / lasted_ns
            self._set(arrived_bytes * self._adapt_scale)
            self._ignore_bytes = in_flight * self._mtu_bytes
            self._lossy = False
            self._stop_increase()
        self._interval_since_ns = now_ns
        self._arrived_bytes = 0.0
        return adapts

    def _set(self, cwnd_bytes: float) -> None:
        cwnd_bytes = min(max(cwnd_bytes, self._mtu_bytes), self._most_bytes)
        if cwnd_bytes != self.cwnd_bytes:
            self.cwnd_bytes = cwnd_bytes
            self.packets = int(cwnd_bytes / self._mtu_bytes)
