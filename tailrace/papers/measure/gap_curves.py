# SPDX-License-Identifier: Apache-2.0
"""Gaps between data packets as curves (HF2T Fig. 1): their distribution, and the share of longer gaps.

A case is a setting in which schemes are compared; a cell is one scheme in one case.

Bins are merged into PARTS ranges per factor of two, so that lines are smooth enough to read.
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
    """Curves for two panels per case, with a line per scheme; x is the lower end of a range of gaps in ns.

    The counts of all seeds are added up.

    Args:
        runs: the results of each cell, one per seed; a cell without gaps has no line.
    """
    curves = []
    for cell, results in zip(cells, runs, strict=True):
        gaps = Gaps.merged(result.gaps.bins for result in results if result.gaps is not None)
        if not gaps.count:
            continue
        counts = _ranges(gaps)
        x = tuple(2 ** (number / PARTS) for number in counts)
        # cumulative sums from the longest range on: the number of gaps that are at least as long
        tail = tuple(accumulate(reversed(counts.values())))[::-1]
        for title, y in ((SPREAD, tuple(counts.values())), (TAIL, tail)):
            panel = ": ".join(filter(None, (cell.case, title)))
            curves.append(Curve(panel, cell.label, x, tuple(count / gaps.count for count in y)))
    return tuple(curves)


def _ranges(gaps: Gaps) -> dict[int, int]:
    """Counts of gaps by range, ascending, including empty ranges; range n starts at 2 ** (n / PARTS) ns."""
    counts: Counter[int] = Counter()
    for low_ns, count in gaps.bins:
        counts[math.floor(PARTS * math.log2(max(low_ns, 1)))] += count
    return {number: counts[number] for number in range(min(counts), max(counts) + 1)}
