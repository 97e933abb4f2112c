# SPDX-License-Identifier: Apache-2.0
"""Flowcut's figures and tables at the small scale, and the page that shows them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tailrace.cli.main import main
from tailrace.papers.claims.kinds import HOLDS
from tailrace.papers.document import Document, read_document
from tailrace.papers.model import select
from tests.long import ALL
from tests.papers.small import check_everything_ran

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_S = 120

SHORT = "flowcut_fig4_5,flowcut_fig8,flowcut_fig9,flowcut_table3,flowcut_table4"
"""Arithmetic, flowlets beside Flowcut, slow links; `make test-all` has them all."""
FIGURES = select("flowcut" if ALL else SHORT)


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `tailrace paper NAMES --scale small` fills."""
    out = tmp_path_factory.mktemp("paper")
    assert main(["paper", ",".join(FIGURES), "--scale", "small", "--workers", "2", "--out", str(out)]) == 0
    return out


def documents(paper: Path) -> list[Document]:
    return [read_document(paper / "small" / name / "result.json") for name in FIGURES]


def test_everything_ran(paper: Path) -> None:
    """No run failed, every flow finished, every claim could be checked."""
    check_everything_ran({document.name: document for document in documents(paper)})


def test_flowcut_keeps_the_order(paper: Path) -> None:
    """No packet of Flowcut is out of order, overtaken or sent twice, in any figure, case or variant."""
    checked = 0
    for document in documents(paper):
        for cell in document.cells:
            name = cell.label.partition("-")[0]
            flowcut = (
                name in ("flowcut", "flowcut growth", "full", "ingress", "nic")
                or document.name == "flowcut_fig7"
            )
            if document.kind == "runs" and flowcut:
                order = {
                    key: cell.metrics[key] for key in ("out_of_order_share", "overtaken", "retransmitted")
                }
                assert not any(order.values()), (document.name, cell)
                checked += 1
    assert checked > (50 if ALL else 10)


def test_others_do_not(paper: Path) -> None:
    """Spraying reorders, so the counts above can be trusted; ECMP does not."""
    (document,) = (candidate for candidate in documents(paper) if candidate.name == "flowcut_fig8")
    shares = {cell.label: cell.metrics["out_of_order_share"] for cell in document.cells}
    assert shares["spray"] > 0.2
    assert shares["ecmp"] == 0
    assert shares["flowlet-lowest"] < 0.02


def test_arithmetic_holds_where_it_follows(paper: Path) -> None:
    """The memory model needs no simulation: these verdicts are what REPRODUCE.md derives."""
    verdicts = {
        claim.text: claim.verdict == HOLDS
        for document in documents(paper)
        if document.kind != "runs"
        for claim in document.claims
    }
    differing = {text for text, holds in verdicts.items() if not holds}
    assert differing == {
        "ingress switch with 65,536 hosts",
        "NIC with 65,536 hosts",
        "overhead of Tailrace's own formats, first switch only",
    }


def test_figures(paper: Path) -> None:
    """One SVG each, but for the table without one."""
    for document in documents(paper):
        path = paper / "small" / document.name / f"{document.name}.svg"
        if document.chart == "none":
            assert not path.exists()
        else:
            assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_again_runs_nothing(paper: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is finished is read; the JSON is that of the documents."""
    assert main(["paper", "flowcut_fig9", "--out", str(paper), "--json"]) == 0
    captured = capsys.readouterr()
    (printed,) = json.loads(captured.out)
    (document,) = (candidate for candidate in documents(paper) if candidate.name == "flowcut_fig9")
    assert printed["name"] == "flowcut_fig9"
    assert [cell["metrics"] for cell in printed["cells"]] == [cell.metrics for cell in document.cells]
    assert re.search(r"(\d+) of \1 results were there already", captured.err)


def test_report_in_a_browser(paper: Path, tmp_path: Path) -> None:
    """The page opens by itself in a real browser: every figure is drawn, every claim is there."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    page = tmp_path / "report.html"
    assert main(["report", str(paper), "--out", str(page), "--title", "Flowcut at the small scale"]) == 0
    shot = tmp_path / "shot.png"
    command = [
        *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *(f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1200,3000"),
    ]
    dumped = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    ).stdout
    assert "<h1>Flowcut at the small scale</h1>" in dumped
    figures = documents(paper)
    assert dumped.count("<svg ") >= sum(document.chart != "none" for document in figures)
    assert dumped.count('class="badge') == sum(len(document.claims) for document in figures)
    for document in figures:
        assert f'id="small-{document.name}"' in dumped
    subprocess.run(
        [*command, f"--screenshot={shot}", page.as_uri()], capture_output=True, timeout=TIMEOUT_S, check=True
    )
    assert len(set(picture_rows(shot))) > 100


def picture_rows(path: Path) -> list[bytes]:
    """The rows of a PNG: a page on which nothing is drawn has hardly any that differ."""
    from matplotlib.image import imread

    return [row.tobytes() for row in imread(path)]


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    """Names, figures and titles."""
    assert main(["paper", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in listed if entry["paper"] == "Flowcut"] == select("flowcut")
    assert main(["paper"]) == 0
    assert "Table IV" in capsys.readouterr().out
