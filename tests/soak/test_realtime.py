# SPDX-License-Identifier: Apache-2.0
"""Chaos in real time: the verdict can fail, and a run of seconds leaves nothing, however it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from soak.realtime.chaos import WEIGHTS
from soak.realtime.judge import ENOUGH, MOST_GROWTH_BYTES, MOST_THREADS, growth, problems
from soak.realtime.measure import Sample, descriptors, percentiles, sample
from tests.eventually import LONG_S, eventually
from tests.mininet.conftest import why_not

ROOT = Path(__file__).parents[2]
STEADY = [Sample(10.0 * n, 90 << 20, 80 << 20, 40 << 20, 20, 9, n % 4 == 0) for n in range(200)]

LEAKS = """
import sys
kept = []
for line in sys.stdin:
    if line == "leak\\n":
        kept.append((bytearray(b"x" * (1 << 20)), open("/dev/null")))
    print("done", flush=True)
"""


def changed(**by: int) -> list[Sample]:
    """Steady samples, of which the last half has more of something."""
    half = len(STEADY) // 2
    more = [replace(one, **{k: getattr(one, k) + n for k, n in by.items()}) for one in STEADY[half:]]
    return STEADY[:half] + more


def test_what_is_steady_passes() -> None:
    assert problems({"leaf1": STEADY}) == []
    assert problems({"leaf1": changed(own_bytes=MOST_GROWTH_BYTES - 1, threads=MOST_THREADS)}) == []
    assert problems({"leaf1": changed(own_bytes=-(5 << 20), descriptors=-1, threads=-1)}) == []


@pytest.mark.parametrize("key", ["own_bytes", "descriptors", "threads"])
def test_what_grows_does_not(key: str) -> None:
    """A process that grows is named, with what it has more of; one beside it that does not is not."""
    grown = changed(**{key: {"own_bytes": MOST_GROWTH_BYTES, "threads": MOST_THREADS + 1}.get(key, 1)})
    (line,) = problems({"leaf1": STEADY, "spine1": grown})
    assert re.fullmatch(r"spine1: (grew by 1\.00 MiB|1 descriptors more|3 threads more)", line)


def test_what_comes_and_goes_is_no_growth() -> None:
    """What is late in going back, at some calm moments, or was there only under chaos, or in the warm-up."""
    tops = [replace(one, own_bytes=one.own_bytes + (n % 8 == 0) * (30 << 20)) for n, one in enumerate(STEADY)]
    busy = [one if one.calm else replace(one, own_bytes=1 << 30, descriptors=900) for one in STEADY]
    early = [replace(one, own_bytes=1 << 20) if one.at_s < 300 else one for one in STEADY]
    assert problems({"tops": tops, "busy": busy, "early": early}) == []
    assert growth(tops)["own_bytes"] == 0


def test_too_short() -> None:
    """What cannot tell does not pass."""
    assert problems({"leaf1": STEADY[: 4 * ENOUGH]}) == [
        f"leaf1: {ENOUGH - 1} calm moments are too few to tell growth"
    ]
    assert problems({"leaf1": []}) == ["leaf1: 0 calm moments are too few to tell growth"]


def test_a_process_that_leaks() -> None:
    """A real one: memory and descriptors that it keeps are found, and nothing where it keeps none."""
    process = subprocess.Popen(
        [sys.executable, "-c", LEAKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None

    def seen(word: str) -> list[Sample]:
        assert process.stdin is not None and process.stdout is not None
        found = []
        for number in range(12):
            process.stdin.write(f"{word}\n")
            process.stdin.flush()
            process.stdout.readline()
            found.append(sample(process.pid, float(number), calm=True))
        return found

    with process:
        assert problems({"it": seen("nothing")}) == []
        before = descriptors(process.pid)
        leaked = problems({"it": seen("leak")})
        assert [line.split(": ")[1].partition(" by")[0] for line in leaked] == ["grew", "8 descriptors more"]
        assert descriptors(process.pid)["/dev/null"] == before.get("/dev/null", 0) + 12
        process.stdin.close()


def test_percentiles() -> None:
    assert percentiles([]) == {"count": 0}
    found = percentiles([n / 100 for n in range(100)])
    assert found == {"count": 100, "p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 0.99}


# ---- runs ----


class Started:
    """A run as a user starts it."""

    def __init__(self, out: Path, *words: str) -> None:
        self.out = out
        self.process = subprocess.Popen(
            [sys.executable, "-m", "soak.realtime", "--out", str(out), *words],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "mininet")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def log(self) -> list[dict[str, object]]:
        """What happened so far."""
        path = self.out / "chaos.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}")]

    def end(self) -> tuple[int, list[str], str]:
        """Its exit code, what it said, and what it complained of."""
        said, complained = self.process.communicate(timeout=LONG_S)
        return self.process.returncode, said.splitlines(), complained


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[Started]]:
    """Runs that end with the test."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    runs: list[Started] = []
    yield runs
    for run in runs:
        if run.process.poll() is None:
            run.process.terminate()
            run.process.communicate(timeout=LONG_S)


def test_seconds_of_chaos(started: list[Started], tmp_path: Path) -> None:
    """The network comes back and nothing is left; what it says of growth after seconds is nobody's business."""
    started.append(Started(tmp_path, "--minutes", "0.05", "--seed", "5"))
    code, said, complained = started[0].end()
    result = json.loads((tmp_path / "chaos.json").read_text())
    assert code == bool(result["problems"]) and complained == ""
    early = re.compile(r"\w+: (grew by .*|\d+ (descriptors|threads) more|\d calm moments are too few .*)")
    assert [line for line in result["problems"] if not early.fullmatch(line)] == []
    again = "again: python -m soak.realtime --minutes 0.05 --seed 5"
    assert (said[-1] == again) == bool(result["problems"])
    assert not [line for line in said if "left behind" in line]
    assert result["acts"] and set(result["acts"]) <= set(WEIGHTS)
    assert result["recovered_s"]["count"] >= 1 and result["latency_s"]["read"]["count"] >= 1
    assert (tmp_path / "chaos.png").stat().st_size > 1000


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_end_by_a_signal_leaves_nothing(
    started: list[Started], tmp_path: Path, sign: signal.Signals
) -> None:
    """In the middle of chaos."""
    started.append(Started(tmp_path, "--minutes", "5"))
    assert eventually(lambda: any(str(line["said"]).startswith("for ") for line in started[0].log()))
    started[0].process.send_signal(sign)
    code, said, complained = started[0].end()
    assert (128 + sign, [], "") == (code, said, complained)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--minutes", "0"], "--minutes: expected more than 0 and at most 10080"),
        (["--minutes", "nan"], "--minutes: expected more than 0 and at most 10080"),
        (["--restarts", "0"], "--restarts: expected 1 to 10000"),
    ],
)
def test_bad_input(started: list[Started], tmp_path: Path, words: list[str], line: str) -> None:
    started.append(Started(tmp_path, *words))
    assert (2, [], f"soak.realtime: {line}\n") == started[0].end()
