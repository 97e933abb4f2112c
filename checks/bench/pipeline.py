# SPDX-License-Identifier: Apache-2.0
"""Packet rate of the pipeline alone, on one core: no sockets, and the inner loop in C (loop.c)."""

from __future__ import annotations

import statistics

from checks.bench import routes
from checks.bench.loop import InjectionLoop, one_core, rates
from checks.bench.result import BenchResult
from tailrace.switch.compiler import SwitchProgram
from tailrace.switch.core import SwitchConfig, V1ModelSwitch

GROUP = "pipeline, one core"
GOAL_PACKETS_PER_S = 5e6
LENGTHS_BYTES = (64, 1500)
ROUTES = (1, 1000)
RUNS = 5


def _measure(
    program: SwitchProgram, count: int, length_bytes: int, packets: int
) -> tuple[tuple[float, ...], float]:
    """Rates (packets/s) of RUNS runs of `packets` packets over `count` routes; the share that came out."""
    switch = V1ModelSwitch(program, SwitchConfig())
    try:
        routes.install(switch, program.model, count)
        frames = [routes.frame(number, length_bytes) for number in range(count)]
        return rates(InjectionLoop(switch, frames), packets, RUNS)
    finally:
        switch.close()


def run(quick: bool) -> list[BenchResult]:
    """The rates for each length of frame and number of routes. `quick`: few packets, to see that it works."""
    program = routes.load()
    packets = 10_000 if quick else 1_000_000
    results: list[BenchResult] = []
    with one_core():
        for length_bytes in LENGTHS_BYTES:
            for count in ROUTES:
                measured_rates, share = _measure(program, count, length_bytes, packets)
                name = f"{length_bytes} B, {count} route{'s' if count > 1 else ''}"
                note = f"{share:.0%} forwarded"
                rate = statistics.median(measured_rates)
                results.append(
                    BenchResult(
                        GROUP,
                        name,
                        rate,
                        "packets/s",
                        goal=GOAL_PACKETS_PER_S,
                        note=note,
                        runs=measured_rates,
                    )
                )
    return results
