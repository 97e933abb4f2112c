# SPDX-License-Identifier: Apache-2.0
"""Coverage of P4 programs: counts of coverage points, in files that can be merged.

A coverage point is a part of a program that a packet may execute, such as a parser state, a statement, a
table's hit, or the true branch of a condition (compiler/coverage_points.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tailrace.spec.atomic import write_file
from tailrace.spec.errors import Error
from tailrace.spec.files import read_bytes, without_bom
from tailrace.spec.text import printable
from tailrace.switch.compiler.coverage_points import CoveragePoints
from tailrace.switch.compiler.program import SwitchProgram

MOST_BYTES = 64 << 20
"""Size limit of a coverage file."""


class CoverageError(Error):
    """A file is no coverage file, or does not fit another one. The message is one line for the user."""


class PointCount(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A coverage point and how often packets executed it.

    `name` is that of a state, action, table or condition. `what` is its part, such as a statement, `hit` or
    `true`; empty: the whole. `file` and `line` are its place in the P4 source; "" and 0: unknown.
    """

    kind: str
    name: str
    what: str
    file: str
    line: int
    count: int


class EntryCoverage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table entry that was present at the end of the run; `written`: as the controller wrote it."""

    table: str
    written: str
    hit: bool


class Coverage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Coverage of one program, which `sha256` of its JSON identifies."""

    program: str
    sha256: str
    uses: tuple[PointCount, ...]
    entries: tuple[EntryCoverage, ...] = ()


def coverage_of(
    program: SwitchProgram, counts: Iterable[int], entries: Iterable[EntryCoverage] = ()
) -> Coverage:
    """Coverage of a program from the counts of its points."""
    uses = tuple(
        PointCount(point.kind, point.name, point.what, *_place(point.source), count)
        for point, count in zip(CoveragePoints(program.model).all, counts, strict=True)
    )
    return Coverage(program.model.name, program.sha256, uses, tuple(entries))


def _place(source: object) -> tuple[str, int]:
    return getattr(source, "file", ""), getattr(source, "line", 0)


def write(coverages: Iterable[Coverage], path: Path) -> None:
    """Writes a coverage file atomically.

    Raises:
        OSError: it cannot be written.
    """
    write_file(path, msgspec.json.encode(list(coverages)))


def read(path: Path) -> list[Coverage]:
    """Reads a coverage file.

    Raises:
        CoverageError: it cannot be read, or is no coverage file.
    """
    try:
        return msgspec.json.decode(without_bom(read_bytes(path, MOST_BYTES)), type=list[Coverage])
    except OSError as error:
        raise CoverageError(f"{path}: {error.strerror or error}") from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CoverageError(f"{path}: not a coverage file: {error}") from None


def merged(coverages: Iterable[Coverage]) -> list[Coverage]:
    """Adds up all coverages of the same program; programs are in the order of their first occurrence."""
    by_program: dict[str, Coverage] = {}
    for coverage in coverages:
        known = by_program.get(coverage.sha256)
        by_program[coverage.sha256] = coverage if known is None else _added(known, coverage)
    return list(by_program.values())


def _added(a: Coverage, b: Coverage) -> Coverage:
    if len(a.uses) != len(b.uses):
        raise CoverageError(
            f"{a.program}: two files have different coverage points; they are from different versions"
        )
    uses = tuple(
        msgspec.structs.replace(x, count=x.count + y.count) for x, y in zip(a.uses, b.uses, strict=True)
    )
    hit: dict[tuple[str, str], bool] = {}
    for entry in (*a.entries, *b.entries):
        key = (entry.table, entry.written)
        hit[key] = hit.get(key, False) or entry.hit
    return Coverage(
        a.program, a.sha256, uses, tuple(EntryCoverage(*key, was_hit) for key, was_hit in hit.items())
    )


def lcov(coverages: Iterable[Coverage]) -> Iterator[str]:
    """Lines of an lcov tracefile, with counts of source lines and of branches of conditions and tables.

    SF: source file; BRDA: line, block, branch, count ("-": no branch was reached); DA: line, count; LF, LH:
    how many lines are listed, and executed.
    """
    lines: dict[str, dict[int, int]] = {}
    branches: dict[str, dict[tuple[int, str], dict[str, int]]] = {}
    for use in (use for coverage in coverages for use in coverage.uses if use.file and use.line):
        line_counts = lines.setdefault(use.file, {})
        line_counts[use.line] = max(line_counts.get(use.line, 0), use.count)
        if use.kind in ("condition", "table") and use.what:
            counts = branches.setdefault(use.file, {}).setdefault((use.line, use.name), {})
            counts[use.what] = counts.get(use.what, 0) + use.count
    for file, line_counts in sorted(lines.items()):
        yield "TN:"
        # a line break in a file's name would begin another record
        yield f"SF:{printable(file)}"
        for block, ((line, _), counts) in enumerate(sorted(branches.get(file, {}).items())):
            reached = any(counts.values())
            for number, count in enumerate(counts.values()):
                yield f"BRDA:{line},{block},{number},{count if reached else '-'}"
        for line, count in sorted(line_counts.items()):
            yield f"DA:{line},{count}"
        yield f"LF:{len(line_counts)}"
        yield f"LH:{sum(count > 0 for count in line_counts.values())}"
        yield "end_of_record"
