# SPDX-License-Identifier: Apache-2.0
"""docs/schemes: a page that explains each system, short and of the same form, and a page of details; each DEVIATION
of the sources is in a page's differences from the paper.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tailrace.schemes.base import SCHEMES

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "schemes"
DETAILS = "-details"
INDEX = FOLDER / "index.md"
PAGES = sorted(page for page in FOLDER.glob("*.md") if DETAILS not in page.stem)
"""The pages that explain, and the index."""

EXPLAINED = [page for page in PAGES if page != INDEX]
MOST_WORDS = 800
SECTIONS = (
    *("The idea", "How it works here", "Parameters", "Run it", "What it costs", "Where it loses the order"),
    "Results",
)


def words(text: str) -> int:
    """The words of a page, without tables and code blocks."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return sum(len(line.split()) for line in text.splitlines() if not line.startswith("|"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_that_explains_is_short(page: Path) -> None:
    assert words(page.read_text("utf-8")) <= MOST_WORDS


@pytest.mark.parametrize("page", EXPLAINED, ids=lambda page: page.stem)
def test_a_page_that_explains_has_its_sections_and_details(page: Path) -> None:
    text = page.read_text("utf-8")
    assert [name for name in re.findall(r"^## (.*)$", text, re.MULTILINE) if name in SECTIONS] == list(
        SECTIONS
    )
    assert text.partition("\n## ")[0].startswith("# ")
    assert "This page explains" in text.partition("\n## ")[0]
    details = page.with_stem(page.stem + DETAILS)
    assert f"]({details.name})" in text
    assert details.exists()


def test_the_index_has_every_scheme_and_page() -> None:
    text = INDEX.read_text("utf-8")
    first_cells = "".join(re.findall(r"^\|([^|]*)\|", text, re.MULTILINE))
    built_in = [
        name for name in SCHEMES.names if SCHEMES.entry(name).struct.__module__.startswith("tailrace.")
    ]
    assert [name for name in built_in if f"`{name}`" not in first_cells] == []
    linked = set(re.findall(r"\]\(([\w-]+\.md)", text))
    assert {page.name for page in FOLDER.glob("*.md")} - {INDEX.name} == linked


def test_each_deviation_is_among_the_differences_from_the_paper() -> None:
    """As many rows link to a source file as it has comments that begin with DEVIATION."""
    comments: Counter[Path] = Counter()
    for room in ("p4src", "tailrace", "controller", "mininet"):
        for path in (path for kind in ("*.p4", "*.py", "*.c", "*.h") for path in (ROOT / room).rglob(kind)):
            comments[path.resolve()] += path.read_text("utf-8").count("DEVIATION:")
    rows: Counter[Path] = Counter()
    for page in FOLDER.glob(f"*{DETAILS}.md"):
        section = (
            page.read_text("utf-8").partition("\n## Differences from the paper")[2].partition("\n## ")[0]
        )
        for row in (line for line in section.splitlines() if line.startswith("|")):
            rows.update({(FOLDER / target).resolve() for target in re.findall(r"\]\(([^)#]+)\)", row)})
    assert sum(comments.values()) > 20
    assert {path.relative_to(ROOT).as_posix(): count for path, count in (comments - rows).items()} == {}
