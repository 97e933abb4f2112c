# SPDX-License-Identifier: Apache-2.0
"""Specs of the form name:key=value,key=value: parsing, and checked values of their options."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import TypeVar

from tailrace.spec import suggest
from tailrace.spec.errors import SpecError, UnitError
from tailrace.spec.units import MOST_COUNT, parse_bytes, parse_rate_bps, parse_time_ns

_T = TypeVar("_T")
_YES, _NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")
_FLAGS = dict.fromkeys(_YES, True) | dict.fromkeys(_NO, False)

MOST_CHARACTERS = 1 << 16
"""Of a specification."""

_MOST_DIGITS = 100
"""Of a number, as it is written."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed spec: `what` it specifies (for messages), its name and its options."""

    name: str
    options: dict[str, str] = field(default_factory=dict)
    what: str = ""

    @property
    def title(self) -> str:
        """What messages begin with, such as `topology leaf-spine`."""
        return f"{self.what} {self.name}".strip()

    def setting(self, key: str, value: str) -> Spec:
        """The same with this value of an option, whatever it was before."""
        return replace(self, options={**self.options, key: value})

    def adding(self, key: str, value: str) -> Spec:
        """The same with one more option.

        Raises:
            SpecError: it is there already, with another value.
        """
        present = self.options.get(key, value)
        if present != value:
            raise SpecError(f"{self.title}: {key}={present} and {key}={value} contradict each other")
        return self.setting(key, value)

    def __str__(self) -> str:
        options = ",".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.name}:{options}" if options else self.name


def check_text(text: str, what: str) -> None:
    """Refuses a spec string that is too long or is not text.

    Raises:
        SpecError: it is either.
    """
    if len(text) > MOST_CHARACTERS:
        raise SpecError(f"{what}: {len(text)} characters, expected at most {MOST_CHARACTERS}")
    if any("\ud800" <= letter <= "\udfff" or letter == "\0" for letter in text):
        raise SpecError(f"{what}: {text[:40]!r} is not UTF-8 text")


def parse(text: str | Spec, what: str = "") -> Spec:
    """Splits name:key=value,key=value, where that has not been done; `what` is the kind of thing, for
    messages.

    Raises:
        SpecError: no name, an option without `=`, a key given twice, more than MOST_CHARACTERS, or what is
            no text.
    """
    if isinstance(text, Spec):
        return text
    check_text(text, what or "specification")
    name, colon, rest = text.strip().partition(":")
    spec = Spec(name.strip(), {}, what)
    if not spec.name:
        raise SpecError(f"{what or 'specification'}: the name is missing in {text!r}")
    if colon and not rest.strip():
        raise SpecError(f"{spec.title}: expected key=value after the colon")
    for item in rest.split(",") if rest else ():
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not key or not value:
            raise SpecError(f"{spec.title}: expected key=value, found {item.strip()!r}")
        if key in spec.options:
            raise SpecError(f"{spec.title}: key {key!r} is given twice")
        spec.options[key] = value
    return spec


def _shown(value: str) -> str:
    """A value as messages repeat it."""
    return value if len(value) <= _MOST_DIGITS else f"{value[:_MOST_DIGITS]}..."


class SpecOptions:
    """Typed values of the options of a spec; errors name the spec, the key and the value."""

    def __init__(self, spec: Spec, expected: Sequence[str]) -> None:
        """Checks that only expected keys are there.

        Raises:
            SpecError: an unknown key.
        """
        self.spec = spec
        for key in spec.options:
            if key not in expected:
                hint = suggest.expected(key, expected) if expected else "expected no keys"
                raise SpecError(f"{spec.title}: unknown key {key!r}; {hint}")

    def __contains__(self, key: object) -> bool:
        return key in self.spec.options

    def error(self, key: str, expected: str) -> SpecError:
        """The error for a value that is not what was expected."""
        value = self.spec.options.get(key)
        suffix = "" if value is None else f", found {_shown(value)!r}"
        return SpecError(f"{self.spec.title}: {key} must be {expected}{suffix}")

    def _take(self, key: str, default: _T | None, convert: Callable[[str], _T]) -> _T:
        text = self.spec.options.get(key)
        if text is not None:
            return convert(text)
        if default is None:
            raise SpecError(f"{self.spec.title}: key {key!r} is missing")
        return default

    def text(self, key: str, default: str | None = None) -> str:
        """A text; SpecError where it is missing and has no default (as in all methods here)."""
        return self._take(key, default, str)

    def integer(
        self, key: str, default: int | None = None, *, least: int | None = None, most: int = MOST_COUNT
    ) -> int:
        """A whole number from `least` to `most`."""

        def convert(text: str) -> int:
            if len(text) > _MOST_DIGITS:
                raise self.error(key, f"a whole number of at most {_MOST_DIGITS} digits")
            try:
                value = int(text)
            except ValueError:
                raise self.error(key, "a whole number") from None
            if least is not None and value < least:
                raise self.error(key, f"at least {least}")
            if value > most:
                raise self.error(key, f"at most {most}")
            return value

        return self._take(key, default, convert)

    def number(
        self, key: str, default: float | None = None, *, least: float | None = None, most: float | None = None
    ) -> float:
        """A decimal number from `least` to `most`."""

        def convert(text: str) -> float:
            try:
                exact = Decimal(text[: _MOST_DIGITS + 1])
            except InvalidOperation:
                raise self.error(key, "a number") from None
            # a signalling NaN is no float at all
            value = float(exact) if exact.is_finite() else math.inf
            if abs(value) == math.inf or len(text) > _MOST_DIGITS:
                raise self.error(key, "a number")
            if least is not None and value < least:
                raise self.error(key, f"at least {least:g}")
            if most is not None and value > most:
                raise self.error(key, f"at most {most:g}")
            return value

        return self._take(key, default, convert)

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        """One of the choices."""

        def convert(text: str) -> str:
            if text not in choices:
                raise SpecError(f"{self.spec.title}: {key}={_shown(text)}: {suggest.expected(text, choices)}")
            return text

        return self._take(key, default, convert)

    def flag(self, key: str, *, default: bool | None = None) -> bool:
        """Yes or no, also written on/off, true/false or 1/0."""

        def convert(text: str) -> bool:
            if text.lower() not in _FLAGS:
                raise self.error(key, "yes or no")
            return _FLAGS[text.lower()]

        return self._take(key, default, convert)

    def _quantity(
        self, key: str, default: int | None, least: int, parse_text: Callable[[str], int], example: str
    ) -> int:
        def convert(text: str) -> int:
            try:
                value = parse_text(text)
            except UnitError as error:
                problem = str(error).partition(" is more than ")[2]
                raise self.error(key, f"at most {problem}" if problem else example) from None
            if value < least:
                raise self.error(key, f"at least {least}" if least > 1 else "more than 0")
            return value

        return self._take(key, default, convert)

    def rate_bps(self, key: str, default: int | None = None, *, least: int = 1) -> int:
        """A rate in bits/s."""
        return self._quantity(key, default, least, parse_rate_bps, "a rate such as 10Gbps")

    def time_ns(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        """A time in ns."""
        return self._quantity(key, default, least, parse_time_ns, "a time such as 10us")

    def size_bytes(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        """A size in bytes."""
        return self._quantity(key, default, least, parse_bytes, "a size such as 64KiB")
