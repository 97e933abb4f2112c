# SPDX-License-Identifier: Apache-2.0
"""Arrow tables: the types of their columns, and tables from values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from arro3.core import Array, DataType, Field, Schema, Table

INTEGER = DataType.int64()
NUMBER = DataType.float64()
TEXT = DataType.string()
TRUTH = DataType.bool()


Columns = Mapping[str, DataType]
"""The types of a table's columns, by name; a value may be missing in any of them."""


def make_table(values: Mapping[str, list[Any]], columns: Columns) -> Table:
    """A table of those columns of which there are values, in the order of `columns`."""
    known = {name: kind for name, kind in columns.items() if name in values}
    schema = Schema([Field(name, kind, nullable=True) for name, kind in known.items()])
    return Table.from_arrays([Array(values[name], kind) for name, kind in known.items()], schema=schema)


def values_of(table: Table) -> dict[str, list[Any]]:
    """The values of each column."""
    return {name: list(table.column(name).to_pylist()) for name in table.column_names}
