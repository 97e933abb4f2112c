# SPDX-License-Identifier: Apache-2.0
"""Splits specs of the form name:key=value,key=value; `keys` interprets the values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tailrace.spec.errors import SpecError
from tailrace.spec.text import shortened

MOST_CHARACTERS = 1 << 16
"""The longest spec."""

MOST_SHOWN = 100
"""The most characters of a value that a message repeats."""


def is_file(name: str) -> bool:
    """Whether a name is that of a file: registered names contain neither dots nor slashes."""
    return "." in name or "/" in name


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed spec: `what` it specifies (for messages), its name and its options."""

    name: str
    options: dict[str, str] = field(default_factory=dict)
    what: str = ""

    @property
    def title(self) -> str:
        """The beginning of messages about the spec, such as `topology leaf-spine`."""
        return f"{self.what} {self.name}".strip()

    def setting(self, key: str, value: str) -> Spec:
        """A copy with this value of an option, which replaces an earlier value."""
        return replace(self, options={**self.options, key: value})

    def adding(self, key: str, value: str) -> Spec:
        """A copy with one more option.

        Raises:
            SpecError: the option is already given, with another value.
        """
        present = self.options.get(key, value)
        if present != value:
            raise SpecError(f"{self.title}: {key}={present} and {key}={value} contradict each other")
        return self.setting(key, value)

    def error(self, key: str, expected: str) -> SpecError:
        """The error for an option whose value is not as expected."""
        return self._problem(key, f"must be {expected}")

    def refused(self, key: str, condition: str) -> SpecError:
        """The error for an option that is given although its condition is not met. `condition` says when the
        option is allowed, such as `together with path=mixed`.
        """
        return self._problem(key, f"may only be given {condition}")

    def _problem(self, key: str, problem: str) -> SpecError:
        value = self.options.get(key)
        suffix = "" if value is None else f", found {shortened(value, MOST_SHOWN)!r}"
        return SpecError(f"{self.title}: {key} {problem}{suffix}")

    def refuse(self, keys: Sequence[str], needed: str) -> None:
        """Refuses `keys`, which are allowed only together with `needed`, an option such as path=mixed. The
        caller has checked that `needed` is not given.

        Raises:
            SpecError: one of the keys is given.
        """
        for key in keys:
            if key in self.options:
                raise self.refused(key, f"together with {needed}")

    def __str__(self) -> str:
        options = ",".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.name}:{options}" if options else self.name


def check_text(text: str, what: str) -> None:
    """Raises SpecError if a spec string is too long or contains invalid characters."""
    if len(text) > MOST_CHARACTERS:
        raise SpecError(f"{what}: {len(text)} characters, expected at most {MOST_CHARACTERS}")
    if any("\ud800" <= letter <= "\udfff" or letter == "\0" for letter in text):
        raise SpecError(f"{what}: {text[:40]!r} is not UTF-8 text")


def parse(text: str | Spec, what: str = "") -> Spec:
    """Splits name:key=value,key=value; returns a Spec unchanged. `what` is the kind of thing, for messages.

    Raises:
        SpecError: no name, an option without `=`, a key given twice, more than MOST_CHARACTERS, or invalid
            characters.
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
