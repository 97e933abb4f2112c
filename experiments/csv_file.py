# SPDX-License-Identifier: Apache-2.0
"""A workload from a CSV file.

The first line names the columns: `src`, `dst` (host names or IPv4 addresses), `bytes` (with or without a
unit), `start` (a time with unit, or ns) and, if wanted, `sport` (UDP source port; drawn at random without
it).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.errors import FileError
from spec import UnitError
from spec.units import parse_bytes, parse_time_ns
from topology import Host, Topology

_NEEDED = ("src", "dst", "bytes", "start")
_OPTIONAL = ("sport",)
_PORTS = 1 << 16


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the file: its hosts by name or address, bytes, start in ns, port or None."""

    path: Path
    line: int
    src: str
    dst: str
    size_bytes: int
    start_ns: int
    sport: int | None

    def endpoints(self, topology: Topology) -> tuple[Host, Host]:
        """Sender and receiver.

        Raises:
            FileError: no such host, or one and the same.
        """
        sender, receiver = self._host(topology, self.src), self._host(topology, self.dst)
        if sender == receiver:
            raise self._error(f"{self.src} sends to itself")
        return sender, receiver

    def _host(self, topology: Topology, text: str) -> Host:
        for host in topology.hosts:
            if text in (host.name, host.ip):
                return host
        raise self._error(
            f"the topology has no host {text!r}; expected a name from {topology.hosts[0].name} on"
        )

    def _error(self, problem: str) -> FileError:
        return FileError(self.path, f"line {self.line}", problem)


def read_rows(path: Path) -> tuple[Row, ...]:
    """All lines of a workload file, at least one.

    Raises:
        FileError: the file cannot be read, or a line is not as expected.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True, skipinitialspace=True)
            _check_columns(path, reader.fieldnames or ())
            rows = tuple(_row(path, reader.line_num, values) for values in reader)
    except OSError as error:
        raise FileError(path, "", error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise FileError(path, "", "not UTF-8 text") from error
    except csv.Error as error:
        raise FileError(path, "", str(error)) from error
    if not rows:
        raise FileError(path, "", "no flows; expected one a line")
    return rows


def _check_columns(path: Path, names: object) -> None:
    found = list(names) if isinstance(names, list | tuple) else []
    expected = f"expected columns {','.join(_NEEDED)} and perhaps {','.join(_OPTIONAL)}"
    for name in _NEEDED:
        if name not in found:
            raise FileError(path, "line 1", f"column {name!r} is missing; {expected}")
    for name in found:
        if name not in (*_NEEDED, *_OPTIONAL) or found.count(name) > 1:
            raise FileError(path, "line 1", f"column {name!r} is unknown or there twice; {expected}")


def _row(path: Path, line: int, values: Mapping[str | None, object]) -> Row:
    """The row of one line; DictReader files surplus cells under None, and missing ones are None."""
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
    return Row(
        path, line, texts["src"], texts["dst"], size_bytes, start_ns, _sport(path, where, texts.get("sport"))
    )


def _sport(path: Path, where: str, text: str | None) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or not 0 < int(text) < _PORTS:
        raise FileError(path, where, f"sport must be from 1 to {_PORTS - 1}, found {text!r}")
    return int(text)
