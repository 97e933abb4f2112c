# SPDX-License-Identifier: Apache-2.0
"""Several seeds: how they are written, that they give every scheme the same traffic, and what comes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.container import ErrorbarContainer

import tailrace
from tailrace.cli.main import main
from tailrace.cli.options import OutputFormat
from tailrace.cli.output import render
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.seeds import MOST_SEED, MOST_SEEDS, parse_seeds, seeds_text
from tailrace.report.figures.figure import comparison
from tailrace.report.figures.plot import NATURAL
from tailrace.results.results import Results
from tailrace.schemes.registry import SCHEMES
from tailrace.sim.job import Job
from tailrace.sim.outcome import Outcome
from tailrace.spec import SpecError
from tailrace.study.grids import plans
from tests.experiments.fake import FakeBackend, compare_on, record

TINY = {
    "topology": "leaf-spine:leaves=2,spines=2,hosts=2",
    "workload": "permutation:size=16KiB",
    "target": "virtual",
}
ONLY_DRAGONFLY = ("minimal", "valiant", "ugal-l")
TRAFFIC = (
    "permutation:size=8KiB,jitter=10us",
    "random:flows=9,size=4KiB",
    "poisson:load=0.4,duration=20us,cdf=websearch,most=64KiB",
    "incast:degree=3,size=8KiB",
)


# ---- how they are written ----


@pytest.mark.parametrize(
    ("value", "seeds"),
    [
        (7, (7,)),
        ("7", (7,)),
        ("1..4", (1, 2, 3, 4)),
        ("3, 1..2", (3, 1, 2)),
        ([5, 0], (5, 0)),
        (MOST_SEED, (MOST_SEED,)),
        (f"1..{MOST_SEEDS}", tuple(range(1, MOST_SEEDS + 1))),
    ],
)
def test_seeds(value: int | str | list[int], seeds: tuple[int, ...]) -> None:
    assert parse_seeds(value) == seeds
    assert make({"scheme": "ecmp", "seed": value}).seeds == seeds
    assert parse_seeds(seeds_text(seeds)) == seeds


@pytest.mark.parametrize(
    "value",
    [
        *("", "x", "1..", "..3", "3..1", "-1", "1,,2", "1,1", "1..3,2", "1...3", "1.5", "１"),
        *("1..1000000000", f"0..{MOST_SEED}", "0..9999999999999999999", "1..600,701..1300", "9" * 5000),
        *(-1, MOST_SEED + 1, [], [1, 1], [-3], list(range(MOST_SEEDS + 1))),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_seed(value: int | str | list[int]) -> None:
    """One line, soon, whatever it asks for."""
    with pytest.raises(SpecError) as caught:
        make({"scheme": "ecmp", "seed": value})
    assert str(caught.value).startswith("seed: ")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30, unique=True))
def test_texts_of_seeds(seeds: list[int]) -> None:
    assert parse_seeds(seeds_text(seeds)) == tuple(seeds)


def test_files_have_seeds(tmp_path: Path) -> None:
    """As a text or a list, also of a scale; what is none is told with the file and the key."""
    path = tmp_path / "it.toml"
    path.write_text('scheme = "ecmp"\nseed = "1..3"\n[scale.small]\nseed = [5, 6]\n')
    assert tailrace.experiment(path).seeds == (1, 2, 3)
    assert tailrace.experiment(path, scale="small").seeds == (5, 6)
    assert tailrace.experiment(path, seed=range(2)).seeds == (0, 1)
    path.write_text('scheme = "ecmp"\n[elsewhere]\nseed = "3..1"\n')
    with pytest.raises(SpecError, match=r"it\.toml: key 'elsewhere\.seed': expected a whole number"):
        tailrace.experiment(path)


def test_a_run_has_one() -> None:
    several = make({"scheme": "ecmp", "seed": "4..6"})
    assert [experiment.seed for experiment in several.each_seed()] == [4, 5, 6]
    with pytest.raises(SpecError, match=r"seed: 4\.\.6 are 3 seeds, expected one here"):
        tailrace.run(several)


def test_a_hostile_range_is_one_line() -> None:
    with pytest.raises(SpecError, match="at most 1000"):
        tailrace.experiment(scheme="ecmp", seed=range(10**12))


# ---- the same traffic for every scheme ----


@settings(max_examples=12)
@given(
    st.integers(0, MOST_SEED),
    st.sampled_from(TRAFFIC),
    st.sampled_from([None, "link-slow:fraction=0.3,factor=0.5"]),
)
def test_every_scheme_has_the_same_traffic(seed: int, workload: str, fault: str | None) -> None:
    """Of one seed, but for the paths that NICs choose; and another seed gives another. Each network has all of
    the schemes that can run in it.
    """
    words = {"scheme": "ecmp", "workload": workload, "seed": seed, "target": "virtual"}
    words |= {} if fault is None else {"fault": fault}
    seen = set[str]()
    for topology in ("leaf-spine:leaves=3,spines=2,hosts=3", "dragonfly:p=2,a=4,h=2,groups=3"):
        schemes = [
            scheme.name
            for scheme in SCHEMES
            if scheme.name != "program" and (topology[0] == "d" or scheme.name not in ONLY_DRAGONFLY)
        ]
        planned_runs = plans(make({**words, "topology": topology}), schemes, "virtual")
        traffic = {
            (
                len(plan.job.faults),
                tuple(
                    (flow.id, flow.src, flow.dst, flow.bytes, flow.start_ns, flow.after)
                    for flow in plan.job.flows
                ),
            )
            for _, plan in planned_runs
        }
        faults = {plan.job.faults for _, plan in planned_runs if plan.job.faults}
        assert len(traffic) == (1 if fault is None else 2)
        assert len({flows for _, flows in traffic}) == 1
        assert len(faults) == (0 if fault is None else 1)
        seen |= set(schemes)
    assert seen == {entry.name for entry in SCHEMES} - {"program"}


# ---- what comes of them ----


def times_of(job: Job) -> Outcome:
    """ECMP takes 8 ms with seed 1 and 1 ms more with each; LetFlow a tenth less, spraying what the seed decides."""
    base = 7_000_000 + job.seed * 1_000_000
    factor = {"ecmp": 1.0, "letflow": 0.9, "spray": 0.8 if job.seed % 2 else 1.3}[job.scheme.name]
    return Outcome(tuple(record(flow, round(base * factor)) for flow in job.flows), wall_s=1.0)


def compared(
    seeds: str, schemes: tuple[str, ...] = ("ecmp", "letflow", "spray"), folder: Path | None = None
) -> Results:
    base = make({**TINY, "scheme": "ecmp", "seed": seeds})
    return compare_on(FakeBackend(times_of), base, schemes, folder=folder)


def test_means_and_paired_ratios() -> None:
    """A difference that every seed has is one, though seeds differ by more; one that seeds decide is none; what
    is not worse than the best stands out.
    """
    done = compared("1..6")
    ecmp, letflow, spray = done.document.rows
    assert ecmp.metrics["fct_mean"].value == pytest.approx(10.5e6)
    assert letflow.ratios["fct_mean"].value == pytest.approx(0.9)
    assert letflow.ratios["fct_mean"].low == pytest.approx(0.9) == letflow.ratios["fct_mean"].high
    low, high = spray.ratios["fct_mean"].low, spray.ratios["fct_mean"].high
    assert isinstance(low, float) and isinstance(high, float) and low < 1 < high
    assert "fct_mean" in letflow.best and "fct_mean" in spray.best and "fct_mean" not in ecmp.best
    text = done.markdown()
    row = {line.split(" | ")[1]: line for line in text.splitlines() if line.startswith("|")}
    assert "none" not in row["spray"] and f"1.06 ({low:.2f}..{high:.2f})" in row["spray"]
    assert "| **9.45 (" in row["letflow"] and "| 10.5 (" in row["ecmp"]
    assert "means over the seeds 1..6 with their 95 % intervals" in text


def test_the_same_results_give_the_same_table() -> None:
    """Draws have a seed of their own."""
    texts = {render(compared("1..5").table, OutputFormat.CSV) for _ in range(2)}
    assert len(texts) == 1
    assert "fct_mean_low" in texts.pop()


@pytest.mark.parametrize("schemes", [("ecmp", "letflow"), tuple(f"letflow:gap={n}us" for n in range(1, 12))])
def test_error_bars(schemes: tuple[str, ...]) -> None:
    """In a figure of lines and bars, and in one of rows: an error bar for each bar, and none of few seeds."""
    for seeds, count in (("1..5", len(schemes)), ("1..2", 0)):
        figure = comparison.draw(compared(seeds, schemes), NATURAL)
        assert figure is not None
        (panel,) = [
            axis for axis in figure.axes if "ut-of-order" in axis.get_title() or "out of" in axis.get_title()
        ]
        bars = [container for container in panel.containers if isinstance(container, ErrorbarContainer)]
        assert (len(panel.patches), len(bars)) == (len(schemes), count)


def test_few_seeds_have_no_interval() -> None:
    """The table has means and says why."""
    done = compared("1..2")
    text = done.markdown()
    assert "no intervals: they need 3 seeds" in text
    assert ".." not in text.split("\n\n")[0]
    assert "**" not in text


def test_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is there, and one line says which extra has intervals."""
    monkeypatch.setattr("tailrace.results.estimates.distributions", lambda: None)
    text = compared("1..6").markdown()
    assert "no intervals: they need SciPy, see pip install 'tailrace[intervals]'" in text
    assert "| 0.90 |" in text


def test_files_of_several_seeds(tmp_path: Path) -> None:
    """A folder for each; what was written is read again."""
    done = compared("2..3", folder=tmp_path)
    assert (tmp_path / "clean" / "ecmp" / "seed=3" / "summary.json").exists()
    again = tailrace.open_results(tmp_path)
    assert again.axes == {"case": ("clean",), "scheme": ("ecmp", "letflow", "spray"), "seed": (2, 3)}
    assert again.document == done.document
    assert again.result(scheme="ecmp", seed=3).summary.seed == 3
    with pytest.raises(SpecError, match=r"2 results of ecmp; expected one run of case=clean; .*; seed=2,3"):
        again.result(scheme="ecmp")
    with pytest.raises(SpecError, match="no result of ecmp seed=9"):
        again.result(scheme="ecmp", seed=9)


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """run, compare and sweep take them, and give what single seeds do; a sweep's axis of seeds keeps its rows."""
    words = ["--topology", TINY["topology"], "--workload", TINY["workload"], "--target", "virtual"]
    assert (
        main(["run", "--scheme", "ecmp", *words, "--seed", "1,3", "--out", str(tmp_path / "run"), "--json"])
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    alone = [tailrace.run(tiny_with(seed)).summary.trace_sha256 for seed in (1, 3)]
    assert [run["summary"]["trace_sha256"] for run in document["runs"]] == alone
    at_once = ["compare", "--scheme", "ecmp,spray", *words, "--seed", "1..2", "--workers", "2"]
    assert main([*at_once, "--out", str(tmp_path / "two"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [(run["settings"]["scheme"], run["summary"]["seed"]) for run in printed["runs"]] == [
        *(("ecmp", 1), ("ecmp", 2), ("spray", 1), ("spray", 2))
    ]
    swept = ["sweep", "--scheme", "letflow", "--set", "scheme.gap=5us,50us", *words]
    assert main([*swept, "--seed", "1..2", "--out", str(tmp_path / "sweep")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 2 + 5
    again = tailrace.open_results(tmp_path / "sweep")
    assert (again.over_seeds, again.axes["seed"], len(again.runs)) == (True, (1, 2), 4)
    assert main([*swept, "--set", "seed=1..2", "--out", str(tmp_path / "axis")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 4 + 3
    assert main(["run", "--scheme", "ecmp", *words, "--seed", "1..2", "--ranks", "2"]) == 2
    assert "--seed: several seeds do not go together with" in capsys.readouterr().err


def tiny_with(seed: int) -> tailrace.Experiment:
    return make({**TINY, "scheme": "ecmp", "seed": seed})
