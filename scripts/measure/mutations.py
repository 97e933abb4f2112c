#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One-line mutations of the product (mutations.toml), and the tests that catch them.

    .venv/bin/python -m scripts.measure.mutations check         whether every mutation still applies
    .venv/bin/python -m scripts.measure.mutations run [--all] OUT.jsonl [NAME...]    runs those that OUT lacks

A mutation changes a comparison or a constant, drops a statement, or negates the condition of a branch. `run`
applies each mutation in this work tree, which must be clean, runs the tests of its room (component, AREAS)
until a test fails, and reverts it. The mutations that no test caught are then run together with all
other tests. P4 needs p4c on PATH. With --all the tests are those of `make test-all`. The stage `recorded`
means that only recorded results (trace hashes, golden files) catch a mutation.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from scripts.measure.rooms import ROOT, text_of

FILE = Path(__file__).parent / "mutations.toml"
AREAS = {
    "p4": ("tests/p4src", "tests/flowcut", "tests/guards"),
    "core": ("tests/switch/core", "tests/switch/trace", "tests/pfc"),
    "server": ("tests/switch/p4runtime",),
    "nics": ("tests/hosts",),
    "controller": ("tests/controller", "tests/cli"),
    "study": ("tests/experiments", "tests/api"),
}
"""For each area, the tests of its room."""
RECORDED = ("tests/traces", "tests/checks/conformance", "tests/hosts/traces")


@dataclass(frozen=True, slots=True)
class Mutation:
    """Replaces a text of a file by another one; `nth`: which of its occurrences in the file, from 0."""

    name: str
    area: str
    kind: str
    file: str
    old: str
    new: str
    nth: int = 0


def read() -> list[Mutation]:
    """The mutations of mutations.toml."""
    return msgspec.convert(msgspec.toml.decode(FILE.read_bytes())["mutation"], list[Mutation])


def mutated(mutation: Mutation) -> str:
    """The text of the mutated file. Raises ValueError if it has fewer than `nth` + 1 occurrences of `old`."""
    before = text_of(mutation.file).split(mutation.old)
    if len(before) <= mutation.nth + 1:
        raise ValueError(f"{mutation.name}: {mutation.file} has {len(before) - 1} times {mutation.old!r}")
    head, tail = before[: mutation.nth + 1], before[mutation.nth + 1 :]
    return mutation.old.join(head) + mutation.new + mutation.old.join(tail)


PYTEST = (".venv/bin/pytest", "-q", "-p", "no:cacheprovider")
PARALLEL = (*PYTEST, "--numprocesses", "3", "--dist", "worksteal")
IN_ORDER = (*PYTEST, "--numprocesses", "2", "--dist", "loadfile", "--no-loadscope-reorder", "-x")
NO_RECORDED = tuple(f"--ignore={path}" for path in RECORDED)
LIMIT_S = 900
"""Timeout after which a run of tests counts as failed: a mutation that makes it endless is caught."""

STAGES: dict[str, tuple[str, ...]] = {
    "packet tests": ("make", "--no-print-directory", "ptf", "TARGET=native"),
    "tests": (*PARALLEL, *NO_RECORDED, "--ignore=tests/mininet"),
    "mininet": (*PYTEST, "tests/mininet"),
    "recorded": (*PARALLEL, *(path for path in RECORDED if (ROOT / path).exists())),
}
"""Commands for the mutations that no test of their room catches, all applied together."""

MAX_FAILURES = 30
PASSED = "passed its room"


def failures_of(command: Sequence[str], everything: bool) -> list[str]:
    """The tests that fail, or the last line of output if a command fails without naming tests."""
    environment = {**os.environ, **({"TAILRACE_TESTS": "all"} if everything else {})}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return ["no end"]
    # 5: pytest has collected no tests
    if done.returncode in (0, 5):
        return []
    names = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return names or [(done.stdout + done.stderr).strip().rpartition("\n")[2][:200] or "failed"]


def applied(mutations: Sequence[Mutation], everything: bool) -> list[str]:
    """Writes the mutated files, and compiles mutated P4; returns failures of the compiler."""
    for mutation in mutations:
        (ROOT / mutation.file).write_text(mutated(mutation), encoding="utf-8")
    if not any(mutation.area == "p4" for mutation in mutations):
        return []
    return failures_of((".venv/bin/python", "scripts/compile_p4.py", "p4src", "p4src/build"), everything)


def outcome(mutations: Sequence[Mutation], command: Sequence[str], everything: bool) -> list[str]:
    """The failures with these mutations in the work tree, which is restored afterwards."""
    try:
        return applied(mutations, everything) or failures_of(command, everything)
    finally:
        subprocess.run(["git", "checkout", "--quiet", "--", "."], cwd=ROOT, check=True)


def by_mentions(mutation: Mutation) -> list[str]:
    """The test files of a mutation's room, sorted by how often they name the mutated module."""
    module = re.compile(rf"\b{re.escape(Path(mutation.file).stem)}\b")
    files = [path for folder in AREAS[mutation.area] for path in (ROOT / folder).rglob("test_*.py")]
    return [
        str(path) for path in sorted(files, key=lambda path: (-len(module.findall(path.read_text())), path))
    ]


def in_room(mutation: Mutation, everything: bool) -> str:
    """The first test of a mutation's room that fails with it, also when run alone; empty: no test does."""
    command = (*IN_ORDER, *NO_RECORDED, *by_mentions(mutation))
    while failures := outcome([mutation], command, everything):
        test = failures[0]
        if "::" not in test or outcome([mutation], (*PYTEST, test), everything):
            return test
        # the test is flaky
        command = (*command, f"--deselect={test}")
    return ""


def together(mutations: Sequence[Mutation], everything: bool) -> Iterator[tuple[Mutation, str, str]]:
    """The stage and the test that catch each mutation. All mutations are applied at once: if no test fails,
    no mutation is caught; tests that fail are run again with each mutation alone.
    """
    rest = list(mutations)
    for stage, command in STAGES.items():
        limit = () if command[0] == "make" else (f"--maxfail={MAX_FAILURES}",)
        flaky: list[str] = []
        while rest and (failures := outcome(rest, (*command, *limit, *flaky), everything)):
            tests = [name for name in failures if "::" in name]
            alone = (*PYTEST, "-x", *tests) if tests and command[0] != "make" else command
            caught = {each: failed[0] for each in rest if (failed := outcome([each], alone, everything))}
            if not caught and (not tests or command[0] == "make"):
                raise SystemExit(
                    f"{stage}: {failures[0]} fails, but not with any of {[m.name for m in rest]} alone"
                )
            if not caught:
                flaky += [f"--deselect={test}" for test in tests]
            for each, failure in caught.items():
                yield each, stage, failure
            rest = [each for each in rest if each not in caught]
    for each in rest:
        yield each, "survived", ""


def run(out: Path, names: Sequence[str], everything: bool) -> None:
    """Adds a line to OUT for each mutation that it lacks: runs the tests of its room, then all tests."""
    lines = out.read_text().splitlines() if out.exists() else []
    stage_of = {line["name"]: line["stage"] for line in map(json.loads, lines)}
    chosen = [each for each in read() if not names or each.name in names]

    def record(mutation: Mutation, stage: str, failure: str) -> None:
        stage_of[mutation.name] = stage
        with out.open("a", encoding="utf-8") as file:
            print(json.dumps({"name": mutation.name, "stage": stage, "failure": failure}), file=file)

    for mutation in chosen:
        if mutation.name not in stage_of:
            failure = in_room(mutation, everything)
            record(mutation, "room" if failure else PASSED, failure)
    for mutation, stage, failure in together([m for m in chosen if stage_of[m.name] == PASSED], everything):
        record(mutation, stage, failure)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("check")
    running = actions.add_parser("run")
    running.add_argument("out", type=Path, metavar="OUT.jsonl")
    running.add_argument("names", nargs="*", metavar="NAME")
    running.add_argument("--all", action="store_true", help="run the tests of `make test-all`")
    options = parser.parse_args()
    if options.action == "check":
        for mutation in read():
            mutated(mutation)
    elif subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=ROOT, check=False).returncode:
        sys.exit("the work tree has changes, which would be lost when a mutation is reverted")
    else:
        run(options.out, options.names, options.all)


if __name__ == "__main__":
    main()
