# SPDX-License-Identifier: Apache-2.0
"""Reads what other simulators print about the flows of a run.

A line of htsim names a flow by its source's name and its id, and gives a time in us:

    Flow Uec_9_44 flowId 1000000001 uecSrc 0 starting at 0
    Flow Uec_9_44 flowId 1000000001 uecSrc 0 finished at 183.4 total messages 1

ConWeave's NS-3 writes ID_out_fct.txt: two nodes, two ports, bytes, and in ns the start, the FCT, and the FCT
in an idle network:

    9 5 10000 100 3931 2000000376 4431 4489

A flow finishes there when its last ACK arrives at the sender, in Tailrace when its last byte arrives at the
receiver (Beside.ack_ns). The lines `user` and `sys` are those of `time -p` (POSIX), in s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tailrace.formats.registry import Source
from tailrace.results.statistics import TAILS, mean, percentile, tail_name
from tailrace.spec.files import MOST_BYTES, text_of

_US = 1000
_WORD, _TIME = 6, 8
"""Places of the words `starting` or `finished`, and of the time."""
_NS3_WORDS = 8
_TIMES = ("real", "user", "sys")
"""The lines of `time -p`."""


@dataclass(frozen=True, slots=True)
class PeerFlow:
    """A finished flow: its FCT in ns, its size in bytes, and its end in ns; 0 if it is not printed."""

    fct_ns: float
    size_bytes: int = 0
    end_ns: float = 0


@dataclass(frozen=True, slots=True)
class Output:
    """What a run of a peer printed, and when: its flows, the CPU time in s if it is known, the time of the
    file's last change in s.
    """

    flows: tuple[PeerFlow, ...]
    cpu_s: float | None
    modified_s: float


def metrics_of(flows: Sequence[PeerFlow]) -> dict[str, float]:
    """The mean FCT, its tails, and the last flow's end, by the names of metrics; flows: at least one."""
    fcts_ns = [flow.fct_ns for flow in flows]
    of_tails = {f"fct_{tail_name(each)}": percentile(fcts_ns, each) for each in TAILS}
    runtime_ns = max(flow.end_ns for flow in flows)
    return {"fct_mean": mean(fcts_ns), **of_tails} | ({"runtime": runtime_ns} if runtime_ns else {})


def _htsim(*, moments: bool) -> Callable[[Source], Iterator[PeerFlow]]:
    """The reader of htsim's lines. `moments`: a flow's end is printed as a moment, not as its FCT."""

    def read(source: Source) -> Iterator[PeerFlow]:
        times: dict[str, dict[str, float]] = {"starting": {}, "finished": {}}
        for line, words in source.lines():
            # text without a newline stands before a line: REPS's artifact prints it for packets that it drops
            first = next((place for place, word in enumerate(words) if word.endswith("Flow")), len(words))
            flow = words[first:]
            kind = flow[_WORD] if len(flow) > _WORD else ""
            if kind in times:
                if len(flow) <= _TIME:
                    raise source.error(line, f"expected `{kind} at TIME`, found the end of the line")
                times[kind][" ".join(flow[1:4])] = float(source.decimal(line, f"{kind} at", flow[_TIME]))
        if not times["finished"]:
            raise source.error("", "expected lines `Flow … finished at …`, found none")
        for flow_name, end in times["finished"].items():
            start = times["starting"].get(flow_name, 0.0)
            yield PeerFlow(_US * (end - start), end_ns=_US * end) if moments else PeerFlow(_US * end)

    return read


def _ns3(source: Source) -> Iterator[PeerFlow]:
    rows = [(line, words) for line, words in source.lines() if words[0] not in _TIMES]
    if not rows:
        raise source.error("", f"expected lines of {_NS3_WORDS} numbers, found none")
    for line, words in rows:
        if len(words) != _NS3_WORDS:
            raise source.error(line, f"expected {_NS3_WORDS} numbers")
        yield PeerFlow(source.number(line, "FCT", words[6]), source.number(line, "bytes", words[4]))


FORMATS: Mapping[str, Callable[[Source], Iterator[PeerFlow]]] = {
    # REPS's artifact prints the time since the flow's start
    "htsim-duration": _htsim(moments=False),
    # uet-htsim and spcl/HTSIM print the simulated time; a flow without a printed start starts at 0
    "htsim-moment": _htsim(moments=True),
    "ns3-fct": _ns3,
}
"""By format, the flows of an output."""


def read_output(path: Path, name: str, ack_ns: int = 0) -> Output:
    """Reads the output of a peer's run, in one of FORMATS.

    ack_ns: the time of a flow's last ACK, which is taken off its FCT.

    Raises:
        FileError: the file cannot be read, has no finished flow, or has a line that is cut off.
    """
    source = Source(path, name, text_of(path, MOST_BYTES))
    flows = tuple(replace(flow, fct_ns=flow.fct_ns - ack_ns) for flow in FORMATS[name](source))
    cpu_s = [
        float(source.decimal(line, words[0], words[1]))
        for line, words in source.lines()
        if len(words) == 2 and words[0] in _TIMES[1:]
    ]
    return Output(flows, sum(cpu_s) if cpu_s else None, path.stat().st_mtime)
