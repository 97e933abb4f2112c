# SPDX-License-Identifier: Apache-2.0
"""Workloads in CSV, this project's form.

    src,dst,bytes,start,sport,after
    h1,h5,64KiB,0,5000,
    h5,h1,1MiB,10us,,1+2us

The first line names the columns: `src`, `dst` (host names or IPv4 addresses), `bytes` (with or without a
unit), `start` (a time with unit, or in ns) and, optionally, `sport` (UDP source port; random if empty),
`after`: ids of flows, separated by blanks, that must be complete at the sender before this one starts, each
with a delay if one is added (`1+2us`), and `path`: `ecmp` for a flow that keeps the path of its hash. The
first line below the header is flow 1. A flow can only wait for flows that its sender sends (complete when
acknowledged) or receives (complete when they have arrived).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping

from tailrace.formats.flow_table import FlowData, FlowTable
from tailrace.formats.registry import Kind, Source, register
from tailrace.spec import UnitError
from tailrace.spec.units import parse_bytes, parse_time_ns

_NEEDED = ("src", "dst", "bytes", "start")
_OPTIONAL = ("sport", "after", "path")
_PATHS = ("", "ecmp")
_PORTS = 1 << 16
_NUMBER = re.compile("[0-9]{1,12}")


def _recognises(source: Source) -> bool:
    header = source.text[:1000].lstrip().partition("\n")[0]
    cells = {cell.strip().strip('"') for cell in header.replace(";", ",").replace("\t", ",").split(",")}
    return len(cells & {*_NEEDED}) > 1 or (len(cells) > 3 and not header.startswith(("{", "[")))


def _read(source: Source) -> FlowTable:
    reader = csv.DictReader(io.StringIO(source.text, newline=""), strict=True, skipinitialspace=True)
    try:
        _check_columns(source, list(reader.fieldnames or ()))
        flows = tuple(_flow(source, reader.line_num, values) for values in reader)
    except csv.Error as error:
        raise source.error(reader.reader.line_num, str(error)) from error
    if not flows:
        raise source.error("", "no flows; expected one flow per line")
    return FlowTable(flows)


def _check_columns(source: Source, columns: list[str]) -> None:
    expected = f"expected columns {','.join(_NEEDED)} and optionally {','.join(_OPTIONAL)}"
    for name in _NEEDED:
        if name not in columns:
            raise source.error(1, f"column {name!r} is missing; {expected}")
    for name in columns:
        if name not in (*_NEEDED, *_OPTIONAL) or columns.count(name) > 1:
            raise source.error(1, f"column {name!r} is unknown or given twice; {expected}")


def _flow(source: Source, line: int, values: Mapping[str | None, object]) -> FlowData:
    """Parses one line; DictReader stores surplus cells under the key None, and None for missing cells."""
    texts = {name: value.strip() for name, value in values.items() if name and isinstance(value, str)}
    if None in values or any(not texts.get(name) for name in _NEEDED):
        raise source.error(line, f"expected {len(values) - (None in values)} values")
    sport = texts.get("sport") or None
    if sport and not (_NUMBER.fullmatch(sport) and 0 < int(sport) < _PORTS):
        raise source.error(line, f"sport must be from 1 to {_PORTS - 1}, found {sport[:40]!r}")
    path = texts.get("path", "")
    if path not in _PATHS:
        raise source.error(line, f"path must be empty or {_PATHS[1]}, found {path[:40]!r}")
    after = [item.partition("+") for item in texts.get("after", "").split()]
    if any(not _NUMBER.fullmatch(id_) or bool(plus) != bool(delay) for id_, plus, delay in after):
        raise source.error(line, f"after must be flow ids such as '1 2+10us', found {texts['after'][:40]!r}")
    try:
        size_bytes, start_ns = parse_bytes(texts["bytes"]), parse_time_ns(texts["start"])
        delays = tuple(parse_time_ns(delay or "0") for _, _, delay in after)
    except UnitError as error:
        raise source.error(line, str(error)) from error
    if size_bytes < 1:
        raise source.error(line, "bytes must be more than 0")
    ids = tuple(int(id_) for id_, _, _ in after)
    ends = (texts["src"], texts["dst"])
    port = int(sport) if sport else None
    return FlowData(line, *ends, size_bytes, start_ns, port, ids, delays if any(delays) else (), path)


def _write(table: FlowTable) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow((*_NEEDED, "sport", "after"))
    for flow in table.flows:
        ends = (table.names[end] if isinstance(end, int) else end for end in (flow.src, flow.dst))
        delays = flow.after_ns or (0,) * len(flow.after)
        after = (f"{id_}+{ns}ns" if ns else f"{id_}" for id_, ns in zip(flow.after, delays, strict=True))
        writer.writerow((*ends, flow.size_bytes, flow.start_ns, flow.sport, " ".join(after)))
    return file.getvalue()


register("csv", Kind.WORKLOAD, "CSV of flows", _recognises, _read, _write)
