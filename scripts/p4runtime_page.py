#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/switch/p4runtime.md from tests/switch/p4runtime/requirements.toml.

A requirement is held if the switch meets it. The tables are between two lines of the page:

    <!-- requirements -->
    <!-- end of requirements -->
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import tomli

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "switch" / "p4runtime.md"
REQUIREMENTS = ROOT / "tests" / "switch" / "p4runtime" / "requirements.toml"

STATES = ("yes", "no", "n/a")
MODES = ("default", "`--strict`", "`--bmv2-compat`")
HELD = ("yes",) * len(MODES)

_BLOCK = re.compile(r"(<!-- requirements -->\n).*?(<!-- end of requirements -->)", re.DOTALL)

FOURWARD = """\
[4ward's compliance matrix](https://github.com/{repository}/blob/{commit}/{page}) of
another P4Runtime server has {rows} rows. By default this switch does what the specification requires
in {held} of the {rows} rows. In our reading, {other} rows differ from the specification (`differs` in the
TOML); the switch then follows the specification.
"""


def load() -> dict[str, Any]:
    """The requirements."""
    return tomli.loads(REQUIREMENTS.read_text("utf-8"))


def page(data: dict[str, Any]) -> str:
    """The text of docs/switch/p4runtime.md with its tables rewritten."""
    block = "\n".join([*_summary(data), *_fourward(data), *_departures(data)])
    return _BLOCK.sub(lambda match: f"{match[1]}{block}\n{match[2]}", PAGE.read_text("utf-8"))


def _rows(sections: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for section in sections:
        yield from section["rows"]


def _held(row: dict[str, Any]) -> tuple[str, str, str]:
    """Whether a row is held by default, with --strict, and with --bmv2-compat."""
    by_default = row.get("held", "yes")
    strict = "yes" if "strict" in row else by_default
    return by_default, strict, row.get("compat", {}).get("held", by_default)


def _summary(data: dict[str, Any]) -> Iterator[str]:
    """How many rows of each section are held, without sections that are held in every mode."""
    of_specification = [section for section in data["sections"] if section["specification"]]
    extensions = [section for section in data["sections"] if not section["specification"]]
    yield "| section | requirements | held | `--strict` | `--bmv2-compat` | not applicable |"
    yield "|---|---|---|---|---|---|"
    for section in of_specification:
        if not all(_held(row) == HELD for row in section["rows"]):
            yield _counts(f"{section['specification']} {section['title']}", section["rows"])
    yield _counts("**the specification**", list(_rows(of_specification)))
    yield _counts("beyond the specification", list(_rows(extensions))) + "\n"


def _counts(name: str, rows: list[dict[str, Any]]) -> str:
    modes = list(zip(*(_held(row) for row in rows), strict=True))
    cells = [len(rows), *(mode.count("yes") for mode in modes), modes[0].count("n/a") or ""]
    return f"| {name} | {' | '.join(str(cell) for cell in cells)} |"


def _fourward(data: dict[str, Any]) -> Iterator[str]:
    """How many rows of 4ward's matrix are held."""
    rows = [(row, len(row.get("fourward", []))) for row in _rows(data["sections"])]
    held = sum(count for row, count in rows if _held(row)[0] == "yes")
    other = sum(count for row, count in rows if "differs" in row)
    fourward = data["fourward"]
    yield FOURWARD.format_map({**fourward, "rows": len(fourward["status"]), "held": held, "other": other})


def _departures(data: dict[str, Any]) -> Iterator[str]:
    """Each row that is not held in every mode."""
    yield "| id | requirement | not held | behaviour instead, or reason |"
    yield "|---|---|---|---|"
    for row in _rows(data["sections"]):
        held = _held(row)
        if held == HELD:
            continue
        modes = [name for name, state in zip(MODES, held, strict=True) if state == "no"]
        where = ", ".join(modes) if len(modes) < len(MODES) else "always"
        instead = "; ".join(given["why"] for given in (row, row.get("compat", {})) if "why" in given)
        yield f"| {row['id']} | {row['says']} | {where or 'not applicable'} | {instead} |"


if __name__ == "__main__":
    PAGE.write_text(page(load()), "utf-8")
