# SPDX-License-Identifier: Apache-2.0
"""A workload from a CSV file.

The first line names the columns: `src`, `dst` (host names or IPv4 addresses), `bytes` (with or without a
unit), `start` (a time with unit, or in ns) and, optionally, `sport` (UDP source port; random if empty) and
`after`: ids of flows, separated by blanks, that must be complete at the sender before this one starts. The
first line below the header is flow 1. A flow can only wait for flows that its sender sends (complete when
acknowledged) or receives (complete when they have arrived).
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from tailrace.experiments.workloads.ports import SourcePorts
from tailrace.experiments.workloads.transfer import Transfer
from tailrace.spec import UnitError
from tailrace.spec.errors import FileError
from tailrace.spec.files import MOST_BYTES, text_of
from tailrace.spec.units import parse_bytes, parse_time_ns
from tailrace.topology import Host, Topology

_NEEDED = ("src", "dst", "bytes", "start")
_OPTIONAL = ("sport", "after")
_PORTS = 1 << 16
_MOST_DIGITS = 12
"""Most decimal digits of a flow id or port."""


class Row(msgspec.Struct, frozen=True):
    """One line: hosts by name or address, bytes, start in ns, source port or None, flows to wait for."""

    line: int
    src: str
    dst: str
    size_bytes: int
    start_ns: int
    sport: int | None
    after: tuple[int, ...]


class Rows(msgspec.Struct, frozen=True):
    """The flows of a file, at least one."""

    path: Path
    rows: tuple[Row, ...]

    def transfers(self, topology: Topology, _rng: random.Random) -> Iterator[Transfer]:
        """See Pattern.

        Raises:
            FileError: the topology has no such host, or a host sends to itself.
        """
        for row, (sender, receiver) in zip(self.rows, self._ends(topology), strict=True):
            yield Transfer(sender, receiver, row.size_bytes, row.start_ns, row.after, row.sport)

    def reserve(self, topology: Topology, ports: SourcePorts) -> None:
        """Reserves the ports that the file names, so that no other flow of the same hosts draws them."""
        for row, (sender, receiver) in zip(self.rows, self._ends(topology), strict=True):
            if row.sport is not None:
                ports.reserve(sender, receiver, row.sport)

    def _ends(self, topology: Topology) -> list[tuple[Host, Host]]:
        """Sender and receiver of each flow."""
        hosts = {key: host for host in topology.hosts for key in (host.name, host.ip)}
        return [self._endpoints(row, hosts) for row in self.rows]

    def _endpoints(self, row: Row, hosts: Mapping[str, Host]) -> tuple[Host, Host]:
        for text in (row.src, row.dst):
            if text not in hosts:
                first = next(iter(hosts))
                problem = f"the topology has no host {text!r}; expected a name such as {first}"
                raise self._error(row, problem)
        if hosts[row.src] is hosts[row.dst]:
            raise self._error(row, f"{row.src} sends to itself")
        return hosts[row.src], hosts[row.dst]

    def _error(self, row: Row, problem: str) -> FileError:
        return FileError(self.path, f"line {row.line}", problem)


def read_rows(path: Path) -> Rows:
    """The flows of a workload file, at least one.

    Raises:
        FileError: the file cannot be read, or a line is not as expected.
    """
    file = io.StringIO(text_of(path, MOST_BYTES), newline="")
    reader = csv.DictReader(file, strict=True, skipinitialspace=True)
    try:
        _check_columns(path, reader.fieldnames or ())
        rows = tuple(_row(path, reader.line_num, values) for values in reader)
    except csv.Error as error:
        raise FileError(path, f"line {reader.reader.line_num}", str(error)) from error
    if not rows:
        raise FileError(path, "", "no flows; expected one flow per line")
    return Rows(path, rows)


def _check_columns(path: Path, names: object) -> None:
    columns = list(names) if isinstance(names, list | tuple) else []
    expected = f"expected columns {','.join(_NEEDED)} and optionally {','.join(_OPTIONAL)}"
    for name in _NEEDED:
        if name not in columns:
            raise FileError(path, "line 1", f"column {name!r} is missing; {expected}")
    for name in columns:
        if name not in (*_NEEDED, *_OPTIONAL) or columns.count(name) > 1:
            raise FileError(path, "line 1", f"column {name!r} is unknown or given twice; {expected}")


def _row(path: Path, line: int, values: Mapping[str | None, object]) -> Row:
    """Parses one line; DictReader stores surplus cells under the key None, and None for missing cells."""
    where = f"line {line}"
    texts = {
        name: value.strip()
        for name, value in values.items()
        if isinstance(name, str) and isinstance(value, str)
    }
    if None in values or any(not texts.get(name) for name in _NEEDED):
        raise FileError(path, where, f"expected {len(values) - (None in values)} values")
    try:
        size_bytes = parse_bytes(texts["bytes"])
        start_ns = parse_time_ns(texts["start"])
    except UnitError as error:
        raise FileError(path, where, str(error)) from error
    if size_bytes < 1:
        raise FileError(path, where, "bytes must be more than 0")
    sport = _sport(path, where, texts.get("sport"))
    after = _after(path, where, texts.get("after", ""))
    return Row(line, texts["src"], texts["dst"], size_bytes, start_ns, sport, after)


def _sport(path: Path, where: str, text: str | None) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or len(text) > _MOST_DIGITS or not 0 < int(text) < _PORTS:
        raise FileError(path, where, f"sport must be from 1 to {_PORTS - 1}, found {text!r}")
    return int(text)


def _after(path: Path, where: str, text: str) -> tuple[int, ...]:
    numbers = text.split()
    if not all(number.isdecimal() and len(number) <= _MOST_DIGITS for number in numbers):
        raise FileError(path, where, f"after must be flow ids such as '1 2', found {text!r}")
    return tuple(int(number) for number in numbers)
