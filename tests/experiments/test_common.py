# SPDX-License-Identifier: Apache-2.0
"""Comparisons from files: schemes by label, each over a transport that it works with, several at a time, many in one
figure; and the one over all systems, tailrace/experiments/presets/common.toml.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import polars
import pytest

from tailrace import api
from tailrace.cbuild.artifacts import PACKAGE
from tailrace.cli.experiment_command import ResultOutput, run_study
from tailrace.cli.main import main
from tailrace.experiments.plan.experiment import Experiment, make
from tailrace.experiments.plan.experiment_file import read_experiment, schemes_of
from tailrace.report.figures.figure import comparison
from tailrace.report.figures.panels import MOST_LINES
from tailrace.report.figures.plot import NATURAL
from tailrace.results.results import Results, open_results
from tailrace.schemes.base import resolve
from tailrace.schemes.letflow import ResolvedLetflow
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.rlb.declaration import ResolvedRlb
from tailrace.sim.job import Job
from tailrace.sim.outcome import Outcome
from tailrace.spec import SpecError
from tailrace.study.grids import plans
from tailrace.topology import parse_topology
from tests.experiments.fake import FakeBackend, compare_on, record

COMMON = PACKAGE / "experiments" / "presets" / "common.toml"
SYSTEMS = ("flowcut", "rlb", "spritz")
BASELINES = {"ecmp", "spray", "presto", "drill", "letflow", "hermes", "mp-rdma", "ops", "flicr"}
FILE = """
target = "virtual"
topology = "leaf-spine:leaves=2,spines=2,hosts=2"
workload = "permutation:size=8KiB"
transport = "gbn"
[schemes]
plain = "ecmp"
"spritz 1" = "spritz:variant=scout"
[scale.small.schemes]
plain = "spray"
[scale.paper]
seed = 9
"""


def write(folder: Path, text: str = FILE) -> Path:
    path = folder / "it.toml"
    path.write_text(text)
    return path


def test_schemes_of_a_file(tmp_path: Path) -> None:
    """By label, in the order of the file; a scale may change some; others than `compare` take the first."""
    path = write(tmp_path)
    assert list(schemes_of(path).items()) == [("plain", "ecmp"), ("spritz 1", "spritz:variant=scout")]
    assert schemes_of(path, "small") == {"plain": "spray", "spritz 1": "spritz:variant=scout"}
    assert schemes_of(None) == {}
    assert ["ecmp", "spray", "ecmp"] == [
        read_experiment(path, scale).scheme for scale in (None, "small", "paper")
    ]
    assert read_experiment(path, "paper").seed == 9
    path = write(tmp_path, '[schemes]\nfirst = "flowcut"\nsecond = "ecmp"\n')
    assert read_experiment(path, None, {"variant": "ingress"}).scheme == "flowcut:variant=ingress"


def test_each_over_a_transport_that_it_works_with() -> None:
    """A scheme that works over a single transport keeps it; any other takes the one asked for, if it can."""
    schemes = ("ecmp", "mp-rdma", "hermes", "spritz", "rlb:variant=hermes", "flowcut")
    for wanted, expected in (("gbn", "gbn"), ("dctcp", "dctcp"), ("dcqcn:clamp=no", "dcqcn"), (None, "gbn")):
        words = {"scheme": "ecmp", "target": "virtual", "workload": "permutation:size=8KiB"}
        base = make(words if wanted is None else {**words, "transport": wanted})
        transports = [plan.job.nic.transport for _, plan in plans(base, schemes, "virtual")]
        assert transports == [expected, "mp-rdma", "dcqcn", "dctcp", "dcqcn", expected]
        clamps = {plan.job.nic.dcqcn.clamp for _, plan in plans(base, ("hermes",), "virtual")}
        assert clamps == {wanted != "dcqcn:clamp=no"}


def test_compare_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The labels are the file's, who goes over another transport is told, and the table is there in Markdown."""
    out = tmp_path / "out"
    assert main(["compare", str(write(tmp_path)), "--out", str(out)]) == 0
    output = capsys.readouterr()
    assert "spritz 1: over dctcp, the only transport with which it works" in output.err
    assert re.search(r"transport gbn \(window \S+\), but dctcp \(window \S+\): spritz 1", output.out)
    runs = json.loads((out / "results.json").read_text())["runs"]
    assert [run["settings"]["scheme"] for run in runs] == ["plain", "spritz 1"]
    lines = (out / "table.md").read_text().splitlines()
    assert [line.split(" | ")[:2] for line in lines[2:4]] == [["| clean", "plain"], ["| ", "spritz 1"]]
    assert lines[0].startswith("| case | scheme | mean FCT (µs) | median FCT (µs) |")
    assert "PFC pauses" in lines[0]


def test_several_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same results as one after the other; what is there already is not run again; no captures."""
    path, first, second = write(tmp_path), tmp_path / "one", tmp_path / "two"
    assert main(["compare", str(path), "--out", str(first)]) == 0
    assert main(["compare", str(path), "--out", str(second), "--workers", "2"]) == 0
    assert rows(first) == rows(second)
    capsys.readouterr()
    assert main(["compare", str(path), "--out", str(second), "--workers", "2"]) == 0
    assert "2 of 2 results were there already" in capsys.readouterr().err
    with pytest.raises(SpecError, match="--pcap: links are captured with one worker only"):
        run_study(api.compare, base(path), ["ecmp"], output=ResultOutput(second), pcap=True, workers=2)


def base(path: Path) -> Experiment:
    """The experiment of a file."""
    return read_experiment(path)


def rows(folder: Path) -> list[list[tuple[object, ...]]]:
    """All flows of a comparison, by scheme."""
    return [
        polars.read_parquet(folder / "clean" / label / "flows.parquet").rows()
        for label in ("plain", "spritz 1")
    ]


def many() -> Results:
    """A comparison of more schemes than a figure has lines for, in two cases, in a lossy network."""
    schemes = [f"letflow:gap={number}us" for number in range(1, MOST_LINES + 2)]
    words = {
        "scheme": schemes[0],
        "target": "virtual",
        "workload": "permutation:size=8KiB",
        "fault": ["link-slow:fraction=0.01,factor=0.1"],
    }

    def answer(job: Job) -> Outcome:
        return Outcome(tuple(record(flow) for flow in job.flows), wall_s=1.0)

    return compare_on(FakeBackend(answer), make(words), schemes)


def test_many_schemes_are_rows() -> None:
    """Each has its row in every panel, with a bar for each case; what was not observed has no panel."""
    done = many()
    figure = comparison.draw(done, NATURAL)
    assert figure is not None
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ["median slowdown (×)", "largest slowdown (×)", "packets out of order (%)"]
    for axis in figure.axes:
        assert len(axis.patches) == len(done.results) == 2 * (MOST_LINES + 1)
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert names == list(done.axes["scheme"])
    assert len(done.table.rows) == len(done.results)
    assert len(done.markdown().splitlines()) > len(done.results)


# ---- all systems ----


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    """What the comparison over all systems gives at its small scale."""
    out = tmp_path_factory.mktemp("common")
    assert main(["compare", str(COMMON), "--scale", "small", "--out", str(out)]) == 0
    yield open_results(out)


def test_all_systems_and_baselines_are_there() -> None:
    """The four systems, with all their variants, and what their papers compare them with."""
    words = list(schemes_of(COMMON).values())
    names = {text.partition(":")[0] for text in words}
    assert names >= BASELINES | set(SYSTEMS)
    for system, count in zip(SYSTEMS, (3, 4, 2), strict=True):
        assert len([text for text in words if text.startswith(system) and "hf2t" not in text]) == count
    hf2t = [parse_scheme(text) for text in words if "hf2t" in text]
    assert [scheme.name for scheme in hf2t] == ["ecmp", "letflow", "letflow", "flowcut", "rlb"]
    assert {scheme.hf2t.dynamic for scheme in hf2t if scheme.hf2t is not None} == {True, False}


def test_one_flowlet_threshold() -> None:
    """It is the same for switches and NICs, at any scale."""
    gaps_ns: set[int | None] = set()
    topology = parse_topology(read_experiment(COMMON, "paper").topology)
    for scale in ("small", "paper"):
        for words in schemes_of(COMMON, scale).values():
            config = resolve(parse_scheme(words), topology)
            if isinstance(config, ResolvedLetflow) or (
                isinstance(config, ResolvedRlb) and config.variant == "letflow"
            ):
                gaps_ns.add(config.gap_ns)
            if config.hf2t is not None:
                gaps_ns.add(config.hf2t.stretch_ns or config.flowlet_gap_ns)
    assert len(gaps_ns) == 1


def test_all_run_on_one_network(common: Results) -> None:
    """The same flows, all complete, nothing lost where PFC is; order is kept by whoever promises it."""
    assert not common.failed
    assert [run.settings["scheme"] for run in common.runs] == list(schemes_of(COMMON))
    assert len({result.summary.flows for result in common.results}) == 1
    for result in common.results:
        summary, label = result.summary, result.label
        assert summary.completed == summary.flows, label
        if label.startswith(("ecmp", "flowcut")):
            assert summary.packets.out_of_order == 0, label
        required = parse_scheme(summary.scheme).only_transport
        assert summary.transport == (required or "dcqcn"), label
        assert summary.packets.dropped == 0 or required is not None, label
        if "hf2t" in label:
            assert isinstance(summary.hf2t, dict), label
            assert summary.hf2t["stretched"] > 0, label
