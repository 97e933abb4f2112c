# SPDX-License-Identifier: Apache-2.0
"""Rates of running counts between two readings."""

from __future__ import annotations

from dataclasses import replace

from tailrace.p4rt.values import Value, text_of
from tailrace.tables.listing import Column, Listing, Row

RATE_SUFFIX = "_per_s"
Identity = tuple[str, ...]


def identity(listing: Listing, row: Row) -> Identity:
    """The values of a row's key columns, which identify the row in all readings."""
    keys = listing.keys or tuple(column.name for column in listing.columns if column.key)
    return tuple(text_of(row.get(name)) for name in keys)


class RateColumns:
    """Adds the growth per second of every running count since the last reading of the same row."""

    def __init__(self) -> None:
        """Starts without a reading: the first one has no rates."""
        self._before: dict[Identity, Row] = {}
        self._before_s: float | None = None

    def add(self, listing: Listing, now_s: float) -> Listing:
        """The listing with a column of rates beside each running count.

        Args:
            listing: the new reading.
            now_s: its time, by a monotonic clock.
        """
        columns: list[Column] = []
        for column in listing.columns:
            columns.append(column)
            if column.grows:
                columns.append(Column(column.name + RATE_SUFFIX, rank=column.rank))
        elapsed_s = None if self._before_s is None else now_s - self._before_s
        rows = [self._with_rates(listing, row, elapsed_s) for row in listing.rows]
        self._before = {identity(listing, row): row for row in listing.rows}
        self._before_s = now_s
        return replace(listing, columns=tuple(columns), rows=tuple(rows))

    def _with_rates(self, listing: Listing, row: Row, elapsed_s: float | None) -> Row:
        before = self._before.get(identity(listing, row))
        rates: dict[str, Value] = {}
        for column in listing.columns:
            if column.grows:
                old = None if before is None else before[column.name]
                rates[column.name + RATE_SUFFIX] = _rate(old, row[column.name], elapsed_s)
        return {**row, **rates}


def _rate(before: Value, now: Value, elapsed_s: float | None) -> Value:
    """Growth per second; None in the first reading, and if the count was reset."""
    if not elapsed_s or not isinstance(before, int) or not isinstance(now, int) or now < before:
        return None
    return (now - before) / elapsed_s
