# SPDX-License-Identifier: Apache-2.0
"""NICs of tests that send whole frames: a mix-in that makes the one interface of NICs of two simpler calls."""

from __future__ import annotations

from typing import Protocol

RAW = 0


class AFrame(Protocol):
    """Bytes, and the length of a payload behind them that is only counted."""

    @property
    def data(self) -> bytes: ...
    @property
    def virtual_bytes(self) -> int: ...


class FrameNic:
    """Asks `next_frame`, and where that has nothing, `next_time_ns`."""

    def next_frame(self, now_ns: int) -> AFrame | None:
        raise NotImplementedError

    def next_time_ns(self, now_ns: int) -> int | None:
        raise NotImplementedError

    def next_packet(self, now_ns: int) -> tuple[int, bytes, int] | int | None:
        frame = self.next_frame(now_ns)
        return self.next_time_ns(now_ns) if frame is None else (RAW, frame.data, frame.virtual_bytes)
