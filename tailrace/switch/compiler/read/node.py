# SPDX-License-Identifier: Apache-2.0
"""Strict decoder of JSON; values with their paths, for messages, and a record of the keys that were read."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NoReturn, TypeVar

from tailrace.spec.files import json_object
from tailrace.switch.compiler.errors import CompilerError, located

_T = TypeVar("_T")
_S = TypeVar("_S", bound=str)

_HEX = re.compile(r"(-?)(?:0[xX])?([0-9a-fA-F]*)")
_MAX_HEX = 4096
"""Maximum length of a hexadecimal number. Fields have up to 4096 bits, transition keys several fields."""
MAX_BYTES = 64 << 20
"""Maximum size of a program's JSON. Google's SAI pipeline, with 100 tables, has 4 MB."""

MAX_DIGITS = 20
"""Maximum number of decimal digits: enough for 64 bits. BMv2 has hexadecimal strings for wider numbers."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def decode_json(text: bytes, source: str) -> Any:
    """Reads JSON text in UTF-8: only values of bounded size that are unambiguous and can be encoded again.

    Raises:
        CompilerError: the text is not JSON, too long or nested too deeply; or it contains a duplicate key,
            NaN or Infinity, an integer of more than 20 digits or an unpaired surrogate.
    """

    def refuse(why: str) -> NoReturn:
        raise CompilerError(located(source, "not a JSON file", why)) from None

    if len(text) > MAX_BYTES:
        refuse(f"it has {len(text)} bytes; at most {MAX_BYTES} are allowed")
    try:
        characters = text.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        refuse(f"byte {e.start} is not UTF-8")
    try:
        value = json.loads(
            characters,
            object_pairs_hook=json_object,
            parse_int=_integer,
            parse_float=_real,
            parse_constant=_constant,
        )
    except RecursionError:
        refuse("it is nested too deeply")
    except ValueError as e:
        refuse(str(e))
    if _SURROGATE.search(characters):
        try:
            # the decoder has joined surrogate pairs; an unpaired surrogate cannot be encoded in UTF-8
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            refuse("a string contains half of a surrogate pair")
        except RecursionError:
            refuse("it is nested too deeply")
    return value


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise ValueError(f"a number has more than {MAX_DIGITS} digits")
    return int(digits)


def _real(digits: str) -> float:
    if len(digits) > 64:
        raise ValueError("a number has more than 64 digits")
    return float(digits)


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


class JsonNode:
    """A JSON value with its path, e.g. ``pipelines[0].tables[2].key``; it records which keys are read.

    `step` is the last step of the path: a key or an index.
    """

    __slots__ = ("parent", "read_keys", "source", "step", "value")

    def __init__(
        self, value: Any, source: str = "", parent: JsonNode | None = None, step: str | int = ""
    ) -> None:
        self.value = value
        self.source = source
        self.parent = parent
        self.step = step
        self.read_keys: set[tuple[int, str]] = set() if parent is None else parent.read_keys
        """(identity of an object, key) of each key that was looked up, present or not."""

    @property
    def path(self) -> str:
        """The path from the root to this value; named array elements appear by name, not by index."""
        if self.parent is None:
            return ""
        above = self.parent.path
        if isinstance(self.step, int):
            name = self.value.get("name") if isinstance(self.value, dict) else None
            label = f'"{name}"' if isinstance(name, str) else str(self.step)
            return f"{above}[{label}]"
        return f"{above}.{self.step}" if above else self.step

    def fail(self, problem: str) -> NoReturn:
        """Raises a CompilerError about this value."""
        raise CompilerError(located(self.source, self.path, problem))

    def __getitem__(self, key: str) -> JsonNode:
        if not self.has(key):
            self.fail(f'key "{key}" is missing')
        return JsonNode(self.value[key], self.source, self, key)

    def get(self, key: str) -> JsonNode | None:
        """The value of a key, None when it is absent or null."""
        value = self.value[key] if self.has(key) else None
        return None if value is None else JsonNode(value, self.source, self, key)

    def has(self, key: str) -> bool:
        """Whether an object has a key; its value may be null."""
        if not isinstance(self.value, dict):
            self.fail("expected an object")
        self.read_keys.add((id(self.value), key))
        return key in self.value

    def unread(self, ignored_keys: Mapping[str, frozenset[str]]) -> Iterator[JsonNode]:
        """The values in this object, at any depth, whose keys were not read; null values are skipped.

        Args:
            ignored_keys: keys to ignore, by the key of the object or array that contains them; "*": anywhere.
        """
        waiting = [(self, "")]  # with the key of each value; the loop appends nested values
        for node, outer_key in waiting:
            if isinstance(node.value, list):
                waiting += [(e, outer_key) for e in node.elements() if isinstance(e.value, dict | list)]
            elif isinstance(node.value, dict):
                ignored = ignored_keys["*"] | ignored_keys.get(outer_key, frozenset())
                for key, value in node.value.items():
                    if (id(node.value), key) in self.read_keys:
                        if isinstance(value, dict | list):
                            waiting.append((JsonNode(value, self.source, node, key), key))
                    elif value is not None and key not in ignored:
                        yield JsonNode(value, self.source, node, key)

    def items(self) -> Iterator[tuple[str, JsonNode]]:
        """Keys and values of an object."""
        if not isinstance(self.value, dict):
            self.fail("expected an object")
        self.read_keys.update((id(self.value), key) for key in self.value)
        return ((k, JsonNode(v, self.source, self, k)) for k, v in self.value.items())

    def elements(self) -> list[JsonNode]:
        if not isinstance(self.value, list):
            self.fail("expected an array")
        return [JsonNode(v, self.source, self, i) for i, v in enumerate(self.value)]

    def text_at(self, key: str, default: str) -> str:
        """The string under a key that may be absent."""
        node = self.get(key)
        return default if node is None else node.text()

    def integer_at(self, key: str, default: int = 0, high: int = 2**32 - 1) -> int:
        """The integer in [0, high] under a key that may be absent."""
        node = self.get(key)
        return default if node is None else node.integer(0, high)

    def flag_at(self, key: str, default: bool = False) -> bool:
        """The boolean under a key that may be absent."""
        node = self.get(key)
        return default if node is None else node.flag()

    def name_at(self, key: str) -> str | None:
        """The string under a key that may be absent or null; as in BMv2, an empty string means None."""
        node = self.get(key)
        return (node.text() or None) if node is not None else None

    def optional_elements(self, key: str) -> list[JsonNode]:
        """The elements of an array under a key that may be absent."""
        node = self.get(key)
        return [] if node is None else node.elements()

    def elements_of_length(self, size: int) -> list[JsonNode]:
        """The elements of an array that must have `size` elements."""
        items = self.elements()
        if len(items) != size:
            self.fail(f"expected {size} elements, found {len(items)}")
        return items

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.fail("expected a string")
        return self.value

    def choice(self, allowed: Collection[_S], what: str) -> _S:
        """The value as one of some strings; `what`: its kind in the message that another is not supported."""
        text = self.text()
        for value in allowed:
            if value == text:
                return value
        return self.fail(f'{what} "{text}" is not supported')

    def integer(self, low: int = 0, high: int = 2**32 - 1) -> int:
        """The value as an integer in [low, high]."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            self.fail("expected an integer")
        if not low <= self.value <= high:
            self.fail(f"expected an integer from {low} to {high}, found {self.value}")
        return self.value

    def flag(self) -> bool:
        """The value as a boolean, which may be written as 0 or 1."""
        if self.value not in (False, True):
            self.fail("expected true or false")
        return bool(self.value)

    def hex_number(self) -> int:
        """The integer, which may be negative, that a hexadecimal string denotes."""
        text = self.text()
        match = _HEX.fullmatch(text)
        if match is None:
            self.fail(f'expected a hexadecimal number, found "{text}"')
        if len(text) > _MAX_HEX:
            self.fail(f"the number has more than {_MAX_HEX} characters")
        return int(match[1] + (match[2] or "0"), 16)


def add_name(table: dict[str, int], node: JsonNode, index: int, what: str) -> str:
    """Adds an object's index to a dictionary under its name, the value of its key "name"; returns the name.

    Raises:
        CompilerError: another object has this name.
    """
    name = node["name"].text()
    if name in table:
        node.fail(f'two {what}s are named "{name}"')
    table[name] = index
    return name


def lookup(table: Mapping[str, _T], node: JsonNode, what: str) -> _T:
    """The value, such as the index, of the object that a node names.

    Raises:
        CompilerError: nothing has that name.
    """
    name = node.text()
    if name not in table:
        node.fail(f'no {what} is named "{name}"')
    return table[name]
