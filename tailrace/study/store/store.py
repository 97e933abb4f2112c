# SPDX-License-Identifier: Apache-2.0
"""The folder of finished runs: files SCHEME.jsonl with one line per run (record.py), sorted by specs.

A writer locks the folder, reads the file again, and replaces the file atomically. So no line is incomplete,
and concurrent writers lose no lines. The lines of other runs stay byte-identical, so Git can merge two
branches that have added runs. If both have added the same run with the same trace hash, the first line of the
run is used.
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
"""Maximum length of a line. Most lines have about 4 KB, or 30 KB with the gaps of a long run."""

MOST_LINES = 100_000
"""Maximum number of lines of a file, and so of errors that read_lines reports. Real files have at most a few
thousand lines.
"""

SUFFIX = ".jsonl"
_RECORD_DECODER = msgspec.json.Decoder(Record)


class _Formatted(msgspec.Struct):
    """The part of a line that contains the format number of its summary."""

    summary: Formatted


_FORMAT_DECODER = msgspec.json.Decoder(_Formatted)


class StoredLine(NamedTuple):
    """A run, and its line in the file without the newline."""

    record: Record
    text: bytes


StoredLines = dict[str, StoredLine]
"""The lines of a file by run id."""


def usual_folder() -> Path | None:
    """The folder docs/results, with the runs that docs/ shows; None outside of a Git checkout."""
    folder = ROOT / "docs" / "results"
    return folder if folder.is_dir() else None


def read_lines(path: Path) -> tuple[StoredLines, list[FileError]]:
    """The runs in a file by run id, and an error for each invalid line; both are empty if there is no file.

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
    errors = []
    for number, text in enumerate(content.splitlines(), start=1):
        try:
            record = _decoded(text, path)
            earlier = lines.get(record.run)
            if earlier is not None and earlier.record.summary.trace_sha256 != record.summary.trace_sha256:
                raise ValueError(f"line {numbers[record.run]} has another result of the same specs")
        except ValueError as error:
            errors.append(FileError(path, f"line {number}", str(error)))
            continue
        if earlier is None:
            lines[record.run], numbers[record.run] = StoredLine(record, text), number
    return lines, errors


def _decoded(text: bytes, path: Path) -> Record:
    """The run of a line; raises ValueError if the line is invalid."""
    if len(text) > MOST_LINE_BYTES:
        raise ValueError(f"{len(text)} bytes, expected at most {MOST_LINE_BYTES}")
    try:
        version = _FORMAT_DECODER.decode(text).summary.format
        if version != FORMAT:
            raise ValueError(
                f"summary.format: expected {FORMAT}, found {version}: delete the line, and run it again"
            )
        record = _RECORD_DECODER.decode(text)
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
    """The runs in a folder; each file is read when its runs are first used."""

    def __init__(self, folder: Path) -> None:
        """`folder` need not exist; `add` creates it."""
        self.folder = folder
        self._records_by_file: dict[str, dict[str, Record]] = {}

    def of(self, scheme: str) -> Mapping[str, Record]:
        """The runs of a scheme, by run id.

        Raises:
            FileError: the file cannot be read, or a line in it is invalid.
        """
        name = _file_name(scheme)
        if name not in self._records_by_file:
            self._records_by_file[name] = _records(self._read(name))
        return self._records_by_file[name]

    def every(self) -> tuple[list[Record], list[FileError]]:
        """All runs, sorted by file name and then by line, and an error for each invalid line.

        Raises:
            FileError: the folder or a file cannot be read.
        """
        try:
            paths = sorted(path for path in self.folder.iterdir() if path.suffix == SUFFIX)
        except FileNotFoundError:
            paths = []
        except OSError as error:
            raise FileError(self.folder, "", error.strerror or str(error)) from error
        records, errors = [], []
        for path in paths:
            lines, errors_of_file = read_lines(path)
            records += [line.record for line in lines.values()]
            errors += errors_of_file
        return records, errors

    def add(self, record: Record) -> Record | None:
        """Adds a run, or merges it with the stored record of the same specs.

        Args:
            record: a new run, with one code hash.

        Returns:
            The stored record before the merge, or None if the run is new.

        Raises:
            FileError: the file cannot be read, or has an invalid line; the file is left unchanged.
            RunError: the file cannot be written.
        """
        name = _file_name(record.scheme)
        try:
            with self._locked():
                lines = self._read(name)
                line = lines.get(record.run)
                before = None if line is None else line.record
                merged = joined(before, record)
                text = msgspec.json.encode(merged)
                if len(text) > MOST_LINE_BYTES:
                    limit = f"expected at most {MOST_LINE_BYTES}"
                    raise RunError(f"{self.folder / name}: the line of a run has {len(text)} bytes, {limit}")
                lines[record.run] = StoredLine(merged, text)
                ordered = sorted(lines.values(), key=lambda each: each.record.order)
                self._remove_temporary_files(name)
                write_file(self.folder / name, "".join(f"{each.text.decode()}\n" for each in ordered))
                self._records_by_file[name] = _records(lines)
        except OSError as error:
            problem = f"{error.strerror or error}; the run was not stored"
            raise RunError(f"{self.folder / name}: {problem}") from error
        return before

    def _read(self, name: str) -> StoredLines:
        lines, errors = read_lines(self.folder / name)
        if errors:
            raise errors[0]
        return lines

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Locks the folder against other writers. No lock file, since Git would list it as untracked."""
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _remove_temporary_files(self, name: str) -> None:
        """Removes temporary files that killed writers left; the folder must be locked."""
        for path in self.folder.glob(f".{name}.????????"):
            path.unlink(missing_ok=True)
