# SPDX-License-Identifier: Apache-2.0
"""Compare the native switch with simple_switch_grpc, or record golden outcomes.

python -m checks.conformance --out DIR [--packets N] [--program NAME] [--seed N]
python -m checks.conformance --golden [--program NAME]

Exit codes: 0 no difference (or no simple_switch_grpc on PATH, as a message says), 1 differences, 2 bad input.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

from checks.conformance.bmv2 import runs_on_bmv2
from checks.conformance.cases import record_cases
from checks.conformance.golden import write_golden
from checks.conformance.program import CompiledProgram, ConformanceError, has_hints, load_programs
from checks.conformance.run import ConformanceRow, run_program
from tailrace.bmv2.process import EXECUTABLE, available
from tailrace.cbuild.artifacts import P4_BUILD, ROOT
from tailrace.p4rt.errors import P4ProgramError, SwitchError
from tailrace.spec.arguments import ArgumentParser
from tailrace.spec.text import one_line
from tailrace.switch.compiler import CompilerError as NotLoadedError

TESTS = ROOT / "tests"
BUILD = TESTS / "programs" / "build"
GOLDEN = TESTS / "golden"
CASES = GOLDEN / "testgen"
COLUMNS = (
    ("program", "<24"), ("entries", ">7"), ("packets", ">8"), ("outputs", ">8"), ("no output", ">9"),
    ("mismatches", ">10"), ("state", ">13"), ("s", ">5"),
)  # fmt: skip
# column `state`: cells of counters and registers, and digests, that differ / that are compared
HEAD = " ".join(f"{name:{layout}}" for name, layout in COLUMNS)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = ArgumentParser(prog="conformance", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, help="folder for conformance.json")
    parser.add_argument(
        "--packets", type=int, default=100_000, help="packets per program (default: %(default)s)"
    )
    parser.add_argument("--program", help="only this program")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of plans and packets (default: %(default)s)"
    )
    parser.add_argument(
        "--build",
        type=Path,
        help="folder of compiled programs (default: the test programs, and the schemes that have hints:"
        " outputs of the other schemes depend on chance or on the clock)",
    )
    parser.add_argument(
        "--golden", action="store_true", help="record golden outcomes from BMv2 instead of comparing"
    )
    options = parser.parse_args(argv)
    if not options.golden and options.out is None:
        parser.error("one of --out and --golden is needed")
    if options.packets < 1:
        parser.error("--packets must be at least 1")
    return options


def record(only: str | None, seed: int, log: Path) -> None:
    """Write the golden file of each test program, and record the outcomes of all case files anew."""
    for program in load_programs(BUILD):
        if only not in (None, program.name):
            continue
        packets, size = write_golden(program, seed, GOLDEN / f"{program.name}.json.xz", log)
        print(f"{program.name:24} {packets:6} packets {size:8} bytes", flush=True)
    for path in sorted(CASES.glob("*.json.xz")):
        name = path.name.partition(".")[0]
        if only not in (None, name):
            continue
        [program] = load_programs(BUILD if (BUILD / f"{name}.json").is_file() else P4_BUILD, name)
        print(f"{name:24} {record_cases(program, path, log):6} cases", flush=True)


def table_line(row: ConformanceRow, seconds: float) -> str:
    result = row.result
    state = f"{len(row.state_differences)}/{row.state_cells}"
    return (
        f"{row.program.name:24} {row.entries:7} {result.packets:8} {result.outputs:8} {result.dropped:9} "
        f"{result.mismatches:10} {state:>13} {seconds:5.0f}"
    )


def compare_all(programs: Iterable[CompiledProgram], options: argparse.Namespace, log: Path) -> int:
    """Run every program, print the table, write conformance.json; returns the exit code."""
    version = subprocess.run(
        [EXECUTABLE, "--version"], capture_output=True, text=True, check=False
    ).stdout.strip()
    print(HEAD)
    rows = []
    not_compared: list[str] = []
    refused_by_both: list[str] = []
    for program in programs:
        start = time.monotonic()
        try:
            row = run_program(program, options.packets, options.seed, log)
        except NotLoadedError as error:
            bmv2_accepts = runs_on_bmv2(program, log)
            who = "the native switch only" if bmv2_accepts else "both"
            print(f"{program.name:24} refused by {who}: {error}", flush=True)
            (not_compared if bmv2_accepts else refused_by_both).append(program.name)
            continue
        except (ConformanceError, SwitchError) as error:
            print(f"{program.name:24} not compared: {one_line(str(error))}", flush=True)
            not_compared.append(program.name)
            continue
        print(table_line(row, time.monotonic() - start), flush=True)
        rows.append(row)
    failed = [row.program.name for row in rows if not row.passed] + not_compared
    options.out.mkdir(parents=True, exist_ok=True)
    report = {
        "reference": EXECUTABLE,
        "reference_version": version,
        "seed": options.seed,
        "programs": [row.as_json() for row in rows],
        "refused_by_both": refused_by_both,
        "failed": failed,
    }
    (options.out / "conformance.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    total = sum(row.result.packets for row in rows)
    outcome = f"{len(failed)} programs differ"
    outcome += f", both refuse {len(refused_by_both)}" if refused_by_both else ""
    print(f"{len(rows)} programs, {total} packets, {outcome}", file=sys.stderr)
    return 1 if failed else 0


def chosen(options: argparse.Namespace) -> list[CompiledProgram]:
    if options.build is not None:
        return load_programs(options.build, options.program)
    ours = load_programs(BUILD)
    ours += [program for program in load_programs(P4_BUILD) if has_hints(program.name)]
    programs = [program for program in ours if options.program in (None, program.name)]
    if not programs:
        raise ConformanceError(f"no compiled program called {options.program!r}")
    return programs


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM like an interrupt, so that BMv2 is stopped."""
    raise KeyboardInterrupt


def run(options: argparse.Namespace) -> int:
    """Compare, or record; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="tailrace-conformance-") as scratch:
        log = Path(scratch) / "bmv2.log"
        if options.golden:
            record(options.program, options.seed, log)
            return 0
        return compare_all(chosen(options), options, log)


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    options = arguments(argv)
    if not available():
        print(f"conformance: {EXECUTABLE} is not on PATH, nothing compared")
        return 0
    signal.signal(signal.SIGTERM, interrupt)
    try:
        return run(options)
    except (ConformanceError, P4ProgramError, SwitchError, OSError) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
