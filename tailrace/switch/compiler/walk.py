# SPDX-License-Identifier: Apache-2.0
"""Traversal of expression trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass

from tailrace.switch.compiler.expr import ActionParam, Expr, Op


def parts(operand: object) -> Iterator[object]:
    """An operand and, depth first, all operands nested in it."""
    yield operand
    if isinstance(operand, tuple):
        for item in operand:
            yield from parts(item)
    elif is_dataclass(operand):
        for f in fields(operand):
            yield from parts(getattr(operand, f.name))


def with_params(e: Expr, values: Sequence[Expr]) -> Expr:
    """The expression with each action parameter replaced by the value at its index.

    Raises:
        IndexError: the expression reads a parameter that has no value.
    """
    if isinstance(e, ActionParam):
        return values[e.index]
    if isinstance(e, Op):
        return Op(e.name, tuple(with_params(a, values) for a in e.args))
    return e


def params_of(operand: object) -> list[int]:
    """Indexes of the action parameters that an operand reads."""
    return [p.index for p in parts(operand) if isinstance(p, ActionParam)]
