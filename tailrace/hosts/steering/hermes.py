# SPDX-License-Identifier: Apache-2.0
"""Hermes: a flow changes its path after failures, or for a notably better path (SIGCOMM 2017, §3.2).

The path of a flow is selected by its UDP source port, which switches map to a next hop. For every packet of a
flow:

    if the flow is new, has had a timeout, or its path has failed:
        use the good path on which this NIC sends least; else the grey path on which it sends least; else any
        path that has not failed
    else if its path is congested, and the flow has sent more than S bytes and sends at less than R:
        among paths that are better by more than Delta_RTT and by more than Delta_ECN, use the good path on
        which this NIC sends least; else the grey path on which it sends least; else the current path
    else:
        use the current path

`hosts.steering.hermes_paths` decides which paths are good, grey, congested or failed.

Assumptions where the description leaves a choice: a path is drawn at random among equal paths. If all
paths have failed, any path is drawn. Bytes are those of frames, from Ethernet to ICRC, including
retransmissions.
"""

from __future__ import annotations

import random

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.dcqcn import HermesNicConfig
from tailrace.hosts.steering.base import TIMEOUT, Steering
from tailrace.hosts.steering.hermes_paths import CONGESTED, FAILED, GOOD, GREY, HermesHost, RateMeter
from tailrace.spec.constants import NS_BITS  # bytes * NS_BITS / (bit/s) is a time in ns

_NO_PATH = -1


class Hermes(Steering):
    """One flow.

    path: index of the flow's path; negative: the flow has no path yet. Each path has an entropy value (EV), a
        UDP source port.
    sent_bytes: bytes that the flow has sent.
    """

    __slots__ = (
        "_evs",
        "_host",
        "_meter",
        "_rate_bytes",
        "_rng",
        "_size_bytes",
        "_timed_out",
        "path",
        "sent_bytes",
    )

    def __init__(
        self, config: HermesNicConfig, paths: PathList, host: HermesHost, link_bps: int, rng: random.Random
    ) -> None:
        """Args:
        paths: paths of the flow, the same as those of `host`.
        host: the state of these paths, at this NIC, for the flow's destination.
        link_bps: rate of the NIC's link.
        rng: draws among equal paths.
        """
        super().__init__(paths)
        self._evs: tuple[int, ...] = paths.evs
        self._host = host
        self._rng = rng
        self._size_bytes: int = config.size_bytes
        self._meter = RateMeter(config.rate_ns)
        # bits/s * ns / NS_BITS: bytes sent at the rate R during the meter's averaging time
        self._rate_bytes: int = int(config.rate_share * link_bps * config.rate_ns / NS_BITS)
        self._timed_out = False
        self.path = _NO_PATH
        self.sent_bytes = 0

    def next_ev(self, now_ns: int) -> int:
        """The EV of the path of the packet that is sent now."""
        before, path = self.path, self.path
        kind = FAILED if path == _NO_PATH or self._timed_out else self._host.kind(now_ns, path)
        if kind == FAILED:
            self._timed_out = False
            path = self._new_path(now_ns)
        elif (
            kind == CONGESTED
            and self.sent_bytes > self._size_bytes
            and self._meter.read(now_ns) < self._rate_bytes
        ):
            path = self._better_path(now_ns)
        if path == before:
            self.reused += 1
        else:
            self.explored += 1
            self.path = path
        return self._evs[path]

    def _new_path(self, now_ns: int) -> int:
        kinds = [self._host.kind(now_ns, path) for path in range(len(self._evs))]
        for wanted in (GOOD, GREY):
            candidates = [path for path in range(len(kinds)) if kinds[path] == wanted]
            if candidates:
                return self._least_used(now_ns, candidates)
        candidates = [path for path in range(len(kinds)) if kinds[path] != FAILED]
        return self._draw(candidates or list(range(len(kinds))))

    def _better_path(self, now_ns: int) -> int:
        host, present = self._host, self.path
        for wanted in (GOOD, GREY):
            candidates = [
                path
                for path in range(len(self._evs))
                if host.kind(now_ns, path) == wanted and host.paths.notably_better(now_ns, path, present)
            ]
            if candidates:
                return self._least_used(now_ns, candidates)
        return present

    def _least_used(self, now_ns: int, candidates: list[int]) -> int:
        used = [self._host.paths.used_bytes(now_ns, path) for path in candidates]
        least = min(used)
        return self._draw([candidates[i] for i in range(len(candidates)) if used[i] == least])

    def _draw(self, paths: list[int]) -> int:
        return paths[0] if len(paths) == 1 else paths[int(self._rng.random() * len(paths))]

    def on_frame(self, now_ns: int, frame_bytes: int) -> None:
        """Records the length of the frame that was just sent."""
        self.sent_bytes += frame_bytes
        self._meter.add(now_ns, frame_bytes)
        self._host.paths.on_frame(now_ns, self.path, frame_bytes)

    def on_feedback(self, now_ns: int, feedback: int, ev: int) -> None:
        """Handles the outcome of a packet. With Hermes, NACK reports go-back-N's NAK: the packet is missing
        and will be retransmitted (with Spritz it reports a trimmed packet).
        """
        path = self._host.paths.find(ev)
        if path < 0:
            return
        if self._host.on_feedback(now_ns, feedback, path):  # the path has failed: too many timeouts
            self.blocked += 1
        if feedback == TIMEOUT:
            self._timed_out = True

    def on_rtt(self, now_ns: int, ev: int, rtt_ns: int) -> None:
        """Records the RTT of an acknowledged packet."""
        path = self._host.paths.find(ev)
        if path >= 0:
            self._host.paths.on_rtt(now_ns, path, rtt_ns)
