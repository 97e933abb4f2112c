# SPDX-License-Identifier: Apache-2.0
"""All figures of a paper at the small scale, and what must be true of any of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tailrace.cli.main import main
from tailrace.papers.claims.kinds import NOT_MEASURED
from tailrace.papers.document import Cell, Document, read_document
from tailrace.papers.model import read_paper, select
from tests.long import ALL

SLOW = ("spritz", "rlb", "hf2t", "common")
"""Papers all of whose figures `make test-all` alone runs."""


def run_small(paper: str, out: Path) -> dict[str, Document]:
    """What `tailrace paper PAPER --scale small` writes, by figure; every picture can be read."""
    if paper in SLOW and not ALL:
        pytest.skip("takes long: make test-all")
    assert main(["paper", paper, "--scale", "small", "--workers", "2", "--out", str(out)]) == 0
    figures = select(paper)
    for name in figures:
        if read_paper(name).chart != "none":
            path = out / "small" / name / f"{name}.svg"
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
    return {name: read_document(out / "small" / name / "result.json") for name in figures}


def check_everything_ran(documents: Mapping[str, Document]) -> None:
    """No run failed, and every claim could be checked."""
    for name, document in documents.items():
        assert document.failed == (), name
        assert all(cell.metrics for cell in document.cells), name
        assert document.claims, name
        assert not [claim for claim in document.claims if claim.verdict == NOT_MEASURED], name


def cells(document: Document, case: str) -> dict[str, Cell]:
    """The cells of a case, by label."""
    return {cell.label: cell for cell in document.cells if cell.case == case}
