# SPDX-License-Identifier: Apache-2.0
"""Cost of an idle switch: memory of each of a hundred instances, and the time to load a program.

Each figure comes from a fresh process, so that other measurements do not affect it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import tempfile
import time
from pathlib import Path

from checks.bench import routes
from checks.bench.result import BenchResult
from checks.bench.virtual import in_fresh_process
from tailrace.switch.compiler import load_program
from tailrace.switch.core import SwitchConfig, V1ModelSwitch

GROUP = "footprint"
INSTANCES = 100
GOAL_INSTANCE_KIB = 256.0
GOAL_COLD_S = 3.0
GOAL_CACHED_S = 0.05


def _resident_bytes() -> int:
    """Memory of this process that is in RAM (proc(5), statm, second field)."""
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _bytes_per_instance(count: int) -> float:
    """Mean resident bytes of each of `count` idle instances, after a first instance of the same program."""
    program = load_program(routes.JSON.read_bytes())
    first = V1ModelSwitch(program, SwitchConfig())  # allocates what all instances share
    gc.collect()
    before = _resident_bytes()
    switches = [V1ModelSwitch(program, SwitchConfig()) for _ in range(count)]
    after = _resident_bytes()
    for switch in [first, *switches]:
        switch.close()
    return (after - before) / count


def _load_seconds(cache_dir: str) -> float:
    """Seconds until a switch with the router program is ready; `cache_dir` caches compiled code."""
    os.environ["TAILRACE_CACHE"] = cache_dir
    begin = time.perf_counter()
    switch = V1ModelSwitch(load_program(routes.JSON.read_bytes()), SwitchConfig())
    elapsed_s = time.perf_counter() - begin
    switch.close()
    return elapsed_s


def run(quick: bool) -> list[BenchResult]:
    """Memory per instance, cold and cached load times."""
    count = 10 if quick else INSTANCES
    instance_kib = in_fresh_process(_bytes_per_instance, count) / 1024
    with tempfile.TemporaryDirectory() as name:
        cold_s, cached_s = (in_fresh_process(_load_seconds, name) for _ in range(2))
    cold_note = "first start on a machine: runtime and program go through the C compiler"
    instance_note = f"mean of {count} idle instances that share one program"
    return [
        BenchResult(
            GROUP, "memory an instance", instance_kib, "KiB", GOAL_INSTANCE_KIB, "less", instance_note
        ),
        BenchResult(GROUP, "load, cold", cold_s, "s", GOAL_COLD_S, "less", cold_note),
        BenchResult(GROUP, "load, cached", cached_s, "s", GOAL_CACHED_S, "less"),
    ]
