# SPDX-License-Identifier: Apache-2.0
"""P4Testgen's tests on the native switch and on simple_switch_grpc, each behind its own P4Runtime server.

python -m conformance.testgen --out DIR [--program NAME] [--tests N] [--seconds N] [--seed N] [--golden]
python -m conformance.testgen --out DIR --samples DIR

The programs are the test programs and the schemes; with --samples those of a folder that include v1model.p4,
as far as p4c-bm2-ss compiles them. Where both switches do the same, but not what P4Testgen expects, the test
counts as `both`; where BMv2's process ends, and the native switch does what is expected, as `ended`; where
BMv2 itself does not do the same again, as `varies`; every other difference as `differ`.

Exit codes: 0 no test differs (or a tool is not on PATH, which is said), 1 some do, 2 bad input.
"""

from __future__ import annotations

import argparse
import glob
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from conformance.__main__ import BUILD, TESTS, guarded
from conformance.golden_cases import write_cases
from conformance.program import CompiledProgram, ConformanceError, load_programs
from conformance.run_cases import Both, Verdict
from conformance.smith import COMPILER, NOT_OPTIMIZED, compile_program
from conformance.testcase import read_cases
from tailrace.bmv2.process import EXECUTABLE, available
from tailrace.p4rt.errors import ProgramError
from tailrace.toolchain.artifacts import P4_BUILD
from tailrace.words.arguments import Parser

TESTGEN = "p4testgen"
PACKET_BITS = 2400
"""Longest packet: what follows the headers is random, and golden files hold it all."""
COVERED = re.compile(r"Nodes covered: \S+ \((\d+)/(\d+)\)")
COLUMNS = (
    ("program", "<44"), ("tests", ">6"), ("covered", ">9"), ("native", ">7"), ("bmv2", ">6"), ("agree", ">6"),
    ("both", ">5"), ("ended", ">6"), ("varies", ">7"), ("differ", ">6"),
)  # fmt: skip
COUNTS = ("native_passed", "bmv2_passed", "agree", "both", "ended", "varies", "differ")


@dataclass(frozen=True, slots=True)
class Source:
    """A P4 program, the folder that its includes start from, and the folder of what it compiles to."""

    path: Path
    include: Path
    build: Path


@dataclass(slots=True)
class Row:
    """One line of the table; `covered` is of P4Testgen: statements reached, and all."""

    program: CompiledProgram
    covered: tuple[int, int]
    verdicts: list[Verdict] = field(default_factory=list)

    def count(self, name: str) -> int:
        """How many verdicts have a property."""
        return sum(bool(getattr(verdict, name)) for verdict in self.verdicts)

    def line(self) -> str:
        """The row of the table."""
        reached, statements = self.covered
        covered = f"{reached}/{statements}" if statements else "-"
        cells = (self.program.name, len(self.verdicts), covered, *map(self.count, COUNTS))
        return " ".join(f"{cell:{layout}}" for cell, (_, layout) in zip(cells, COLUMNS, strict=True))

    def as_json(self) -> dict[str, object]:
        """For testgen.json: the counts, and all tests that did not pass on both."""
        return {
            "program": self.program.name,
            "json_sha256": self.program.sha256,
            "tests": len(self.verdicts),
            "statements_covered": self.covered[0],
            "statements": self.covered[1],
            **{name: self.count(name) for name in COUNTS},
            "not_passed": [v.as_json() for v in self.verdicts if not (v.native_passed and v.bmv2_passed)],
        }


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = Parser(prog="conformance.testgen", description=__doc__.splitlines()[0] if __doc__ else "")
    default = " (default: %(default)s)"
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for testgen.json and compiled samples"
    )
    parser.add_argument("--program", help="only this program")
    parser.add_argument("--samples", type=Path, help="folder of P4 programs to take instead of ours")
    parser.add_argument("--tests", type=int, default=200, help="most tests a program" + default)
    parser.add_argument("--seconds", type=int, default=60, help="P4Testgen's time for a program" + default)
    parser.add_argument("--seed", type=int, default=1, help="seed of P4Testgen" + default)
    select = "GREEDY_STATEMENT_SEARCH"
    parser.add_argument("--path-selection", default=select, help="as P4Testgen calls it" + default)
    parser.add_argument("--golden", action="store_true", help="keep the tests in tests/golden/testgen")
    options = parser.parse_args(argv)
    for name in ("tests", "seconds"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1")
    if options.golden and options.samples is not None:
        parser.error("--golden keeps tests of our programs, not of --samples")
    return options


def ours(only: str | None) -> Iterator[Source]:
    """The test programs and the schemes, as they are compiled in the tree."""
    for build in (BUILD, P4_BUILD):
        for program in load_programs(build):
            if only in (None, program.name):
                yield Source(build.parent / program.json["program"], build.parent, build)


def samples(folder: Path, build: Path, only: str | None) -> Iterator[Source]:
    """The v1model programs of a folder that p4c compiles, now or in an earlier run."""
    build.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob(f"{glob.escape(only)}.p4" if only else "*.p4")):
        if "v1model.p4" in path.read_text("utf-8", "replace") and compile_program(path, build):
            yield Source(path, folder, build)


def generate(
    source: Source, program: CompiledProgram, options: argparse.Namespace, folder: Path
) -> tuple[int, int]:
    """Let P4Testgen fill `folder` with tests; (statements covered, all), zeros where it makes none."""
    command = [
        TESTGEN,
        "--target",
        "bmv2",
        "--arch",
        "v1model",
        "--std",
        "p4-16",
        "--test-backend",
        "PROTOBUF",
    ]
    command += ["--max-tests", str(options.tests), "--seed", str(options.seed)]
    command += ["--track-coverage", "STATEMENTS", "--path-selection", options.path_selection]
    command += ["--packet-size-range", f"0:{PACKET_BITS}", "--out-dir", str(folder)]
    command += ["-I", str(source.include), str(source.path)]
    # BMv2 makes a table immutable that has entries of the program's own.
    tables = [table for pipeline in program.json["pipelines"] for table in pipeline["tables"]]
    if immutable := [table["name"] for table in tables if table.get("entries")]:
        command += ["--skip-control-plane-entities", ",".join(immutable)]
    said = folder / "said"
    with said.open("wb") as log:
        try:
            subprocess.run(
                command, stdout=log, stderr=subprocess.STDOUT, timeout=options.seconds, check=False
            )
        except subprocess.TimeoutExpired:
            # The one that it was writing may have no end.
            last = max(folder.glob("*.txtpb"), key=lambda path: path.stat().st_mtime_ns, default=None)
            if last is not None:
                last.unlink()
    found = COVERED.findall(said.read_text("utf-8", "replace"))
    return (int(found[-1][0]), int(found[-1][1])) if found else (0, 0)


def run_program(source: Source, options: argparse.Namespace, scratch: Path) -> Row:
    """Make the tests of one program and run them on both switches."""
    (program,) = load_programs(source.build, source.path.stem)
    folder = scratch / program.name
    folder.mkdir()
    row = Row(program, generate(source, program, options, folder))
    cases = read_cases(folder, program.p4info)
    shutil.rmtree(folder)
    if cases:
        with Both(program, scratch / "bmv2.log", NOT_OPTIMIZED if options.samples else ()) as both:
            row.verdicts += [both.run(case) for case in cases]
    return row


def write_report(rows: Sequence[Row], failed: Sequence[str], options: argparse.Namespace) -> None:
    """Write testgen.json; after each program, as a run takes long."""
    report = {"seed": options.seed, "programs": [row.as_json() for row in rows], "failed": failed}
    (options.out / "testgen.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")


def run_all(sources: Iterator[Source], options: argparse.Namespace) -> int:
    """Run every program and print the table; returns the exit code."""
    options.out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    failed: list[str] = []
    print(" ".join(f"{name:{layout}}" for name, layout in COLUMNS))
    with tempfile.TemporaryDirectory(prefix="tailrace-testgen-") as scratch:
        for source in sources:
            try:
                row = run_program(source, options, Path(scratch))
            except (ConformanceError, ProgramError) as error:
                failed.append(source.path.stem)
                print(f"{source.path.stem:32} {error}", flush=True)
                continue
            print(row.line(), flush=True)
            rows.append(row)
            write_report(rows, failed, options)
            if options.golden:
                write_cases(row.program, row.covered, row.verdicts, TESTS / "golden" / "testgen")
    if not rows and not failed:
        raise ConformanceError("no program" + (f" called {options.program!r}" if options.program else ""))
    sums = {name: sum(row.count(name) for row in rows) for name in COUNTS}
    tests = sum(len(row.verdicts) for row in rows)
    print(
        f"{len(rows)} programs, {tests} tests: {sums['agree']} agree, {sums['both']} of these not with"
        f" P4Testgen; BMv2 ended on {sums['ended']}; {sums['differ']} differ; {len(failed)} programs failed",
        file=sys.stderr,
    )
    return 1 if sums["differ"] or failed else 0


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    options = arguments(argv)
    for tool in (TESTGEN, *([COMPILER] if options.samples else [])):
        if shutil.which(tool) is None:
            print(f"conformance.testgen: {tool} is not on PATH, nothing made")
            return 0
    if not available():
        print(f"conformance.testgen: {EXECUTABLE} is not on PATH, nothing compared")
        return 0
    sources = ours(options.program)
    if options.samples:
        sources = samples(options.samples, options.out / "build", options.program)
    return guarded("conformance.testgen", lambda: run_all(sources, options))


if __name__ == "__main__":
    raise SystemExit(main())
