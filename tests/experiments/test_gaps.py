# SPDX-License-Identifier: Apache-2.0
"""Gaps between the packets of a flow: what an experiment measures of them, its file and its summary."""

from __future__ import annotations

import bisect
import json
from dataclasses import replace
from pathlib import Path

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tailrace.cli.main import main
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.known import topology_of
from tailrace.hosts.gaps.histogram import GapHistogram
from tailrace.hosts.measured import Gaps, GapSummary
from tailrace.results.metrics import measure
from tailrace.results.result import Result, read_result, write_result
from tailrace.results.run_files import GAPS, read_gaps, write_gaps
from tailrace.spec.errors import FileError
from tailrace.spec.schema import KeyProblemError
from tailrace.spec.units import parse_bytes
from tailrace.topology.timing import base_rtt_ns, full_frame_bytes
from tests.experiments.virtual import result_of

TOPOLOGY = "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"
WORDS = {
    "target": "virtual",
    "scheme": "ecmp",
    "topology": TOPOLOGY,
    "workload": "permutation:size=64KiB",
    "mtu": "1KiB",
}


def run_with(**words: object) -> Result:
    return result_of({**WORDS, **words})


@pytest.fixture(scope="module")
def measured() -> Result:
    """A run in which NICs measured gaps."""
    return run_with(gaps=True)


histograms = st.lists(st.lists(st.integers(0, 1 << 40), max_size=60), max_size=4)


@given(histograms, st.integers(0, 1 << 40))
def test_merged_histograms_are_that_of_all_gaps(parts: list[list[int]], threshold_ns: int) -> None:
    """Whoever counted them; and a share of long gaps is too small by those near the threshold at most."""
    bins, whole = [], GapHistogram()
    for part in parts:
        histogram = GapHistogram()
        for gap_ns in part:
            histogram.add(gap_ns)
            whole.add(gap_ns)
        bins.append(histogram.bins())
    merged = Gaps.merged(bins)
    assert list(merged.bins) == whole.bins()
    assert merged.count == sum(map(len, parts))
    every = sorted(gap_ns for part in parts for gap_ns in part)
    least = len(every) - bisect.bisect_left(every, threshold_ns * 129 // 128 + 1)
    most = len(every) - bisect.bisect_left(every, threshold_ns)
    assert least <= merged.at_least(threshold_ns) <= most


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=60), st.integers(1, 10_000))
def test_quantiles_are_those_of_the_gaps(gaps_ns: list[int], permyriad: int) -> None:
    """By nearest rank, and the lower end of a bin, which is at most a 128th below."""
    histogram = GapHistogram()
    for gap_ns in gaps_ns:
        histogram.add(gap_ns)
    quantile_ns = Gaps(tuple(histogram.bins())).quantile_ns(permyriad)
    exact_ns = sorted(gaps_ns)[-(-len(gaps_ns) * permyriad // 10_000) - 1]
    assert quantile_ns <= exact_ns <= quantile_ns * 129 / 128
    with pytest.raises(ValueError, match="quantile of no gaps"):
        Gaps(()).quantile_ns(permyriad)


def test_summary_counts_by_round_trips() -> None:
    """Of one, two and three; a gap of just as long counts."""
    gaps = Gaps(((90, 1000), (256, 3), (512, 4), (768, 5)))
    assert gaps.summary(256) == GapSummary(1012, 12, 9, 5, 256)
    assert Gaps(()).summary(256) == GapSummary(0, 0, 0, 0, 256)


def test_every_gap_is_measured(measured: Result) -> None:
    """One less than packets, for each flow; the shortest is a frame's time at the link's rate."""
    assert measured.gaps is not None
    summary = measured.summary
    assert isinstance(summary.gaps, GapSummary)
    assert summary.gaps.count == measured.gaps.count == summary.packets.sent - summary.flows
    assert summary.gaps.rtt_ns == base_rtt_ns(
        topology_of(TOPOLOGY), full_frame_bytes(parse_bytes(WORDS["mtu"]))
    )
    shortest_ns, _ = measured.gaps.bins[0]
    frame_ns = parse_bytes(WORDS["mtu"]) * 8 / 10
    assert frame_ns < shortest_ns < 1.1 * frame_ns


def test_a_paced_flow_has_the_gaps_of_its_rate() -> None:
    """A window of one packet: every gap is a round trip, which is longer than no time and than a frame's."""
    result = run_with(gaps=True, window="1KiB", workload="permutation:size=16KiB,peers=remote")
    assert result.gaps is not None
    shortest_ns, longest_ns = result.gaps.bins[0][0], result.gaps.bins[-1][0]
    # four links there and back, and a frame's time on each of them there
    assert 8 * 1000 + 4 * 819 < shortest_ns <= longest_ns < 1.2 * (8 * 1000 + 4 * 900)


def test_measuring_changes_nothing(measured: Result) -> None:
    """The packets are the same, at the same times; without the key nothing is said of gaps."""
    without = run_with()
    assert without.summary.trace_sha256 == measured.summary.trace_sha256
    assert without.gaps is None
    assert without.summary.gaps is UNSET
    assert "gaps" not in measure(without)


def test_metrics_are_shares(measured: Result) -> None:
    """Of all gaps; where there is none there is no share."""
    assert isinstance(measured.summary.gaps, GapSummary)
    metrics = measure(measured)
    count = measured.summary.gaps.count
    assert metrics["gaps"] == count
    assert metrics["gaps_1rtt"] == measured.summary.gaps.at_least_1_rtt / count
    assert metrics["gaps_1rtt"] >= metrics["gaps_2rtt"] >= metrics["gaps_3rtt"]
    assert metrics["rtt"] == measured.summary.gaps.rtt_ns
    assert measured.gaps is not None
    assert metrics["gap_p50"] == measured.gaps.quantile_ns(5000) <= metrics["gap_p99"] <= metrics["gap_p999"]
    nothing = replace(measured, summary=run_with(gaps=True, workload="permutation:size=1KiB").summary)
    assert isinstance(nothing.summary.gaps, GapSummary)
    assert nothing.summary.gaps.count == 0
    assert "gaps_1rtt" not in measure(nothing)


def test_file(measured: Result, tmp_path: Path) -> None:
    """What is written is read again, and is a table of two columns for anyone else."""
    write_result(measured, tmp_path)
    assert read_result(tmp_path, case="clean", label="it") == measured
    table = polars.read_parquet(tmp_path / GAPS)
    assert measured.gaps is not None
    assert table.rows() == list(measured.gaps.bins)
    assert table.columns == ["low_ns", "count"]


def test_no_gaps_and_bad_ones(tmp_path: Path) -> None:
    """No file is no gaps; another file under that name is told in a line."""
    assert read_gaps(tmp_path) is None
    write_gaps(None, tmp_path)
    assert not (tmp_path / GAPS).exists()
    polars.DataFrame({"low_ns": [1]}).write_parquet(tmp_path / GAPS)
    with pytest.raises(FileError, match="no table of gaps: column"):
        read_gaps(tmp_path)
    (tmp_path / GAPS).write_text("nothing of the kind")
    with pytest.raises(FileError, match="no table of gaps"):
        read_gaps(tmp_path)


def test_the_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In files and on the command line; it takes yes or no only."""
    assert make({"scheme": "ecmp", "gaps": True}).gaps
    assert not make({"scheme": "ecmp"}).gaps
    with pytest.raises(KeyProblemError, match="gaps: expected true or false, found 'often'"):
        make({"scheme": "ecmp", "gaps": "often"})
    words = [f"--{key}={value}" for key, value in WORDS.items()]
    assert main(["run", *words, "--gaps", "--json", "--out", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["gaps"]["count"] > 0
    assert (tmp_path / GAPS).exists()
