# SPDX-License-Identifier: Apache-2.0
"""A checked v1model program: objects that refer to each other by index.

An object's index is its position in the tuple that contains it; the generated C, the runtime and the
control plane use the same indexes. Widths are in bits unless a name contains "bytes".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

import msgspec

from tailrace.switch.compiler.expr import (
    Expr,
    FieldRef,
    HeaderInst,
    HeaderRef,
    UnionInst,
    UnionMember,
    UnionRef,
)

MatchKind = Literal["exact", "lpm", "ternary", "range"]


class Source(msgspec.Struct, frozen=True):
    """A place in the source of the P4 program."""

    file: str
    line: int


# ---- headers ----


class FieldType(msgspec.Struct, frozen=True):
    """A field of a header type; for a ``varbit`` field, bits is the maximum width.

    ``saturating``: an assigned value is clamped to the field's range, not truncated.

    ``hidden``: the field is ``$valid$``, which is not part of the packet. It is 1 if the header is valid,
    else 0, unless the program writes another value. Header types have it only if the program writes it.
    """

    name: str
    bits: int
    signed: bool = False
    varbit: bool = False
    saturating: bool = False
    hidden: bool = False


class HeaderType(msgspec.Struct, frozen=True):
    """A header type. Its fixed-width fields add up to whole bytes; a hidden field is the last field."""

    index: int
    name: str
    fields: tuple[FieldType, ...]

    @property
    def fixed_bits(self) -> int:
        """Width without the varbit field."""
        return sum(f.bits for f in self.wire if not f.varbit)

    @property
    def wire(self) -> tuple[FieldType, ...]:
        """The fields that are in the packet: all but a hidden field, which is last."""
        return self.fields[:-1] if self.hidden is not None else self.fields

    @property
    def hidden(self) -> int | None:
        """Position of the hidden field, if there is one."""
        return len(self.fields) - 1 if self.fields and self.fields[-1].hidden else None

    @property
    def varbit(self) -> int | None:
        """Position of the varbit field, if there is one."""
        return next((i for i, f in enumerate(self.fields) if f.varbit), None)


class Header(msgspec.Struct, frozen=True):
    """A header instance. ``stack``, ``union``: index of the stack or union around it, and position there."""

    index: int
    name: str
    type: int
    metadata: bool
    stack: tuple[int, int] | None = None
    union: tuple[int, int] | None = None


class Stack(msgspec.Struct, frozen=True):
    """A stack of headers of one type, or of unions of one type: the indexes of its elements."""

    index: int
    name: str
    elements: tuple[int, ...]
    of_unions: bool = False


class Union(msgspec.Struct, frozen=True):
    """A header union.

    ``members``: header indexes in the order of the union's type
    ``type``, ``kind``: name and index of the type
    """

    index: int
    name: str
    type: str
    kind: int
    members: tuple[int, ...]
    stack: tuple[int, int] | None = None


class HeaderSpace:
    """Headers, stacks and unions of a program, and the types of references to them."""

    __slots__ = ()

    header_types: Sequence[HeaderType]
    headers: Sequence[Header]
    stacks: Sequence[Stack]
    unions: Sequence[Union]

    def type_of(self, header: HeaderRef) -> HeaderType:
        """The type of the header that a reference yields."""
        if isinstance(header, HeaderInst):
            return self.header_types[self.headers[header.index].type]
        if isinstance(header, UnionMember):
            union = self.union_of(header.union)
            return self.header_types[self.headers[union.members[header.member]].type]
        return self.header_types[self.headers[self.stacks[header.stack].elements[0]].type]

    def union_of(self, ref: UnionRef) -> Union:
        """The union that a reference yields, or another union of the same type."""
        if isinstance(ref, UnionInst):
            return self.unions[ref.index]
        return self.unions[self.stacks[ref.stack].elements[0]]

    def field_type(self, ref: FieldRef) -> FieldType:
        """The type of the field that a reference yields."""
        return self.type_of(ref.header).fields[ref.field]


# ---- statements ----


class Primitive(msgspec.Struct, frozen=True):
    """A call of a BMv2 primitive: name, operands (see ``read.actions``), and P4 source ``text``."""

    op: str
    args: tuple[object, ...]
    source: Source | None = None
    text: str = ""


class Param(msgspec.Struct, frozen=True):
    """A parameter of an action."""

    name: str
    bits: int


class Action(msgspec.Struct, frozen=True):
    """An action. The JSON may contain one action of the source several times, once for each table."""

    index: int
    name: str
    params: tuple[Param, ...]
    body: tuple[Primitive, ...]
    source: Source | None = None

    @property
    def limbs(self) -> int:
        """Number of limbs (64-bit words) of the parameters."""
        return sum(limbs_of(p.bits) for p in self.params)


def limbs_of(bits: int) -> int:
    """Number of 64-bit limbs of a value of that width (at least one)."""
    return max(1, (bits + 63) // 64)


# ---- parser ----


class Extract(msgspec.Struct, frozen=True):
    """Extraction into a header. StackLast in ``target`` means the next element of the stack, which becomes
    the last.

    ``length`` is the width of the varbit field, ``max_bytes`` the maximum length of the header.
    """

    target: HeaderRef
    length: Expr | None = None
    max_bytes: int = 0


class ParserSet(msgspec.Struct, frozen=True):
    """Assignment in a parser."""

    target: FieldRef
    value: Expr


class Verify(msgspec.Struct, frozen=True):
    """``verify(condition, error)``."""

    condition: Expr
    error: Expr


class Advance(msgspec.Struct, frozen=True):
    """Skips bits of the packet."""

    bits: Expr


ParserOp = Extract | ParserSet | Verify | Advance | Primitive


class KeyPart(msgspec.Struct, frozen=True):
    """One component of a transition key."""

    value: Expr
    bits: int


class Transition(msgspec.Struct, frozen=True):
    """A case of a select: (value, mask) of each key part, or a value set. ``next`` None means accept."""

    values: tuple[tuple[int, int], ...] | None
    vset: int | None
    vset_mask: bytes | None
    next: str | None


class ParseState(msgspec.Struct, frozen=True):
    """A parser state; ``default`` is the next state if no transition matches (None: accept)."""

    name: str
    ops: tuple[ParserOp, ...]
    key: tuple[KeyPart, ...]
    transitions: tuple[Transition, ...]
    default: str | None


class Parser(msgspec.Struct, frozen=True):
    """The parser's states by name."""

    init: str | None
    states: tuple[ParseState, ...]


class ValueSet(msgspec.Struct, frozen=True):
    """A parser value set: keys of ``key_bytes`` bytes, each component padded to whole bytes."""

    index: int
    name: str
    bits: int
    size: int
    field_bits: tuple[int, ...]

    @property
    def key_bytes(self) -> int:
        """Length of a packed key."""
        return sum((b + 7) // 8 for b in self.field_bits)


# ---- calculations ----


class ConstInput(msgspec.Struct, frozen=True):
    """A constant as calculation input."""

    value: int
    bits: int


CalcInput = FieldRef | ConstInput


class Calculation(msgspec.Struct, frozen=True):
    """A hash or checksum over ``inputs``, in order, followed by the packet's payload if ``payload``."""

    index: int
    name: str
    algo: str
    inputs: tuple[CalcInput, ...]
    payload: bool


class Checksum(msgspec.Struct, frozen=True):
    """A checksum to verify after parsing or to update before deparsing."""

    target: FieldRef
    calculation: int
    condition: Expr | None
    verify: bool
    update: bool


# ---- tables ----


class KeyField(msgspec.Struct, frozen=True):
    """A field of a table key: ``nbytes`` bytes at ``offset`` of the packed key, big-endian.

    ``header``: the header whose validity is checked; if it is invalid, the field is zero.
    ``static_mask``: the program's mask for the value before it is matched.
    """

    name: str
    bits: int
    nbytes: int
    offset: int
    kind: MatchKind
    value: Expr
    header: HeaderRef | None
    static_mask: int | None = None


class ConstEntry(msgspec.Struct, frozen=True):
    """A table entry that the program declares. If several match, the largest priority is used.

    For a range field, ``key`` has the lower bound and ``mask`` the upper bound.
    """

    key: bytes
    mask: bytes
    prefix_bits: int
    priority: int
    action: int
    data: tuple[int, ...]


class Table(msgspec.Struct, frozen=True):
    """A match-action table. ``next_*`` name the next node of the pipeline; None is the end.

    ``by_hit``: the next node depends on hit or miss (``next_hit``, ``next_miss``); otherwise on the action
    (``next_by_action``, ``next_default``).
    ``kind``: BMv2's table type; ``indirect`` has an action profile, ``indirect_ws`` also a selector.
    ``meter_target``: the field that is set to the colour of the direct meter.
    """

    index: int
    name: str
    match_kind: MatchKind
    key: tuple[KeyField, ...]
    kind: Literal["simple", "indirect", "indirect_ws"]
    profile: int | None
    max_size: int
    with_counters: bool
    meter: int | None
    meter_target: FieldRef | None
    support_timeout: bool
    actions: tuple[int, ...]
    default_action: int | None
    default_data: tuple[int, ...]
    default_const: bool
    entries: tuple[ConstEntry, ...]
    next_by_action: Mapping[int, str | None]
    next_hit: str | None
    next_miss: str | None
    by_hit: bool
    next_default: str | None
    source: Source | None = None

    @property
    def key_bytes(self) -> int:
        """Length of the packed key."""
        return sum(k.nbytes for k in self.key)

    @property
    def is_call(self) -> bool:
        """Whether the table only runs a constant default action, as p4c compiles an action call."""
        return (
            not self.key
            and self.kind == "simple"
            and self.default_const
            and self.default_action is not None
            and not self.with_counters
            and self.meter is None
        )


class Conditional(msgspec.Struct, frozen=True):
    """An ``if`` of a control."""

    name: str
    condition: Expr
    true_next: str | None
    false_next: str | None
    source: Source | None = None
    text: str = ""


class ActionCallNode(msgspec.Struct, frozen=True):
    """A direct action call of a control."""

    name: str
    action: int
    next: str | None


class Pipeline(msgspec.Struct, frozen=True):
    """Ingress or egress: a graph of tables (indexes), conditionals and calls. ``init``: the first node."""

    name: str
    init: str | None
    tables: tuple[int, ...]
    conditionals: tuple[Conditional, ...]
    calls: tuple[ActionCallNode, ...]


class Profile(msgspec.Struct, frozen=True):
    """An action profile. ``selector``: index of its action selector's hash calculation; None: no selector."""

    index: int
    name: str
    max_size: int
    selector: int | None

    @property
    def with_selector(self) -> bool:
        """Whether the profile can have groups."""
        return self.selector is not None


# ---- state ----


class Counter(msgspec.Struct, frozen=True):
    """A counter array, or the direct counter of a table."""

    index: int
    name: str
    size: int
    direct: bool


class Meter(msgspec.Struct, frozen=True):
    """A two-rate three-colour meter array, or the direct meter of a table."""

    index: int
    name: str
    size: int
    direct: bool
    unit: Literal["packets", "bytes"]


class Register(msgspec.Struct, frozen=True):
    """A register array."""

    index: int
    name: str
    size: int
    bits: int


class Digest(msgspec.Struct, frozen=True):
    """A digest: the values that are sent to the control plane, each with its width."""

    index: int
    name: str
    id: int
    values: tuple[tuple[Expr, int], ...]

    @property
    def field_bits(self) -> tuple[int, ...]:
        """Widths of the fields."""
        return tuple(bits for _, bits in self.values)


class FieldList(msgspec.Struct, frozen=True):
    """The fields that a clone, resubmit or recirculate keeps."""

    id: int
    fields: tuple[FieldRef, ...]


_T = TypeVar("_T", Action, Table, Counter, Meter)


def _named(items: Sequence[_T], name: str) -> _T:
    for item in items:
        if item.name == name:
            return item
    raise KeyError(name)


class Model(HeaderSpace, msgspec.Struct, frozen=True):
    """A whole program.

    ``standard``: the fields of standard_metadata by name; ``errors``: the numbers of parser errors by name.
    """

    name: str
    header_types: tuple[HeaderType, ...]
    headers: tuple[Header, ...]
    stacks: tuple[Stack, ...]
    unions: tuple[Union, ...]
    standard: Mapping[str, FieldRef]
    errors: Mapping[str, int]
    parser: Parser
    vsets: tuple[ValueSet, ...]
    deparser: tuple[HeaderRef, ...]
    deparser_calls: tuple[Primitive, ...]
    calculations: tuple[Calculation, ...]
    checksums: tuple[Checksum, ...]
    actions: tuple[Action, ...]
    tables: tuple[Table, ...]
    ingress: Pipeline
    egress: Pipeline
    profiles: tuple[Profile, ...]
    counters: tuple[Counter, ...]
    meters: tuple[Meter, ...]
    registers: tuple[Register, ...]
    digests: tuple[Digest, ...]
    field_lists: tuple[FieldList, ...]
    unread: str = ""
    """A warning that names keys of the JSON that the switch does not know; "" if there are none."""

    def table(self, name: str) -> Table:
        """The table of that name (KeyError if there is none)."""
        return _named(self.tables, name)

    def action(self, name: str) -> Action:
        """The first action of that name (KeyError if there is none)."""
        return _named(self.actions, name)

    def counter(self, name: str) -> Counter:
        """The counter of that name (KeyError if there is none)."""
        return _named(self.counters, name)

    def meter(self, name: str) -> Meter:
        """The meter of that name (KeyError if there is none)."""
        return _named(self.meters, name)
