# SPDX-License-Identifier: Apache-2.0
"""`tailrace paper --store`, `tailrace results` and `sweep --store`, as a user calls them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from arro3.io import read_parquet as read_arrow

from tailrace.cli.main import main
from tailrace.papers import model
from tailrace.results.parquet import write_parquet
from tailrace.study import task as tasks
from tailrace.study.store.store import read_records
from tailrace.tables.arrow import make_table, values_of

FIGURE = """
paper = "Some"
figure = "Fig. 1"
title = "Some schemes"
source = "Some §1"
about = "What they do."
metrics = ["fct_mean", "fct_max", "out_of_order_share"]

[experiment]
target = "virtual"
topology = "leaf-spine:leaves=2,spines=2,hosts=2"
workload = "permutation:size=16KiB"

[scale.small]
seeds = [1, 2, 3]

[scale.paper]
seeds = [1, 2, 3]
experiment = { topology = "leaf-spine:leaves=2,spines=2,hosts=4", workload = "permutation:size=64KiB" }

[[scheme]]
label = "ecmp"
experiment = { scheme = "ecmp" }

[[scheme]]
label = "spray"
experiment = { scheme = "spray" }

[[claim]]
text = "nothing is lost"
kind = "invariant"
value = "retransmitted['ecmp']"
expect = ">= 0"
"""

Output = tuple[str, str]


@pytest.fixture
def figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the only figure of a paper; results go beside it."""
    files = tmp_path / "files"
    files.mkdir()
    (files / "some_fig1.toml").write_text(FIGURE)
    monkeypatch.setattr(model, "FOLDER", files)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Output]:
    """Calls the command, and gives what it wrote to both outputs."""

    def called(*words: str, status: int = 0) -> Output:
        capsys.readouterr()
        assert main(list(words)) == status, capsys.readouterr().err
        return capsys.readouterr()

    return called


def test_a_page_of_stored_runs_is_that_of_runs(figure: Path, call: Callable[..., Output]) -> None:
    """Byte for byte: the page, its numbers, its picture and traces; and nothing is run for it."""
    output = call("paper", "some_fig1", "--out", "a", "--page", "one/page.md")
    assert "virtual" in output[1]
    assert sorted(path.name for path in (figure / "one").iterdir()) == [
        *("ecmp.parquet", "page", "page.md", "spray.parquet")
    ]
    output = call("paper", "some_fig1", "--out", "b", "--page", "two/page.md", "--store", "one")
    assert "virtual" not in output[1]
    names = sorted(
        path.relative_to(figure / "one") for path in (figure / "one").rglob("page*") if path.is_file()
    )
    assert names
    for name in (
        Path("page.md"),
        *(Path("page") / each.name for each in (figure / "one" / "page").iterdir()),
    ):
        assert (figure / "one" / name).read_bytes() == (figure / "two" / name).read_bytes(), name
    assert not list((figure / "two").glob("*.parquet"))


@pytest.mark.parametrize("page", ["taken", "taken/x.md", "taken.md", "link/x.md"])
def test_a_page_that_cannot_be_written_is_told_before_anything_runs(
    page: str, figure: Path, call: Callable[..., Output]
) -> None:
    """A file is in the way of the page's folder or of one above it, or a link to nothing."""
    (figure / "taken").write_text("a file, no folder")
    (figure / "link").symlink_to("nowhere")
    stderr = call("paper", "some_fig1", "--out", "a", "--page", page, status=2)[1]
    assert stderr.startswith("tailrace: --page: ")
    assert len(stderr.splitlines()) == 1
    assert not (figure / "a").exists()


@pytest.mark.parametrize("place", ["a/runs", "a/small", "a/small/some_fig1"])
def test_nothing_is_written_through_links(place: str, figure: Path, call: Callable[..., Output]) -> None:
    """Refused before anything runs, with a store and without."""
    (figure / "elsewhere").mkdir()
    (figure / place).parent.mkdir(parents=True)
    (figure / place).symlink_to(figure / "elsewhere")
    for more in ((), ("--store", "one")):
        stderr = call("paper", "some_fig1", "--out", "a", *more, status=2)[1]
        assert f"{place}" in stderr.splitlines()[-1]
        assert "a link, expected a folder" in stderr.splitlines()[-1]
        assert "virtual" not in stderr
    assert list((figure / "elsewhere").iterdir()) == []


def test_a_page_says_that_runs_were_kept(
    figure: Path, call: Callable[..., Output], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of earlier code, which are not run again."""
    call("paper", "some_fig1", "--out", "a", "--page", "one/page.md")
    assert "Kept:" not in (figure / "one" / "page.md").read_text()
    monkeypatch.setattr(tasks, "code_sha256", lambda: "another commit")
    output = call("paper", "some_fig1", "--out", "b", "--page", "one/page.md")
    assert "6 stored runs were made by earlier code: --again runs them again" in output[1]
    assert "Kept: " in (figure / "one" / "page.md").read_text()
    output = call("paper", "some_fig1", "--out", "c", "--page", "one/page.md")
    assert "virtual" not in output[1]


def test_sweeps_add_rows_and_results_finds_them(figure: Path, call: Callable[..., Output]) -> None:
    """By scheme, options, seeds and faults; whole as JSON; all seeds in one row."""
    words = ("sweep", "--scheme", "ecmp,letflow:gap=5us", "--set", "seed=1..3", "--set",
             "fault=none,link-slow:link=leaf1-spine1,factor=0.5", "--target", "virtual", "--workers", "2",
             "--topology", "leaf-spine:leaves=2,spines=2,hosts=2", "--workload", "permutation:size=16KiB")  # fmt: skip
    call(*words, "--store", "kept", "--out", "swept")

    def rows_of(*filters: str, over_seeds: bool = False) -> list[dict]:
        form = ("--over-seeds", "-o", "json") if over_seeds else ("-o", "jsonl")
        text, _ = call("results", *filters, "--store", "kept", *form)
        return json.loads(text) if over_seeds else [json.loads(line) for line in text.splitlines()]

    assert len(rows_of()) == 12
    assert len(rows_of("scheme=letflow")) == len(rows_of("scheme=letflow:gap=5us")) == 6
    assert rows_of("scheme=letflow:gap=6us") == rows_of("scheme=let") == []
    assert [row["seed"] for row in rows_of("scheme=ecmp", "seed=2..3", "fault=none")] == [2, 3]
    assert len(rows_of("fault=link-slow:factor=0.5", "seed=1")) == 2
    assert len(rows_of("topology=leaf-spine:spines=2", "workload=permutation")) == 12
    (whole,) = json.loads(
        call("results", "scheme=ecmp", "seed=1", "fault=none", "--json", "--store", "kept")[0]
    )
    summary = json.loads((figure / "swept/scheme=ecmp/seed=1/fault=none/summary.json").read_text())
    assert whole["summary"]["trace_sha256"] == summary["trace_sha256"]
    assert rows_of("scheme=ecmp", "seed=1", "fault=none")[0]["trace"] == summary["trace_sha256"]
    rows = rows_of("scheme=ecmp", over_seeds=True)
    assert [(row["seeds"], row["flows"]) for row in rows] == [(3, 12), (3, 12)]
    (clean,) = (row for row in rows if not row["faults"])
    for name in ("fct_mean", "fct_p99", "slowdown_p99", "out_of_order_share"):
        each = [row[name] for row in rows_of("scheme=ecmp", "fault=none")]
        assert clean[name] == pytest.approx(sum(each) / 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["scheme="], "results 'scheme=': expected KEY=SPEC"),
        (["colour=red"], "results 'colour=red': unknown key; expected "),
        (["seed=x"], "results 'seed=x': expected a number, or FIRST..LAST"),
        (["scheme=:"], "scheme: the name is missing"),
        (["--store", "file"], "file: Not a directory"),
    ],
)
def test_bad_calls(words: list[str], message: str, figure: Path, call: Callable[..., Output]) -> None:
    """One line, exit 2."""
    (figure / "file").write_text("")
    store = [] if "--store" in words else ["--store", "."]
    stderr = call("results", *words, *store, status=2)[1]
    assert message in stderr
    assert len(stderr.splitlines()) == 1


def test_bad_rows_are_told_and_the_others_shown(figure: Path, call: Callable[..., Output]) -> None:
    """Each by file and row, exit 2; a page is not made of such a file, and it stays as it is."""
    call("paper", "some_fig1", "--out", "a", "--store", "kept")
    path = figure / "kept" / "ecmp.parquet"
    table = read_arrow(io.BytesIO(path.read_bytes())).read_all()
    values = values_of(table)
    values["summary"][0], values["run"][2] = "<<<<<<< ours", "\x1b[31m"
    write_parquet(make_table(values, dict(zip(table.column_names, table.schema.types, strict=True))), path)
    before = path.read_bytes()
    shown, stderr = call("results", "scheme=ecmp", "--store", "kept", "-o", "jsonl", status=2)
    assert len(shown.splitlines()) == table.num_rows - 2
    name = "tailrace: kept/ecmp.parquet: row"
    first, second, last = stderr.splitlines()
    assert first.startswith(f"{name} 1: not a finished run: ")
    assert second.startswith(f"{name} 3: not a finished run: ")
    assert last == "tailrace: 2 rows or files are no finished runs, and were left out"
    stderr = call("paper", "some_fig1", "--out", "b", "--store", "kept", status=2)[1]
    assert "tailrace: kept/ecmp.parquet: row 1: not a finished run: " in stderr
    assert "Traceback" not in stderr
    assert path.read_bytes() == before


def test_the_projects_own_runs_can_be_read() -> None:
    """Those beside its pages."""
    folder = Path(__file__).resolve().parents[3] / "docs" / "results"
    paths = sorted(folder.glob("*.parquet"))
    assert paths
    for path in paths:
        records, bad = read_records(path)
        assert bad == []
        orders = [record.order for record in records.values()]
        assert orders == sorted(orders)


@pytest.mark.parametrize("seed", ["4", "1..3"])
def test_percentiles_are_in_rows(seed: str, figure: Path, call: Callable[..., Output]) -> None:
    """Over several seeds they are means of each one's own, so nothing is run again for them."""
    path = figure / "files" / "some_fig1.toml"
    path.write_text(path.read_text().replace('"fct_max"', '"fct_p50"'))
    words = ("paper", "some_fig1", "--seed", seed, "--store", "kept", "--json")
    (first,) = json.loads(call(*words, "--out", "a")[0])
    output = call(*words, "--out", "b")
    assert "virtual" not in output[1]
    (second,) = json.loads(output[0])
    assert [cell["metrics"]["fct_p50"] for cell in second["cells"]] == [
        cell["metrics"]["fct_p50"] for cell in first["cells"]
    ]


def test_ratios_are_of_pairs(figure: Path, call: Callable[..., Output]) -> None:
    """Of means over the seeds, with an interval from three seeds on; the same of stored runs."""
    path = figure / "files" / "some_fig1.toml"
    path.write_text(
        path.read_text().replace('title = "Some', 'base = "ecmp"\ndrawn = ["fct_mean"]\ntitle = "Some')
    )
    documents = []
    for out, seeds in (("a", "1..5"), ("b", "1..5"), ("c", "1..2")):
        (document,) = json.loads(
            call("paper", "some_fig1", "--seed", seeds, "--store", "kept", "--json", "--out", out)[0]
        )
        documents.append({cell["label"]: cell for cell in document["cells"]})
    first, again, two = documents
    assert first == again
    means = {label: cell["metrics"]["fct_mean"] for label, cell in first.items()}
    value, low, high = first["spray"]["ratios"]["fct_mean"]
    assert value == pytest.approx(means["spray"] / means["ecmp"])
    assert low <= value <= high
    assert first["ecmp"]["ratios"] == {"fct_mean": [1.0, 1.0, 1.0]}
    assert len(two["spray"]["ratios"]["fct_mean"]) == 1
    assert document["cost"]["runs"] == 4
