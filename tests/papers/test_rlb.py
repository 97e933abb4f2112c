# SPDX-License-Identifier: Apache-2.0
"""All of RLB's figures at the small scale."""

from __future__ import annotations

import pytest

from tailrace.papers.document import Document
from tailrace.papers.grid import paper_grid
from tailrace.papers.model import read_paper, select
from tests.papers.small import cells, check_everything_ran, run_small

NETWORKS = {
    "rlb_fig3": "leaf-spine:leaves=2,spines=40,hosts=111",
    "rlb_fig4": "leaf-spine:leaves=2,spines=40,hosts=111",
    "rlb_fig10": "leaf-spine:leaves=2,spines=8,hosts=16",
    "rlb_fig11": "leaf-spine:leaves=2,spines=8,hosts=16",
}
LARGE = "leaf-spine:leaves=12,spines=12,hosts=24"


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    """What `tailrace paper rlb --scale small` writes, by name."""
    return run_small("rlb", tmp_path_factory.mktemp("paper"))


def test_everything_ran(documents: dict[str, Document]) -> None:
    """No run failed, every flow that counts ended, also past failed switches; every claim could be checked."""
    check_everything_ran(documents)


def test_nothing_is_lost_but_by_failures(documents: dict[str, Document]) -> None:
    """PFC, and rooms enough without it."""
    for name, document in documents.items():
        for cell in document.cells:
            lossy = name == "rlb_fig15_16" or cell.case in ("black-hole", "random drop")
            assert (cell.metrics["lost"] > 0) == lossy, (name, cell.case, cell.label)


def test_pauses_make_packets_come_out_of_order(documents: dict[str, Document]) -> None:
    """The motivation: fewer are without PFC, and RLB brings DRILL's and Presto's down."""
    by_label = cells(documents["rlb_fig3"], "bursts")
    for label in ("drill", "presto"):
        alone = by_label[label].metrics["out_of_order_share_of_monitored"]
        for better in (f"{label} no-pfc", f"{label}+rlb"):
            assert by_label[better].metrics["out_of_order_share_of_monitored"] < alone, better
        assert "pauses" not in by_label[f"{label} no-pfc"].metrics
        assert by_label[label].metrics["pauses"] > 0


def test_only_rlb_warns_and_recirculates(documents: dict[str, Document]) -> None:
    """What switches count is there where their program counts it; a limit of 0 is one."""
    for name, document in documents.items():
        for cell in document.cells:
            has = "rlb" in cell.label or name == "rlb_fig18"
            assert ("warnings" in cell.metrics) == has, (name, cell.label)
    by_label = cells(documents["rlb_fig17"], "webserver 0.8")
    assert by_label["presto+rlb no-recir"].metrics["recirculations"] == 0
    assert by_label["presto+rlb"].metrics["recirculations"] > 0


def test_bursts_make_pauses(documents: dict[str, Document]) -> None:
    """Without them fewer, if any, so RLB has little to warn of, as Fig. 12's first case shows."""
    document = documents["rlb_fig12"]
    without = cells(document, "poisson")
    for label, cell in cells(document, "bursts").items():
        assert cell.metrics["pauses"] > 2 * without[label].metrics["pauses"], label
    assert all(
        cell.metrics["warnings"] > 0 for cell in cells(document, "bursts").values() if "rlb" in cell.label
    )


def test_paper_scale_is_that_of_the_paper() -> None:
    """Its networks, links of 40 Gb/s and 2 us (Fig. 11: others, too), PFC at 256 KB, DCQCN."""
    for name in select("rlb"):
        for task in paper_grid(read_paper(name), "paper").tasks:
            experiment = task.experiment
            network, _, links = experiment.topology.partition(",rate=")
            assert network == NETWORKS.get(name, LARGE), name
            assert links.partition(",restricted=")[0].endswith("Gbps,delay=2us"), name
            assert experiment.transport is not None and experiment.transport.startswith("dcqcn"), name
            if name != "rlb_fig11":
                assert links.startswith("40Gbps"), name
                usual = experiment.pfc is None or experiment.pfc.startswith("xoff=256KB")
                assert usual or name == "rlb_models", name
