# SPDX-License-Identifier: Apache-2.0
"""Charts of lines: slowdown by size of flow, and gaps between packets; and the lists that claims take of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.experiments.workloads.classes import BACKGROUND
from tailrace.hosts.gaps.histogram import GapHistogram
from tailrace.hosts.measured import Gaps
from tailrace.papers.claims.expression import NotMeasuredError, evaluate
from tailrace.papers.document import Cell, Curve, Document
from tailrace.papers.grid import paper_grid
from tailrace.papers.measure.gap_curves import PARTS, SPREAD, TAIL, gap_curves
from tailrace.papers.measure.sizes import NAMES, RANGES, by_size, ends_bytes, slowdowns
from tailrace.papers.model import read_paper_file
from tailrace.report.paper.charts import document_figure, search_figure
from tailrace.results.result import Result
from tailrace.sim.outcome import Outcome
from tailrace.spec import SpecError
from tailrace.study.task import run
from tests.experiments.fake import FakeBackend, record
from tests.papers.blank import blank
from tests.papers.test_files import GOOD

MEDIAN, P99 = NAMES.values()


@pytest.fixture(scope="module")
def some() -> Result:
    """A result, of which tests change rows and gaps."""
    words = {"scheme": "ecmp", "topology": "leaf-spine:leaves=2,spines=1,hosts=1", "target": "virtual"}
    planned = plan(make({**words, "workload": "permutation:size=4KiB"}), "virtual")
    backend = FakeBackend(lambda job: Outcome(tuple(record(flow) for flow in job.flows), 1.0))
    return run(planned, backend, lambda _progress: None, label="it")


def with_flows(some: Result, flows: list[tuple[int, float | None]]) -> Result:
    """The result with flows of these sizes and slowdowns."""
    rows = [
        replace(some.rows[0], id=number, bytes=size, slowdown=factor)
        for number, (size, factor) in enumerate(flows)
    ]
    return replace(some, rows=tuple(rows))


sized = st.lists(st.tuples(st.integers(1, 200), st.floats(1, 50)), min_size=1, max_size=80)


@given(flows=sized)
def test_ranges_hold_equally_many_flows(some: Result, flows: list[tuple[int, float]]) -> None:
    """As far as sizes allow: a range more than the flows of one size has a tenth of all at most, rounded up."""
    result = with_flows(some, list(flows))
    ends = ends_bytes([result])
    assert list(ends) == sorted(set(ends))
    assert len(ends) <= RANGES
    assert ends[-1] == max(size for size, _ in flows)
    for below, end in pairwise((0, *ends)):
        inside = [size for size, _ in flows if below < size <= end]
        assert inside, "no range is empty"
        assert len([size for size in inside if size < end]) <= len(flows) / RANGES + 1


@given(flows=sized)
def test_slowdowns_are_those_of_the_range(some: Result, flows: list[tuple[int, float]]) -> None:
    """A percentile is one of its flows' slowdowns, no less than half of them, or 99 of 100, have at most."""
    result = with_flows(some, list(flows))
    ends = ends_bytes([result])
    for percent in (50, 99):
        for (below, end), point in zip(pairwise((0, *ends)), slowdowns([result], ends, percent), strict=True):
            inside = [factor for size, factor in flows if below < size <= end]
            assert (slowdown := point.value) in inside
            assert sum(factor <= slowdown for factor in inside) * 100 >= percent * len(inside)
            assert sum(factor < slowdown for factor in inside) * 100 < percent * len(inside)


def test_seeds_count_together_and_background_not(some: Result) -> None:
    """Two runs of ten flows are twenty flows; those that are not measured are not there."""
    first = with_flows(some, [(size, 1.0) for size in range(1, 11)])
    other = with_flows(some, [(size, 3.0) for size in range(11, 21)])
    assert ends_bytes([first, other]) == tuple(range(2, 21, 2))
    assert [point.value for point in slowdowns([first, other], (10, 20), 50)] == [1.0, 3.0]
    hidden = replace(other, rows=tuple(replace(row, flow_class=BACKGROUND) for row in other.rows))
    assert ends_bytes([first, hidden]) == tuple(range(1, 11))


def test_flows_that_did_not_finish_leave_no_number(some: Result) -> None:
    """A percentile of the others would flatter the run."""
    result = with_flows(some, [(1, 1.0), (2, None), (3, 2.0)])
    assert slowdowns([result], ends_bytes([result]), 50) == ()
    (measures,), curves = by_size([Cell("", "it", {})], [[result]])
    assert measures == {}
    assert curves == ()


def test_claims_take_lists_by_size(some: Result) -> None:
    """Range by range, in their order, the ranges being the same for all schemes; also more than nine."""
    sizes = list(range(1, 31))
    runs = [[with_flows(some, [(size, factor * size) for size in sizes])] for factor in (1.0, 0.5)]
    by_label, curves = by_size([Cell("c", "a", {}), Cell("c", "b", {})], runs)
    assert [(curve.panel, curve.label) for curve in curves] == [
        (f"c: {word}", label) for label in "ab" for word in ("median", "largest")
    ], "three flows a range have no p99"
    values = {
        ("c", label): {name: estimate.value for name, estimate in measures.items()}
        for label, measures in zip("ab", by_label, strict=True)
    }
    assert values["c", "a"][f"{MEDIAN}_1"] == 2
    assert values["c", "a"][f"{P99}_{RANGES}"] == 30
    assert evaluate(f"mean({P99}['a'])", values, "c") == pytest.approx(16.5)
    assert evaluate(f"1 - mean({MEDIAN}['b'] / {MEDIAN}['a'])", values, "c") == pytest.approx(0.5)
    assert evaluate("x['a']", {("c", "a"): {"x": 1.0}}, "c") == 1
    with pytest.raises(SpecError, match="is a list"):
        evaluate(f"{MEDIAN}['a']", values, "c")
    with pytest.raises(NotMeasuredError, match="was not measured"):
        evaluate(f"mean({MEDIAN}['nobody'])", values, "c")


@given(gaps_ns=st.lists(st.integers(0, 1 << 36), min_size=1, max_size=200))
def test_gap_curves_are_shares(some: Result, gaps_ns: list[int]) -> None:
    """Of all gaps: in ranges of the same ratio, and at least as long as each begins, from all to some."""
    histogram = GapHistogram()
    for gap_ns in gaps_ns:
        histogram.add(gap_ns)
    measured = replace(some, gaps=Gaps(tuple(histogram.bins())))
    spread, tail = gap_curves([Cell("", "it", {})], [[measured, some]])
    assert (spread.panel, tail.panel) == (SPREAD, TAIL)
    assert sum(spread.y) == pytest.approx(1)
    assert tail.y[0] == pytest.approx(1)
    assert tail.y[-1] > 0
    assert list(tail.y) == sorted(tail.y, reverse=True)
    for low, high in pairwise(spread.x):
        assert high / low == pytest.approx(2 ** (1 / PARTS))
    for x, share in zip(tail.x[1:], tail.y[1:], strict=True):
        # bins are taken by their lower ends, which are a little shorter
        assert sum(gap_ns >= x * 129 / 128 for gap_ns in gaps_ns) <= share * len(gaps_ns) + 1e-6
        assert sum(gap_ns >= x for gap_ns in gaps_ns) >= share * len(gaps_ns) - 1e-6


def test_runs_without_gaps_have_no_line(some: Result) -> None:
    """Nor has one in which no flow had two packets."""
    assert gap_curves([Cell("", "a", {}), Cell("", "b", {})], [[some], [replace(some, gaps=Gaps(()))]]) == ()


def document(chart: str, cells: tuple[Cell, ...], runs: list[list[Result]]) -> Document:
    """A document with a chart of lines."""
    curves = by_size(cells, runs)[1] if chart == "sizes" else gap_curves(cells, runs)
    return blank(chart=chart, cases={"a": "", "b": ""}, metrics=("fct_mean",), cells=cells, curves=curves)


@pytest.mark.parametrize("chart", ["sizes", "gaps"])
def test_every_panel_has_a_line_a_scheme(some: Result, chart: str) -> None:
    """A scheme keeps its colour where another one has no line; they are no curves of a search."""
    whole = replace(
        with_flows(some, [(size, 1.5) for size in range(1000, 9000, 100)]), gaps=Gaps(((90, 5), (20_000, 1)))
    )
    nothing = replace(with_flows(some, [(1000, None)]), gaps=None)
    cells = tuple(Cell(case, label, {"rtt": 12_768.0}) for case in "ab" for label in ("one", "two"))
    figure_document = document(chart, cells, [[whole], [whole], [nothing], [whole]])
    assert search_figure(figure_document) is None
    figure = document_figure(figure_document)
    assert figure is not None
    drawn = [
        {str(line.get_label()): str(line.get_color()) for line in axis.get_lines()} for axis in figure.axes
    ]
    assert [set(lines) & {"one", "two"} for lines in drawn] == [{"one", "two"}] * 2 + [{"two"}] * 2
    colours = {label: {lines[label] for lines in drawn if label in lines} for label in ("one", "two")}
    assert all(len(used) == 1 for used in colours.values())
    assert colours["one"] != colours["two"]


def changed(tmp_path: Path, *pairs: tuple[str, str]) -> Path:
    """A file of a figure that is right, with changes."""
    text = GOOD
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = tmp_path / "it.toml"
    path.write_text(text)
    return path


def test_a_case_gives_every_scheme_options(tmp_path: Path) -> None:
    """And a scheme may have other words at one size."""
    path = changed(
        tmp_path,
        ('small = { workload = "permutation:size=16KiB" }', 'options = { kmax = "100KB", kmin = "10KB" }'),
        ('tune = { option = "gap", below = 0.2 }', 'small = { scheme = "letflow:seed=7" }'),
    )
    words = {
        scale: paper_grid(read_paper_file(path), scale).tasks[0].experiment.scheme
        for scale in ("small", "paper")
    }
    assert words == {
        "small": "letflow:seed=7,kmax=100KB,kmin=10KB",
        "paper": "letflow:kmax=100KB,kmin=10KB",
    }


def test_options_that_contradict_the_scheme(tmp_path: Path) -> None:
    """Are told with the case and the scheme, and so is a search that a chart of lines would not show."""
    path = changed(
        tmp_path,
        ('small = { workload = "permutation:size=16KiB" }', 'options = { gap = "3us" }'),
        (
            'experiment = { scheme = "letflow" }\ntune = { option = "gap", below = 0.2 }',
            'experiment = { scheme = "letflow:gap=1us" }',
        ),
    )
    with pytest.raises(SpecError, match=r"options of one flowlet: .*gap=1us and gap=3us contradict"):
        paper_grid(read_paper_file(path), "small")
    path = changed(tmp_path, ('metrics = ["fct_mean"]', 'metrics = ["fct_mean"]\nchart = "gaps"'))
    with pytest.raises(SpecError, match="key 'chart': gaps cannot show a search"):
        read_paper_file(path)


def test_a_search_has_a_panel_a_case() -> None:
    """Equal curves are drawn once; a document of another kind has no search."""
    curves = tuple(
        Curve(case, label, (1e3, 1e4), y)
        for case in "ab"
        for label, y in (("one", (2e5, 3e5)), ("two", (2e5, 3e5)), ("other", (4e5, 5e5)))
    )
    made = blank(kind="runs", chart="bars", cases={"a": "", "b": ""}, metrics=("fct_mean",), curves=curves)
    figure = search_figure(made)
    assert figure is not None
    assert [axis.get_title() for axis in figure.axes] == ["a", "b"]
    for axis in figure.axes:
        assert [np.asarray(line.get_ydata()).tolist() for line in axis.get_lines()] == [
            [200, 300],
            [400, 500],
        ]
    assert search_figure(structs.replace(made, kind="model")) is None
