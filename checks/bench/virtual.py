# SPDX-License-Identifier: Apache-2.0
"""Speed of the virtual network: packet-hops a second, NICs included, and set-up time.

A packet-hop is a packet through one compiled switch and one link. Loads are permutations on fat trees at 200
Gbit/s with packets of 2 KiB, each in a fresh process, in which one network runs several rounds after a first
round that warms up caches. Figures are of CPU time: a network runs on one core.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from checks.bench.result import BenchResult
from tailrace.spec.units import format_bytes

GROUP = "virtual time, one core"
SET_UP_GROUP = "virtual time, set-up"
FULL_GROUP = "virtual time, the whole permutation"
TOPOLOGY = "fat-tree:k={k},rate=200Gbps,delay=1us"
LARGEST_K = 16
GOAL_HOPS_PER_S = {"ecmp": 1.5e6, "flowcut": 1e6}
GOAL_SET_UP_S = 20.0
GOAL_FULL_S = 90.0
GOAL_FULL_GIB = 6.0
ROUNDS = 3
COMPILED, INTERPRETED = "compiled", "interpreted"
MIB = 1 << 20
SIZES = {4: 16 * MIB, 8: 2 * MIB, LARGEST_K: MIB // 4}
"""Bytes of a flow by arity of the fat tree, which has k^3/4 hosts: about a million packet-hops a round."""
FULL_BYTES = 8 * MIB

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FatTreeLoad:
    """A permutation on a fat tree of arity `k`; `hosts`: NICs are "compiled" or "interpreted"."""

    scheme: str
    k: int
    flow_bytes: int
    hosts: str
    rounds: int = 1
    warm_up: bool = True

    @property
    def name(self) -> str:
        """The load's name in the table."""
        return f"{self.scheme}, {self.k**3 // 4} hosts, {self.hosts} NICs"


@dataclass(frozen=True, slots=True)
class RoundFigures:
    """Figures of a load: packet-hops, CPU time and wall time of each round, and the peak of memory."""

    hops: tuple[int, ...]
    cpu_s: tuple[float, ...]
    wall_s: tuple[float, ...]
    peak_bytes: int

    @property
    def rates(self) -> tuple[float, ...]:
        """Packet-hops a second of each round."""
        return tuple(hops / cpu_s for hops, cpu_s in zip(self.hops, self.cpu_s, strict=True))


def in_fresh_process(task: Callable[..., T], *arguments: object) -> T:
    """The result of `task(*arguments)` in a fresh process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(task, *arguments).result()


# Environment variables must be set before tailrace.hosts and the compiler's cache are imported. So these
# functions run in separate processes, and import what they measure.


def _measure(load: FatTreeLoad) -> RoundFigures:
    os.environ["TAILRACE_HOSTS"] = load.hosts  # compiled or interpreted NICs
    from checks.bench.virtual_run import measure

    return measure(load)


def _set_up(cache_dir: str | None, scheme: str, k: int) -> dict[str, float]:
    """Seconds from an empty process to a network that is ready for traffic, by part. `cache_dir` is the cache
    of compiled code; None: the user's cache.
    """
    if cache_dir is not None:
        os.environ["TAILRACE_CACHE"] = cache_dir
    began_s = time.perf_counter()
    from checks.bench.virtual_run import set_up

    import_s = time.perf_counter() - began_s
    return {"import": import_s, **set_up(scheme, k)}


def _rate(load: FatTreeLoad) -> BenchResult:
    print(f"bench: virtual: {load.name}", file=sys.stderr)
    figures = in_fresh_process(_measure, load)
    rates = figures.rates
    note = f"{figures.peak_bytes / MIB:,.0f} MiB at most"
    goal = GOAL_HOPS_PER_S[load.scheme] if load.hosts == COMPILED else None
    return BenchResult(GROUP, load.name, statistics.median(rates), "hops/s", goal, note=note, runs=rates)


def _rates(quick: bool) -> list[BenchResult]:
    """Rates of every scheme on every size with either kind of NIC."""
    sizes = {4: MIB // 64} if quick else SIZES
    return [
        _rate(FatTreeLoad(scheme, k, size, hosts, 1 if quick else ROUNDS))
        for scheme in GOAL_HOPS_PER_S
        for hosts in (COMPILED, INTERPRETED)
        for k, size in sizes.items()
    ]


def _set_up_result(scheme: str, k: int, cache_dir: str | None, name: str) -> BenchResult:
    print(f"bench: virtual: set-up, {scheme}, {name}", file=sys.stderr)
    set_up = in_fresh_process(_set_up, cache_dir, scheme, k)
    note = ", ".join(f"{part} {seconds:.1f}" for part, seconds in set_up.items())
    title = f"{scheme}, {k**3 // 4} hosts, {name}"
    return BenchResult(SET_UP_GROUP, title, sum(set_up.values()), "s", GOAL_SET_UP_S, "less", note)


def _set_ups(quick: bool) -> list[BenchResult]:
    """The set-up of the largest network, with an empty cache of compiled code and with a full one."""
    if quick:
        return [_set_up_result(scheme, 4, None, "again") for scheme in GOAL_HOPS_PER_S]
    results = []
    for scheme in GOAL_HOPS_PER_S:
        with tempfile.TemporaryDirectory() as cache_dir:
            for name in ("first time", "again"):
                results.append(_set_up_result(scheme, LARGEST_K, cache_dir, name))
    return results


def prepare() -> None:
    """Compiles the NICs if needed."""
    from tailrace.hosts.build import build

    build()


def run(quick: bool) -> list[BenchResult]:
    """Packet-hops a second, and set-up times."""
    prepare()
    return _rates(quick) + _set_ups(quick)


def run_full(quick: bool) -> list[BenchResult]:
    """The whole permutation of 1024 hosts, 8 MiB a flow, with each scheme: time and memory."""
    prepare()
    k, size = (4, MIB // 64) if quick else (LARGEST_K, FULL_BYTES)
    results = []
    for scheme in GOAL_HOPS_PER_S:
        load = FatTreeLoad(scheme, k, size, COMPILED, warm_up=False)
        print(f"bench: virtual: {load.name}, {format_bytes(size)} a flow", file=sys.stderr)
        figures = in_fresh_process(_measure, load)
        ((hops,), (cpu_s,), (wall_s,)) = figures.hops, figures.cpu_s, figures.wall_s
        rate = f"{hops / 1e6:.1f} M hops, {cpu_s:.1f} s of CPU time, {hops / cpu_s / 1e6:.2f} M hops/s"
        note = f"{format_bytes(size)} a flow, {rate}"
        peak_gib = figures.peak_bytes / (1 << 30)
        results += [
            BenchResult(FULL_GROUP, f"{load.name}, wall time", wall_s, "s", GOAL_FULL_S, "less", note),
            BenchResult(
                FULL_GROUP, f"{load.name}, memory", peak_gib, "GiB", GOAL_FULL_GIB, "less", "at most"
            ),
        ]
    return results
