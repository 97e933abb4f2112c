# SPDX-License-Identifier: Apache-2.0
"""All of HF2T's figures and tables at the small scale."""

from __future__ import annotations

import pytest

from tailrace.papers.document import Document
from tailrace.papers.grid import paper_grid
from tailrace.papers.measure.gap_curves import SPREAD, TAIL
from tailrace.papers.measure.sizes import NAMES as BY_SIZE
from tailrace.papers.measure.sizes import RANGES, TITLES
from tailrace.papers.model import read_paper
from tailrace.study.task import Task
from tests.papers.small import cells, check_everything_ran, run_small

NAMES = ["hf2t_fig1", "hf2t_fig6", "hf2t_table1", "hf2t_table2"]
"""Without the map and the networks, which are not in the paper."""

LABELS = ["RDMA", "RDMA, window", "TCP", "TCP, lossless"]
"""Of Fig. 1 and Table 1."""

STATIC, DYNAMIC = "letflow+hf2t no dynamic T", "letflow+hf2t"
CONTROL = "ecmp+hf2t"
"""Stretched gaps that no switch makes anything of."""


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    """What `tailrace paper hf2t --scale small` writes, by name."""
    return run_small("hf2t", tmp_path_factory.mktemp("paper"))


def test_everything_ran(documents: dict[str, Document]) -> None:
    """No run failed, every flow ended; every claim could be checked."""
    check_everything_ran(documents)


def test_nothing_is_lost_where_pfc_is(documents: dict[str, Document]) -> None:
    """TCP, and one case of the networks, run where queues drop."""
    for name, document in documents.items():
        for cell in document.cells:
            drops = cell.label == "TCP" or cell.case == "lossy"
            assert ("pauses" in cell.metrics) != drops, (name, cell.label)
            assert cell.metrics["lost"] == 0 or drops, (name, cell.label)


def test_a_flowlet_for_each_flow_and_each_long_gap(documents: dict[str, Document]) -> None:
    """What NICs stretched, switches saw; a stretched gap is no longer than the threshold asks for."""
    for name in ("hf2t_fig6", "hf2t_table2"):
        for cell in documents[name].cells:
            metrics = cell.metrics
            assert ("stretched" in metrics) == ("hf2t" in cell.label), (name, cell.label)
            if "hf2t" in cell.label:
                assert metrics["stretched"] > 0, (name, cell.case, cell.label)
                assert cell.label == CONTROL or metrics["flowlets"] >= metrics["stretched"], (name, cell.case)
                assert metrics["trainings"] > 0
                assert 0 < metrics["stretch"] <= 101e3


def test_hf2t_makes_flowlets(documents: dict[str, Document]) -> None:
    """More of them than LetFlow finds by itself."""
    for case in documents["hf2t_table2"].cases:
        by_label = cells(documents["hf2t_table2"], case)
        for label in (STATIC, DYNAMIC):
            assert by_label[label].metrics["flowlets"] > by_label["letflow"].metrics["flowlets"], (
                case,
                label,
            )


def test_figure_6_has_a_line_a_scheme(documents: dict[str, Document]) -> None:
    """Median and tail of each workload over the same sizes, each at least the other's; of so few flows the tail is
    the largest.
    """
    document = documents["hf2t_fig6"]
    labels = list(cells(document, "hadoop"))
    assert labels == ["ecmp", CONTROL, "letflow", STATIC, DYNAMIC]
    panels: dict[str, list[str]] = {}
    for curve in document.curves:
        panels.setdefault(curve.panel, []).append(curve.label)
        assert len(curve.x) == len(curve.y) <= RANGES
        assert list(curve.x) == sorted(set(curve.x))
    assert list(panels) == [f"{case}: {TITLES[percent]}" for case in document.cases for percent in (50, 100)]
    assert all(drawn == labels for drawn in panels.values())
    median, tail = BY_SIZE.values()
    for cell in document.cells:
        medians = {name: value for name, value in cell.metrics.items() if name.startswith(median)}
        assert 1 < len(medians) <= RANGES
        for name, value in medians.items():
            assert 0.9 < value <= cell.metrics[name.replace(median, tail)], (cell.label, name)


def test_figure_1_has_the_gaps_of_table_1(documents: dict[str, Document]) -> None:
    """Both are of the same runs; shares of gaps add up, and ever fewer are longer."""
    assert [cell.runs for cell in documents["hf2t_fig1"].cells] == [
        cell.runs for cell in documents["hf2t_table1"].cells
    ]
    curves = {
        (curve.panel.rpartition(": ")[2], curve.label): curve for curve in documents["hf2t_fig1"].curves
    }
    assert set(curves) == {(panel, label) for panel in (SPREAD, TAIL) for label in LABELS}
    for label in LABELS:
        assert sum(curves[SPREAD, label].y) == pytest.approx(1)
        tail = curves[TAIL, label].y
        assert tail[0] == pytest.approx(1)
        assert list(tail) == sorted(tail, reverse=True)


def test_paper_scale_is_that_of_the_paper() -> None:
    """A fat tree of 16 hosts, 100 Gb/s, 1 us; T at 99 %; the thresholds of alpha are NICs' defaults (§5.1)."""
    for name in NAMES:
        for settings, task in paper_grid(read_paper(name), "paper").runs:
            assert isinstance(task, Task)
            experiment, label = task.experiment, str(settings["scheme"])
            assert experiment.topology == "fat-tree:k=4,rate=100Gbps,delay=1us"
            assert ("hf2t=99" in experiment.scheme) == ("hf2t" in label)
            assert "thr=" not in experiment.scheme
            transport = "tcp" if label.startswith("TCP") else "dcqcn:"
            assert experiment.transport is not None and experiment.transport.startswith(transport)
            assert (experiment.pfc == "off") == (label == "TCP")


def test_table_2_and_figure_6_share_runs() -> None:
    """The figures of one set-up are of the same runs, as far as both have the seeds."""
    figure, table = (
        {
            (settings["scheme"], settings["seed"]): run.key
            for settings, run in paper_grid(read_paper(name), "paper").runs
            if settings["case"] == case and isinstance(run, Task)
        }
        for name, case in (("hf2t_fig6", "websearch"), ("hf2t_table2", "100 us"))
    )
    shared = figure.keys() & table.keys()
    assert len({scheme for scheme, _ in shared}) > 2
    assert len({seed for _, seed in shared}) > 1
    assert all(figure[run] == table[run] for run in shared)
