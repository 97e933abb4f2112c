# SPDX-License-Identifier: Apache-2.0
"""Measures how busy the machine was during a benchmark: CPU time of other processes, stolen time, load."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

MOST_OTHER_CPU = 0.1
"""Mean number of cores that other processes may use on a machine that counts as quiet."""
MOST_STOLEN = 0.02
"""Mean number of cores that the hypervisor may take on a machine that counts as quiet."""

_STAT = Path("/proc/stat")
_USER, _NICE, _SYSTEM, _STEAL = 0, 1, 2, 7
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Noise:
    """The other load: mean numbers of cores that other processes (`other_cpu`) and the hypervisor (`stolen`)
    took. `load`: load average of the last minute, this benchmark included.
    """

    other_cpu: float
    stolen: float
    load: float

    @property
    def quiet(self) -> bool:
        """Whether a measurement during that time can be trusted."""
        return self.other_cpu <= MOST_OTHER_CPU and self.stolen <= MOST_STOLEN


@dataclass(frozen=True, slots=True)
class Round(Generic[T]):
    """The result of one round of a benchmark, and the load by other processes meanwhile."""

    value: T
    noise: Noise


def processor_s(stat: str) -> tuple[float, float]:
    """CPU seconds since boot that all processes used, and that the hypervisor stole, from the first line of
    /proc/stat (proc(5)). Time in interrupts belongs to no process.
    """
    ticks = [int(field) for field in stat.partition("\n")[0].split()[1:]]
    return (ticks[_USER] + ticks[_NICE] + ticks[_SYSTEM]) / _TICKS_PER_S, ticks[_STEAL] / _TICKS_PER_S


def _used_s() -> float:
    """CPU time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def measured(task: Callable[[], T]) -> Round[T]:
    """Runs one round of a task, which must end all its children."""
    began_s, used_s, (all_s, stolen_s) = time.monotonic(), _used_s(), processor_s(_STAT.read_text("ascii"))
    value = task()
    elapsed_s = max(time.monotonic() - began_s, 1 / _TICKS_PER_S)
    all_after_s, stolen_after_s = processor_s(_STAT.read_text("ascii"))
    other_s = max(all_after_s - all_s - (_used_s() - used_s), 0.0)
    # at either end, a clock tick of this process may be counted as one of another process
    other_s = max(other_s - 2 / _TICKS_PER_S, 0.0)
    noise = Noise(other_s / elapsed_s, (stolen_after_s - stolen_s) / elapsed_s, os.getloadavg()[0])
    return Round(value, noise)


def alternating(tasks: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[Round[T]]]:
    """Runs all tasks in turn, once in each round, so that other load affects all of them; returns the rounds
    by task.
    """
    measured_rounds: dict[str, list[Round[T]]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            measured_rounds[name].append(measured(task))
    return measured_rounds


def remark(noises: Sequence[Noise]) -> str:
    """A line about rounds that were not quiet; empty when all were."""
    loud = [noise for noise in noises if not noise.quiet]
    if not loud:
        return ""
    other_cpu, stolen, load = (
        max(getattr(n, name) for n in loud) for name in ("other_cpu", "stolen", "load")
    )
    return (
        f"the machine was not quiet in {len(loud)} of {len(noises)} measurements: others took up to"
        f" {other_cpu:.2f} cores, {stolen:.2f} were stolen, load {load:.1f}"
    )
