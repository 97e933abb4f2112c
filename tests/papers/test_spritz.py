# SPDX-License-Identifier: Apache-2.0
"""All of Spritz's figures and tables at the small scale."""

from __future__ import annotations

import pytest

from tailrace.papers.claims.kinds import HOLDS
from tailrace.papers.document import Document
from tailrace.papers.grid import paper_grid
from tailrace.papers.model import read_paper, select
from tailrace.study.task import Task
from tests.papers.small import check_everything_ran, run_small

SPRITZ = ("scout", "spray-u", "spray-w")


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    """What `tailrace paper spritz --scale small` writes, by name."""
    return run_small("spritz", tmp_path_factory.mktemp("paper"))


def test_everything_ran(documents: dict[str, Document]) -> None:
    """No run failed, every flow that counts ended, also past dead links; every claim could be checked."""
    check_everything_ran(documents)


def test_arithmetic_holds(documents: dict[str, Document]) -> None:
    """Path types, latencies, lengths of lists and memory are the paper's, at its own sizes."""
    for name in ("spritz_fig3", "spritz_table1"):
        assert {claim.verdict for claim in documents[name].claims} == {HOLDS}, name


def test_adversarial_traffic_hurts_minimal_routing(documents: dict[str, Document]) -> None:
    """Minimal paths are shared, so whoever has others ends much sooner, in both networks."""
    for case in ("adversarial dragonfly", "adversarial slim-fly"):
        by_label = {cell.label: cell.metrics for cell in documents["spritz_fig6"].cells if cell.case == case}
        for label in ("valiant", "ops-u", "spray-u", "spray-w"):
            assert by_label[label]["fct_p99"] < 0.67 * by_label["minimal"]["fct_p99"], (case, label)


def test_sprays_reorder_and_single_paths_do_not(documents: dict[str, Document]) -> None:
    """With trimming, a packet out of order on one path is one that was sent again."""
    for cell in documents["spritz_fig6"].cells:
        if cell.label in ("minimal", "ecmp"):
            assert cell.metrics["overtaken"] == 0, cell.case
        elif cell.label in ("valiant", "ops-u", "ops-w", "spray-u", "spray-w"):
            assert cell.metrics["out_of_order_share"] > 0.2, cell.case


def test_only_spritz_blocks_paths(documents: dict[str, Document]) -> None:
    """Where links are dead, packets time out; Spritz leaves such paths, so it loses fewer than the others."""
    for case in documents["spritz_fig9"].cases:
        by_label = {cell.label: cell.metrics for cell in documents["spritz_fig9"].cells if cell.case == case}
        for label, metrics in by_label.items():
            assert (metrics["blocked"] > 0) == (label in SPRITZ and metrics["timeouts"] > 0), (case, label)


def test_classes_are_told_apart(documents: dict[str, Document]) -> None:
    """The incast takes longer than the bystanders; what only loads the network is no part of a collective."""
    for cell in documents["spritz_fig8"].cells:
        assert cell.metrics["fct_p99_of_incast"] > cell.metrics["fct_p99_of_bystander"], cell.label
        assert cell.metrics["completed_share_of_bystander"] == 1
    for cell in documents["spritz_fig7"].cells:
        assert cell.metrics["completed_share"] == 1
        if not cell.case.startswith("web"):
            assert "completed_share_of_background" in cell.metrics


def test_paper_scale_is_that_of_table_2() -> None:
    """The networks of Table II, its links, its packets; but two more loads of Table III run on 72 hosts."""
    for name in select("spritz"):
        file = read_paper(name)
        for settings, task in paper_grid(file, "paper").runs if file.kind == "runs" else ():
            assert isinstance(task, Task)
            experiment = task.experiment
            assert experiment.mtu_bytes == 4096
            network, _, links = experiment.topology.partition(",rate=")
            if name == "spritz_table3" and settings["case"] in ("72 hosts", "all groups send"):
                assert network == "dragonfly:p=2,a=4,h=2"
            else:
                assert network in ("dragonfly:p=4,a=8,h=4", "slim-fly:p=7,q=9")
            assert links == "400Gbps,local=25ns,global=500ns,host=25ns,latency=500ns"
