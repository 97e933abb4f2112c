# SPDX-License-Identifier: Apache-2.0
"""Time of table inserts over gRPC, in batches of the size that a controller sends."""

from __future__ import annotations

import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from functools import partial

from checks.bench import routes
from checks.bench.noise import alternating
from checks.bench.result import BenchResult, Rival
from checks.bench.switch_process import running_switch
from tailrace.p4rt.endpoint import run_at_once  # runs a coroutine that never suspends

GROUP = "table inserts"
ENTRIES = 10_000
BATCH = 1000
GOAL_S = 1.0
ROUNDS = 3
RIVAL = "simple_switch_grpc"
NATIVE = (sys.executable, "-m", "tailrace.switch.daemon.cli")


def _over_grpc(entries: int, command: Sequence[str] = NATIVE) -> float:
    """Seconds for `entries` inserts in batches of BATCH; the messages are made before the clock starts."""
    updates = routes.updates(entries)
    with running_switch(command) as connection:
        client = connection.client
        run_at_once(client.push(routes.program()))
        requests = [
            client.write_request(updates[first : first + BATCH]) for first in range(0, entries, BATCH)
        ]
        begin = time.perf_counter()
        for request in requests:
            run_at_once(client.carry_out(request))
        return time.perf_counter() - begin


def run(quick: bool) -> list[BenchResult]:
    """The time of 10,000 inserts against its goal and simple_switch_grpc."""
    entries = 500 if quick else ENTRIES
    tasks = {"grpc": partial(_over_grpc, entries)}
    bmv2 = shutil.which(RIVAL)
    if bmv2 is not None:
        tasks[RIVAL] = partial(_over_grpc, entries, (bmv2,))
    task_rounds = alternating(tasks, 1 if quick else ROUNDS)
    seconds = {name: tuple(each.value for each in rounds) for name, rounds in task_rounds.items()}
    theirs = seconds.get(RIVAL)
    rival = Rival(RIVAL, statistics.median(theirs)) if theirs else Rival(f"{RIVAL} is not on PATH")
    return [
        BenchResult(
            GROUP,
            f"{entries:,} over gRPC",
            statistics.median(seconds["grpc"]),
            "s",
            goal=GOAL_S,
            better="less",
            note=f"in batches of {BATCH}",
            runs=seconds["grpc"],
            rival=rival,
            noise=tuple(each.noise for each in task_rounds["grpc"]),
        ),
    ]
