# SPDX-License-Identifier: Apache-2.0
"""Command line of the benchmarks: runs them, prints a table, writes bench.json."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from checks.bench import closed_loop, footprint, htsim, pipeline, program, tables, virtual
from checks.bench.noise import measured
from checks.bench.result import BenchResult, table
from tailrace.spec.arguments import ArgumentParser
from tailrace.spec.errors import Error, SpecError
from tailrace.spec.text import one_line

PROGRAM, CLOSED_LOOP = "program", "closed_loop"
BENCHMARKS: dict[str, Callable[[bool], list[BenchResult]]] = {
    "pipeline": pipeline.run,
    "tables": tables.run,
    "footprint": footprint.run,
    "virtual": virtual.run,
    "htsim": htsim.run,
    CLOSED_LOOP: closed_loop.run,
}
ON_REQUEST = {"virtual-full": virtual.run_full, "htsim-full": htsim.run_full}
"""Slow benchmarks, which run only if --only names them."""


def _cpu() -> str:
    """The processor's model name in /proc/cpuinfo."""
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _document(results: Sequence[BenchResult], quick: bool) -> dict[str, object]:
    machine = {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
    return {"machine": machine, "quick": quick, "results": [r.as_json() for r in results]}


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = ArgumentParser(
        prog="python -m checks.bench",
        description="Speed and size of the native switch and of virtual networks.",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out"), help="folder for bench.json (default: %(default)s)"
    )
    names = [*BENCHMARKS, *ON_REQUEST]
    parser.add_argument("--only", action="append", choices=names, help="run this benchmark; may be repeated")
    parser.add_argument(
        "--quick", action="store_true", help="short runs, which only show that benchmarks work"
    )
    case = parser.add_argument_group(
        "your own program",
        "measures its packets per second on one core, or with --only closed_loop over veth",
    )
    case.add_argument("--program", type=Path, metavar="NAME.json", help="with NAME.p4info.txtpb beside it")
    case.add_argument("--entries", type=Path, metavar="FILE", help="a p4.v1.WriteRequest in text format")
    case.add_argument("--packets", type=Path, metavar="FILE.pcap", help="frames to send, repeated in order")
    case.add_argument("--port", type=int, default=0, help="ingress port of the frames (default: %(default)s)")
    arguments = parser.parse_args(argv)
    given = [arguments.program, arguments.entries, arguments.packets]
    if any(given) and not all(given):
        parser.error("--program, --entries and --packets must be given together")
    if any(given) and arguments.only not in (None, [CLOSED_LOOP]):
        parser.error(f"with --program, --only can be {CLOSED_LOOP} only")
    return arguments


def watched(benchmark: Callable[[], list[BenchResult]]) -> list[BenchResult]:
    """Runs a benchmark. A result without noise (the load by other processes) gets that of the whole run."""
    results = measured(benchmark)
    return [result if result.noise else replace(result, noise=(results.noise,)) for result in results.value]


def _case(arguments: argparse.Namespace) -> program.ProgramCase | None:
    """The user's program with its entries and packets; None without --program.

    Raises:
        OSError, SpecError: a file cannot be read or is invalid.
    """
    if arguments.program is None:
        return None
    try:
        return program.ProgramCase.read(
            arguments.program, arguments.entries, arguments.packets, arguments.port
        )
    except Error as error:
        raise SpecError(str(error)) from error


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the chosen benchmarks. Returns 0; 1 if one cannot run; 2 if a file is missing or bad."""
    arguments = _arguments(argv)
    benchmarks, chosen = BENCHMARKS | ON_REQUEST, arguments.only or list(BENCHMARKS)
    results: list[BenchResult] = []
    status = 0
    try:
        if (case := _case(arguments)) is not None:
            files = arguments.program, arguments.entries, arguments.packets
            closed = partial(closed_loop.run, files=files)
            benchmarks = {PROGRAM: partial(program.run, case=case), CLOSED_LOOP: closed}
            chosen = arguments.only or [PROGRAM]
        arguments.out.mkdir(parents=True, exist_ok=True)
        for name in dict.fromkeys(chosen):
            if len(chosen) > 1:
                print(f"bench: {name}", file=sys.stderr)
            try:
                results += watched(partial(benchmarks[name], arguments.quick))
            except Error as error:
                print(f"bench: {one_line(str(error))}", file=sys.stderr)
                status = 1
        if results:
            print(table(results))
            document = json.dumps(_document(results, arguments.quick), indent=1)
            (arguments.out / "bench.json").write_text(document + "\n", "utf-8")
    except (OSError, SpecError) as error:
        print(f"bench: {one_line(str(error))}", file=sys.stderr)
        return 2
    return status


if __name__ == "__main__":
    sys.exit(main())
