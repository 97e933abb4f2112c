# SPDX-License-Identifier: Apache-2.0
"""NICs behind one link with a queue that marks by RED: the least in which congestion control shows."""

from __future__ import annotations

import random
from collections import Counter

from tailrace.hosts.options.nic import NicConfig
from tests.codec.frames import Data, Frame, Parsed
from tests.hosts.marking import marked
from tests.hosts.network import VirtualNetwork, make_nic

KMIN_BYTES, KMAX_BYTES, PMAX = 5_000, 200_000, 0.01  # DCQCN, SIGCOMM 2015, §5
_NS_BITS = 8_000_000_000


class Bottleneck:
    """All data passes it, in the order in which it is sent; answers do not.

    most_bytes: the longest queue that a frame has met.
    """

    def __init__(self, rate_bps: int, delay_ns: int, rng: random.Random) -> None:
        self.most_bytes = 0
        self._delay_ns = delay_ns
        self._rate_bps = rate_bps
        self._rng = rng
        self._free_ns = 0
        self._marked: set[int] = set()
        self._passed: list[tuple[int, int, int]] = []

    def network(self, config: NicConfig, senders: int) -> VirtualNetwork:
        """NICs 1 to `senders`, and one more that they may send to."""
        nics = [make_nic(number, config) for number in range(1, senders + 2)]
        return VirtualNetwork(nics, self.fate, self.change)

    def fate(self, now_ns: int, frame: Frame, parsed: Parsed) -> int | None:
        if not isinstance(parsed, Data):
            return self._delay_ns
        left_ns = now_ns + frame.length_bytes
        frame_ns = frame.length_bytes * _NS_BITS // self._rate_bps
        waits_ns = max(0, self._free_ns - left_ns)
        queue_bytes = waits_ns * self._rate_bps // _NS_BITS
        self.most_bytes = max(self.most_bytes, queue_bytes)
        if self._marks(queue_bytes):
            self._marked.add(id(frame))
        self._free_ns = left_ns + waits_ns + frame_ns
        self._passed.append((self._free_ns, parsed.qpn, frame.length_bytes))
        return self._free_ns - left_ns + self._delay_ns

    def _marks(self, queue_bytes: int) -> bool:
        if queue_bytes >= KMAX_BYTES:
            return True
        share = (queue_bytes - KMIN_BYTES) / (KMAX_BYTES - KMIN_BYTES)
        return share > 0 and self._rng.random() < PMAX * share

    def change(self, frame: Frame, parsed: Parsed) -> Frame:
        if id(frame) not in self._marked:
            return frame
        self._marked.remove(id(frame))
        return marked(frame)

    def carried(self, since_ns: int, until_ns: int) -> Counter[int]:
        """Bytes of each queue pair that have passed between two times."""
        lengths: Counter[int] = Counter()
        for time_ns, qpn, length in self._passed:
            if since_ns < time_ns <= until_ns:
                lengths[qpn] += length
        return lengths
