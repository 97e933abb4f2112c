# SPDX-License-Identifier: Apache-2.0
"""Compares whole runs with those of the simulator csg-htsim (Broadcom/csg-htsim), if `htsim_roce` is on PATH.

Both simulators run alternately, with the same permutation on the same fat tree, with equal rate, delay and
packet size, over lossless Ethernet with RoCE and go-back-N; htsim gets our pairs of hosts as its connection
matrix. Figures are CPU times of the whole command. Set-up is the CPU time of the same command with one-packet
flows.
"""

from __future__ import annotations

import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from checks.bench.noise import Round, alternating
from checks.bench.result import BenchError, BenchResult, Rival
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan

HTSIM = "htsim_roce"
SCHEMES = ("ecmp", "flowcut")
GOAL_TIMES = 4.0
"""Goal: this many times as fast as htsim with 1024 hosts, set-up included."""
ROUNDS = 3
SEED = 5
MTU_BYTES = 1024
RATE_MBPS = 200_000
TIMEOUT_S = 1800.0
END_US = 5_000
"""Simulated time of htsim, which does not stop after the last flow: ten times the duration of the flows."""
LEAST_CPU_S = 1e-3
"""Smallest divisor of a ratio: the difference of two CPU times (total less set-up) may be 0."""
OPTIONS = (
    *("-queue_type", "lossless_input", "-pfc_thresholds", "12", "15", "-q", "100"),
    *("-strat", "ecmp_host", "-paths", "64", "-hop_latency", "1", "-linkspeed", str(RATE_MBPS)),
    *("-mtu", str(MTU_BYTES), "-end", str(END_US)),
)
_FINISHED = re.compile(r"^Flow \S+ \d+ finished at [0-9.e+]+ ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Size:
    """A permutation on a fat tree of arity `k`, with flows of `flow_bytes`."""

    k: int
    flow_bytes: int

    @property
    def hosts(self) -> int:
        return self.k**3 // 4

    def settings(self, flow_bytes: int) -> dict[str, object]:
        """The experiment's settings, with flows of a given size."""
        return {
            "topology": f"fat-tree:k={self.k},rate={RATE_MBPS // 1000}Gbps,delay=1us",
            "workload": f"permutation:size={flow_bytes}B",
            "mtu": f"{MTU_BYTES}B",
            "seed": SEED,
        }


SIZE = Size(8, 2_000_000)
FULL_SIZE = Size(16, 2_000_000)
QUICK_SIZE = Size(4, 20_000)


@dataclass(frozen=True, slots=True)
class CommandTimes:
    """CPU time and wall time of a command."""

    cpu_s: float
    wall_s: float


def connection_matrix(size: Size) -> str:
    """Our permutation in htsim's format: host indexes, start in ps, size in bytes."""
    job = plan(make(size.settings(size.flow_bytes) | {"scheme": "ecmp"}), "virtual").job
    indexes = {host.ip: index for index, host in enumerate(job.topology.hosts)}
    lines = [f"Nodes {len(indexes)}", f"Connections {len(job.flows)}"]
    for flow_id, flow in enumerate(job.flows, start=1):
        pair = f"{indexes[flow.src]}->{indexes[flow.dst]}"
        lines.append(f"{pair} id {flow_id} start {flow.start_ns * 1000} size {flow.bytes}")
    return "\n".join(lines) + "\n"


def _children_s() -> float:
    """CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(command: Sequence[str], folder: Path | None = None) -> tuple[CommandTimes, str]:
    """Runs a command to its end, in `folder` if given; returns its times and what it printed.

    Raises:
        BenchError: the command failed.
    """
    before_s, began_s = _children_s(), time.perf_counter()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            cwd=folder,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BenchError(f"{command[0]} did not end in {TIMEOUT_S:.0f} s") from None
    wall_s, cpu_s = time.perf_counter() - began_s, _children_s() - before_s
    if done.returncode != 0:
        output = (done.stderr.strip() or done.stdout.strip()).rpartition("\n")[2]
        raise BenchError(f"{command[0]} ended with {done.returncode}: {output[:200]}")
    return CommandTimes(cpu_s, wall_s), done.stdout


def run_ours(size: Size, scheme: str, folder: Path) -> CommandTimes:
    """One run of `tailrace run`."""
    settings = size.settings(size.flow_bytes)
    options = [argument for key, value in settings.items() for argument in (f"--{key}", str(value))]
    ours = ("-m", "tailrace.cli.main", "run", "--target", "virtual", "--scheme", scheme)
    times, _ = timed([sys.executable, *ours, *options, "--out", str(folder / scheme)])
    return times


def run_htsim(size: Size, executable: str, matrix: Path) -> CommandTimes:
    """One run of htsim with a connection matrix.

    Raises:
        BenchError: htsim failed, or did not finish all flows.
    """
    command = [executable, "-tm", str(matrix), "-nodes", str(size.hosts), *OPTIONS]
    # htsim writes a file idmap.txt into its working directory
    times, text = timed([*command, "-o", str(matrix.with_suffix(".log"))], matrix.parent)
    if (finished := len(_FINISHED.findall(text))) != size.hosts:
        raise BenchError(f"{HTSIM} finished {finished} of {size.hosts} flows")
    return times


SET_UP = ", set-up"


def _parts(rounds: Mapping[str, Sequence[Round[CommandTimes]]], name: str) -> dict[str, tuple[float, ...]]:
    """CPU times of all rounds, by part of a run; "" is the whole run."""
    total, set_up = (tuple(each.value.cpu_s for each in rounds[key]) for key in (name, name + SET_UP))
    return {
        "": total,
        ", set-up": set_up,
        ", traffic": tuple(a - b for a, b in zip(total, set_up, strict=True)),
    }


def results(
    size: Size, scheme: str, rounds: Mapping[str, Sequence[Round[CommandTimes]]]
) -> list[BenchResult]:
    """The rows of one scheme: whole run, set-up and traffic, each compared with htsim's if there is one."""
    ours, theirs = _parts(rounds, scheme), _parts(rounds, HTSIM) if HTSIM in rounds else None
    noise = tuple(each.noise for each in rounds[scheme])  # load by other processes
    rows = []
    for part, runs in ours.items():
        note = f"{statistics.median(each.value.wall_s for each in rounds[scheme]):.1f} s of wall time"
        if theirs is None:
            rival = Rival(f"{HTSIM} is not on PATH")  # no figure; the name is the reason
        else:
            rival = Rival(HTSIM, statistics.median(theirs[part]))
        group, title = f"{size.hosts} hosts, CPU time", f"{scheme}{part}"
        middle = statistics.median(runs)
        rows.append(
            BenchResult(
                group, title, middle, "s", note="" if part else note, runs=runs, rival=rival, noise=noise
            )
        )
        if theirs is not None and part != ", set-up":
            times = tuple(b / max(a, LEAST_CPU_S) for a, b in zip(runs, theirs[part], strict=True))
            goal = GOAL_TIMES if size == FULL_SIZE and not part else None
            middle = statistics.median(times)
            rows.append(
                BenchResult(group, f"{title}, faster", middle, "times", goal, runs=times, noise=noise)
            )
    return rows


def _measure(size: Size, rounds: int) -> list[BenchResult]:
    """Measures a permutation with each scheme and with htsim, and again with flows of one packet."""
    executable = shutil.which(HTSIM)
    small = replace(size, flow_bytes=MTU_BYTES)
    tasks: dict[str, Callable[[], CommandTimes]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, each in ((SET_UP, small), ("", size)):
            for scheme in SCHEMES:
                tasks[scheme + part] = partial(run_ours, each, scheme, folder)
            if executable:
                matrix = folder / f"{each.flow_bytes}.cm"
                matrix.write_text(connection_matrix(each), "ascii")
                tasks[HTSIM + part] = partial(run_htsim, each, executable, matrix)
        for scheme in SCHEMES:
            tasks[scheme + SET_UP]()  # compiles what is not compiled yet
        task_rounds = alternating(tasks, rounds)
    return [row for scheme in SCHEMES for row in results(size, scheme, task_rounds)]


def run(quick: bool) -> list[BenchResult]:
    """128 hosts. `quick`: 16 hosts once, to see that it works."""
    return _measure(QUICK_SIZE, 1) if quick else _measure(SIZE, ROUNDS)


def run_full(quick: bool) -> list[BenchResult]:
    """1024 hosts, some minutes a round."""
    return _measure(QUICK_SIZE, 1) if quick else _measure(FULL_SIZE, ROUNDS)
