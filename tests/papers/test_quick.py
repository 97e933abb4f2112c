# SPDX-License-Identifier: Apache-2.0
"""`tailrace paper --quick`: PASS, WARN or FAIL for each claim, in a table that fits, and nothing is kept."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.cli.main import main
from tailrace.papers import quick
from tailrace.papers.claims.claims import graded
from tailrace.papers.claims.kinds import BEYOND, GOOD, NUMBER
from tailrace.papers.harness import prepare
from tailrace.papers.model import Claim, names, read_paper
from tailrace.results import estimates
from tailrace.results.estimates import Estimate

WITHOUT_RUNS = "flowcut_fig4_5"
"""Its claims are arithmetic; two of them FAIL, which is known."""


def result(
    kind: str, expect: str, value: float, ends: tuple[float, float] | None = None, unit: str = ""
) -> str:
    claim = Claim(kind=kind, text="it", value="fct_mean['ecmp']", expect=expect, unit=unit)
    return quick.result_of(claim, graded(claim, "", Estimate(value, *(ends or ())), quick.SCALE))


@pytest.mark.parametrize(
    ("expected", "kind", "expect", "value", "ends", "unit"),
    [
        ("PASS", "number", "2", 2.2, None, "times"),
        ("WARN", "number", "2", 2.9, None, "times"),
        ("WARN", "number", "2", 40, None, "times"),
        ("FAIL", "number", "2", 0.9, None, "times"),
        ("FAIL", "number", "0.2", -0.1, None, ""),
        ("PASS", "ranking", "< 1", 0.8, (0.7, 0.9), ""),
        ("WARN", "ranking", "< 1", 0.8, (0.7, 1.1), ""),
        ("WARN", "ranking", "< 1", 1.2, None, ""),
        ("FAIL", "ranking", "< 1", 1.2, (1.1, 1.3), ""),
        ("WARN", "direction", "<= 2", 2.1, (1.9, 2.3), ""),
        ("FAIL", "direction", "<= 2", 2.3, (2.1, 2.5), ""),
        ("PASS", "invariant", "== 0", 0, None, ""),
        ("FAIL", "invariant", "== 0", 1, None, ""),
    ],
)
def test_what_each_verdict_is(
    expected: str, kind: str, expect: str, value: float, ends: tuple[float, float] | None, unit: str
) -> None:
    """A number that is far off, but on the paper's side, differs in size only."""
    assert result(kind, expect, value, ends, unit) == expected


@given(paper=st.floats(0.1, 10), ours=st.floats(0.1, 10))
def test_a_number_fails_only_if_the_other_scheme_is_better(paper: float, ours: float) -> None:
    claim = Claim(kind=NUMBER, text="it", value="fct_mean['ecmp']", expect=f"{paper:.3f}", unit="times")
    verdict = graded(claim, "", Estimate(ours), quick.SCALE)
    other_side = (ours - 1) * (round(paper, 3) - 1) <= 0
    expected = quick.PASS if verdict.verdict in GOOD else quick.FAIL if other_side else quick.WARN
    if verdict.verdict == BEYOND or verdict.verdict in GOOD:
        assert quick.result_of(claim, verdict) == expected


def test_the_reference_has_every_figure_and_claims_that_exist() -> None:
    """Of each figure with runs the CPU time, so that the estimate misses none; a peer's inputs are elsewhere."""
    references = quick.references()
    assert references.keys() == {name for name in names() if read_paper(name).beside is None}
    for (name, reference), (file, grid) in zip(
        sorted(references.items()), prepare(sorted(references), quick.SCALE), strict=True
    ):
        assert bool(reference.cpu_s) == bool(grid.tasks), name
        texts = {claim.text for claim in file.claims(quick.SCALE)}
        claims = [key for key in reference.fails if not key.endswith(" flows did not finish")]
        assert all(key in texts or key.rpartition(" [")[0] in texts for key in claims), name


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_table_fits_and_nothing_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Known FAILs are no failure."""
    assert main(["paper", WITHOUT_RUNS, "--quick"]) == 0
    out, err = capsys.readouterr()
    assert all(len(line) <= 80 for line in out.splitlines())
    assert err.splitlines()[0].endswith("about 1 min on idle cores (--workers 1)")
    assert err.splitlines()[-1] == "5 PASS, 0 WARN, 0 FAIL, 2 known FAIL"
    assert list(folder.iterdir()) == []
    assert main(["paper", WITHOUT_RUNS, "--quick", "--out", "kept"]) == 0
    assert (folder / "kept" / "small" / WITHOUT_RUNS / "result.json").exists()


def test_another_fail_is_a_failure(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line names the claims; JSON has each case by itself."""
    monkeypatch.setattr(quick, "references", dict)
    assert main(["paper", WITHOUT_RUNS, "--quick", "-o", "json"]) == 1
    out, err = capsys.readouterr()
    failed = [row for row in msgspec.json.decode(out) if row["result"] == "FAIL"]
    assert len(failed) == 2
    assert all(f"{WITHOUT_RUNS}: {row['claim']}: FAIL" in err.splitlines()[-1] for row in failed)


def test_the_stored_verdict_stands_beside_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That at the papers' scale; there is none without the pages, as in an installed wheel."""
    assert main(["paper", WITHOUT_RUNS, "--quick", "-o", "json"]) == 0
    rows = msgspec.json.decode(capsys.readouterr().out)
    assert main(["results", "claims", WITHOUT_RUNS, "--json"]) == 0
    stored = msgspec.json.decode(capsys.readouterr().out)
    assert [(row["claim"], row["case"], row["stored"]) for row in rows] == [
        (row["claim"], row["case"], row["verdict"]) for row in stored
    ]
    assert {row["stored"] for row in rows} == {"holds", "differs"}
    monkeypatch.setattr("tailrace.cli.paper_command.usual_folder", lambda: None)
    assert main(["paper", WITHOUT_RUNS, "--quick"]) == 0
    assert "paper scale" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--scale", "paper"), "--quick: expected no --page, and no --scale but small"),
        (("--page", "page.md"), "--quick: expected no --page, and no --scale but small"),
        (("--seed", "1"), "--quick: no intervals: they need 3 seeds"),
    ],
)
def test_options_that_do_not_go_with_it(
    more: tuple[str, ...], problem: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["paper", WITHOUT_RUNS, "--quick", *more]) == 2
    assert capsys.readouterr().err == f"tailrace: {problem}\n"


def test_without_scipy_it_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without intervals other claims would FAIL."""
    monkeypatch.setattr(estimates, "distributions", lambda: None)
    assert main(["paper", WITHOUT_RUNS, "--quick"]) == 2
    assert "pip install 'tailrace[intervals]'" in capsys.readouterr().err


def test_a_figure_with_runs_is_as_its_reference_says(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs in virtual time repeat exactly, here in 24 runs."""
    assert main(["paper", "flowcut_incast", "--quick"]) == 0
    assert "0 FAIL" in capsys.readouterr().err.splitlines()[-1]
    assert read_paper("flowcut_incast").claims(quick.SCALE)
    assert list(folder.iterdir()) == []
