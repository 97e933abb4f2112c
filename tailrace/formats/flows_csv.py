# SPDX-License-Identifier: Apache-2.0
"""Workloads in CSV, this project's form.

    src,dst,bytes,start,sport,after
    h1,h5,64KiB,0,5000,
    h5,h1,1MiB,10us,,1+2us

The first line names the columns: `src`, `dst` (host names or IPv4 addresses), `bytes` (with or without a
unit), `start` (a time with unit, or in ns) and, optionally, `sport` (UDP source port; random if empty) and
`after`: ids of flows, separated by blanks, that must be complete at the sender before this one starts, each
with a delay if one is added (`1+2us`). The first line below the header is flow 1. A flow can only wait for
flows that its sender sends (complete when acknowledged) or receives (complete when they have arrived).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

from tailrace.formats.flow_table import FlowData, FlowTable
from tailrace.formats.registry import Format, Kind, Source, register
from tailrace.spec import UnitError
from tailrace.spec.units import parse_bytes, parse_time_ns

_NEEDED = ("src", "dst", "bytes", "start")
_OPTIONAL = ("sport", "after")
_PORTS = 1 << 16
_MOST_DIGITS = 12
"""Most decimal digits of a flow id or port."""


def _recognises(source: Source) -> bool:
    header = source.text[:1000].lstrip().partition("\n")[0]
    cells = {cell.strip().strip('"') for cell in header.replace(";", ",").replace("\t", ",").split(",")}
    return len(cells & {*_NEEDED}) > 1 or (len(cells) > 3 and not header.startswith(("{", "[")))


def _read(source: Source) -> FlowTable:
    reader = csv.DictReader(io.StringIO(source.text, newline=""), strict=True, skipinitialspace=True)
    try:
        _check_columns(source, reader.fieldnames or ())
        flows = tuple(_flow(source, reader.line_num, values) for values in reader)
    except csv.Error as error:
        raise source.error(reader.reader.line_num, str(error)) from error
    if not flows:
        raise source.error("", "no flows; expected one flow per line")
    return FlowTable(flows)


def _check_columns(source: Source, names: object) -> None:
    columns = list(names) if isinstance(names, list | tuple) else []
    expected = f"expected columns {','.join(_NEEDED)} and optionally {','.join(_OPTIONAL)}"
    for name in _NEEDED:
        if name not in columns:
            raise source.error(1, f"column {name!r} is missing; {expected}")
    for name in columns:
        if name not in (*_NEEDED, *_OPTIONAL) or columns.count(name) > 1:
            raise source.error(1, f"column {name!r} is unknown or given twice; {expected}")


def _flow(source: Source, line: int, values: Mapping[str | None, object]) -> FlowData:
    """Parses one line; DictReader stores surplus cells under the key None, and None for missing cells."""
    texts = {
        name: value.strip()
        for name, value in values.items()
        if isinstance(name, str) and isinstance(value, str)
    }
    if None in values or any(not texts.get(name) for name in _NEEDED):
        raise source.error(line, f"expected {len(values) - (None in values)} values")
    try:
        size_bytes = parse_bytes(texts["bytes"])
        start_ns = parse_time_ns(texts["start"])
    except UnitError as error:
        raise source.error(line, str(error)) from error
    if size_bytes < 1:
        raise source.error(line, "bytes must be more than 0")
    sport = _sport(source, line, texts.get("sport"))
    after, after_ns = _after(source, line, texts.get("after", ""))
    return FlowData(line, texts["src"], texts["dst"], size_bytes, start_ns, sport, after, after_ns)


def _sport(source: Source, line: int, text: str | None) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or len(text) > _MOST_DIGITS or not 0 < int(text) < _PORTS:
        raise source.error(line, f"sport must be from 1 to {_PORTS - 1}, found {text!r}")
    return int(text)


def _after(source: Source, line: int, text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids of flows, and the delay after each; no delays if there are none."""
    ids, delays = [], []
    for item in text.split():
        number, plus, delay = item.partition("+")
        if not number.isdecimal() or len(number) > _MOST_DIGITS or bool(plus) != bool(delay):
            raise source.error(line, f"after must be flow ids such as '1 2+10us', found {text!r}")
        try:
            delays.append(parse_time_ns(delay or "0"))
        except UnitError as error:
            raise source.error(line, str(error)) from error
        ids.append(int(number))
    return tuple(ids), tuple(delays) if any(delays) else ()


def _write(table: FlowTable) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow((*_NEEDED, *_OPTIONAL))
    for flow in table.flows:
        ends = (table.names[end] if isinstance(end, int) else end for end in (flow.src, flow.dst))
        delays = flow.after_ns or (0,) * len(flow.after)
        after = (
            f"{id_}+{delay}ns" if delay else str(id_) for id_, delay in zip(flow.after, delays, strict=True)
        )
        writer.writerow((*ends, flow.size_bytes, flow.start_ns, flow.sport, " ".join(after)))
    return file.getvalue()


register(Format("csv", Kind.WORKLOAD, "CSV of flows", _recognises, _read, _write))
