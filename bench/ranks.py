# SPDX-License-Identifier: Apache-2.0
"""What several processes for one network in virtual time gain, measured for two and reckoned for up to 64.

A run in N parts goes from meeting to meeting, and that takes as long as the part that has most to do. So the
CPU time of every part before every meeting says how long N cores would take, whatever this machine has: the
sum of the largest, and what meetings cost. Parts run one after the other here, some times, and of each time
the least counts, for all runs do the same, and whatever else a processor does only adds to it. What this
leaves out is that cores share a memory. Whole runs with 2 and 4 ranks say how far that is right.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.htsim import timed
from bench.quiet import Round, alternating
from bench.result import Beside, Result
from bench.virtual import ROUNDS, apart, prepare

SCHEMES = ("ecmp", "flowcut")
RANKS = (1, 2, 4, 8, 16, 32, 64)
CHECKED = (1, 2, 4)
"""Ranks of whole runs; with more than there are cores these are shared."""
FLOW_BYTES = 512_000
SEED = 5
MESSAGE_BYTES = 1 << 16
"""Of the messages by which the cost of bytes is measured."""
MEETINGS = 1000
MPI_LATENCIES_US = (2, 20)
"""Assumed: between machines over RDMA, and over TCP. A meeting of N takes log2 N of them in turn."""
GOAL_TIMES = {2: 1.7}


@dataclass(frozen=True, slots=True)
class Work:
    """CPU seconds by meeting, then by rank: what each did before it; and the bytes that it sent there."""

    cpu_s: tuple[tuple[float, ...], ...]
    sent_bytes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Meeting:
    """Seconds that a meeting takes each rank, and each byte that it hands to others there."""

    fixed_s: float = 0.0
    byte_s: float = 0.0


def words(scheme: str, k: int, flow_bytes: int) -> dict[str, object]:
    """The experiment: a permutation on a fat tree of arity `k`."""
    return {
        "scheme": scheme,
        "topology": f"fat-tree:k={k},rate=200Gbps,delay=1us",
        "workload": f"permutation:size={flow_bytes}B",
        "seed": SEED,
    }


# ---- the model ----


def least(rounds: Sequence[Work]) -> Work:
    """Of the same run several times the least of each time."""
    by_meeting = zip(*(one.cpu_s for one in rounds), strict=True)
    found = tuple(tuple(map(min, zip(*each, strict=True))) for each in by_meeting)
    return Work(found, rounds[0].sent_bytes)


def longest_s(times_s: Sequence[float], cores: int) -> float:
    """How long so many cores take: the longest first, each by the core that is free first."""
    busy_s = [0.0] * cores
    for time_s in sorted(times_s, reverse=True):
        busy_s[busy_s.index(min(busy_s))] += time_s
    return max(busy_s)


def seconds(work: Work, meeting: Meeting, cores: int) -> float:
    """How long the traffic takes on so many cores."""
    found = 0.0
    for cpu_s, sent in zip(work.cpu_s, work.sent_bytes, strict=True):
        each = [own_s + own * meeting.byte_s for own_s, own in zip(cpu_s, sent, strict=True)]
        found += longest_s(each, cores) + meeting.fixed_s
    return found


def imbalance(work: Work) -> tuple[float, float]:
    """The largest part over the mean: of what lies between two meetings, and of the whole run."""
    ranks = len(work.cpu_s[0])
    together_s = sum(map(sum, work.cpu_s))
    largest_s = sum(map(max, work.cpu_s))
    whole_s = max(map(sum, zip(*work.cpu_s, strict=True)))
    return largest_s * ranks / together_s, whole_s * ranks / together_s


def shared_meeting(ranks: int, pair: Meeting) -> Meeting:
    """A meeting of ranks on one machine, each of which does with every other what two do."""
    return Meeting((ranks - 1) * pair.fixed_s, pair.byte_s)


def mpi_meeting(ranks: int, latency_us: float, byte_s: float) -> Meeting:
    """A meeting of processes between which a message takes so long."""
    return Meeting(math.ceil(math.log2(ranks)) * latency_us / 1e6, byte_s)


# ---- measuring; what these functions import is what they measure, in processes of their own ----


def _work(experiment: dict[str, object], ranks: int) -> Work:
    from bench.rank_work import work

    return work(experiment, ranks)


def growth(rounds: Sequence[Work], one: Sequence[Work]) -> float:
    """What all parts do together over what one rank does in the same rounds.

    Of whole rounds the median, for of many short times the least is nearer the truth than of few long ones.
    """
    several_s, one_s = ([sum(map(sum, each.cpu_s)) for each in found] for found in (rounds, one))
    return statistics.median(a / b for a, b in zip(several_s, one_s, strict=True))


def _works(
    experiment: dict[str, object], several: Sequence[int], rounds: int
) -> dict[int, tuple[Work, float]]:
    """By ranks, with the growth; alternating, so that what the machine does strikes all of them."""
    found: dict[int, list[Work]] = {ranks: [] for ranks in several}
    for _ in range(rounds):
        for ranks, each in found.items():
            print(f"bench: ranks: {experiment['scheme']}, {ranks} parts", file=sys.stderr)
            each.append(apart(_work, experiment, ranks))
    return {ranks: (least(each), growth(each, found[1])) for ranks, each in found.items()}


def _meeting_s(size: int, meetings: int) -> float:
    from bench.rank_work import meeting_s

    return meeting_s(size, meetings)


def _pair(quick: bool) -> Meeting:
    """What a meeting costs each of two ranks: of several rounds the least."""
    rounds, meetings = (1, 10) if quick else (ROUNDS, MEETINGS)
    nothing_s, message_s = (
        min(apart(_meeting_s, size, meetings) for _ in range(rounds)) for size in (0, MESSAGE_BYTES)
    )
    return Meeting(nothing_s, max(message_s - nothing_s, 0.0) / MESSAGE_BYTES)


def _traffic_s(experiment: dict[str, object], ranks: int, folder: Path) -> float:
    """How long the traffic of a whole run took on the clock."""
    options = [word for key, value in experiment.items() for word in (f"--{key}", str(value))]
    command = [sys.executable, "-m", "tailrace.cli.main", "run", "--target", "virtual", *options]
    timed([*command, "--ranks", str(ranks), "--out", str(folder)])
    return float(json.loads((folder / "summary.json").read_text("utf-8"))["traffic_s"])


def _measured(experiment: dict[str, object], rounds: int) -> dict[int, list[Round[float]]]:
    with tempfile.TemporaryDirectory() as name:
        tasks = {
            str(ranks): partial(_traffic_s, experiment, ranks, Path(name) / str(ranks)) for ranks in CHECKED
        }
        found = alternating(tasks, rounds)
    return {int(ranks): each for ranks, each in found.items()}


# ---- results ----


def _note(work: Work, meeting: Meeting, one_s: float, cores: int) -> str:
    ranks = len(work.cpu_s[0])
    each, whole = imbalance(work)
    sent = sum(map(sum, work.sent_bytes)) / len(work.cpu_s) / ranks
    over = ", ".join(
        f"{one_s / seconds(work, mpi_meeting(ranks, latency, meeting.byte_s), ranks):.3g}"
        for latency in MPI_LATENCIES_US
    )
    together_s = sum(map(sum, work.cpu_s))
    return (
        f"all parts together {together_s / one_s:.2f} of one rank's work;"
        f" imbalance between two meetings {each:.2f}, of the whole {whole:.2f}; {len(work.cpu_s)} meetings of"
        f" {meeting.fixed_s * 1e6:.0f} us, {sent / 1024:.0f} KiB from each rank; over MPI of"
        f" {' and '.join(map(str, MPI_LATENCIES_US))} us {over} times"
    ) + (f"; on {cores} cores {one_s / seconds(work, meeting, cores):.3g} times" if ranks > cores else "")


def results(
    group: str,
    works: dict[int, tuple[Work, float]],
    pair: Meeting,
    measured: dict[int, list[Round[float]]],
    cores: int,
) -> list[Result]:
    """A row for each number of ranks: how much faster than one, on a core each; beside whole runs."""
    rows = []
    for ranks, (work, grown) in works.items():
        if ranks == 1:
            continue
        one_s = seconds(work, Meeting(), 1) / grown
        beside, meeting = None, shared_meeting(ranks, pair)
        if ranks in measured:
            pairs = zip(measured[1], measured[ranks], strict=True)
            ratio = statistics.median(one.value / several.value for one, several in pairs)
            beside = Beside(f"measured, {cores} cores, on the clock", ratio)
        rows.append(
            Result(
                group,
                f"{ranks} ranks",
                one_s / seconds(work, meeting, ranks),
                "times",
                GOAL_TIMES.get(ranks) if set(works) == set(RANKS) else None,
                note=_note(work, meeting, one_s, cores),
                rival=beside,
                noise=tuple(each.noise for each in measured.get(ranks, ())),
            )
        )
    return rows


def run(quick: bool) -> list[Result]:
    """1024 hosts in up to 64 parts. `quick`: 16 hosts in up to 4, once, to see that it works."""
    prepare()
    k, flow_bytes, rounds = (4, 20_000, 1) if quick else (16, FLOW_BYTES, ROUNDS)
    several = CHECKED if quick else RANKS
    cores = os.cpu_count() or 1
    pair = _pair(quick)
    rows = []
    for scheme in SCHEMES:
        experiment = words(scheme, k, flow_bytes)
        works = _works(experiment, several, rounds)
        print(f"bench: ranks: {scheme}, whole runs", file=sys.stderr)
        measured = _measured(experiment, rounds)
        group = f"virtual time, ranks, {k**3 // 4} hosts, {scheme}"
        rows += results(group, works, pair, measured, cores)
    return rows
