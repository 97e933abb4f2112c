# SPDX-License-Identifier: Apache-2.0
"""The keys of specs. A key is declared once, in the annotation of the struct field for its value.

    @dataclass(frozen=True, slots=True)
    class Ring:
        links: Links
        switches: Annotated[int, keys.integer("switches", "switches of the ring", least=3)] = 8
        pause_ns: Annotated[int | None, keys.time("pause", "time between rounds", absent="from rate")] = None

A field's annotation defines the key's name, how a value is written and checked, and what it means. The
field's default is the default of the key; a spec must contain the key of a field without a default. If the
type of a field is a struct with keys, the field is a group, and a spec contains the group's keys among the
others. Fields without annotation are no keys. Dataclasses and msgspec structs are supported.

`read` makes the struct from a spec; the struct's `__post_init__` may raise SpecError for contradictions.
Listings, messages and documents are generated from `keys_of`.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from tailrace.spec import suggest
from tailrace.spec.errors import ChoiceError, ExpectedError, SpecError, UnitError
from tailrace.spec.spec_string import MOST_SHOWN, Spec
from tailrace.spec.text import shortened
from tailrace.spec.units import (
    MOST_COUNT,
    format_bytes,
    format_rate,
    format_time,
    parse_bytes,
    parse_rate_bps,
    parse_time_ns,
)

T = TypeVar("T")

_YES, _NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")
_FLAGS = dict.fromkeys(_YES, True) | dict.fromkeys(_NO, False)
_MOST_DIGITS = 100
"""The most digits of a number in a spec."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

REQUIRED: Any = type("Required", (), {"__repr__": lambda _self: "REQUIRED"})()
"""The default of a key that must be given."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key.

    name: as it is written in specs
    help: what the key means, for people
    values: how a value is written, such as `size` or `on|off`
    parse: converts and checks a string; raises ExpectedError, or another SpecError that says what is wrong
    show: formats a value for people
    absent: text shown for a default that is no value, such as None
    section: section of the paper that defines the parameter
    least, most: bounds of a number; None: no bound
    above: whether the value must be more than `least`, not equal
    default: default of the field
    """

    name: str
    help: str
    values: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str] = str
    absent: str = ""
    section: str = ""
    least: float | None = None
    most: float | None = None
    above: bool = False
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        """Raises SpecError for a name that specs cannot contain."""
        if _NAME.fullmatch(self.name) is None:
            raise SpecError(f"key {self.name[:80]!r}: expected a name of letters, digits, - and _")

    @property
    def default_text(self) -> str:
        """The default for people; empty if the key must be given, or its default is None without `absent`."""
        if self.default is REQUIRED or self.absent or self.default is None:
            return self.absent
        if isinstance(self.default, bool):
            return "on" if self.default else "off"
        if self.default == math.inf:
            return "off"
        return self.show(self.default)


def _check(value: float, least: float | None, most: float | None) -> None:
    if least is not None and value < least:
        raise ExpectedError(f"at least {least:.12g}")
    if most is not None and value > most:
        raise ExpectedError(f"at most {most:.12g}")


def parse_integer(text: str, least: int | None = None, most: int = MOST_COUNT) -> int:
    """A whole number from `least` to `most`. Raises ExpectedError."""
    if len(text) > _MOST_DIGITS:
        raise ExpectedError(f"a whole number of at most {_MOST_DIGITS} digits")
    try:
        value = int(text)
    except ValueError:
        raise ExpectedError("a whole number") from None
    _check(value, least, most)
    return value


def parse_number(text: str, least: float | None = None, most: float | None = None) -> float:
    """A decimal number from `least` to `most`. Raises ExpectedError."""
    try:
        exact = Decimal(text[: _MOST_DIGITS + 1])
    except InvalidOperation:
        raise ExpectedError("a number") from None
    # float() would raise for a signalling NaN
    value = float(exact) if exact.is_finite() else math.inf
    if abs(value) == math.inf or len(text) > _MOST_DIGITS:
        raise ExpectedError("a number")
    _check(value, least, most)
    return value


def size(name: str, help: str, *, least: int = 0, most: int | None = None, **more: Any) -> Key:  # noqa: A002
    """A key for a size in bytes, from `least` to `most`."""
    parse = _quantity(parse_bytes, "a size such as 64KiB", format_bytes, least, most)
    return Key(name, help, "size", parse, format_bytes, least=least, most=most, **more)


def time(name: str, help: str, *, least: int = 0, most: int | None = None, **more: Any) -> Key:  # noqa: A002
    """A key for a time in ns, from `least` to `most`."""
    parse = _quantity(parse_time_ns, "a time such as 10us", format_time, least, most)
    return Key(name, help, "time", parse, format_time, least=least, most=most, **more)


def rate(name: str, help: str, *, least: int = 1, **more: Any) -> Key:  # noqa: A002
    """A key for a rate in bits/s, at least `least`."""
    parse = _quantity(parse_rate_bps, "a rate such as 10Gbps", format_rate, least, None)
    return Key(name, help, "rate", parse, format_rate, least=least, **more)


def _quantity(
    read: Callable[[str], int], example: str, show: Callable[[int], str], least: int, most: int | None
) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = read(text)
        except UnitError as error:
            limit = str(error).partition(" is more than ")[2]
            raise ExpectedError(f"at most {limit}" if limit else example) from None
        if value < least:
            raise ExpectedError(f"at least {least}" if least > 1 else "more than 0")
        if most is not None and value > most:
            raise ExpectedError(f"at most {show(most)}")
        return value

    return parse


def integer(
    name: str,
    help: str,  # noqa: A002
    *,
    least: int | None = None,
    most: int = MOST_COUNT,
    values: str = "",
    **more: Any,
) -> Key:
    """A key for a whole number from `least` to `most`."""
    if not values and most != MOST_COUNT:
        values = f"{least} to {most}"
    values = values or ("number" if least is None else f"number from {least}")
    parse = functools.partial(parse_integer, least=least, most=most)
    shown_most = None if most == MOST_COUNT else most
    return Key(name, help, values, parse, least=least, most=shown_most, **more)


def number(
    name: str,
    help: str,  # noqa: A002
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    values: str = "",
    **more: Any,
) -> Key:
    """A key for a decimal number from `least`, or above `above`, to `most`."""
    start = least if above is None else above

    def parse(text: str) -> float:
        value = parse_number(text, start, most)
        if above is not None and math.isclose(value, above, abs_tol=sys.float_info.min):
            raise ExpectedError(f"more than {above:g}")
        return value

    if not values:
        values = "number" if start is None else f"number from {start:g}" if most is None else ""
    more |= {"least": start, "most": most, "above": above is not None}
    return Key(name, help, values or f"{start:g} to {most:g}", parse, lambda value: f"{value:g}", **more)


def choice(name: str, help: str, choices: Sequence[str], **more: Any) -> Key:  # noqa: A002
    """A key for one of several names."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ChoiceError(suggest.expected(text, choices))
        return text

    return Key(name, help, "|".join(choices), parse, **more)


def flag(name: str, help: str, **more: Any) -> Key:  # noqa: A002
    """A key for a boolean, written yes/no, on/off, true/false or 1/0."""

    def parse(text: str) -> bool:
        if text.lower() not in _FLAGS:
            raise ExpectedError("yes or no")
        return _FLAGS[text.lower()]

    return Key(name, help, "on|off", parse, **more)


def text(name: str, help: str, values: str, **more: Any) -> Key:  # noqa: A002
    """A key for any string; `values` describes it."""
    return Key(name, help, values, str, **more)


def parsed(
    name: str,
    help: str,  # noqa: A002
    values: str,
    parse: Callable[[str], Any],
    show: Callable[[Any], str] = str,
    **more: Any,
) -> Key:
    """A key whose values are parsed by a function, which raises UnitError if a string is none of `values`."""

    def checked(text: str) -> Any:
        try:
            return parse(text)
        except UnitError:
            raise ExpectedError(values) from None

    return Key(name, help, values, checked, show, **more)


@functools.cache
def fields_of(struct: type) -> dict[str, Key | type]:
    """The fields of a struct that a spec sets, by name: the Key of a field, or the struct of a group of keys.
    Fields of the class precede inherited fields.
    """
    hints = get_type_hints(struct, include_extras=True)
    names = [name for base in struct.__mro__ for name in inspect.get_annotations(base)]
    defaults = _defaults(struct)
    fields: dict[str, Key | type] = {}
    for name in dict.fromkeys(names):
        hint = hints[name]
        notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        for note in notes:
            if isinstance(note, Key):
                fields[name] = replace(note, default=defaults[name])
        if not notes and isinstance(hint, type) and has_fields(hint) and fields_of(hint):
            fields[name] = hint
    return fields


def has_fields(struct: type) -> bool:
    """Whether a class is a dataclass or a msgspec struct."""
    return dataclasses.is_dataclass(struct) or issubclass(struct, msgspec.Struct)


def _defaults(struct: type) -> dict[str, Any]:
    if issubclass(struct, msgspec.Struct):
        fields = msgspec.structs.fields(struct)
        return {field.name: REQUIRED if field.required else field.default for field in fields}
    pairs = {field.name: field.default for field in dataclasses.fields(struct)}  # type: ignore[arg-type]
    return {name: REQUIRED if default is dataclasses.MISSING else default for name, default in pairs.items()}


def keys_of(*structs: type) -> tuple[Key, ...]:
    """All keys of these structs, in order; a struct's keys precede those of its groups."""
    keys: list[Key] = []
    for struct in structs:
        fields = fields_of(struct).values()
        keys += [field for field in fields if isinstance(field, Key)]
        keys += keys_of(*(field for field in fields if not isinstance(field, Key)))
    return tuple(keys)


def out_of_range(values: object) -> str:
    """An error message about the first field of a struct that is outside its key's range; empty if there is
    none. For structs that do not come from specs.
    """
    struct: Any = type(values)
    for name, key in fields_of(struct).items():
        value = getattr(values, name)
        if not isinstance(key, Key) or not isinstance(value, (int, float)):
            continue
        low = -math.inf if key.least is None else key.least
        high = math.inf if key.most is None else key.most
        if not (low <= value <= high) or (key.above and value == low):
            if high == math.inf:
                above_0 = key.above or (low == 1 and isinstance(value, int))
                bounds = "more than 0" if above_0 else f"{low:.12g} or more"
            elif key.above:
                bounds = f"more than {low:.12g} and at most {high:.12g}"
            else:
                bounds = f"{low:.12g}..{high:.12g}"
            return f"{name} is {value}, expected {bounds}"
    return ""


def read(spec: Spec, struct: type[T], also: Sequence[type] = ()) -> T:
    """The struct with the values of a spec's keys.

    Args:
        spec: the spec; its name is used only in messages.
        struct: the class of the values.
        also: structs that are read from the same spec elsewhere; their keys are accepted, too.

    Raises:
        SpecError: an unknown or missing key, or an invalid value; one line names the spec and the key.
    """
    names = [key.name for key in keys_of(*dict.fromkeys((struct, *also)))]
    for name in spec.options:
        if name not in names:
            hint = suggest.expected(name, names) if names else "expected no keys"
            raise SpecError(f"{spec.title}: unknown key {name!r}; {hint}")
    return _read(spec, struct)


def _read(spec: Spec, struct: type[T]) -> T:
    values: dict[str, Any] = {}
    fields: dict[str, Key | type] = fields_of(struct)  # type: ignore[arg-type]  # classes are hashable
    for name, field in fields.items():
        if not isinstance(field, Key):
            values[name] = _read(spec, field)
        elif field.name in spec.options:
            values[name] = _value(spec, field)
        elif field.default is REQUIRED:
            raise SpecError(f"{spec.title}: key {field.name!r} is missing")
    try:
        return struct(**values)
    except SpecError as error:
        text = str(error)
        raise error if text.startswith(spec.title) else SpecError(f"{spec.title}: {text}") from None


def _value(spec: Spec, key: Key) -> Any:
    try:
        return key.parse(spec.options[key.name])
    except ChoiceError as error:
        value = shortened(spec.options[key.name], MOST_SHOWN)
        raise SpecError(f"{spec.title}: {key.name}={value}: {error}") from None
    except ExpectedError as error:
        raise spec.error(key.name, str(error)) from None


def write(value: Any) -> dict[str, str]:
    """The options from which `read` makes the struct; values equal to their default are left out."""
    options: dict[str, str] = {}
    for name, field in fields_of(type(value)).items():  # type: ignore[arg-type]  # classes are hashable
        field_value = getattr(value, name)
        if not isinstance(field, Key):
            options |= write(field_value)
        elif field_value != field.default:
            options[field.name] = _written(field, field_value)
    return options


def _written(key: Key, value: Any) -> str:
    """A value in the form for people if that form is parsed to the same value, else the plain number."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return str(value)
    text = key.show(value)
    if not isinstance(value, int | float):
        return text
    try:
        exact = key.parse(text) == value
    except SpecError:
        exact = False
    return text if exact else str(value)
