# SPDX-License-Identifier: Apache-2.0
"""Packets a second through the pipeline alone, on one core: no sockets, and the inner loop in C (loop.c)."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench import library, routes
from bench.result import Result
from tailrace.native.compiler import Program
from tailrace.native.runtime import Switch, SwitchConfig

GROUP = "pipeline, one core"
GOAL_PACKETS_PER_S = 5e6
LENGTHS_BYTES = (64, 1500)
ROUTES = (1, 1000)
RUNS = 5


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this thread on one of the cores it may use, so that no run pays for a move."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _measure(
    loop: Any, program: Program, count: int, length_bytes: int, packets: int
) -> tuple[list[float], float]:
    """Rates (packets/s) of RUNS runs of `packets` packets over `count` routes; the share that came out."""
    switch = Switch(program, SwitchConfig())
    try:
        routes.install(switch, program.model, count)
        frames = b"".join(routes.frame(number, length_bytes) for number in range(count))
        now_ps, sent = library.ffi.new("uint64_t *"), library.ffi.new("uint64_t *")
        rates: list[float] = []
        delivered = 0
        for run in range(RUNS + 1):
            elapsed_ns = int(
                loop.tr_bench_loop(switch.handle, frames, length_bytes, count, packets, now_ps, sent)
            )
            if elapsed_ns < 0:
                raise RuntimeError(f"the switch refused a frame (error {elapsed_ns})")
            if run > 0:  # the first run warms the caches and the packet pool
                rates.append(packets * 1e9 / max(elapsed_ns, 1))
                delivered += sent[0]
        return rates, delivered / (RUNS * packets)
    finally:
        switch.close()


def run(quick: bool) -> list[Result]:
    """The rates for each length of frame and number of routes. `quick`: few packets, to see that it works."""
    loop = library.load("loop.c")
    program = routes.load()
    packets = 10_000 if quick else 1_000_000
    results: list[Result] = []
    with one_core():
        for length_bytes in LENGTHS_BYTES:
            for count in ROUTES:
                rates, share = _measure(loop, program, count, length_bytes, packets)
                name = f"{length_bytes} B, {count} route{'s' if count > 1 else ''}"
                spread = f"{min(rates) / 1e6:.2f} to {max(rates) / 1e6:.2f} M in {RUNS} runs"
                note = f"{spread}, {share:.0%} forwarded"
                rate = statistics.median(rates)
                results.append(Result(GROUP, name, rate, "packets/s", goal=GOAL_PACKETS_PER_S, note=note))
    return results
