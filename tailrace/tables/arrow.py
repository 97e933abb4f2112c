# SPDX-License-Identifier: Apache-2.0
"""Arrow tables: the types of their columns, and tables from values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from arro3.core import Array, DataType, Field, Schema, Table

INTEGER = DataType.int64()
NUMBER = DataType.float64()
TEXT = DataType.string()
BOOLEAN = DataType.bool()


Columns = Mapping[str, DataType]
"""The types of a table's columns, by name; all are nullable."""


class RowTable(Table):
    """An Arrow table that iterates over its rows as mappings, which `pandas.DataFrame` accepts."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, as values by column name."""
        columns = values_of(self)
        return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the table, for results of worker processes; the inherited method does not support
        subclasses.
        """
        return RowTable, (Table.from_batches(self.to_batches(), schema=self.schema),)


def make_table(values: Mapping[str, list[Any]], columns: Columns) -> Table:
    """A table of the columns that have values, in the order of `columns`."""
    known = {name: kind for name, kind in columns.items() if name in values}
    schema = Schema([Field(name, kind, nullable=True) for name, kind in known.items()])
    arrays = [Array(values[name], kind) for name, kind in known.items()]
    return RowTable(Table.from_arrays(arrays, schema=schema))


def values_of(table: Table) -> dict[str, list[Any]]:
    """The values of each column."""
    return {name: list(table.column(name).to_pylist()) for name in table.column_names}


def rows_of(table: Table | None, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of some columns; none without a table."""
    if table is None:
        return iter(())
    return zip(*(table.column(name).to_pylist() for name in names), strict=True)
