# SPDX-License-Identifier: Apache-2.0
"""Expressions of a program: trees that refer to objects by index, not by name.

Values are integers of unlimited range, as BMv2 evaluates them; only the assignment to a field truncates
a value to the field's width (behavioral-model docs/JSON_format.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass


@dataclass(frozen=True, slots=True)
class HeaderInst:
    """A header instance by its index in ``Model.headers``."""

    index: int


@dataclass(frozen=True, slots=True)
class StackElem:
    """An element of a header stack at an index that is known only at run time."""

    stack: int
    index: Expr


@dataclass(frozen=True, slots=True)
class StackLast:
    """The element of a header stack that the parser filled last (P4's ``last``)."""

    stack: int


@dataclass(frozen=True, slots=True)
class UnionInst:
    """A header union by its index in ``Model.unions``."""

    index: int


@dataclass(frozen=True, slots=True)
class UnionStackElem:
    """An element of a stack of unions at an index that is known only at run time."""

    stack: int
    index: Expr


@dataclass(frozen=True, slots=True)
class UnionStackLast:
    """The element of a stack of unions that the parser filled last."""

    stack: int


UnionRef = UnionInst | UnionStackElem | UnionStackLast


@dataclass(frozen=True, slots=True)
class UnionMember:
    """One header of a union, by its position in the union's type."""

    union: UnionRef
    member: int


HeaderRef = HeaderInst | StackElem | StackLast | UnionMember


@dataclass(frozen=True, slots=True)
class Const:
    """An integer constant of any size and sign."""

    value: int


@dataclass(frozen=True, slots=True)
class BoolConst:
    """``true`` or ``false``."""

    value: bool


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A field of a header, by its position in the header's type."""

    header: HeaderRef
    field: int


@dataclass(frozen=True, slots=True)
class ValidBit:
    """The hidden ``$valid$`` field of a header, as the number 0 or 1."""

    header: HeaderRef


@dataclass(frozen=True, slots=True)
class ActionParam:
    """A parameter of the action, from the table entry."""

    index: int


@dataclass(frozen=True, slots=True)
class Lookahead:
    """``bits`` of the packet at bit ``offset`` from the parser's position; they are not consumed."""

    offset: int
    bits: int


@dataclass(frozen=True, slots=True)
class Op:
    """An operator with its operands; ``name`` is its name in BMv2.

    Casts: ``two_comp_mod`` (to int<W>), ``usat_cast``, ``sat_cast``; ``b2d``: boolean to number; ``d2b``.
    """

    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class StackCount:
    """The number of elements that the parser has filled in a header or union stack (``size_stack``); with
    ``minus_one``, the index of the last filled element (``last_stack_index``).
    """

    stack: int
    is_union: bool
    minus_one: bool


@dataclass(frozen=True, slots=True)
class IsValid:
    """Validity of a header as a boolean."""

    header: HeaderRef


@dataclass(frozen=True, slots=True)
class IsValidUnion:
    """Whether any member of a union is valid."""

    union: UnionRef


@dataclass(frozen=True, slots=True)
class SameHeader:
    """Equality of two headers as BMv2 defines it: both valid, same type, all fields equal."""

    left: HeaderRef
    right: HeaderRef


@dataclass(frozen=True, slots=True)
class SameUnion:
    """Equality of two header unions."""

    left: UnionRef
    right: UnionRef


@dataclass(frozen=True, slots=True)
class RegisterCell:
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
    elif is_dataclass(operand):
        for f in fields(operand):
            yield from parts(getattr(operand, f.name))
