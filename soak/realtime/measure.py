# SPDX-License-Identifier: Apache-2.0
"""What a process takes, from /proc: memory of its own, descriptors, threads."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

KIB = 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """A process at a time (seconds since the beginning).

    rss_bytes, pss_bytes: resident, and the same with what is shared divided among those who share it
    own_bytes: anonymous memory, which is what leaks; pages of files come and go with the machine's mood
    calm: nothing was going on, and had not for a while
    """

    at_s: float
    rss_bytes: int
    pss_bytes: int
    own_bytes: int
    descriptors: int
    threads: int
    calm: bool


def sample(pid: int, at_s: float, *, calm: bool) -> Sample:
    """Looks at a process. Raises OSError when there is none."""
    folder = Path(f"/proc/{pid}")
    lines = (line.split() for line in (folder / "smaps_rollup").read_text().splitlines()[1:])
    sizes = {words[0]: int(words[1]) * KIB for words in lines}
    status = (folder / "status").read_text()
    threads = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("Threads:"))
    return Sample(
        at_s=round(at_s, 3),
        rss_bytes=sizes["Rss:"],
        pss_bytes=sizes["Pss:"],
        own_bytes=sizes["Anonymous:"],
        descriptors=len(list((folder / "fd").iterdir())),
        threads=threads,
        calm=calm,
    )


def descriptors(pid: int) -> Mapping[str, int]:
    """What the descriptors of a process are, and how many of each kind."""
    kinds: Counter[str] = Counter()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed just now
            kinds[str(link.readlink()).partition(":")[0]] += 1
    return kinds


def percentiles(values: Sequence[float]) -> Mapping[str, float | int]:
    """Count, median, p95, p99 and worst of some values; the count alone where there are none."""
    ordered = sorted(values)
    if not ordered:
        return {"count": 0}

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 6)

    return {"count": len(ordered), "p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "max": at(1.0)}
