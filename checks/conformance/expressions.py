# SPDX-License-Identifier: Apache-2.0
"""Evaluate the integer expressions of a BMv2 JSON parser, as far as the packet generator needs them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from checks.conformance.program import Json

Node = Any
Reader = Callable[[Json], int]

BINARY: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "and": lambda a, b: int(bool(a) and bool(b)),
    "or": lambda a, b: int(bool(a) or bool(b)),
}


class UnknownValueError(Exception):
    """The expression uses something that the generator does not track."""


def evaluate(node: Node, read: Reader) -> int:
    """Value of an expression; `read` returns the value of a leaf that is neither constant nor operator."""
    kind, value = node.get("type"), node.get("value")
    if kind == "hexstr":
        return int(value, 16)
    if kind == "bool":
        return int(value)
    if kind == "expression":
        return evaluate(value, read)
    if kind is not None:
        return read(node)
    return _operate(node, read)


def _operate(node: Node, read: Reader) -> int:
    name = node["op"]
    if name == "?":
        return evaluate(node["left"] if evaluate(node["cond"], read) else node["right"], read)
    if name in ("d2b", "b2d"):
        return evaluate(node["right"], read)
    if name == "not":
        return int(not evaluate(node["right"], read))
    if name in BINARY and node.get("left") is not None:
        return BINARY[name](evaluate(node["left"], read), evaluate(node["right"], read))
    raise UnknownValueError(name)
