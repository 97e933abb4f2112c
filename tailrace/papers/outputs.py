# SPDX-License-Identifier: Apache-2.0
"""Reads what other simulators print about the flows of a run.

A line of htsim names a flow by its source's name and its id, and gives a time in us:

    Flow Uec_9_44 flowId 1000000001 uecSrc 0 starting at 0
    Flow Uec_9_44 flowId 1000000001 uecSrc 0 finished at 183.4 total messages 1

A flow finishes there when its last ACK arrives at the sender, in Tailrace when its last byte arrives at the
receiver. The lines `user` and `sys` are those of `time -p` (POSIX), in s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tailrace.formats.registry import Source
from tailrace.results.statistics import TAILS, mean, percentile, tail_name
from tailrace.spec.files import MOST_BYTES, text_of

_US = 1000
_WORD, _TIME = 6, 8
"""Places of the words `starting` or `finished`, and of the time."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a run of a peer printed, and when: FCTs in ns, the CPU time in s if it is known, the time of the
    file's last change in s.
    """

    fcts_ns: tuple[float, ...]
    cpu_s: float | None
    modified_s: float

    @property
    def metrics(self) -> dict[str, float]:
        """The mean FCT and its tails, by the names of metrics."""
        of_tails = {f"fct_{tail_name(each)}": percentile(self.fcts_ns, each) for each in TAILS}
        return {"fct_mean": mean(self.fcts_ns), **of_tails}


FORMATS: Mapping[str, Callable[[float, float], float]] = {
    # REPS's artifact prints the time since the flow's start
    "htsim-duration": lambda _, finished: finished,
    # uet-htsim and spcl/HTSIM print the simulated time; a flow without a printed start starts at 0
    "htsim-moment": lambda started, finished: finished - started,
}
"""By format, the FCT from the printed times of a flow's start and end."""


def read_output(path: Path, name: str) -> Output:
    """Reads the output of a peer's run, in one of FORMATS.

    Raises:
        FileError: the file cannot be read, has no finished flow, or has a line that is cut off.
    """
    source = Source(path, name, text_of(path, MOST_BYTES))
    times: dict[str, dict[str, float]] = {"starting": {}, "finished": {}}
    cpu_s: dict[str, float] = {}
    for line, words in source.lines():
        # text without a newline, which REPS's artifact prints for packets that it drops, stands before a line
        start = next((place for place, word in enumerate(words) if word.endswith("Flow")), len(words))
        flow = words[start:]
        kind = flow[_WORD] if len(flow) > _WORD else ""
        if kind in times:
            if len(flow) <= _TIME:
                raise source.error(line, f"expected `{kind} at TIME`, found the end of the line")
            times[kind][" ".join(flow[1:4])] = float(source.decimal(line, f"{kind} at", flow[_TIME]))
        elif words[0] in ("user", "sys") and len(words) == 2:
            cpu_s[words[0]] = float(source.decimal(line, words[0], words[1]))
    if not times["finished"]:
        raise source.error("", "expected lines `Flow … finished at …`, found none")
    fct, starts = FORMATS[name], times["starting"]
    fcts_ns = tuple(_US * fct(starts.get(flow, 0.0), end) for flow, end in times["finished"].items())
    return Output(fcts_ns, sum(cpu_s.values()) if cpu_s else None, path.stat().st_mtime)
