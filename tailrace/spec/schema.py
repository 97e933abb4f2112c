# SPDX-License-Identifier: Apache-2.0
"""Converts values from TOML, JSON or the command line to frozen msgspec structs, with errors that name the
key.

A field describes the expected value in `msgspec.Meta(description=...)`. The first invalid part becomes a
KeyProblemError: the key with its path (`case[1].workload`), what was expected, and what was given.
Dataclasses within structs are treated alike. msgspec's error messages do not contain these data; so if a
value is invalid, its parts are converted one by one to find the first invalid part.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.spec.files import text_of
from tailrace.spec.suggest import expected
from tailrace.spec.text import shortened

_MOST_SHOWN = 120
Struct = TypeVar("Struct", bound=msgspec.Struct)

MOST_BYTES = 4 << 20
"""Limit of a file, such as an experiment or a distribution of sizes."""

_KINDS = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


class KeyProblemError(SpecError):
    """An invalid value of a key."""

    def __init__(self, key: str, problem: str) -> None:
        """Stores the key, for callers that know the file or option from which it came."""
        super().__init__(problem if not key or problem.startswith(key) else f"{key}: {problem}")
        self.key = key
        self.problem = problem


def convert(values: Any, shape: type[Struct], *, strict: bool = True) -> Struct:
    """The values as a struct; without `strict`, strings are converted to numbers.

    Raises:
        KeyProblemError: an unknown or missing key, or a value of another type or out of its range.
    """
    converted, error = _converted(values, shape, strict)
    if error is not None:
        raise _problem("", values, shape, strict, error) from None
    _check_known("", values, shape)
    return converted  # type: ignore[no-any-return]


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file.

    Raises:
        FileError: the file cannot be read, or is no valid TOML.
    """
    return parse_toml(path, text_of(path, MOST_BYTES))


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    """The values of a text in TOML; `path` is for messages. Raises FileError."""
    import tomli  # imported late: most runs read no file

    try:
        return tomli.loads(text.replace("\r\n", "\n"))
    except RecursionError as error:
        raise FileError(path, "", "nested too deeply") from error
    except ValueError as error:  # invalid TOML, or a number with more digits than Python converts
        raise FileError(path, "", f"not TOML: {error}") from error


def read_json(
    path: Path,
    shape: type[Struct],
    most_bytes: int = MOST_BYTES,
    made: Callable[[Any, type[Struct]], Struct] = convert,
) -> Struct:
    """The struct in a JSON file; `made` converts the file's values to it.

    Raises:
        FileError: the file cannot be read, is no valid JSON, or does not match the struct.
    """
    return parse_json(path, text_of(path, most_bytes), shape, made)


def parse_json(
    path: Path, text: str, shape: type[Struct], made: Callable[[Any, type[Struct]], Struct] = convert
) -> Struct:
    """The struct in the text of a JSON file, like `read_json`."""
    try:
        # NaN and infinities become strings, so that they are refused as numbers
        return made(json.loads(text, parse_constant=str), shape)
    except json.JSONDecodeError as error:
        raise FileError(path, f"line {error.lineno}", error.msg) from error
    except RecursionError as error:
        raise FileError(path, "", "nested too deeply") from error
    except KeyProblemError as error:
        raise FileError(path, error.key, error.problem) from error
    except ValueError as error:  # a number with more digits than Python converts
        raise FileError(path, "", str(error)) from error


def in_file(path: Path, error: KeyProblemError) -> FileError:
    """The error, with the file that contains the key."""
    return FileError(path, f"key '{error.key}'" if error.key else "", error.problem)


def given(struct: msgspec.Struct) -> dict[str, Any]:
    """The fields of a struct that are set, by name."""
    return {
        name: value
        for name in struct.__struct_fields__
        if (value := getattr(struct, name)) is not msgspec.UNSET
    }


# ---- finding the first invalid part ----


class _StructField(NamedTuple):
    hint: Any
    required: bool


def _decode(kind: type, value: object) -> object:
    """Decodes types that msgspec does not know, paths and fractions, from strings."""
    if isinstance(value, str):
        return kind(value)
    raise TypeError("expected a string")


def _converted(value: Any, hint: Any, strict: bool) -> tuple[Any, Exception | None]:
    try:
        return msgspec.convert(value, hint, strict=strict, dec_hook=_decode), None
    except (msgspec.ValidationError, OverflowError) as error:
        return None, error


def _problem(key: str, value: Any, hint: Any, strict: bool, error: Exception) -> KeyProblemError:
    """The error of the first invalid part of an invalid value."""
    try:
        for name, part, inner in _parts(key, value, hint):
            part_error = _converted(part, inner, strict)[1]
            if part_error is not None:
                return _problem(name, part, inner, strict, part_error)
        _check_known(key, value, hint)
    except KeyProblemError as problem:
        return problem
    if error.__cause__ is not None and _is_record(_option(hint, value)):  # raised by __post_init__
        return KeyProblemError(key, str(error.__cause__))
    return KeyProblemError(key, f"expected {_expected(hint)}, found {shortened(repr(value), _MOST_SHOWN)}")


def _check_known(key: str, value: Any, hint: Any) -> None:
    """Raises KeyProblemError for unknown keys of dataclasses, which msgspec ignores."""
    if _has_dataclass(hint):
        for name, part, inner in _parts(key, value, hint):
            _check_known(name, part, inner)


def _parts(key: str, value: Any, hint: Any) -> Iterator[tuple[str, Any, Any]]:
    """Key, value and type of each part. Raises KeyProblemError on unknown and missing keys."""
    kind = _option(hint, value)
    args = get_args(kind)
    if isinstance(value, Mapping) and _is_record(kind):
        fields = _fields(kind)
        for name, part in value.items():
            full_key = f"{key}.{name}" if key else str(name)
            if name in fields:
                yield full_key, part, fields[name].hint
            elif name != _tag(kind)[0]:
                raise KeyProblemError(full_key, f"unknown key; {expected(name, fields)}")
        for name, field in fields.items():
            if field.required and name not in value:
                problem = f"missing; expected {_expected(field.hint)}"
                raise KeyProblemError(f"{key}.{name}" if key else name, problem)
    elif isinstance(value, Mapping) and get_origin(kind) is dict:
        for name, part in value.items():
            yield key, name, args[0]
            yield (f"{key}.{name}" if key else str(name)), part, args[1]
    elif isinstance(value, (list, tuple)) and get_origin(kind) in (list, tuple):
        hints = [args[0]] * len(value) if get_origin(kind) is list or args[1:] == (...,) else list(args)
        if len(hints) == len(value):
            yield from (
                (f"{key}[{i}]", part, inner) for i, (part, inner) in enumerate(zip(value, hints, strict=True))
            )


def _option(hint: Any, value: Any) -> Any:
    """The type without its description; of a union, the member that matches the kind of the value."""
    options = _options(hint)
    if isinstance(value, Mapping):
        fitting = [kind for kind in options if _is_record(kind) or get_origin(kind) is dict]
        tagged = [kind for kind in fitting if _tag(kind)[0] and value.get(_tag(kind)[0]) == _tag(kind)[1]]
        fitting = tagged or [kind for kind in fitting if not _tag(kind)[0]]
    elif isinstance(value, (list, tuple)):
        fitting = [kind for kind in options if get_origin(kind) in (list, tuple)]
    else:
        fitting = options
    return fitting[0] if fitting else None


def _options(hint: Any) -> list[Any]:
    """The members of a type that may be a union, without descriptions and without UNSET."""
    if get_origin(hint) is Annotated:
        return _options(get_args(hint)[0])
    if get_origin(hint) is Union or type(hint).__name__ == "UnionType":
        return [kind for option in get_args(hint) for kind in _options(option)]
    return [] if hint is msgspec.UnsetType else [hint]


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind))


def _tag(kind: Any) -> tuple[str | None, Any]:
    """Key and value that identify a struct in a tagged union."""
    config = getattr(kind, "__struct_config__", None)
    return (None, None) if config is None else (config.tag_field, config.tag)


@cache
def _fields(kind: type) -> dict[str, _StructField]:
    hints = get_type_hints(kind, include_extras=True)
    if issubclass(kind, msgspec.Struct):
        return {f.encode_name: _StructField(hints[f.name], f.required) for f in msgspec.structs.fields(kind)}
    missing = dataclasses.MISSING
    return {
        f.name: _StructField(hints[f.name], f.default is missing and f.default_factory is missing)
        for f in dataclasses.fields(kind)  # type: ignore[arg-type]
    }


@cache
def _has_dataclass(hint: Any) -> bool:
    for kind in _options(hint):
        if _is_record(kind):
            if not issubclass(kind, msgspec.Struct):
                return True
            if any(_has_dataclass(field.hint) for field in _fields(kind).values()):
                return True
        elif any(_has_dataclass(inner) for inner in get_args(kind) if get_origin(kind) is not Literal):
            return True
    return False


# ---- descriptions ----


def _expected(hint: Any) -> str:
    """The expected value: the description of a field's Meta, else what its type allows."""
    return _description(hint) or " or ".join(dict.fromkeys(map(_kind_name, _options(hint))))


def _kind_name(kind: Any) -> str:
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " or ".join(map(repr, args))
    if origin is tuple and args[1:] != (...,):
        return f"a list of {len(args)} values"
    if origin in (list, tuple):
        return "a list"
    if origin is dict or _is_record(kind):
        tag = _tag(kind)
        return f"a table with {tag[0]} {tag[1]!r}" if tag[0] else "a table"
    return _KINDS.get(kind, "a path" if kind is Path else "another value")


def _description(hint: Any) -> str:
    """The description of a field's Meta; empty if it has none."""
    if get_origin(hint) is Annotated:
        for note in get_args(hint)[1:]:
            if isinstance(note, msgspec.Meta) and note.description:
                return note.description
        return _description(get_args(hint)[0])
    several = get_origin(hint) is Union or type(hint).__name__ == "UnionType"
    return next(filter(None, map(_description, get_args(hint))), "") if several else ""
