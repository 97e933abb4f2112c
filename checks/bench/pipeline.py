# SPDX-License-Identifier: Apache-2.0
"""Packet rate of the pipeline alone, on one core: no sockets, and the inner loop in C (loop.c)."""

from __future__ import annotations

import statistics

from checks.bench import program, routes
from checks.bench.result import BenchResult
from tailrace.switch.core import SwitchConfig, V1ModelSwitch

GROUP = "pipeline, one core"
GOAL_PACKETS_PER_S = 5e6
LENGTHS_BYTES = (64, 1500)
ROUTES = (1, 1000)


def _result(count: int, length_bytes: int, packets: int) -> BenchResult:
    case = routes.case(count, [routes.frame(number, length_bytes) for number in range(count)])
    with V1ModelSwitch(None, SwitchConfig()) as switch:
        program.configure(switch, case)
        rates, share = program.packet_rates(switch, case, packets)
    name = f"{length_bytes} B, {count} route{'s' if count > 1 else ''}"
    note = f"{share:.0%} forwarded"
    rate = statistics.median(rates)
    return BenchResult(GROUP, name, rate, "packets/s", goal=GOAL_PACKETS_PER_S, note=note, runs=rates)


def run(quick: bool) -> list[BenchResult]:
    """The rates for each length of frame and number of routes. `quick`: few packets, to see that it works."""
    packets = 10_000 if quick else program.PACKETS
    return [_result(count, length, packets) for length in LENGTHS_BYTES for count in ROUTES]
