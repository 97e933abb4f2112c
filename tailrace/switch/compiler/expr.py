# SPDX-License-Identifier: Apache-2.0
"""Expressions of a program: trees that refer to objects by index, not by name.

Values are integers of unlimited range, as BMv2 evaluates them; only the assignment to a field truncates
a value to the field's width (behavioral-model docs/JSON_format.md).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class HeaderInst(msgspec.Struct, frozen=True):
    """A header instance by its index in ``Model.headers``."""

    index: int


class StackElem(msgspec.Struct, frozen=True):
    """An element, a header or a union, of a stack at an index that is known only at run time."""

    stack: int
    index: Expr


class StackLast(msgspec.Struct, frozen=True):
    """The element of a stack that the parser filled last (P4's ``last``)."""

    stack: int


class UnionInst(msgspec.Struct, frozen=True):
    """A header union by its index in ``Model.unions``."""

    index: int


UnionRef = UnionInst | StackElem | StackLast


class UnionMember(msgspec.Struct, frozen=True):
    """One header of a union, by its position in the union's type."""

    union: UnionRef
    member: int


HeaderRef = HeaderInst | StackElem | StackLast | UnionMember


class Const(msgspec.Struct, frozen=True):
    """An integer constant of any size and sign."""

    value: int


class BoolConst(msgspec.Struct, frozen=True):
    """``true`` or ``false``."""

    value: bool


class FieldRef(msgspec.Struct, frozen=True):
    """A field of a header, by its position in the header's type."""

    header: HeaderRef
    field: int


class ValidBit(msgspec.Struct, frozen=True):
    """The hidden ``$valid$`` field of a header, as the number 0 or 1."""

    header: HeaderRef


class ActionParam(msgspec.Struct, frozen=True):
    """A parameter of the action, from the table entry."""

    index: int


class Lookahead(msgspec.Struct, frozen=True):
    """``bits`` of the packet at bit ``offset`` from the parser's position; they are not consumed."""

    offset: int
    bits: int


class Op(msgspec.Struct, frozen=True):
    """An operator with its operands; ``name`` is its name in BMv2.

    Casts: ``two_comp_mod`` (to int<W>), ``usat_cast``, ``sat_cast``; ``b2d``: boolean to number; ``d2b``.
    """

    name: str
    args: tuple[Expr, ...]


class StackCount(msgspec.Struct, frozen=True):
    """The number of elements that the parser has filled in a stack (``size_stack``); with ``minus_one``, the
    index of the last filled element (``last_stack_index``).
    """

    stack: int
    minus_one: bool


class IsValid(msgspec.Struct, frozen=True):
    """Validity of a header as a boolean."""

    header: HeaderRef


class IsValidUnion(msgspec.Struct, frozen=True):
    """Whether any member of a union is valid."""

    union: UnionRef


class SameHeader(msgspec.Struct, frozen=True):
    """Equality of two headers as BMv2 defines it: both valid, same type, all fields equal."""

    left: HeaderRef
    right: HeaderRef


class SameUnion(msgspec.Struct, frozen=True):
    """Equality of two header unions."""

    left: UnionRef
    right: UnionRef


class RegisterCell(msgspec.Struct, frozen=True):
    """A cell of a register array, read directly in an expression."""

    register: int
    index: Expr


Expr = (
    Const
    | BoolConst
    | FieldRef
    | ValidBit
    | ActionParam
    | Lookahead
    | Op
    | StackCount
    | IsValid
    | IsValidUnion
    | SameHeader
    | SameUnion
    | RegisterCell
)

ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"})
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
LOGIC = frozenset({"and", "or", "not"})
CASTS = frozenset({"two_comp_mod", "usat_cast", "sat_cast"})


def is_boolean(e: Expr) -> bool:
    """Whether an expression yields a boolean rather than a number."""
    if isinstance(e, BoolConst | IsValid | IsValidUnion | SameHeader | SameUnion):
        return True
    if isinstance(e, Op):
        if e.name == "?":
            return is_boolean(e.args[1])
        return e.name in COMPARISONS or e.name in LOGIC or e.name == "d2b"
    return False


def parts(operand: object) -> Iterator[object]:
    """An operand of a statement and, depth first, all operands nested in it."""
    yield operand
    if isinstance(operand, tuple):
        for item in operand:
            yield from parts(item)
    elif isinstance(operand, msgspec.Struct):
        for name in operand.__struct_fields__:
            yield from parts(getattr(operand, name))
