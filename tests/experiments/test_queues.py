# SPDX-License-Identifier: Apache-2.0
"""Tables and summaries say what bounded the queues, and `tailrace schemes` what a run will use."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars
import pytest
from msgspec import structs

import tailrace
from tailrace.cli.main import main
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.results.queues import MOST_LABELS, MOST_LINES, Queues, queue_lines
from tailrace.results.result import Result
from tailrace.spec.units import format_bytes

TOPOLOGY = "leaf-spine:leaves=1,spines=1,hosts=4,rate=10Gbps,delay=1us"
KEYS = ("target", "topology", "workload")
SMALL = ["--target", "virtual", "--topology", TOPOLOGY, "--workload", "incast:degree=3,size=64KiB"]


@pytest.mark.parametrize(
    ("words", "line", "keys"),
    [
        (
            ["--scheme", "ecmp"],
            "room for all data in flight (",
            {"limit_bytes", "holds_all", "trims", "xoff_bytes", "xon_bytes", "headroom_bytes"},
        ),
        (
            ["--scheme", "ecmp:queue=8KiB,kmin=2KiB,kmax=4KiB"],
            "data beyond 8KiB are dropped, ECN marks from 2KiB to 4KiB, no PFC",
            {"limit_bytes", "holds_all", "trims", "kmin_bytes", "kmax_bytes", "pmax"},
        ),
        (["--scheme", "ecmp:queue=0"], "no limit, no ECN marks, no PFC", {"holds_all", "trims"}),
        (
            ["--scheme", "ecmp", "--pfc", "xoff=16KiB,xon=8KiB,headroom=8KiB,buffer=1MiB"],
            "no ECN marks, PFC pauses beyond 16KiB (a switch has 1MiB)",
            {
                "limit_bytes",
                "holds_all",
                "trims",
                "xoff_bytes",
                "xon_bytes",
                "headroom_bytes",
                "buffer_bytes",
            },
        ),
        (
            ["--scheme", "spritz"],
            "are trimmed, ECN marks from ",
            {"limit_bytes", "holds_all", "trims", "kmin_bytes", "kmax_bytes", "pmax"},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_table_summary_and_schemes_agree(
    words: list[str], line: str, keys: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *words, *SMALL, "--sample", "1us", "--out", str(tmp_path / "out")]) == 0
    [queues] = [text for text in capsys.readouterr().out.splitlines() if text.startswith("queues")]
    assert line in queues
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    bounds = summary["queues"]
    assert bounds.keys() == keys
    longest = polars.read_parquet(tmp_path / "out" / "queues.parquet")["queue_bytes"].max()
    if bounds["holds_all"]:
        assert summary["packets"]["dropped_data"] == 0
        assert longest <= bounds["limit_bytes"]
    scheme, _, options = words[1].partition(":")
    if not options:
        assert main(["schemes", scheme, *SMALL, *words[2:]]) == 0
        shown = capsys.readouterr().out
        assert f"queues of {scheme}: {queues.partition(': ')[2]}" in shown
        rows = [row.split() for row in shown.splitlines()]
        [queue] = [row[row.index("size") + 1] for row in rows if "queue" in row[:2]]
        assert queue == format_bytes(bounds["limit_bytes"])


def test_an_incast_fills_what_the_tool_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a window and PFC a queue holds what comes: far more than a BDP of each host."""
    assert main(["schemes", "ecmp", *SMALL, "--transport", "dcqcn", "-o", "json"]) == 0
    shown = {row["key"]: row["default"] for row in json.loads(capsys.readouterr().out)}
    experiment = make({"scheme": "ecmp", "transport": "dcqcn", **dict(zip(KEYS, SMALL[1::2], strict=True))})
    limit = plan(experiment, "virtual").job.scheme.queue_limit_bytes
    assert shown["queue"] == format_bytes(limit) and limit > 3 * 64 * 1024


def of(label: str, bounds: Queues, result: Result) -> Result:
    return replace(result, label=label, summary=structs.replace(result.summary, queues=bounds))


def test_lines_are_few() -> None:
    """Limits that follow from the traffic are a range; of many kinds the first are told."""
    result = tailrace.run(
        scheme="ecmp", target="virtual", topology=TOPOLOGY, workload="incast:degree=3,size=1KiB"
    )
    ranged = [of("a", Queues(limit_bytes=size, holds_all=True), result) for size in (3072, 1024, 2048)]
    assert queue_lines(ranged) == ["queues: room for all data in flight (1KiB to 3KiB), no ECN marks, no PFC"]
    many = [of(f"s{number}", Queues(xoff_bytes=1024 * (number + 1)), result) for number in range(9)]
    lines = queue_lines(many)
    assert lines[0] == "queues of s0: no limit, no ECN marks, PFC pauses beyond 1KiB"
    assert len(lines) == MOST_LINES + 1
    assert lines[-1] == "queues: 5 other bounds are in summary.json of each run"
    [first, _] = queue_lines([*(of(f"s{number}", Queues(), result) for number in range(9)), many[0]])
    assert first.startswith(f"queues of s0, s1, s2, s3, s4, s5 and {9 - MOST_LABELS} others: no limit")


def test_a_figure_shows_pauses_alone_by_case(tmp_path: Path) -> None:
    """Warnings and recirculations have no place in it if no scheme has them."""
    out = tmp_path / "out"
    assert main(["compare", "--scheme", "ecmp,spray", *SMALL, "--out", str(out)]) == 0
    titles = [axis.get_title() for axis in tailrace.figure(tailrace.open_results(out)).axes]
    assert titles[-1] == "PFC pauses"
