# SPDX-License-Identifier: Apache-2.0
"""The registry of formats, and `read_file`, which recognises a file's format by its content.

A module of this folder registers one format: its name, what such a file describes (Kind), how it is
recognised, and its reader and writer. Every error names the file, the format, and a line or key.
"""

from __future__ import annotations

import enum
import functools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from tailrace.spec.errors import FileError, SpecError
from tailrace.spec.files import MOST_BYTES, json_object, text_of
from tailrace.spec.limits import refuse_above
from tailrace.spec.registry import load_folder
from tailrace.spec.suggest import unknown
from tailrace.spec.text import shortened

HEAD_LINES, HEAD_CHARACTERS = 20, 1 << 16
"""The part of a text file by which its format is recognised."""

MOST_LINES = 8_000_000

_INTEGER = re.compile("[0-9]{1,18}")
_DECIMAL = re.compile(r"(?=.{1,40}$)(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")
"""Numbers of so few digits that computing with them takes no time."""


class Kind(str, enum.Enum):
    """What a file describes."""

    TOPOLOGY = "topology"
    WORKLOAD = "workload"
    SIZES = "distribution of flow sizes"


@dataclass(frozen=True)
class Source:
    """A file, the name of its format, and its text ("" once it is read), for readers and messages."""

    path: Path
    format_name: str = ""
    text: str = ""

    def error(self, where: str | int, problem: str) -> FileError:
        """The error at a line (a number, from 1) or a key ("": in the whole file)."""
        place = f"line {where}" if isinstance(where, int) else where
        return FileError(self.path, ", ".join(filter(None, (self.format_name, place))), problem)

    @functools.cached_property
    def head(self) -> list[list[str]]:
        """The words of the first lines, without blank lines and comments (# or //)."""
        lines = self.text[:HEAD_CHARACTERS].splitlines()
        words = (line.split() for line in lines if not line.lstrip().startswith(("#", "//")))
        return [line for line in words if line][:HEAD_LINES]

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """The number and the words of every line, without blank lines and comments (#).

        Raises:
            SpecError: more than MOST_LINES lines.
        """
        lines = self.text.splitlines()
        refuse_above(str(self.path), "lines", len(lines), MOST_LINES)
        for number, line in enumerate(lines, start=1):
            words = line.split()
            if words and not words[0].startswith("#"):
                yield number, words

    def number(self, where: str | int, name: str, text: str, least: int = 0) -> int:
        """A whole number of at least `least`; raises FileError. `name` is for the message."""
        if _INTEGER.fullmatch(text) is None or int(text) < least:
            what = f"a whole number of at least {least}" if least else "a whole number"
            raise self.error(where, f"{name}: expected {what}, found {shortened(text, 60)!r}")
        return int(text)

    def decimal(self, where: str | int, name: str, text: str) -> Decimal:
        """A decimal number of at least 0; raises FileError. `name` is for the message."""
        if _DECIMAL.fullmatch(text) is None:
            raise self.error(where, f"{name}: expected a number, found {shortened(text, 60)!r}")
        return Decimal(text)

    @functools.cached_property
    def json(self) -> Any:
        """The JSON document; None if the text does not begin like one. Raises FileError if it is invalid."""
        if self.text.lstrip()[:1] not in ("{", "["):
            return None
        try:
            return json.loads(self.text, object_pairs_hook=json_object)
        except json.JSONDecodeError as error:
            raise FileError(self.path, f"line {error.lineno}", error.msg) from None
        except ValueError as error:  # a key twice, or a number with more digits than Python converts
            raise FileError(self.path, "", str(error)) from None
        except RecursionError:
            raise FileError(self.path, "", "nested too deeply") from None


@dataclass(frozen=True, slots=True)
class Format:
    """A format.

    name: as in `--format NAME` and in messages
    title: the format for people
    recognises: whether a text is of this format; looks only at its beginning, or at keys of a JSON document
    read: plain data of a text: NetworkData, FlowTable or points, depending on the kind; raises FileError
    write: the text of such data; raises SpecError if the format cannot express them
    """

    name: str
    kind: Kind
    title: str
    recognises: Callable[[Source], bool]
    read: Callable[[Source], Any]
    write: Callable[[Any], str]


_FORMATS: dict[str, Format] = {}


def register(*format_parts: Any) -> None:
    """Adds a format, given by its fields."""
    _FORMATS[format_parts[0]] = Format(*format_parts)


def formats() -> Sequence[Format]:
    """All formats, in alphabetical order."""
    load_folder("tailrace.formats")
    return [_FORMATS[name] for name in sorted(_FORMATS)]


def format_named(name: str) -> Format:
    """The format with a name; raises SpecError if there is none."""
    known = {each.name: each for each in formats()}
    if name not in known:
        raise SpecError(f"format {unknown(name, known)}")
    return known[name]


def read_file(path: Path, kind: Kind) -> tuple[Source, Any]:
    """The plain data of a file, in whatever format of this kind, and where they are from, for further errors.

    Raises:
        FileError: the file cannot be read, has no known format or one of another kind, or has an error.
    """
    source = Source(path, text=text_of(path, MOST_BYTES))
    chosen = next((each for each in formats() if each.recognises(source)), None)
    if chosen is None:
        known = ", ".join(each.title for each in formats() if each.kind is kind)
        raise FileError(path, "line 1", f"no known format of a {kind.value}; known are {known}")
    source = replace(source, format_name=chosen.name)
    if chosen.kind is not kind:
        raise source.error("", f"{chosen.title} describes a {chosen.kind.value}, expected a {kind.value}")
    return replace(source, text=""), chosen.read(source)
