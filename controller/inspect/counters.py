# SPDX-License-Identifier: Apache-2.0
"""Counters of a switch: indirect counters, with an index, and direct counters, of table entries."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.values import Value
from tailrace.tables.listing import Column, Listing, Row, in_order

# key: rows are sorted by these columns, which identify a row; rank: columns of the highest rank are hidden
# first if the terminal is too narrow
COLUMNS = (
    Column("switch", key=True),
    Column("counter", key=True),
    Column("index", key=True),
    Column("match", key=True),
    Column("packets", grows=True),
    Column("bytes", grows=True, rank=1),
)


def read_counters(
    node: InspectedSwitch, only: frozenset[str] = frozenset(), *, zeros: bool = False
) -> Listing:
    """Counters of a switch.

    Args:
        node: the switch.
        only: names of counters; empty: all.
        zeros: include cells that are 0 (a counter indexed by port has hundreds of them).

    Raises:
        SwitchError: the switch cannot be read.
    """
    rows = [*_indirect(node, only), *_direct(node, only)]
    kept = rows if zeros else [row for row in rows if row["packets"] or row["bytes"]]
    # key fields of tables, by which filters may select rows, too
    names = {field.name for table in node.program.tables.values() for field in table.fields.values()}
    return Listing("counters", COLUMNS, in_order(COLUMNS, kept), frozenset(names))


def read_cells(node: InspectedSwitch, name: str) -> dict[int, int]:
    """The packets that each cell of a counter has counted, by index; empty if there is no such counter.

    Raises:
        SwitchError: the switch cannot be read.
    """
    for counter in node.program.info.counters:
        if counter.preamble.alias == name:
            pattern = p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter.preamble.id))
            entries = [entity.counter_entry for entity in node.connection.read([pattern])]
            return {entry.index.index: entry.data.packet_count for entry in entries}
    return {}


def _indirect(node: InspectedSwitch, only: frozenset[str]) -> Iterator[Row]:
    for counter in node.program.info.counters:
        name = node.program.counters.shown(counter.preamble.id)  # the alias, or the full name
        if only and name not in only:
            continue
        field = node.program.index_field(name)  # its values are ports if the name contains "port"
        pattern = p4r.CounterEntry(counter_id=counter.preamble.id)
        for entity in node.connection.read([p4r.Entity(counter_entry=pattern)]):
            entry = entity.counter_entry
            index = field.value(entry.index.index, node.peer_of)
            yield _row(node, name, index, None, counter.spec.unit, entry.data)


def _direct(node: InspectedSwitch, only: frozenset[str]) -> Iterator[Row]:
    for counter in node.program.info.direct_counters:
        name = node.program.direct_counters.shown(counter.preamble.id)
        table = node.program.tables.get(counter.direct_table_id)
        if table is None or (only and name not in only):
            continue
        pattern = p4r.DirectCounterEntry(table_entry=p4r.TableEntry(table_id=table.id))
        # BMv2 does not offer the counters of some tables
        for entity in node.read_if_offered(p4r.Entity(direct_counter_entry=pattern)):
            entry = entity.direct_counter_entry
            match: dict[str, Value] = (
                {"default": True}
                if entry.table_entry.is_default_action
                else table.key(tuple(entry.table_entry.match), node.peer_of)
            )
            yield _row(node, name, None, match, counter.spec.unit, entry.data)


def _row(
    node: InspectedSwitch,
    name: str,
    index: Value,
    match: dict[str, Value] | None,
    unit: p4i.CounterSpec.Unit.ValueType,
    data: p4r.CounterData,
) -> Row:
    """A row; packets or bytes are None if the counter does not count them."""
    return {
        "switch": node.name,
        "counter": name,
        "index": index,
        "match": match,
        "packets": None if unit == p4i.CounterSpec.BYTES else data.packet_count,
        "bytes": None if unit == p4i.CounterSpec.PACKETS else data.byte_count,
    }
