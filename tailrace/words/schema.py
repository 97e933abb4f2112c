# SPDX-License-Identifier: Apache-2.0
"""Values from TOML or the command line -> frozen msgspec structs, with errors that name the key.

A field says what it expects by `msgspec.Meta(description=...)`. The first thing that is not as a struct wants
it becomes a KeyProblemError: the key with its path (`case[1].workload`), what was expected, what was found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import tomli

from tailrace.words import SpecError
from tailrace.words.errors import FileError
from tailrace.words.files import read_text

T = TypeVar("T")
_MOST_SHOWN = 120
Struct = TypeVar("Struct", bound=msgspec.Struct)

MOST_BYTES = 4 << 20
"""Of a file: an experiment, or a distribution of sizes."""

_MESSAGE = re.compile(r"(?P<problem>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.?(?P<name>[A-Za-z_]\w*)|\[(?P<index>\d+|\.\.\.)\]")
_PLAIN = {
    "`str`": "a text",
    "`int`": "a whole number",
    "`float`": "a number",
    "`bool`": "true or false",
    "`array`": "a list",
    "`object`": "a table",
}
_LENGTH = re.compile(r"`array` of length (\d+)")
_FIELD = re.compile(r"field `(?P<name>[^`]*)`")


class KeyProblemError(SpecError):
    """A value that a key does not take; `key` names it."""

    def __init__(self, key: str, problem: str) -> None:
        """Remember the key, for whoever knows which file or option it came from."""
        super().__init__(problem if not key or problem.startswith(key) else f"{key}: {problem}")
        self.key = key
        self.problem = problem


def convert(values: Mapping[str, Any], shape: type[Struct], *, strict: bool = True) -> Struct:
    """The values as a struct; without `strict` texts may stand for numbers.

    Raises:
        KeyProblemError: an unknown or missing key, or a value of another type or out of its range.
    """
    try:
        return msgspec.convert(values, shape, strict=strict)
    except msgspec.ValidationError as error:
        raise _told(str(error), values, shape) from None


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds.

    Raises:
        FileError: it cannot be read, or is no TOML.
    """
    try:
        return tomli.loads(read_text(path, MOST_BYTES).replace("\r\n", "\n"))
    except OSError as error:
        raise FileError(path, "", error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise FileError(path, "", "not UTF-8 text") from error
    except tomli.TOMLDecodeError as error:
        raise FileError(path, "", f"not TOML: {error}") from error
    except RecursionError as error:
        raise FileError(path, "", "nested too deeply") from error
    except ValueError as error:  # a number of more digits than Python turns into one
        raise FileError(path, "", f"not TOML: {error}") from error


def in_file(path: Path, error: KeyProblemError) -> FileError:
    """The error, told with the file that the key is in."""
    return FileError(path, f"key '{error.key}'" if error.key else "", error.problem)


def given(struct: msgspec.Struct) -> dict[str, Any]:
    """The fields of a struct that are set, by name."""
    return {
        name: value
        for name in struct.__struct_fields__
        if (value := getattr(struct, name)) is not msgspec.UNSET
    }


# ---- msgspec's messages in our words ----


def _told(text: str, values: Any, shape: type[msgspec.Struct]) -> KeyProblemError:
    match = _MESSAGE.fullmatch(text)
    assert match is not None, "the pattern takes every text"
    steps = [step["name"] or step["index"] for step in _STEP.finditer(match["path"] or "")]
    key = (match["path"] or "").lstrip(".")
    hint, found = _follow(steps, shape, values)
    field = _FIELD.search(match["problem"])
    if field is not None:
        name = f"{key}.{field['name']}" if key else field["name"]
        if "unknown" in match["problem"]:
            return KeyProblemError(name, f"unknown key; expected {', '.join(_fields(hint))}")
        expected = _description(_hints(hint).get(field["name"]))
        return KeyProblemError(name, f"missing; expected {expected}" if expected else "missing")
    wanted = match["problem"].removeprefix("Expected ").partition(", got")[0]
    expected = _description(hint) or _PLAIN.get(wanted) or _LENGTH.sub(r"a list of \1 values", wanted)
    return KeyProblemError(key, f"expected {expected}, found {_shown(found)}")


def _shown(value: object) -> str:
    """A value as messages repeat it."""
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _follow(steps: list[str], hint: Any, value: Any) -> tuple[Any, Any]:
    """The type and the value at a path."""
    for step in steps:
        if step == "...":
            # a value of a mapping; msgspec does not say of which key
            hint, value = _mapped(hint), "another value"
        elif step.isdigit():
            hint = _element(hint)
            value = value[int(step)] if isinstance(value, (list, tuple)) else value
        else:
            hint = _hints(hint).get(step)
            value = value.get(step) if isinstance(value, Mapping) else value
    return hint, value


def _bare(hint: Any) -> Any:
    """The type without its description and without UNSET."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if get_origin(hint) is Union or type(hint).__name__ == "UnionType":
        options = [option for option in get_args(hint) if option is not msgspec.UnsetType]
        structs = [option for option in options if isinstance(_bare(option), type)]
        return _bare((structs or options)[0])
    return hint


def _hints(hint: Any) -> dict[str, Any]:
    bare = _bare(hint)
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        return get_type_hints(bare, include_extras=True)
    return {}


def _fields(hint: Any) -> tuple[str, ...]:
    bare = _bare(hint)
    return bare.__struct_encode_fields__ if hasattr(bare, "__struct_encode_fields__") else ()


def _element(hint: Any) -> Any:
    args = get_args(_bare(hint))
    return args[0] if args else None


def _mapped(hint: Any) -> Any:
    args = get_args(_bare(hint))
    return args[1] if len(args) > 1 else None


def _description(hint: Any) -> str:
    """What a field's Meta says that it expects; empty where it says nothing."""
    if get_origin(hint) is Annotated:
        for note in get_args(hint)[1:]:
            if isinstance(note, msgspec.Meta) and note.description:
                return note.description
    for option in get_args(hint) if get_origin(hint) is not Annotated else ():
        if found := _description(option):
            return found
    return ""
