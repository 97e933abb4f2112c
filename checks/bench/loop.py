# SPDX-License-Identifier: Apache-2.0
"""Injects frames into a switch and takes them out on one core, without sockets (loop.c)."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from checks.bench import library
from tailrace.switch.core import V1ModelSwitch


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this thread on one of the cores it may use, so that no run pays for a move."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


class InjectionLoop:
    """Sends frames into a port of a switch, in turn and again and again."""

    def __init__(self, switch: V1ModelSwitch, frames: Sequence[bytes], port: int = 0) -> None:
        self._run = library.load("loop.c").tr_bench_loop
        self._switch = switch
        self._port = port
        self._data = b"".join(frames)
        self._lens = library.ffi.new("uint32_t[]", [len(frame) for frame in frames])
        self._now_ps, self._sent = library.ffi.new("uint64_t *"), library.ffi.new("uint64_t *")

    def packets(self, count: int) -> tuple[float, float]:
        """Sends so many: packets a second of this thread's CPU time, and the share that came out.

        Raises:
            RuntimeError: the switch refused a frame.
        """
        frames = (self._data, self._lens, len(self._lens))
        took_ns = int(self._run(self._switch.handle, self._port, *frames, count, self._now_ps, self._sent))
        if took_ns < 0:
            raise RuntimeError(f"the switch refused a frame (error {took_ns})")
        return count * 1e9 / max(took_ns, 1), self._sent[0] / count


def rates(loop: InjectionLoop, packets: int, runs: int) -> tuple[tuple[float, ...], float]:
    """Rates of some runs after one that warms caches and the packet pool; the share that came out."""
    loop.packets(packets)
    rates = [loop.packets(packets) for _ in range(runs)]
    return tuple(rate for rate, _ in rates), statistics.mean(share for _, share in rates)
