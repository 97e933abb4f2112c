# SPDX-License-Identifier: Apache-2.0
"""The folder of a study: its format, what is run again, what is removed, and what an interruption keeps."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import polars
import pytest

import tailrace
from tailrace.cli.experiment_options import PAGE
from tailrace.cli.main import main
from tailrace.experiments.plan.axes import parse_axis
from tailrace.experiments.plan.experiment import make
from tailrace.report.kinds import KINDS
from tailrace.results.results import DRAWN, FIGURE_FILES, ResultsDocument, clear, open_results
from tailrace.sim.errors import RunError
from tailrace.sim.job import Job
from tailrace.sim.outcome import Outcome
from tailrace.spec.errors import FileError
from tailrace.study.grids import sweep_grid
from tailrace.tables.arrow import values_of
from tests.experiments.fake import FakeBackend, compare_on, record, run_on
from tests.processes import NOT_IGNORED

KEYS: dict[str, Any] = {
    "topology": "leaf-spine:leaves=2,spines=2,hosts=1",
    "workload": "permutation:size=1KiB",
    "target": "virtual",
}
SMALL = [word for key, value in KEYS.items() for word in (f"--{key}", value)]
SCHEMES = ("ecmp", "letflow", "spray")
TIMEOUT_S = 240


def answer(job: Job) -> Outcome:
    """Each flow takes longer with each seed."""
    return Outcome(tuple(record(flow, (10 + job.seed % 100) * 1000) for flow in job.flows), wall_s=1.0)


def failing(*runs: tuple[str, int]) -> Callable[[Job], Outcome]:
    """Fails the runs of some schemes and seeds."""

    def fail(job: Job) -> Outcome:
        if (job.scheme.name, job.seed) in runs:
            raise RunError("out of luck")
        return answer(job)

    return fail


def compared(
    folder: Path | None,
    schemes: tuple[str, ...] = SCHEMES,
    *,
    seed: str = "1",
    target: str = "virtual",
    again: bool = False,
    of: Callable[[Job], Outcome] = answer,
    **keys: str,
) -> tuple[tailrace.Results, list[tuple[str, int]]]:
    """A comparison, and the runs that its backend was given."""
    backend = FakeBackend(of)
    base = make({**KEYS, "scheme": schemes[0], "seed": seed, "target": target, **keys})
    done = compare_on(backend, base, schemes, target=target, folder=folder, again=again)
    return done, [(job.scheme.name, job.seed) for job in backend.jobs]


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


# ---- the format ----


@pytest.mark.parametrize("of", [answer, failing(("letflow", 2))])
def test_results_json_matches_its_schema(of: Callable[[Job], Outcome], tmp_path: Path) -> None:
    """The document is also the schema's that docs/reference/results.schema.json publishes."""
    done, _ = compared(tmp_path, seed="1..3", of=of)
    document = json.loads((tmp_path / "results.json").read_text("utf-8"))
    jsonschema.validate(document, msgspec.json.schema(ResultsDocument))
    assert document.keys() == {
        "format", "axes", "runs", "rows", "first", "over_seeds", "left_out", "command",
    }  # fmt: skip
    assert document["axes"] == {"case": ["clean"], "scheme": [*SCHEMES], "seed": [1, 2, 3]}
    assert [run["settings"]["seed"] for run in document["runs"]] == [1, 2, 3] * 3
    assert open_results(tmp_path).document == done.document


def test_runs_parquet_has_a_row_for_each_run_that_ended(tmp_path: Path) -> None:
    done, _ = compared(tmp_path, seed="1..2", of=failing(("letflow", 1)))
    table = polars.read_parquet(tmp_path / "runs.parquet")
    assert table.select("scheme", "seed").rows() == [
        ("ecmp", 1), ("ecmp", 2), ("letflow", 2), ("spray", 1), ("spray", 2),
    ]  # fmt: skip
    assert table.columns[:3] == ["case", "scheme", "seed"]
    assert table.to_dict(as_series=False) == values_of(done.metrics)


def test_settings_are_numbers_where_all_values_of_an_axis_are(tmp_path: Path) -> None:
    base = make({**KEYS, "scheme": "flowcut:variant=nic"})
    axes = [parse_axis("scheme.rtt=2,3"), parse_axis("workload.size=1KiB,2048"), parse_axis("seed=1,2")]
    done = run_on(FakeBackend(answer), sweep_grid(base, axes, "virtual"), tmp_path)
    again = open_results(tmp_path)
    for results in (done, again):
        assert results.axes == {"scheme.rtt": (2, 3), "workload.size": ("1KiB", "2048"), "seed": (1, 2)}
        settings: dict[str, str | int] = {"scheme.rtt": 3, "workload.size": "2048", "seed": 1}
        assert results.result(**settings).summary.seed == 1
    assert polars.read_parquet(tmp_path / "runs.parquet")["scheme.rtt"].to_list() == [2] * 4 + [3] * 4


@pytest.mark.parametrize("text", ["seed=1,02", f"seed=1,{(1 << 63) - 1}"])
def test_a_seed_is_a_number_however_it_is_written(text: str, tmp_path: Path) -> None:
    base = make({**KEYS, "scheme": "ecmp"})
    done = run_on(FakeBackend(answer), sweep_grid(base, [parse_axis(text)], "virtual"), tmp_path)
    assert [run.settings["seed"] for run in done.runs] == [result.summary.seed for result in done.results]


def test_values_that_are_one_number_are_two_values() -> None:
    """They are texts then; a seed is one however it is written."""
    base = make({**KEYS, "scheme": "flowcut:variant=nic"})
    grid = sweep_grid(base, [parse_axis("scheme.rtt=2,2.0")], "virtual")
    assert grid.axes == {"scheme.rtt": ("2", "2.0")}
    assert [group.seeds for group in run_on(FakeBackend(answer), grid).groups] == [(base.seed,)] * 2
    with pytest.raises(tailrace.SpecError, match="--set seed: a seed is given twice"):
        sweep_grid(base, [parse_axis("seed=2,02")], "virtual")


# ---- failed and refused runs ----


def test_a_failed_run_keeps_its_place(tmp_path: Path) -> None:
    """Its seed is missing in the means and in the pairs of the ratios, and all other runs are there."""
    done, ran = compared(tmp_path, seed="1..3", of=failing(("letflow", 2)))
    assert ran == [(scheme, seed) for scheme in SCHEMES for seed in (1, 2, 3)]
    for results in (done, open_results(tmp_path)):
        assert [run.result is None for run in results.runs] == [False] * 4 + [True] + [False] * 4
        assert results.failed == ("clean letflow seed 2: out of luck",)
        assert not results.complete
        assert [(group.label, group.seeds) for group in results.groups] == [
            ("ecmp", (1, 2, 3)),
            ("letflow", (1, 3)),
            ("spray", (1, 2, 3)),
        ]
        assert results.document.rows[1].ratios["fct_mean"].value == pytest.approx(1)
        assert values_of(results.metrics)["scheme"].count("letflow") == 2
        assert len(results.results) == 8
    assert not (tmp_path / "clean" / "letflow" / "seed=2").exists()


def test_where_every_run_fails_there_is_no_table(tmp_path: Path) -> None:
    done, _ = compared(tmp_path, of=failing(*((scheme, 1) for scheme in SCHEMES)))
    assert files(tmp_path) == {"results.json"}
    assert open_results(tmp_path).failed == done.failed
    assert (done.markdown(), done.results) == ("", ())


def test_a_sweep_with_refused_combinations_keeps_the_order(tmp_path: Path) -> None:
    """A combination that cannot run is a failed run in its place."""
    base = make({**KEYS, "scheme": "ecmp"})
    axes = [parse_axis("scheme=ecmp,minimal,spray"), parse_axis("seed=1,2")]
    backend = FakeBackend(failing(("spray", 1)))
    done = run_on(backend, sweep_grid(base, axes, "virtual"), tmp_path)
    assert [job.scheme.name for job in backend.jobs] == ["ecmp", "ecmp", "spray", "spray"]
    for results in (done, open_results(tmp_path)):
        assert [tuple(run.settings.values()) for run in results.runs] == [
            ("ecmp", 1), ("ecmp", 2), ("minimal", 1), ("minimal", 2), ("spray", 1), ("spray", 2),
        ]  # fmt: skip
        refused, failed = results.failed
        assert refused.startswith("minimal seed 1..2: scheme minimal: minimal paths")
        assert failed == "spray seed 1: out of luck"


# ---- what is run again ----


def test_finished_runs_are_reused(tmp_path: Path) -> None:
    """Those of earlier schemes and seeds; all of them run with `again`."""
    first, ran = compared(tmp_path, ("ecmp", "letflow"), seed="1..2")
    assert len(ran) == 4
    second, ran = compared(tmp_path, ("ecmp", "letflow"), seed="1..2")
    assert ran == []
    assert second.document == first.document
    _, ran = compared(tmp_path, ("ecmp", "letflow", "spray"), seed="1..3")
    assert ran == [("ecmp", 3), ("letflow", 3), ("spray", 1), ("spray", 2), ("spray", 3)]
    _, ran = compared(tmp_path, ("ecmp", "letflow"), seed="1..2", again=True)
    assert len(ran) == 4


def test_a_failed_run_is_tried_again(tmp_path: Path) -> None:
    compared(tmp_path, of=failing(("letflow", 1)))
    done, ran = compared(tmp_path)
    assert ran == [("letflow", 1)]
    assert done.complete


def test_in_real_time_only_an_interrupted_study_goes_on(tmp_path: Path) -> None:
    """Another run would measure something else."""
    compared(tmp_path, ("ecmp", "letflow"), target="native")
    _, ran = compared(tmp_path, ("ecmp", "letflow"), target="native")
    assert len(ran) == 2
    (tmp_path / "results.json").unlink()
    (tmp_path / "clean" / "letflow" / "summary.json").unlink()
    _, ran = compared(tmp_path, ("ecmp", "letflow"), target="native")
    assert ran == [("letflow", 1)]


def test_a_folder_holds_the_results_of_one_command(tmp_path: Path) -> None:
    """Those of the earlier command move to a folder of their own, with their figures; others' files stay."""
    first, _ = compared(tmp_path, ("ecmp", "letflow"), seed="1..2")
    (tmp_path / "clean" / "ecmp" / "seed=1" / "notes.txt").touch()
    figures = ("cdf.pdf", "report.html", "clean/ecmp/seed=1/longest-queues.svg")
    for name in figures:
        (tmp_path / name).touch()
    before = files(tmp_path)
    compared(tmp_path, ("spray", "letflow"))
    earlier = tmp_path / "earlier" / "1"
    assert files(earlier) == before - {"clean/ecmp/seed=1/notes.txt"}
    assert open_results(earlier).document == first.document
    assert not any((tmp_path / name).exists() for name in figures)
    assert {name for name in files(tmp_path) if not name.startswith("earlier/")} == {
        *(
            f"clean/{scheme}/{name}"
            for scheme in ("spray", "letflow")
            for name in ("summary.json", "flows.parquet")
        ),
        *("results.json", "runs.parquet", "table.md", "clean/ecmp/seed=1/notes.txt"),
    }
    assert not (tmp_path / "clean" / "letflow" / "seed=1").exists()


def test_what_stays_is_not_moved(tmp_path: Path) -> None:
    """More seeds and schemes take nothing away; where some runs stay and others do not, those are in both."""
    compared(tmp_path, ("ecmp", "letflow"))
    (tmp_path / "cdf.pdf").touch()
    _, ran = compared(tmp_path, SCHEMES)
    assert (ran, (tmp_path / "cdf.pdf").exists()) == ([("spray", 1)], True)
    assert not (tmp_path / "earlier").exists()
    _, ran = compared(tmp_path, ("ecmp", "drill"))
    assert ran == [("drill", 1)]
    assert len(open_results(tmp_path / "earlier" / "1").results) == 3
    compared(tmp_path, ("ecmp", "drill"), workload="permutation:size=2KiB")
    assert len(open_results(tmp_path / "earlier" / "2").results) == 2
    compared(tmp_path / "real", ("ecmp", "letflow"), target="native")
    compared(tmp_path / "real", SCHEMES, target="native")
    assert len(open_results(tmp_path / "real" / "earlier" / "1").results) == 2, "all are measured again"


def test_nothing_is_moved_through_links(tmp_path: Path) -> None:
    """Whoever made the folder would choose where it is written."""
    out = tmp_path / "out"
    compared(out, ("ecmp", "letflow"))
    (tmp_path / "elsewhere").mkdir()
    (out / "earlier").symlink_to(tmp_path / "elsewhere")
    before = files(out)
    with pytest.raises(tailrace.SpecError, match=r"earlier: a link, expected a folder"):
        compared(out, ("spray",))
    assert (files(out), files(tmp_path / "elsewhere")) == (before, set())


def test_names_of_figures_are_those_that_are_drawn() -> None:
    assert set(DRAWN) == set(KINDS)
    assert PAGE in FIGURE_FILES


# ---- interruption ----


def interrupted(job: Job) -> Outcome:
    """Somebody interrupts the runs of LetFlow."""
    if job.scheme.name == "letflow":
        raise KeyboardInterrupt
    return answer(job)


def test_a_study_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        compared(tmp_path, of=interrupted)
    assert files(tmp_path) == {"clean/ecmp/summary.json", "clean/ecmp/flows.parquet"}
    _, ran = compared(tmp_path)
    assert ran == [("letflow", 1), ("spray", 1)]
    assert open_results(tmp_path).complete


def test_an_interrupted_study_is_not_taken_for_the_earlier_one(tmp_path: Path) -> None:
    """Both have runs in the same folders."""
    other = "permutation:size=2KiB"
    compared(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        compared(tmp_path, of=interrupted, workload=other)
    with pytest.raises(FileError, match=r"results\.json: No such file"):
        open_results(tmp_path)
    assert len(open_results(tmp_path / "earlier" / "1").results) == 3
    _, ran = compared(tmp_path, workload=other)
    assert ran == [("letflow", 1), ("spray", 1)]
    assert {result.summary.workload for result in open_results(tmp_path).results} == {other}


SLOW = """
import sys, time
from tailrace.sim.run import VirtualBackend
run = VirtualBackend.run
def slow(self, job, report):
    if job.scheme.name == "letflow":
        time.sleep(600)
    return run(self, job, report)
VirtualBackend.run = slow
from tailrace.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_signal_keeps_finished_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says so, and the next call runs the rest."""
    out = tmp_path / "out"
    words = ["compare", "--scheme", "ecmp,letflow", *SMALL, "--out", str(out)]
    process = subprocess.Popen(
        [*NOT_IGNORED, sys.executable, "-c", SLOW, *words], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("2/2 clean letflow"):
            process.send_signal(signal.SIGINT)
            break
    rest = process.communicate(timeout=TIMEOUT_S)[1]
    assert process.returncode == 128 + signal.SIGINT
    assert (
        rest.splitlines()[-1]
        == "tailrace: interrupted; finished runs are kept, and are not repeated next time"
    )
    assert files(tmp_path) == {"out/clean/ecmp/summary.json", "out/clean/ecmp/flows.parquet"}
    assert main(words) == 0
    assert "1 of 2 results were there already" in capsys.readouterr().err
    assert open_results(out).complete


# ---- what is removed ----


def test_clear_removes_only_what_tailrace_writes(tmp_path: Path) -> None:
    compared(tmp_path, seed="1..2")
    mine = {"notes.txt", "clean/ecmp/notes.txt", "clean/spray/seed=1/data.csv"}
    for name in mine:
        (tmp_path / name).touch()
    clear(tmp_path)
    assert files(tmp_path) == mine
    assert {path.name for path in (tmp_path / "clean").iterdir()} == {"ecmp", "spray"}


@pytest.mark.parametrize("link", ["clean", "clean/ecmp"])
def test_clear_follows_no_link(link: str, tmp_path: Path) -> None:
    """Whoever made the folder would choose what is removed."""
    out = tmp_path / "out"
    compared(out, ("ecmp", "letflow"))
    (out / link).rename(tmp_path / "elsewhere")
    (out / link).symlink_to(tmp_path / "elsewhere")
    before = files(tmp_path / "elsewhere")
    clear(out)
    assert files(tmp_path / "elsewhere") == before
    assert (out / link).is_symlink()


@pytest.mark.parametrize("folder", ["..", "../elsewhere", ".", "", "/", "a\0b", "x" * 5000])
def test_clear_removes_nothing_elsewhere(folder: str, tmp_path: Path) -> None:
    """Whatever results.json names: no run but those below the folder."""
    out = tmp_path / "out"
    compared(out, ("ecmp",))
    document = json.loads((out / "results.json").read_text("utf-8"))
    document["runs"][0]["folder"] = folder
    (out / "results.json").write_text(json.dumps(document), "utf-8")
    mine = ["elsewhere/summary.json", "summary.json", "out/summary.json", "out/flows.parquet"]
    for name in mine:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    clear(out)
    assert all((tmp_path / name).exists() for name in mine)


# ---- hostile files ----


def _at(*path: str | int) -> Callable[[Any], Callable[[dict[str, Any]], None]]:
    """Sets a place of a document to a value."""

    def to(value: Any) -> Callable[[dict[str, Any]], None]:
        def change(document: dict[str, Any]) -> None:
            at: Any = document
            for step in path[:-1]:
                at = at[step]
            at[path[-1]] = value

        return change

    return to


HOSTILE: dict[str, Callable[[dict[str, Any]], None]] = {
    **{
        f"folder {name[:12]!r}": _at("runs", 1, "folder")(name)
        for name in ("..", "../elsewhere", "a/../../b", "/etc", "a\0b", "", ".", "x" * 5000)
    },
    "settings without an axis": _at("runs", 1, "settings")({"case": "clean", "scheme": "spray"}),
    "settings with an axis too many": _at("runs", 1, "settings", "colour")("red"),
    "no axis": _at("axes")({}),
    "a seed that is a text": _at("runs", 1, "settings", "seed")("1"),
    "a seed that is a fraction": _at("runs", 1, "settings", "seed")(1.5),
    "a seed of 20 digits": _at("runs", 1, "settings", "seed")(1 << 66),
    "a seed of 400 digits": _at("runs", 1, "settings", "seed")(10**400),
    "an axis of 400 digits": _at("axes", "seed")([10**400]),
    "format 2": _at("format")(2),
    "format of 30 digits": _at("format")(10**30),
    "a truth value": _at("runs", 1, "settings", "scheme")(True),
    "a list for a setting": _at("runs", 1, "settings", "scheme")([]),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_results_are_one_line(what: str, tmp_path: Path) -> None:
    """The file is named; nothing else is read or written."""
    compared(tmp_path, ("ecmp", "letflow"))
    path = tmp_path / "results.json"
    document = json.loads(path.read_text("utf-8"))
    HOSTILE[what](document)
    path.write_text(json.dumps(document), "utf-8")
    with pytest.raises(FileError) as caught:
        open_results(tmp_path)
    assert str(caught.value).startswith(str(tmp_path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("link", ["clean", "clean/letflow"])
def test_results_are_not_read_through_links(link: str, tmp_path: Path) -> None:
    """Whoever made the folder would choose which files of its reader are shown."""
    out = tmp_path / "out"
    compared(out, ("ecmp", "letflow"))
    (out / link).rename(tmp_path / "elsewhere")
    (out / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError, match=r"results\.json: runs\[[01]\]\.folder: .*link") as caught:
        open_results(out)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_a_link_is_read(tmp_path: Path) -> None:
    """The user names that one."""
    compared(tmp_path / "out", ("ecmp",))
    (tmp_path / "link").symlink_to(tmp_path / "out")
    assert open_results(tmp_path / "link").complete
