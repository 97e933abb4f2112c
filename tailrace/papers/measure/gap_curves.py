# SPDX-License-Identifier: Apache-2.0
"""The gaps between data packets as curves (HF2T Fig. 1): how they are spread, and how many are that long.

Bins are put together to PARTS ranges for each factor of two, so that a line can be seen as one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from tailrace.hosts.measured import Gaps
from tailrace.papers.document import Cell, Curve
from tailrace.results.result import Result

PARTS = 4
SPREAD = "share of gaps in the range"
TAIL = "share of gaps at least as long"


def gap_curves(cells: Sequence[Cell], runs: Sequence[Sequence[Result]]) -> tuple[Curve, ...]:
    """Two panels a case, a line a scheme; x is a gap in ns, the lower end of a range. Seeds count together.

    Args:
        runs: of each cell, one a seed; without gaps it has no line.
    """
    curves = []
    for cell, results in zip(cells, runs, strict=True):
        gaps = Gaps.merged(result.gaps.bins for result in results if result.gaps is not None)
        if not gaps.count:
            continue
        counts = _ranges(gaps)
        x = tuple(2 ** (number / PARTS) for number in counts)
        # from the longest on, all that are at least so long
        tail = tuple(accumulate(reversed(counts.values())))[::-1]
        for title, y in ((SPREAD, tuple(counts.values())), (TAIL, tail)):
            panel = ": ".join(filter(None, (cell.case, title)))
            curves.append(Curve(panel, cell.label, x, tuple(count / gaps.count for count in y)))
    return tuple(curves)


def _ranges(gaps: Gaps) -> dict[int, int]:
    """Gaps by range, ascending, with the empty ones in between; range n begins at 2 ** (n / PARTS) ns."""
    counts: Counter[int] = Counter()
    for low_ns, count in gaps.bins:
        counts[math.floor(PARTS * math.log2(max(low_ns, 1)))] += count
    return {number: counts[number] for number in range(min(counts), max(counts) + 1)}
