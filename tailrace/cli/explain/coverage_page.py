# SPDX-License-Identifier: Apache-2.0
"""Coverage as one HTML page: how much of each program, and the sources line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tailrace.cli.explain.coverage_table import KINDS, listing, unused_listing
from tailrace.native.trace.coverage import Coverage
from tailrace.words.files import read_bytes

MOST_SOURCE_BYTES = 1 << 20
"""Of one source; of a larger one only the lines that are counted are shown."""

_TEMPLATE = "coverage_page.html.j2"
_WAYS = ("condition", "table")
"""Kinds of uses of which one line has several."""


class Line(NamedTuple):
    """A line of a source. `times` None: nothing of it is counted. `missing`: ways that nobody has taken."""

    number: int
    text: str
    times: int | None
    missing: tuple[str, ...]

    @property
    def state(self) -> str:
        """Used, used in part, unused, or not counted."""
        if self.times is None:
            return ""
        return "unused" if not self.times else "part" if self.missing else "used"


class Source(NamedTuple):
    """A source with what all programs that have it use of it together."""

    name: str
    lines: tuple[Line, ...]

    @property
    def counted(self) -> int:
        """Lines that are counted."""
        return sum(line.times is not None for line in self.lines)

    @property
    def used(self) -> int:
        """Lines of them that were used."""
        return sum(bool(line.times) for line in self.lines)


def page(found: Sequence[Coverage], folders: Sequence[Path]) -> str:
    """The page.

    Args:
        folders: where sources are looked for; the name of each is as the compiler was given it.
    """
    programs = [(one.program, {str(row["what"]): row for row in listing([one]).rows}) for one in found]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template(_TEMPLATE).render(
        programs=programs,
        kinds=[kind for kind in KINDS if any(kind in rows for _, rows in programs)],
        sources=list(_sources(found, folders)),
        unused=[row for row in unused_listing(found).rows if not row["place"]],
    )


def _sources(found: Iterable[Coverage], folders: Sequence[Path]) -> Iterator[Source]:
    counts: dict[str, dict[int, int]] = {}
    ways: dict[str, dict[int, dict[str, int]]] = {}
    for use in (use for one in found for use in one.uses if use.file and use.line > 0):
        at = counts.setdefault(use.file, {})
        at[use.line] = max(at.get(use.line, 0), use.count)
        if use.kind in _WAYS and use.what:
            # one control that several programs have has a name in each of them
            of_line = ways.setdefault(use.file, {}).setdefault(use.line, {})
            of_line[use.what] = of_line.get(use.what, 0) + use.count
    for name, at in sorted(counts.items()):
        texts = _read(name, folders)
        numbers = range(1, len(texts) + 1) if texts else sorted(at)
        yield Source(name, tuple(_line(n, texts, at, ways.get(name, {})) for n in numbers))


def _line(number: int, texts: Sequence[str], counts: dict[int, int], ways: dict[int, dict[str, int]]) -> Line:
    text = texts[number - 1] if number <= len(texts) else ""
    missing = tuple(way for way, count in ways.get(number, {}).items() if not count)
    return Line(number, text, counts.get(number), missing)


def _read(name: str, folders: Sequence[Path]) -> list[str]:
    """The lines of a source; none where it is in none of the folders: its name comes from outside."""
    relative = PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts:
        return []
    for folder in folders:
        path = folder / relative
        try:
            if path.resolve().is_relative_to(folder.resolve()):
                return read_bytes(path, MOST_SOURCE_BYTES).decode("utf-8-sig", "replace").splitlines()
        except (OSError, ValueError):
            continue
    return []
