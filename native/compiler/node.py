# SPDX-License-Identifier: Apache-2.0
"""JSON values that know where they stand, so that every complaint names its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from native.compiler.errors import ProgramError


class Node:
    """A JSON value with its path, e.g. ``pipelines[0].tables[2].key``."""

    __slots__ = ("parent", "source", "step", "value")

    def __init__(
        self, value: Any, source: str = "", parent: Node | None = None, step: str | int = ""
    ) -> None:
        self.value = value
        self.source = source
        self.parent = parent
        self.step = step

    @property
    def path(self) -> str:
        """The way from the root to this value, named elements by their name."""
        if self.parent is None:
            return ""
        above = self.parent.path
        if isinstance(self.step, int):
            name = self.value.get("name") if isinstance(self.value, dict) else None
            label = f'"{name}"' if isinstance(name, str) else str(self.step)
            return f"{above}[{label}]"
        return f"{above}.{self.step}" if above else self.step

    def fail(self, expected: str) -> NoReturn:
        """Raises a ProgramError about this value."""
        where = self.path
        raise ProgramError(f"{self.source}: {where + ': ' if where else ''}{expected}")

    def __getitem__(self, key: str) -> Node:
        if not isinstance(self.value, dict):
            self.fail("expected an object")
        if key not in self.value:
            self.fail(f'key "{key}" is missing')
        return Node(self.value[key], self.source, self, key)

    def get(self, key: str) -> Node | None:
        """The value of a key, None when it is absent or null."""
        if not isinstance(self.value, dict):
            self.fail("expected an object")
        value = self.value.get(key)
        return None if value is None else Node(value, self.source, self, key)

    def items(self) -> Iterator[tuple[str, Node]]:
        """Keys and values of an object."""
        if not isinstance(self.value, dict):
            self.fail("expected an object")
        return ((k, Node(v, self.source, self, k)) for k, v in self.value.items())

    def elements(self) -> list[Node]:
        """The elements of an array."""
        if not isinstance(self.value, list):
            self.fail("expected an array")
        return [Node(v, self.source, self, i) for i, v in enumerate(self.value)]

    def optional_elements(self, key: str) -> list[Node]:
        """The elements of an array under a key that may be absent."""
        node = self.get(key)
        return [] if node is None else node.elements()

    def pair(self, size: int = 2) -> list[Node]:
        """The elements of an array of a given length."""
        items = self.elements()
        if len(items) != size:
            self.fail(f"expected {size} elements, found {len(items)}")
        return items

    def text(self) -> str:
        """The value as a string."""
        if not isinstance(self.value, str):
            self.fail("expected a string")
        return self.value

    def opt_text(self) -> str | None:
        """The value as a string or None."""
        return None if self.value is None else self.text()

    def integer(self, low: int = 0, high: int = 2**32 - 1) -> int:
        """The value as an integer in [low, high]."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            self.fail("expected an integer")
        if not low <= self.value <= high:
            self.fail(f"expected an integer from {low} to {high}, found {self.value}")
        return self.value

    def flag(self) -> bool:
        """The value as a boolean."""
        if not isinstance(self.value, bool):
            self.fail("expected true or false")
        return self.value

    def hex_number(self) -> int:
        """The value as an integer written in hexadecimal, perhaps negative."""
        text = self.text()
        try:
            return int(text, 16)
        except ValueError:
            self.fail(f'expected a hexadecimal number, found "{text}"')


def lookup(table: dict[str, int], node: Node, what: str) -> int:
    """The index of the object that a node names.

    Raises:
        ProgramError: nothing has that name.
    """
    name = node.text()
    if name not in table:
        node.fail(f'no {what} is named "{name}"')
    return table[name]
