# SPDX-License-Identifier: Apache-2.0
"""Table entries inserted a second: over the Python API, and over gRPC in batches as a controller does it."""

from __future__ import annotations

import time

from bench import routes
from bench.client import Client, running_switch
from bench.result import Result
from tailrace.native.runtime import Switch, SwitchConfig
from tailrace.p4rt import programs

GROUP = "table inserts"
ENTRIES = 10_000
BATCH = 1000
GOAL_S = 1.0


def _over_api(entries: int) -> float:
    """Seconds for `entries` inserts by Switch.table_insert."""
    program = routes.load()
    switch = Switch(program, SwitchConfig())
    try:
        begin = time.perf_counter()
        routes.install(switch, program.model, entries)
        return time.perf_counter() - begin
    finally:
        switch.close()


def _over_grpc(entries: int) -> float:
    """Seconds for `entries` inserts in batches of BATCH; the messages are made before the clock starts."""
    with running_switch() as address, Client(address) as client:
        client.push(programs.load(routes.JSON.stem, routes.BUILD))
        requests = [
            client.route_request(range(first, min(first + BATCH, entries)))
            for first in range(0, entries, BATCH)
        ]
        begin = time.perf_counter()
        for request in requests:
            client.write(request)
        return time.perf_counter() - begin


def run(quick: bool) -> list[Result]:
    """Inserts a second both ways, and the time of 10,000 over gRPC against its goal."""
    entries = 500 if quick else ENTRIES
    api_s, grpc_s = _over_api(entries), _over_grpc(entries)
    batches = f"in batches of {BATCH}"
    return [
        Result(GROUP, "Python API", entries / api_s, "entries/s"),
        Result(GROUP, "gRPC", entries / grpc_s, "entries/s", note=batches),
        Result(GROUP, f"{entries:,} over gRPC", grpc_s, "s", goal=GOAL_S, better="less", note=batches),
    ]
