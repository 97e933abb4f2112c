# SPDX-License-Identifier: Apache-2.0
"""Gaps between data packets of one flow, as NICs measured them (HF2T §3): a histogram, its file, its shares.

    gaps.parquet   low_ns, count   the gaps of all flows of all NICs: a row a bin, by its smallest gap

Bins are those of tailrace/hosts/gaps/histogram.py, at most 1/128 wide relative to `low_ns`. A bin counts by
its lower edge, so that gaps of at least a threshold, but less than a 128th above it, may be missing from what
`at_least` says, and nothing is there that should not be.
"""

from __future__ import annotations

from pathlib import Path

from tailrace.hosts.gaps.histogram import MOST_BINS
from tailrace.hosts.measured import Gaps
from tailrace.results.parquet import read_parquet, refuse_gaps, write_parquet
from tailrace.tables.arrow import INTEGER, make_table, values_of

GAPS = "gaps.parquet"

_SCHEMA = {"low_ns": INTEGER, "count": INTEGER}


def write_gaps(gaps: Gaps | None, folder: Path) -> None:
    """Write gaps.parquet, if gaps were measured."""
    if gaps is not None:
        values = {name: [pair[number] for pair in gaps.bins] for number, name in enumerate(_SCHEMA)}
        write_parquet(make_table(values, _SCHEMA), folder / GAPS)


def read_gaps(folder: Path) -> Gaps | None:
    """What `write_gaps` wrote into a folder.

    Raises:
        FileError: the file cannot be read, or has other columns.
    """
    path = folder / GAPS
    if not path.exists():
        return None
    table = read_parquet(path, "gaps", _SCHEMA, MOST_BINS)
    refuse_gaps(table, path, "gaps", _SCHEMA)
    values = values_of(table)
    return Gaps(tuple(zip(*(values[name] for name in _SCHEMA), strict=True)))
