# SPDX-License-Identifier: Apache-2.0
"""Comparisons: which runs they make, the ratios, the table, the figure, the files."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from matplotlib.figure import Figure

from tailrace.cli.options import OutputFormat
from tailrace.cli.output import render
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.workloads.classes import BACKGROUND
from tailrace.report.figures.beside import draw_comparison
from tailrace.report.figures.figure import comparison
from tailrace.report.figures.plot import NATURAL
from tailrace.report.run_figures import cdf, slowdown_by_size
from tailrace.results.estimates import comparison_groups
from tailrace.results.results import Results
from tailrace.results.table import make_table
from tailrace.sim.job import Job
from tailrace.sim.outcome import Outcome
from tailrace.study.progress import Display
from tests.experiments.fake import FakeBackend, compare_on, record

SCHEMES = ("ecmp", "letflow", "flowcut:variant=ingress")
FCT_MS = {"ecmp": 8, "letflow": 6, "flowcut": 4}
TOPOLOGY = "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"
FAULT = "link-slow:link=leaf1-spine1,factor=0.1"


def answer(job: Job) -> Outcome:
    """Each scheme has its own time, ten times as long with a fault; LetFlow reorders one packet in a hundred."""
    name = job.scheme.name
    fct_ns = FCT_MS[name] * 1_000_000 * (10 if job.faults else 1)
    reordered = 1 if name == "letflow" else 0
    records = tuple(record(flow, fct_ns, out_of_order=reordered) for flow in job.flows)
    return Outcome(records, wall_s=1.0)


def run_compare(
    backend_answer=answer, fault: list[str] | None = None, schemes=SCHEMES, folder: Path | None = None
):
    base = make(
        {
            "scheme": schemes[0],
            "topology": TOPOLOGY,
            "target": "virtual",
            "fault": [FAULT] if fault is None else fault,
        }
    )
    backend = FakeBackend(backend_answer)
    return backend, compare_on(backend, base, schemes, folder=folder)


def draw(done: Results, folder: Path) -> None:
    draw_comparison(done, folder, Display(io.StringIO()).warn)


def test_clean_first_then_with_fault() -> None:
    """All schemes clean, then all with the fault, with the same flows everywhere."""
    backend, done = run_compare()
    assert [(result.case, result.label) for result in done.results] == [
        ("clean", "ecmp"), ("clean", "letflow"), ("clean", "flowcut:variant=ingress"),
        ("link-slow", "ecmp"), ("link-slow", "letflow"), ("link-slow", "flowcut:variant=ingress"),
    ]  # fmt: skip
    assert [bool(job.faults) for job in backend.jobs] == [False] * 3 + [True] * 3
    assert len({job.flows for job in backend.jobs}) == 1


def mean_ratios(done: Results) -> list[float | None]:
    """Of the mean completion time of each row, to the first scheme."""
    ratios = [row.ratios.get("fct_mean") for row in done.document.rows]
    return [None if ratio is None else ratio.value for ratio in ratios]


def test_ratios_are_within_a_case() -> None:
    """A scheme is compared with the first one in the same case; unfinished runs have no ratio."""
    _, done = run_compare()
    assert mean_ratios(done) == [1, 0.75, 0.5] * 2
    assert [row.settings["case"] for row in done.document.rows] == ["clean"] * 3 + ["link-slow"] * 3

    def unfinished(job: Job) -> Outcome:
        outcome = answer(job)
        if job.scheme.name != "letflow":
            return outcome
        return Outcome((record(job.flows[0], None), *outcome.records[1:]), 1.0)

    _, done = run_compare(unfinished)
    assert mean_ratios(done) == [1, None, 0.5] * 2


def test_table_shows_every_figure() -> None:
    """A section a case, a row a scheme; nothing is cut off where standard output is no terminal."""
    _, done = run_compare()
    text = render(make_table(comparison_groups(done.results), "ecmp"), OutputFormat.TABLE)
    rows = [line.split() for line in text.splitlines() if any(name in line for name in FCT_MS)][1:]
    assert [row[0] for row in rows if len(row) == len(rows[0])] == ["clean", "link-slow"]
    assert [row[-len(rows[1])] for row in rows] == ["ecmp", "letflow", SCHEMES[2]] * 2
    letflow = rows[1]
    assert letflow[1:4] == ["6.00", "6.00", "6.00"]
    assert letflow[6:12] == ["1", "0", "0", "0", "0", "0"]
    assert letflow[-1] == "0.75"
    assert TOPOLOGY in text


def test_table_marks_what_cannot_be_trusted() -> None:
    """Unfinished and overloaded runs carry a mark; what was not observed is not shown."""

    def odd(job: Job) -> Outcome:
        records = tuple(record(flow, None) for flow in job.flows)
        return Outcome(records, 1.0, overload_reasons=("slow",))

    _, done = run_compare(odd, fault=[])
    text = render(make_table(comparison_groups(done.results), "ecmp"), OutputFormat.TABLE)
    assert text.count("(!)") == 3 + 1
    assert "not to be relied on" in text
    assert "FCT" not in text, "what no run has is no column"


def test_figure(tmp_path: Path) -> None:
    """A valid image, with axes labelled in their units; the same results give the same SVG."""
    _, done = run_compare()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        draw(done, tmp_path / name)
    svg = (tmp_path / "one/figure.svg").read_bytes()
    assert svg == (tmp_path / "two/figure.svg").read_bytes()
    comments = "".join(re.findall(r"<!--(.*?)-->", svg.decode(), re.S))
    for text in (
        "flow completion time (ms)",
        "share of flows",
        "packets out of order (%)",
        "letflow",
    ):
        assert text in comments
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert (tmp_path / "one/figure.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_figures_leave_the_background_out() -> None:
    """As the table does: of the comparison, and of the report."""
    _, done = run_compare(fault=[])
    slow = [replace(done.results[0].rows[0], flow_class=BACKGROUND, fct_ns=10**12, slowdown=999.0, bytes=7)]
    runs = tuple(
        replace(run, result=replace(run.result, rows=(*run.result.rows, *slow)))
        for run in done.runs
        if run.result is not None
    )
    loud = replace(done, runs=runs)
    for kind in (comparison, cdf, slowdown_by_size):
        assert lines(kind.draw(loud, NATURAL)) == lines(kind.draw(done, NATURAL)) != []


def lines(figure: Figure | None) -> list[str]:
    """The points of every line of a figure; so few that none is left out."""
    assert figure is not None
    return [str(line.get_data()) for axis in figure.axes for line in axis.get_lines()]


def test_figure_of_runs_without_observations(tmp_path: Path) -> None:
    """Nothing finished and nothing counted: still a figure, without lines and bars."""

    def nothing(job: Job) -> Outcome:
        return Outcome(tuple(record(flow, None, packets=0, received=0) for flow in job.flows), 1.0)

    _, done = run_compare(nothing, fault=[])
    draw(done, tmp_path)
    assert (tmp_path / "figure.png").stat().st_size > 0
