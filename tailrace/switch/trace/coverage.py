# SPDX-License-Identifier: Apache-2.0
"""What of programs packets have used, as files that several runs add up to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tailrace.spec.errors import Error
from tailrace.spec.files import read_bytes, unmarked
from tailrace.spec.text import printable
from tailrace.spec.whole import write_file
from tailrace.switch.compiler.coverage_points import Uses
from tailrace.switch.compiler.program import Program

MOST_BYTES = 64 << 20
"""Of one file."""


class CoverageError(Error):
    """A file that is none of coverage; one line for the user."""


class Used(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A use of a program, and its count; fields as of `compiler.coverage_points.Use`."""

    kind: str
    name: str
    what: str
    file: str
    line: int
    count: int


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry that was there in the end, as it was written, and whether a packet has hit it."""

    table: str
    written: str
    hit: bool


class Coverage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What packets have used of one program. Two programs are the same if their JSON is."""

    program: str
    sha256: str
    uses: tuple[Used, ...]
    entries: tuple[Entry, ...] = ()


def coverage_of(program: Program, counts: Iterable[int], entries: Iterable[Entry] = ()) -> Coverage:
    """Coverage of a program by the counts of its uses."""
    uses = tuple(
        Used(use.kind, use.name, use.what, *_place(use.source), count)
        for use, count in zip(Uses(program.model).all, counts, strict=True)
    )
    return Coverage(program.model.name, program.sha256, uses, tuple(entries))


def _place(source: object) -> tuple[str, int]:
    return getattr(source, "file", ""), getattr(source, "line", 0)


def write(found: Iterable[Coverage], path: Path) -> None:
    """Replaces a file by one that holds these, so that nobody reads half of one.

    Raises:
        OSError: it cannot be written.
    """
    write_file(path, msgspec.json.encode(list(found)))


def read(path: Path) -> list[Coverage]:
    """What a file holds.

    Raises:
        CoverageError: it cannot be read, or is none.
    """
    try:
        return msgspec.json.decode(unmarked(read_bytes(path, MOST_BYTES)), type=list[Coverage])
    except OSError as error:
        raise CoverageError(f"{path}: {error.strerror or error}") from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CoverageError(f"{path}: no file of coverage: {error}") from None


def merged(found: Iterable[Coverage]) -> list[Coverage]:
    """The same with what is of one program added up, in the order in which programs first come."""
    by_program: dict[str, Coverage] = {}
    for one in found:
        known = by_program.get(one.sha256)
        by_program[one.sha256] = one if known is None else _added(known, one)
    return list(by_program.values())


def _added(a: Coverage, b: Coverage) -> Coverage:
    if len(a.uses) != len(b.uses):
        raise CoverageError(f"{a.program}: two files count different uses; are they of one version?")
    uses = tuple(
        msgspec.structs.replace(x, count=x.count + y.count) for x, y in zip(a.uses, b.uses, strict=True)
    )
    hit: dict[tuple[str, str], bool] = {}
    for entry in (*a.entries, *b.entries):
        key = (entry.table, entry.written)
        hit[key] = hit.get(key, False) or entry.hit
    return Coverage(a.program, a.sha256, uses, tuple(Entry(*key, one) for key, one in hit.items()))


def lcov(found: Iterable[Coverage]) -> Iterator[str]:
    """Lines of an lcov tracefile: each line of the P4 program, and each way of a condition or table."""
    lines: dict[str, dict[int, int]] = {}
    branches: dict[str, dict[tuple[int, str], dict[str, int]]] = {}
    for use in (use for one in found for use in one.uses if use.file and use.line):
        at = lines.setdefault(use.file, {})
        at[use.line] = max(at.get(use.line, 0), use.count)
        if use.kind in ("condition", "table") and use.what:
            ways = branches.setdefault(use.file, {}).setdefault((use.line, use.name), {})
            ways[use.what] = ways.get(use.what, 0) + use.count
    for file, at in sorted(lines.items()):
        yield "TN:"
        # a name with an end of line in it would begin other records
        yield f"SF:{printable(file)}"
        for block, ((line, _), ways) in enumerate(sorted(branches.get(file, {}).items())):
            reached = any(ways.values())
            for number, count in enumerate(ways.values()):
                yield f"BRDA:{line},{block},{number},{count if reached else '-'}"
        for line, count in sorted(at.items()):
            yield f"DA:{line},{count}"
        yield f"LF:{len(at)}"
        yield f"LH:{sum(count > 0 for count in at.values())}"
        yield "end_of_record"
