# SPDX-License-Identifier: Apache-2.0
"""A NIC that sends what a list says and stops when it is told to."""

from __future__ import annotations

from dataclasses import dataclass, field

from tailrace.hosts.nic.pause import PfcState
from tests.codec.frames import Pfc, parse
from tests.sim.network.l3 import Frame, ListNic

_ETHER_TYPE = b"\x88\x08"


@dataclass
class ObeyingNic(ListNic):
    """PFC of priority 0 stops it; pauses are noted with their times and quanta."""

    rate_bps: int = 10**9
    pauses: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._pfc = PfcState(self.rate_bps)

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        if frame[12:14] != _ETHER_TYPE:
            super().on_frame(now_ns, frame, virtual_bytes)
            return
        parsed = parse(frame)
        assert isinstance(parsed, Pfc)
        self._pfc.on_pfc(now_ns, parsed.quanta)
        self.pauses.append((now_ns, parsed.quanta[0]))

    def next_frame(self, now_ns: int) -> Frame | None:
        return None if now_ns < self._pfc.until_ns(0) else super().next_frame(now_ns)

    def next_time_ns(self, now_ns: int) -> int | None:
        time_ns = super().next_time_ns(now_ns)
        return None if time_ns is None else max(time_ns, self._pfc.until_ns(0))
