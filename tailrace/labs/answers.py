# SPDX-License-Identifier: Apache-2.0
"""Answers of students, which are untrusted: the answer file, and comparisons with measured values."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.spec.files import text_of
from tailrace.spec.schema import parse_toml
from tailrace.spec.suggest import expected
from tailrace.spec.text import one_line
from tailrace.spec.units import significant

MOST_SEED = 9000
_MOST_NAME = 100
_MOST_BYTES = 64 << 10
_MOST_CHARACTERS = 200
_SHARE, _ROUNDED = 0.05, 0.006
"""The accepted difference from a measured number: a share of it, or the rounding of tables."""

_NUMBER = re.compile(r"([-+]?\d{1,15}(?:\.\d{0,30})?)\s*(us|µs|ns|ms|s|%|x|×)?")
_TO_US = {"ns": 1e-3, "ms": 1e3, "s": 1e6}

Value = int | float | str


class WrongError(SpecError):
    """An answer is wrong; the text says why, without the solution."""


def first_seed(name: str) -> int:
    """The first seed that a name may have: the name if it is a number up to MOST_SEED, else its hash.

    Case and spaces around words do not matter. Raises SpecError if it is no name.
    """
    plain = " ".join(name.split()).casefold()
    if not plain[:1].isalnum() or not plain.isprintable() or len(plain) > _MOST_NAME:
        most = f"at most {_MOST_NAME} printable characters, the first a letter or digit"
        raise SpecError(f"{one_line(name, 40)!r}: expected a name of {most}")
    if plain.isascii() and plain.isdecimal() and 0 < int(plain) <= MOST_SEED:
        return int(plain)
    return zlib.crc32(plain.encode()) % MOST_SEED + 1


def read_answers(path: Path, number: int, keys: Collection[str]) -> tuple[str, int, dict[str, str]]:
    """The name, the seed, and an answer for each key, in a file of the lab `number`; an empty text is none.

    Raises:
        FileError: the file cannot be read, belongs to another lab, or has an unexpected key or value.
    """
    values = parse_toml(path, text_of(path, _MOST_BYTES))
    for key in values:
        if key not in ("lab", "name", "seed", *keys):
            raise FileError(path, one_line(key, 40), f"no question of lab {number}; {expected(key, keys)}")
    for key, (least, most) in {"lab": (number, number), "seed": (1, 2 * MOST_SEED)}.items():
        if type(values.get(key)) is not int or not least <= values[key] <= most:
            raise FileError(path, key, f"expected a number from {least} to {most}, as --start wrote it")
    name, *answers = (_text(path, key, values) for key in ("name", *keys))
    try:
        first_seed(name)
    except SpecError as error:
        raise FileError(path, "name", str(error)) from error
    return name, values["seed"], dict(zip(keys, answers, strict=True))


def _text(path: Path, key: str, values: Mapping[str, Any]) -> str:
    value = values.get(key, "")
    text = str(value).strip()
    if not isinstance(value, Value) or len(text) > _MOST_CHARACTERS or not text.isprintable():
        most = f"at most {_MOST_CHARACTERS} printable characters"
        raise FileError(path, key, f"expected a number, or a string of {most}")
    return text


def require(condition: bool, reason: str) -> None:
    """Raises WrongError with the reason unless the condition holds."""
    if not condition:
        raise WrongError(reason)


def words(text: str) -> list[str]:
    """The words of an answer, without commas, the dots of an interval, and `and`."""
    return [word for word in text.replace(",", " ").replace("..", " ").split() if word.lower() != "and"]


def compare(answer: str, value: Value, unit: str, hint: str) -> str:
    """Compares an answer with what was measured, words and counts exactly, and returns what was measured.

    `unit` is that of `value`: us, x (a ratio), or empty. Raises WrongError with the hint if they differ.
    """
    if isinstance(value, str):
        require({*words(answer.lower())} == {*words(value)}, hint)
        return f"the run shows {value}"
    match = _NUMBER.fullmatch(answer)
    if match is None:
        example = "12" if isinstance(value, int) else "12.5"
        raise WrongError(f"expected a number{' in us' * (unit == 'us')}, such as {example}")
    number = float(match[1]) * (_TO_US.get(match[2], 1.0) if unit == "us" else 1.0)
    if isinstance(value, int):
        close = number == value
    else:
        close = math.isclose(number, value, rel_tol=_SHARE, abs_tol=_ROUNDED)
    require(close, f"too {'small' if number < value else 'large'}. {hint}")
    return f"the run shows {value if isinstance(value, int) else significant(value, 4)} {unit}".rstrip()
