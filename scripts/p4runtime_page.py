#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/switch/p4runtime.md from tests/switch/p4runtime/requirements.toml."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import tomli

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "switch" / "p4runtime.md"
TESTS = "tests/switch/p4runtime"

HELD = {"yes": "yes", "no": "**no**", "n/a": "n/a"}
COLUMNS = ("default", "`--strict`", "`--bmv2-compat`")

SPECIFICATION = "https://p4lang.github.io/p4runtime/spec/v1.5.0/P4Runtime-Spec.html"

HEAD = """# P4Runtime: what is asked, and which test shows it

Each row is something that a client can see of [P4Runtime 1.5.0]({specification}),
in our words, numbered by its section, with the tests that show it through a real gRPC connection.
`make docs` writes this page from [requirements.toml](../../{tests}/requirements.toml); a test fails when
it is stale, when a row has no test, or when a test is not there.

* **`--strict`** does as the specification says also where that costs others, or breaks with what scripts for
  simple_switch_grpc take for granted: {stricter} rows. **`--bmv2-compat`** does as simple_switch_grpc where
  programs rely on it: {differ} rows differ, and say how. For all others the same tests run in both modes.
* **no**: the row tells what happens instead, and its test shows that. **n/a**: it cannot arise here.
* **4ward** is the row of
  [{repository}'s compliance matrix](https://github.com/{repository}/blob/{commit}/{page})
  that asks the same, and its status there: Y tested, R rejected, P in part, N/A out of scope. All {theirs}
  rows are here; it has some numbers twice, (9.7) are those of registers. **≠**: that row asks for something
  else than the specification, as we read both: see [below](#where-4wards-rows-ask-for-something-else).
* What holds beyond the specification, and all limits: [running.md](running.md#what-clients-may-ask-for).
"""


def load() -> dict[str, Any]:
    """The requirements."""
    return tomli.loads((ROOT / TESTS / "requirements.toml").read_text("utf-8"))


def page(data: dict[str, Any]) -> str:
    """The text of docs/switch/p4runtime.md."""
    fourward, rows = data["fourward"], list(_rows(data["sections"]))
    differ, stricter = (sum(key in row for row in rows) for key in ("compat", "strict"))
    given = {
        **fourward,
        "specification": SPECIFICATION,
        "tests": TESTS,
        "differ": differ,
        "stricter": stricter,
        "theirs": len(fourward["status"]),
    }
    parts = [HEAD.format_map(given), *_summary(data), *_compared(rows, fourward["status"])]
    for section in data["sections"]:
        parts += _section(section, fourward["status"])
    parts += [
        "## Where 4ward's rows ask for something else\n",
        "| row | 4ward's | what it asks for |",
        "|---|---|---|",
    ]
    parts += [
        f"| {row['id']} | {', '.join(row['fourward'])} | {row['differs']} |"
        for row in rows
        if "differs" in row
    ]
    return "\n".join(parts) + "\n"


def _rows(sections: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for section in sections:
        yield from section["rows"]


def _held(row: dict[str, Any]) -> tuple[str, str, str]:
    """Whether a row is held by default, with --strict, and with --bmv2-compat."""
    by_default = row.get("held", "yes")
    strict = "yes" if "strict" in row else by_default
    return by_default, strict, row.get("compat", {}).get("held", by_default)


def _summary(data: dict[str, Any]) -> Iterator[str]:
    """How many rows of each section are held."""
    of_specification = [section for section in data["sections"] if section["specification"]]
    others = [section for section in data["sections"] if not section["specification"]]
    yield "| section | rows | " + " | ".join(f"{name}: {held}" for name in COLUMNS for held in HELD) + " |"
    yield "|---" * (2 + len(COLUMNS) * len(HELD)) + "|"
    for section in of_specification:
        yield _counts(f"{section['specification']} {section['title']}", section["rows"])
    yield _counts("**all of the specification**", list(_rows(of_specification)))
    yield _counts("beside the specification", list(_rows(others))) + "\n"


def _counts(name: str, rows: list[dict[str, Any]]) -> str:
    cells = [str(len(rows))]
    for column in range(len(COLUMNS)):
        counts = Counter(_held(row)[column] for row in rows)
        cells += [str(counts[held] or "") for held in HELD]
    return f"| {name} | {' | '.join(cells)} |"


def _compared(rows: list[dict[str, Any]], status: dict[str, str]) -> Iterator[str]:
    """How many of 4ward's rows, by their status there, are held here."""
    yield "| 4ward's rows | what the specification asks there is held here, by default | not held | ≠ |"
    yield "|---|---|---|---|"
    ours = {theirs: row for row in rows for theirs in row.get("fourward", [])}
    for kind in sorted(set(status.values()), reverse=True):
        found = {theirs: ours[theirs] for theirs, one in status.items() if one == kind}
        lost = [theirs for theirs, row in found.items() if _held(row)[0] != "yes"]
        other = sum("differs" in row for row in found.values())
        yield f"| {kind}: {len(found)} | {len(found) - len(lost)} | {', '.join(lost)} | {other or ''} |"
    yield ""


def _section(section: dict[str, Any], status: dict[str, str]) -> Iterator[str]:
    number = f" ({section['specification']})" if section["specification"] else ""
    yield f"## {section['title']}{number}\n"
    yield f"| id | requirement | {' | '.join(COLUMNS)} | 4ward | test |"
    yield "|---|---|---|---|---|---|---|"
    for row in section["rows"]:
        by_default, strict, compat = _held(row)
        first = HELD[by_default] + (f": {row['why']}" if "why" in row else "")
        second = HELD[compat] + (f": {row['compat']['why']}" if "compat" in row else "")
        theirs = ", ".join(f"{one} {status[one]}" for one in row.get("fourward", []))
        theirs += " ≠" if "differs" in row else ""
        named = [
            *row["tests"],
            *(test for key in ("strict", "compat") for test in row.get(key, {}).get("tests", [])),
        ]
        tests = ", ".join(_link(test) for test in dict.fromkeys(named))
        yield f"| {row['id']} | {row['says']} | {first} | {HELD[strict]} | {second} | {theirs} | {tests} |"
    yield ""


def _link(test: str) -> str:
    file, _, name = test.partition("::")
    return f"[{name.removeprefix('test_')}](../../{TESTS}/{file})"


if __name__ == "__main__":
    PAGE.write_text(page(load()), "utf-8")
