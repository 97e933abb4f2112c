# SPDX-License-Identifier: Apache-2.0
"""A scheme and a transport that are in NICs alone, as docs/extend has them: no P4, and nothing of ours changed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tailrace import hosts
from tests.extend.conftest import ROOT, Run, documented

WORDS = ("--workload", "permutation:size=64KiB,peers=remote", "--target", "virtual", "--out", "out")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the files of the document."""
    return documented(tmp_path / "mine")


def summary(tailrace: Run, folder: Path, *words: str, **environment: str) -> dict[str, Any]:
    done = tailrace("run", "--plugin", folder, "--json", *words, *WORDS, **environment)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["completed"] == document["flows"] > 0
    return document


def test_they_run_beside_ours(folder: Path, tailrace: Run) -> None:
    """The scheme over our transports and over its own, which our schemes take, too; each makes a difference."""
    cases = [
        ("ecmp", "gbn"),
        ("ecmp", "aimd"),
        *(("bend", name) for name in ("gbn", "aimd", "dctcp", "dcqcn")),
    ]
    summaries = {}
    for scheme, transport in cases:
        document = summary(tailrace, folder, "--scheme", f"{scheme}:kmax=9KB", "--transport", transport)
        assert document["transport"] == transport.partition(":")[0]
        summaries[scheme, transport] = document
        if scheme == "bend":
            assert document["counters"]["bend"]["explored"] > document["flows"]
            assert "spritz" not in document
    assert len({document["trace_sha256"] for document in summaries.values()}) == len(cases)
    assert len({document["p4_sha256"] for document in summaries.values()}) == 1


def test_ours_stay_compiled_and_do_the_same(folder: Path, tailrace: Run) -> None:
    """Classes from outside inherit from compiled ones and from interpreted ones with the same effect."""
    words = ("--scheme", "bend", "--transport", "aimd:cut=0.7")
    modes = dict.fromkeys(("interpreted", hosts.IMPLEMENTATION))
    assert (
        len({summary(tailrace, folder, *words, TAILRACE_HOSTS=mode)["trace_sha256"] for mode in modes}) == 1
    )


def test_a_scale_of_time_holds_for_their_settings(folder: Path, tailrace: Run) -> None:
    """Ten times slower is the same run, ten times longer."""
    words = ("--scheme", "bend", "--transport", "aimd", "--window", "64KiB")
    summaries = [summary(tailrace, folder, *words, "--time-scale", scale) for scale in ("1", "10")]
    assert summaries[1]["fct_ns"]["p50"] == pytest.approx(10 * summaries[0]["fct_ns"]["p50"], rel=0.01)


def test_they_are_listed(folder: Path, tailrace: Run) -> None:
    shown = json.loads(tailrace("transports", "aimd", "--plugin", folder, "-o", "json").stdout)
    assert [(row["key"], row["default"]) for row in shown] == [("", ""), ("cut", "0.5")]
    assert "judges its path" in tailrace("schemes", "bend", "--plugin", folder).stdout


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("bend", "return self.port", "return 70000", r"steering chose port 70000, expected 1\.\.65535"),
        (
            "bend",
            'steering("bend")',
            'steering("scout")',
            r"bend\.py: line \d+: steering 'scout' is registered twice",
        ),
        ("bend", "SourcePortPaths(64)", "None", "flow 1: steering bend needs paths, but its NIC has none"),
        ("aimd", "sport, rng)", "sport)", "transport 'aimd': AimdSender must take 4 arguments"),
        ("bend", "def next_ev", "def next", r"steering 'bend': Bend lacks next_ev"),
        ("aimd", '= "aimd"', '= "gbn"', "transport 'gbn' is registered twice"),
        ("aimd", "self.window * self.cut", "self.window / 0", r"aimd\.py: line \d+: ZeroDivisionError"),
        ("aimd", "AimdSender(GoBackNSender)", "AimdSender(int)", "expected a subclass of Sender"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    folder: Path, forked_tailrace: Run, name: str, old: str, new: str, problem: str
) -> None:
    """It names the file and the line, or the flow; nobody sees a traceback."""
    path = folder / f"{name}.py"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    words = ("--scheme", "bend", "--transport", "aimd", "--fault", "drop:rate=0.05")
    done = forked_tailrace("run", "--plugin", folder, *words, *WORDS)
    lines = [line for line in done.stderr.splitlines() if line.startswith("tailrace: ")]
    assert (done.returncode, len(lines), "Traceback" in done.stderr) == (2, 1, False), done.stderr
    assert re.search(problem, lines[0])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--scheme", "bend:share=2", "--transport", "gbn"), "share must be at most 1"),
        (("--scheme", "ecmp", "--transport", "aimd:cut=0"), "cut must be more than 0, found '0'"),
        (("--scheme", "bend", "--transport", "mp-rdma"), "both choose the source port"),
    ],
)
def test_what_cannot_be_is_refused(
    folder: Path, forked_tailrace: Run, words: tuple[str, ...], problem: str
) -> None:
    done = forked_tailrace("run", "--plugin", folder, *words, *WORDS)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert problem in done.stderr


def test_what_bases_leave_to_others_is_known() -> None:
    """As interpreted classes tell it."""
    code = (
        "from tailrace.hosts import extend\n"
        "for kind, names in extend._ABSTRACT.items():\n"
        "    abstract = {name for name in kind.__abstractmethods__ if name in vars(kind)}\n"
        "    assert abstract == set(names), kind\n"
    )
    environment = os.environ | {"TAILRACE_HOSTS": "interpreted", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
