#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One-line mutations of the product, drawn at random, and the tests that catch them (mutations.toml).

    .venv/bin/python -m scripts.measure.mutations draw SEED     ten for each area, as TOML
    .venv/bin/python -m scripts.measure.mutations check         whether every mutation still applies
    .venv/bin/python -m scripts.measure.mutations run [--all] OUT.jsonl [NAME...]    those that OUT lacks

A mutation turns a comparison, changes a constant, drops a statement or swaps the branches of a condition.
`run` applies each in this work tree, which must be clean, runs the tests of its room and then the others
until one fails, and takes it back. With --all the tests are those of `make test-all`. The stage `recorded`
means that only recorded results (trace hashes, goldens) catch a mutation.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from scripts.measure.rooms import ROOT, text_of, tracked

FILE = Path(__file__).parent / "mutations.toml"
AREAS = {
    "p4": ("p4src/", (".p4",), ("tests/p4src", "tests/flowcut", "tests/guards")),
    "core": (
        "tailrace/native/runtime/c/",
        (".c", ".h"),
        ("tests/native/runtime", "tests/native/trace", "tests/pfc"),
    ),
    "server": ("tailrace/native/server/", (".py",), ("tests/native/server",)),
    "nics": ("tailrace/hosts/", (".py",), ("tests/hosts",)),
    "controller": ("controller/", (".py",), ("tests/controller", "tests/cli")),
    "study": ("tailrace/experiments/", (".py",), ("tests/experiments", "tests/api")),
}
"""Of each area: the folder and the endings of its files, and the tests of its room."""
RECORDED = ("tests/traces", "tests/conformance", "tests/hosts/traces")
EACH = 10
MUTANTS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
C_COMPARISON = re.compile(r"(?<=[\w)\]] )(<=|>=|==|!=|<|>)(?= [\w(!~-])")
C_CONSTANT = re.compile(r"(?<![\w.\"'<])([1-9]\d{0,5})(?![\w.\"'])")
C_BRANCH = re.compile(r"^(\s*(?:\} else )?if )(\(.*\))( \{)?$")
C_STATEMENT = re.compile(
    r"^\s+(?!return|break|continue|goto|case|const|static|#|bit<|bool |u?int)[\w.>\[\]()-]+.*[^{},]\s*;$"
)
PY_OPERATORS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


@dataclass(frozen=True, slots=True)
class Mutation:
    """A line of a file that becomes another one; `nth` counts the lines that are the same, from 0."""

    name: str
    area: str
    kind: str
    file: str
    old: str
    new: str
    nth: int = 0


# ---- drawing ----


def c_candidates(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """The index, kind and new text of every mutation of C or P4 lines."""
    comment = False
    for index, line in enumerate(lines):
        begins, comment = (
            comment or line.lstrip().startswith(("//", "/*", "*", "#", "@")),
            _in_comment(line, comment),
        )
        if begins or '"' in line:
            continue
        code = re.split(r"//|/\*", line)[0].rstrip()
        for match in C_COMPARISON.finditer(code):
            yield index, "comparison", line[: match.start()] + MUTANTS[match[0]] + line[match.end() :]
        for match in C_CONSTANT.finditer(code):
            yield index, "constant", line[: match.start()] + str(int(match[0]) + 1) + line[match.end() :]
        if branch := C_BRANCH.match(line):
            yield index, "branch", f"{branch[1]}(!{branch[2]}){branch[3] or ''}"
        if C_STATEMENT.match(code):
            yield index, "statement", line[: len(line) - len(line.lstrip())] + ";"


def _in_comment(line: str, before: bool) -> bool:
    begin, end = line.rfind("/*"), line.rfind("*/")
    return begin > end if begin != end else before


def python_candidates(text: str, lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """The index, kind and new text of every mutation of Python lines."""
    for node in ast.walk(ast.parse(text)):
        line = getattr(node, "lineno", 0) - 1
        if line < 0 or getattr(node, "end_lineno", 0) != line + 1:
            continue
        begin, end, old = node.col_offset, node.end_col_offset, lines[line]  # type: ignore[attr-defined]
        if isinstance(node, ast.Compare) and type(node.ops[0]) in PY_OPERATORS:
            sign = PY_OPERATORS[type(node.ops[0])]
            place = old.find(sign, node.left.end_col_offset)
            yield line, "comparison", old[:place] + MUTANTS[sign] + old[place + len(sign) :]
        elif isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0:
            yield line, "constant", old[:begin] + str(node.value + 1) + old[end:]
        elif _can_be_dropped(node):
            yield line, "statement", old[:begin] + "pass" + old[end:]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.If) and node.test.end_lineno == node.test.lineno:
            line, test = node.test.lineno - 1, node.test
            old = lines[line]
            begin, end = test.col_offset, test.end_col_offset
            yield line, "branch", f"{old[:begin]}not ({old[begin:end]}){old[end:]}"


def _can_be_dropped(node: ast.AST) -> bool:
    """Whether a statement is a call or sets an attribute."""
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Attribute)
    return isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await))


def draw(seed: int) -> list[Mutation]:
    """Ten mutations an area: an even choice of kinds, and among a kind's places; no line twice."""
    drawn = []
    for area, (folder, endings, _) in AREAS.items():
        rng = random.Random(f"{seed} {area}")
        places: dict[str, list[Mutation]] = {}
        for path in sorted(path for path in tracked(*endings) if path.startswith(folder)):
            text = text_of(path)
            lines = text.splitlines()
            candidates = python_candidates(text, lines) if path.endswith(".py") else c_candidates(lines)
            for index, kind, new in candidates:
                old = lines[index]
                nth = lines[:index].count(old)
                places.setdefault(kind, []).append(Mutation("", area, kind, path, old, new, nth))
        kinds = ["comparison", "constant", "statement", "branch"]
        lines_seen: set[tuple[str, str, int]] = set()
        while len(lines_seen) < EACH:
            chosen = rng.choice(places[kinds[len(lines_seen) % len(kinds)]])
            if (place := (chosen.file, chosen.old, chosen.nth)) not in lines_seen:
                lines_seen.add(place)
                drawn.append(Mutation(f"{area}-{len(lines_seen)}", *list(asdict(chosen).values())[1:]))
    return drawn


# ---- running ----


def read() -> list[Mutation]:
    """The mutations of mutations.toml."""
    return msgspec.convert(msgspec.toml.decode(FILE.read_bytes())["mutation"], list[Mutation])


def mutated(mutation: Mutation) -> str:
    """The text of the mutated file. Raises ValueError: the line is not in it as often as it has to be."""
    lines = text_of(mutation.file).split("\n")
    places = [index for index, line in enumerate(lines) if line == mutation.old]
    if len(places) <= mutation.nth:
        raise ValueError(f"{mutation.name}: {mutation.file} has {len(places)} times {mutation.old!r}")
    lines[places[mutation.nth]] = mutation.new
    return "\n".join(lines)


def run_tests(arguments: Sequence[str], environment: dict[str, str]) -> str:
    """The first failure of a run of tests, or empty."""
    done = subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode in (0, 5):
        return ""
    failures = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return (
        failures[0] if failures else (done.stdout + done.stderr).strip().rpartition("\n")[2][:200] or "failed"
    )


def stages(mutation: Mutation) -> Iterator[tuple[str, list[str]]]:
    """The commands of a run, the tests of the mutation's room first and recorded results last."""
    pytest = [
        ".venv/bin/pytest",
        "-q",
        "-x",
        "--numprocesses",
        "2",
        "--dist",
        "loadfile",
        "-p",
        "no:cacheprovider",
    ]
    recorded = [f"--ignore={path}" for path in RECORDED]
    if mutation.area == "p4":
        yield "compile", [".venv/bin/python", "scripts/compile_p4.py", "p4src", "p4src/build"]
    yield "room", [*pytest, *recorded, *AREAS[mutation.area][2]]
    if mutation.area in ("p4", "core", "server"):
        yield "packet tests", ["make", "--no-print-directory", "ptf", "TARGET=native"]
    yield "tests", [*pytest, *recorded, "--ignore=tests/mininet"]
    yield "tests", [".venv/bin/pytest", "-q", "-x", "tests/mininet"]
    yield "recorded", [*pytest, *(path for path in RECORDED if (ROOT / path).exists())]


def run(mutation: Mutation, everything: bool) -> dict[str, object]:
    """Applies a mutation, runs tests until they catch it, and takes it back."""
    environment = {**os.environ, **({"TAILRACE_TESTS": "all"} if everything else {})}
    begin_s = time.monotonic()
    (ROOT / mutation.file).write_text(mutated(mutation), encoding="utf-8")
    try:
        runs = ((stage, run_tests(command, environment)) for stage, command in stages(mutation))
        stage, failure = next(((stage, failure) for stage, failure in runs if failure), ("survived", ""))
    finally:
        subprocess.run(["git", "checkout", "--quiet", "--", "."], cwd=ROOT, check=True)
    return {"name": mutation.name, "stage": stage, "failure": failure, "s": round(time.monotonic() - begin_s)}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("draw", "check", "run"))
    parser.add_argument("words", nargs="*", metavar="SEED | OUT.jsonl [NAME...]")
    parser.add_argument("--all", action="store_true", help="the tests of `make test-all`")
    options = parser.parse_args()
    if options.action == "draw":
        for mutation in draw(int(options.words[0])):
            print(
                "[[mutation]]",
                *(f"{key} = {json.dumps(value)}" for key, value in asdict(mutation).items()),
                "",
                sep="\n",
            )
    elif options.action == "check":
        for mutation in read():
            mutated(mutation)
    else:
        out, names = Path(options.words[0]), options.words[1:]
        done = {json.loads(line)["name"] for line in out.read_text().splitlines()} if out.exists() else set()
        if subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=ROOT, check=False).returncode:
            sys.exit("the work tree has changes, which a mutation would be taken back with")
        for mutation in read():
            if mutation.name not in done and (not names or mutation.name in names):
                with out.open("a", encoding="utf-8") as file:
                    print(json.dumps(run(mutation, options.all)), file=file, flush=True)


if __name__ == "__main__":
    main()
