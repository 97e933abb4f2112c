# SPDX-License-Identifier: Apache-2.0
"""Interval arithmetic: lower and upper bounds of the value of an expression, both inclusive.

BMv2 evaluates expressions with integers of unlimited range. The bounds determine a C type that is wide enough
to compute the same values.
"""

from __future__ import annotations

from tailrace.switch.compiler.errors import CompilerError
from tailrace.switch.compiler.expr import (
    ActionParam,
    Const,
    Expr,
    FieldRef,
    Lookahead,
    Op,
    RegisterCell,
    StackCount,
)
from tailrace.switch.compiler.model import Model, Param

Bounds = tuple[int, int]
_WIDEST = 8192
"""Maximum width of intermediate results, in bits."""


def unsigned(bits: int) -> Bounds:
    """Bounds of bit<W>."""
    return 0, (1 << bits) - 1


def signed(bits: int) -> Bounds:
    """Bounds of int<W>, W >= 1."""
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def union(a: Bounds, b: Bounds) -> Bounds:
    """The smallest bounds that contain two others."""
    return min(a[0], b[0]), max(a[1], b[1])


def width(b: Bounds) -> int:
    """The smallest width in bits, sign bit included, of a two's complement number that can be any of `b`."""
    low, high = b
    return max(high.bit_length(), (-low - 1).bit_length() if low < 0 else 0) + 1


class BoundsOf:
    """Computes the bounds of expressions in one program; `params` are those of the current action."""

    def __init__(self, model: Model, params: tuple[Param, ...] = ()) -> None:
        self.model = model
        self.params = params

    def __call__(self, e: Expr) -> Bounds:
        """The bounds of an expression that yields a number.

        Raises:
            CompilerError: the value may need more than _WIDEST bits.
        """
        bounds = self._of(e)
        if width(bounds) > _WIDEST:
            raise CompilerError(
                f"{self.model.name}: a result, for example of <<, may need more than {_WIDEST} bits"
            )
        return bounds

    def _of(self, e: Expr) -> Bounds:
        if isinstance(e, Const):
            return e.value, e.value
        if isinstance(e, FieldRef):
            f = self.model.field_type(e)
            return signed(f.bits) if f.signed else unsigned(f.bits)
        if isinstance(e, ActionParam):
            return unsigned(self.params[e.index].bits)
        if isinstance(e, Lookahead):
            return unsigned(e.bits)
        if isinstance(e, RegisterCell):
            return unsigned(self.model.registers[e.register].bits)
        if isinstance(e, StackCount):
            return unsigned(64)
        return self._of_op(e) if isinstance(e, Op) else (0, 1)  # other expressions are bits and booleans

    def _of_op(self, e: Op) -> Bounds:
        name = e.name
        if name == "b2d":
            return 0, 1
        if name == "?":
            return union(self(e.args[1]), self(e.args[2]))
        a = self(e.args[0])
        if name == "~":
            return -a[1] - 1, -a[0] - 1
        b = self(e.args[1])
        if name == "+":
            return a[0] + b[0], a[1] + b[1]
        if name == "-":
            return a[0] - b[1], a[1] - b[0]
        if name == "*":
            products = [x * y for x in a for y in b]
            return min(products), max(products)
        if name in ("two_comp_mod", "usat_cast", "sat_cast"):
            return _cast(name, a, b[1])
        if name in ("<<", ">>"):
            return _shift(name, a, b)
        if name in ("/", "%"):  # values.py rejects operands that may be negative
            return (0, max(a[1], 0)) if name == "/" else (0, max(0, min(a[1], b[1] - 1)))
        return _bitwise(name, a, b)


def _cast(name: str, a: Bounds, bits: int) -> Bounds:
    limits = unsigned(bits) if name == "usat_cast" else signed(bits)
    if name == "two_comp_mod" and not (limits[0] <= a[0] and a[1] <= limits[1]):
        return limits
    return max(limits[0], min(a[0], limits[1])), min(limits[1], max(a[1], limits[0]))


def _shift(name: str, a: Bounds, b: Bounds) -> Bounds:
    if name == "<<":
        if b[1] > _WIDEST:
            return -(1 << 2 * _WIDEST), 1 << 2 * _WIDEST  # wider than _WIDEST, so __call__ raises
        ends = [x << max(y, 0) for x in a for y in b]
        return min(ends), max(ends)
    if b[0] == b[1]:
        amount = min(max(b[0], 0), _WIDEST)
        return a[0] >> amount, a[1] >> amount
    # the result of a large shift is 0, or -1 if the value is negative
    return min(a[0], 0), max(a[1], -1 if a[1] < 0 else 0)


def _bitwise(name: str, a: Bounds, b: Bounds) -> Bounds:
    if name == "&":
        if a[0] >= 0 and b[0] >= 0:
            return 0, min(a[1], b[1])
        if a[0] >= 0 or b[0] >= 0:
            return 0, a[1] if a[0] >= 0 else b[1]
    if a[0] >= 0 and b[0] >= 0:
        return unsigned(max(a[1].bit_length(), b[1].bit_length()))
    return signed(max(width(a), width(b)))
