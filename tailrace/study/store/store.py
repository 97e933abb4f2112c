# SPDX-License-Identifier: Apache-2.0
"""The folder of finished runs: files SCHEME.jsonl with one line per run (record.py), sorted by specs.

A writer locks the folder, reads the file again and replaces it atomically, so no line is incomplete, and
concurrent writers lose no lines. Other lines stay byte-identical, so two branches that have added runs merge
line by line. If both have added the same run with the same trace, it counts once.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from tailrace.cbuild.artifacts import ROOT
from tailrace.experiments.plan.spec_list import slug
from tailrace.results.result import Formatted
from tailrace.results.summary import FORMAT
from tailrace.sim.errors import RunError
from tailrace.spec.atomic import write_file
from tailrace.spec.errors import FileError
from tailrace.spec.files import read_bytes, without_bom
from tailrace.study.store.record import Record, joined

MOST_LINE_BYTES = 256 << 10
"""Limit of a line, which typically has 4 KB, or 30 KB with the gaps of a long run."""

MOST_LINES = 100_000
"""Limit of a file, which has at most a few thousand lines; it bounds the number of errors, one a line."""

SUFFIX = ".jsonl"
_DECODER = msgspec.json.Decoder(Record)


class _Formatted(msgspec.Struct):
    """The format of a line's summary."""

    summary: Formatted


_FORMATS = msgspec.json.Decoder(_Formatted)


class StoredLine(NamedTuple):
    """A run, and its line in the file without the line end."""

    record: Record
    text: bytes


StoredLines = dict[str, StoredLine]
"""The lines of a file by run id."""


def usual_folder() -> Path | None:
    """The folder docs/results of a checkout, with the runs of its pages; None outside of a checkout."""
    folder = ROOT / "docs" / "results"
    return folder if folder.is_dir() else None


def read_lines(path: Path) -> tuple[StoredLines, list[FileError]]:
    """The runs in a file, and an error for each invalid line; both are empty for a missing file.

    Raises:
        FileError: the file cannot be read, or has too many lines.
    """
    try:
        content = without_bom(read_bytes(path))
    except FileNotFoundError:
        return {}, []
    except OSError as error:
        raise FileError(path, "", error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise FileError(path, "", error.reason) from error
    count = max(map(content.count, (b"\n", b"\r")))
    if count > MOST_LINES:
        raise FileError(path, "", f"{count} lines, expected at most {MOST_LINES}")
    lines: StoredLines = {}
    numbers: dict[str, int] = {}
    bad = []
    for number, text in enumerate(content.splitlines(), start=1):
        try:
            record = _decoded(text, path)
            other = lines.get(record.run)
            if other is not None and other.record.summary.trace_sha256 != record.summary.trace_sha256:
                raise ValueError(f"line {numbers[record.run]} has another result of the same specs")
        except ValueError as error:
            bad.append(FileError(path, f"line {number}", str(error)))
            continue
        if other is None:
            lines[record.run], numbers[record.run] = StoredLine(record, text), number
    return lines, bad


def _decoded(text: bytes, path: Path) -> Record:
    """The run of a line; raises ValueError if the line is invalid."""
    if len(text) > MOST_LINE_BYTES:
        raise ValueError(f"{len(text)} bytes, expected at most {MOST_LINE_BYTES}")
    try:
        version = _FORMATS.decode(text).summary.format
        if version != FORMAT:
            raise ValueError(
                f"summary.format: expected {FORMAT}, found {version}: delete the line, and run it again"
            )
        record = _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a finished run: {error}") from error
    if path.name != _file_name(record.scheme):
        raise ValueError(f"a run of {record.scheme}, expected in {_file_name(record.scheme)}")
    return record


def _file_name(scheme: str) -> str:
    return slug(scheme) + SUFFIX


def _records(lines: StoredLines) -> dict[str, Record]:
    return {run: line.record for run, line in lines.items()}


class Store:
    """The runs in a folder, read on first use."""

    def __init__(self, folder: Path) -> None:
        """The folder may be missing until a run is added."""
        self.folder = folder
        self._known: dict[str, dict[str, Record]] = {}

    def of(self, scheme: str) -> Mapping[str, Record]:
        """The runs of a scheme, by run id.

        Raises:
            FileError: the file cannot be read, or a line in it is invalid.
        """
        name = _file_name(scheme)
        if name not in self._known:
            self._known[name] = _records(self._read(name))
        return self._known[name]

    def every(self) -> tuple[list[Record], list[FileError]]:
        """All runs, by file and in the order of the lines, and an error for each invalid line.

        Raises:
            FileError: the folder or a file cannot be read.
        """
        try:
            paths = sorted(path for path in self.folder.iterdir() if path.suffix == SUFFIX)
        except FileNotFoundError:
            paths = []
        except OSError as error:
            raise FileError(self.folder, "", error.strerror or str(error)) from error
        records, bad = [], []
        for path in paths:
            lines, errors = read_lines(path)
            records += [line.record for line in lines.values()]
            bad += errors
        return records, bad

    def add(self, record: Record) -> Record | None:
        """Adds a run with one code hash; returns its stored record, with which it is merged, if there is one.

        Raises:
            FileError: the file cannot be read, or has an invalid line; it is left unchanged.
            RunError: the file cannot be written.
        """
        name = _file_name(record.scheme)
        try:
            with self._locked():
                lines = self._read(name)
                line = lines.get(record.run)
                before = None if line is None else line.record
                now = joined(before, record)
                text = msgspec.json.encode(now)
                if len(text) > MOST_LINE_BYTES:
                    limit = f"expected at most {MOST_LINE_BYTES}"
                    raise RunError(f"{self.folder / name}: the line of a run has {len(text)} bytes, {limit}")
                lines[record.run] = StoredLine(now, text)
                ordered = sorted(lines.values(), key=lambda each: each.record.order)
                self._sweep_up(name)
                write_file(self.folder / name, "".join(f"{each.text.decode()}\n" for each in ordered))
                self._known[name] = _records(lines)
        except OSError as error:
            problem = f"{error.strerror or error}; the run was not stored"
            raise RunError(f"{self.folder / name}: {problem}") from error
        return before

    def _read(self, name: str) -> StoredLines:
        lines, bad = read_lines(self.folder / name)
        if bad:
            raise bad[0]
        return lines

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Locks the folder itself against other writers; a lock file would show up in the repository."""
        self.folder.mkdir(parents=True, exist_ok=True)
        opened = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX)
            yield
        finally:
            os.close(opened)

    def _sweep_up(self, name: str) -> None:
        """Removes temporary files that killed writers left; the folder must be locked."""
        for path in self.folder.glob(f".{name}.????????"):
            path.unlink(missing_ok=True)
