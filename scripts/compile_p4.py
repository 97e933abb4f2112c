#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compile P4_16 v1model programs to BMv2 JSON and P4Info, or check that the committed output is up to date.

    compile_p4.py [-I DIR] SOURCE_DIR BUILD_DIR            compile every program below SOURCE_DIR (needs p4c)
    compile_p4.py [-I DIR] --check SOURCE_DIR BUILD_DIR    compare with SHA256SUMS (needs no p4c)

-I names a folder with more files to include, such as p4src.

A program is a `.p4` file that instantiates `main`; every other `.p4` or `.h` file is an include. The output
of `a/b/name.p4` is `BUILD_DIR/name.json` and `BUILD_DIR/name.p4info.txtpb`. Both have p4c's content, with a
line for each table, parser state, primitive and so on, and the same bytes on every machine.
`BUILD_DIR/SHA256SUMS` contains the digest of every source and of every output, so that a change of either is
detected on machines without a compiler. A warning of p4c is an error. If a warning cannot be avoided in the
source, the program has a comment line with the reason, then a line `// p4c-warns: START OF THE WARNING`.

Exit codes: 0 done or up to date, 1 a program does not compile or the output is stale, 2 bad usage.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Container
from pathlib import Path

SUMS = "SHA256SUMS"
SOURCE_SUFFIXES = (".p4", ".h")
KNOWN_WARNING = re.compile(r"^// p4c-warns: (.+)$", re.MULTILINE)
INNER_LISTS = {"action_profiles", "conditionals", "parse_states", "primitives", "tables"}
"""The lists inside parsers, pipelines and actions that have one line per element."""
MAIN = re.compile(r"^[^/\n]*\)\s*main\s*;", re.MULTILINE)


class CompileError(Exception):
    """The message says what is wrong; `code` is the exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def sources_below(source_dir: Path, build_dir: Path) -> list[Path]:
    """All P4 sources and headers below `source_dir` but outside `build_dir`, sorted by path."""
    sources = (path for path in source_dir.rglob("*") if path.suffix in SOURCE_SUFFIXES and path.is_file())
    return sorted(path for path in sources if build_dir not in path.parents)


def programs_among(sources: list[Path]) -> list[Path]:
    """The sources that instantiate `main`. Raises CompileError when two share a file name."""
    programs = [path for path in sources if path.suffix == ".p4" and MAIN.search(path.read_text("utf-8"))]
    stems: dict[str, Path] = {}
    for path in programs:
        if path.stem in stems:
            raise CompileError(f"{path}: has the same name as {stems[path.stem]}")
        stems[path.stem] = path
    return programs


def outputs_of(program: Path, build_dir: Path) -> tuple[Path, Path]:
    """The JSON file and the P4Info file that `program` compiles to."""
    return build_dir / f"{program.stem}.json", build_dir / f"{program.stem}.p4info.txtpb"


def compiler() -> list[str]:
    """The command that runs p4c's BMv2 back end. Raises CompileError when it is not on PATH."""
    if not shutil.which("p4c-bm2-ss"):
        raise CompileError("p4c-bm2-ss (of p4c) is not on PATH", code=2)
    return ["p4c-bm2-ss", "--arch", "v1model"]


def compile_program(
    command: list[str], source_dir: Path, program: Path, build_dir: Path, include: Path | None = None
) -> None:
    """Compile one program. Runs inside `source_dir`, so that the output names sources relative to it."""
    relative = program.relative_to(source_dir)
    json_path, p4info_path = outputs_of(program, build_dir)
    target = ["--p4runtime-files", str(p4info_path), "-o", str(json_path)]
    run = subprocess.run(
        [*command, "-I", ".", *([] if include is None else ["-I", str(include)]), *target, str(relative)],
        cwd=source_dir,
        capture_output=True,
        text=True,
        check=False,
    )
    text = (run.stdout + run.stderr).strip()
    known = KNOWN_WARNING.findall(program.read_text("utf-8"))
    if run.returncode or any(unexpected(line, known) for line in text.splitlines()):
        json_path.unlink(missing_ok=True)
        p4info_path.unlink(missing_ok=True)
        raise CompileError(f"{relative}: p4c reports:\n{text}")
    document = json.loads(json_path.read_text("utf-8"))
    document["program"] = str(relative)
    relocate(document, source_dir, include)
    json_path.write_text(json_lines(document, document.keys()) + "\n", "utf-8")
    p4info_path.write_text(text_lines(p4info_path.read_text("utf-8")), "utf-8")


def json_lines(node: object, lists: Container[str], indent: str = "\n") -> str:
    """`node` as JSON on one line, except for lists of several elements under a key in `lists`: each element
    is on a separate line, and so are those of the lists inside it that have a key in INNER_LISTS.
    """
    if not isinstance(node, dict):
        return json.dumps(node, separators=(",", ":"))
    parts = []
    for key, value in node.items():
        if key in lists and isinstance(value, list):
            inner, outer = (indent + " ", indent) if len(value) > 1 else ("", "")
            elements = [inner + json_lines(element, INNER_LISTS, inner or indent) for element in value]
            text = f"[{','.join(elements)}{outer}]"
        else:
            text = json.dumps(value, separators=(",", ":"))
        parts.append(f"{json.dumps(key)}:{text}")
    return f"{{{','.join(parts)}}}"


def text_lines(text: str) -> str:
    """Protobuf's text format as p4c prints it, with each top-level field on one line; comments stay."""
    lines: list[str] = []
    for line in text.splitlines():
        if line[:1] in (" ", "}"):
            lines[-1] += " " + line.strip()
        elif line:
            lines.append(line)
    return "\n".join(lines) + "\n"


def unexpected(line: str, known: list[str]) -> bool:
    """Whether `line` of p4c's output is an error, or a warning that starts with none of the `known` texts."""
    _, is_warning, text = line.partition(" warning: ")
    if is_warning:
        return not text.startswith(tuple(known))
    return " error: " in line


def relocate(node: object, source_dir: Path, include: Path | None = None) -> None:
    """Rewrite each `filename` in the JSON tree: our files relative to their folder, p4c's as bare names."""
    if isinstance(node, list):
        for child in node:
            relocate(child, source_dir, include)
    elif isinstance(node, dict):
        name = node.get("filename")
        if isinstance(name, str) and name:
            path = Path(name)
            if include is not None and path.is_relative_to(include):
                path = path.relative_to(include)
            elif path.is_absolute() or not (source_dir / path).is_file():
                path = Path(path.name)
            node["filename"] = path.as_posix()
        for child in node.values():
            relocate(child, source_dir, include)


def digest_lines(source_dir: Path, build_dir: Path, include: Path | None = None) -> list[str]:
    """The lines of SHA256SUMS: one per source, then one per output, in the format of `sha256sum`."""
    sources = sources_below(source_dir, build_dir)
    named = [(path.relative_to(source_dir).as_posix(), path) for path in sources]
    if include is not None:
        more = sources_below(include, include / "build")
        named += [(f"include/{path.relative_to(include).as_posix()}", path) for path in more]
    for program in programs_among(sources):
        named += [(f"build/{path.name}", path) for path in outputs_of(program, build_dir)]
    lines = []
    for name, path in named:
        if not path.is_file():
            raise CompileError(f"{build_dir}: {path.name} is missing; recompile with 'make p4'")
        lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}")
    return lines


def check(source_dir: Path, build_dir: Path, include: Path | None = None) -> None:
    """Raise CompileError with the first file that differs, unless SHA256SUMS matches all files."""
    sums = build_dir / SUMS
    if not sums.is_file():
        raise CompileError(f"{sums}: missing; compile with 'make p4'")
    # a line has 64 hexadecimal digits, two spaces and the name
    recorded = {line[66:]: line[:64] for line in sums.read_text("utf-8").splitlines() if line}
    current = {line[66:]: line[:64] for line in digest_lines(source_dir, build_dir, include)}
    for name in sorted(recorded.keys() | current.keys()):
        if recorded.get(name) != current.get(name):
            verb = "is new" if name not in recorded else "is gone" if name not in current else "has changed"
            raise CompileError(
                f"{source_dir}: {name} {verb} since the last compilation; recompile with 'make p4'"
            )
    expected = {Path(name).name for name in current} | {SUMS}
    for path in sorted(build_dir.iterdir()):
        if path.name not in expected:
            raise CompileError(f"{path}: belongs to no program; remove it or recompile with 'make p4'")


def compile_all(source_dir: Path, build_dir: Path, include: Path | None = None) -> int:
    """Compile every program, remove output without a program, write SHA256SUMS. Returns how many programs."""
    build_dir.mkdir(parents=True, exist_ok=True)
    command = compiler()
    programs = programs_among(sources_below(source_dir, build_dir))
    failures = []
    for program in programs:
        try:
            compile_program(command, source_dir, program, build_dir, include)
        except CompileError as error:
            failures.append(str(error))
    if failures:
        raise CompileError("\n".join(failures))
    keep = {path for program in programs for path in outputs_of(program, build_dir)}
    for path in build_dir.iterdir():
        if path.is_file() and path not in keep:
            path.unlink()
    (build_dir / SUMS).write_text("\n".join(digest_lines(source_dir, build_dir, include)) + "\n", "utf-8")
    return len(programs)


def main(arguments: list[str] | None = None) -> int:
    """Command line entry point; returns the exit code."""
    parser = argparse.ArgumentParser(description="Compile P4 programs, or check the committed output.")
    parser.add_argument("source_dir", type=Path, help="folder of the P4 sources")
    parser.add_argument("build_dir", type=Path, help="folder of the compiled output")
    parser.add_argument(
        "--check", action="store_true", help="only compare with SHA256SUMS; needs no compiler"
    )
    parser.add_argument("-I", dest="include", type=Path, help="folder with more files to include")
    options = parser.parse_args(arguments)
    include = None if options.include is None else options.include.resolve()
    source_dir, build_dir = options.source_dir.resolve(), options.build_dir.resolve()
    try:
        if not source_dir.is_dir():
            raise CompileError(f"{options.source_dir}: not a folder", code=2)
        if options.check:
            check(source_dir, build_dir, include)
            print(f"{options.build_dir}: up to date")
        else:
            print(f"{options.build_dir}: {compile_all(source_dir, build_dir, include)} programs compiled")
    except CompileError as error:
        print(f"compile_p4: {error}", file=sys.stderr)
        return error.code
    except (OSError, UnicodeDecodeError) as error:
        print(f"compile_p4: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
