# SPDX-License-Identifier: Apache-2.0
"""All of RLB's figures at the small scale."""

from __future__ import annotations

import pytest

from tailrace.experiments.plan.experiment_file import SCALES
from tailrace.papers.claims.claims import judge
from tailrace.papers.claims.kinds import NOT_MEASURED
from tailrace.papers.document import Document
from tailrace.papers.grid import paper_grid
from tailrace.papers.harness import prepare
from tailrace.papers.model import names, read_paper, select
from tailrace.results.metrics import METRICS
from tests.papers.small import cells, check_everything_ran, run_small

NAMES = [
    *("rlb_fig3", "rlb_fig4", "rlb_fig7", "rlb_fig10", "rlb_fig11", "rlb_fig12"),
    *("rlb_fig13", "rlb_fig14", "rlb_fig15_16", "rlb_fig17", "rlb_fig18"),
    *("rlb_hotspots", "rlb_models", "rlb_options"),
]
NETWORKS = {
    "rlb_fig3": "leaf-spine:leaves=2,spines=40,hosts=111",
    "rlb_fig4": "leaf-spine:leaves=2,spines=40,hosts=111",
    "rlb_fig10": "leaf-spine:leaves=2,spines=8,hosts=16",
    "rlb_fig11": "leaf-spine:leaves=2,spines=8,hosts=16",
}
MEASURED = [*METRICS, "out_of_order_share_of_monitored"]
LARGE = "leaf-spine:leaves=12,spines=12,hosts=24"


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    """What `tailrace paper rlb --scale small` writes, by name."""
    return run_small("rlb", NAMES, tmp_path_factory.mktemp("paper"))


def test_all_of_rlb_is_there() -> None:
    """In the order of the paper."""
    assert [name for name in names() if name.startswith("rlb_")] == NAMES
    assert select("rlb") == NAMES


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


@pytest.mark.parametrize("scale", SCALES)
def test_every_claim_is_a_number(scale: str) -> None:
    """Where every run has every metric, no claim lacks one, names a label that is not there, or is a list."""
    for name, (file, grid) in zip(NAMES, prepare(NAMES, scale), strict=True):
        values = {
            (str(settings["case"]), str(settings["scheme"])): dict.fromkeys(MEASURED, 1.0)
            for settings, _ in grid.runs
        }
        cases = [case.name for case in file.cases(scale)]
        for verdict in judge(file.claims(scale), values, cases, scale):
            assert verdict.verdict != NOT_MEASURED, (name, verdict.text)


def test_paper_scale_is_that_of_the_paper() -> None:
    """Its networks, links of 40 Gb/s and 2 us (Fig. 11: others, too), PFC at 256 KB, DCQCN."""
    for name in NAMES:
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
