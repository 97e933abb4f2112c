# SPDX-License-Identifier: Apache-2.0
"""C lvalues (called places) of headers and fields.

They are in the PHV (headers and metadata of a packet, tr_core.h) or among the C locals (locals.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.switch.compiler.emit.locals import Locals
from tailrace.switch.compiler.emit.text import CodeWriter, identifier, storage
from tailrace.switch.compiler.expr import HeaderInst, HeaderRef, UnionMember
from tailrace.switch.compiler.model import FieldType, HeaderType, Model, Stack, Union, limbs_of

NO_LOCALS = Locals()


def type_name(t: HeaderType) -> str:
    """The name of the C struct of a header type."""
    return f"struct ht{t.index}_{identifier(t.name)}"


def union_type_name(union: Union) -> str:
    """The name of the C struct of a union's type; `kind` is the type's index."""
    return f"struct ut{union.kind}_{identifier(union.type)}"


def labels(prefix: str, names: Sequence[str]) -> dict[str, str]:
    """A unique C label for each node (parser state, table, condition or call), by the node's name."""
    return {name: f"{prefix}_{i}_{identifier(name)}" for i, name in enumerate(names)}


def field_name(t: HeaderType, position: int) -> str:
    """The name of a field's member in the C struct of its header type."""
    return f"f{position}_{identifier(t.fields[position].name)}"


def set_valid(code: CodeWriter, t: HeaderType, place: str, valid: int) -> None:
    """Emits code that makes a header valid (1) or invalid (0), and sets its field ``$valid$``, if any."""
    code.line(f"{place}.valid = {valid};")
    if t.hidden is not None:
        code.line(f"{place}.{field_name(t, t.hidden)} = {valid};")


def declare_field(t: HeaderType, position: int, f: FieldType, prefix: str = "") -> str:
    """The C declaration of a field; `prefix` precedes the member's name."""
    name = prefix + field_name(t, position)
    if f.varbit:
        return f"uint32_t vl_bits; uint8_t {name}[{max(1, f.bits // 8)}];"
    if f.bits > 128:
        return f"uint64_t {name}[{limbs_of(f.bits)}];"
    return f"{storage(f.bits)} {name};"


class Lvalues:
    """C lvalues of headers, stacks and unions, in ``struct tr_phv *h`` or ``struct tr_locals *l``."""

    def __init__(self, model: Model, c_locals: Locals = NO_LOCALS, pointer: str = "h") -> None:
        self.model, self.c_locals, self.pointer = model, c_locals, pointer

    def stack(self, index: int) -> str:
        """The array of a stack."""
        return f"{self.pointer}->s{index}_{identifier(self.model.stacks[index].name)}"

    def stack_next(self, index: int) -> str:
        """The counter of a stack: the number of elements that the parser has filled."""
        return f"{self.pointer}->next_s{index}"

    def element_type(self, stack: Stack) -> str:
        """The name of the C struct of a stack's elements."""
        if stack.of_unions:
            return union_type_name(self.model.unions[stack.elements[0]])
        return type_name(self.model.header_types[self.model.headers[stack.elements[0]].type])

    def union_inst(self, index: int) -> str:
        """A union by its index, be it an element of a stack or not."""
        u = self.model.unions[index]
        if u.stack is not None:
            return f"{self.stack(u.stack[0])}[{u.stack[1]}]"
        return f"{self.pointer}->u{index}_{identifier(u.name)}"

    def header_inst(self, index: int) -> str:
        """A header by its index, be it an element of a stack, a member of a union or neither."""
        header = self.model.headers[index]
        if header.union is not None:
            return f"{self.union_inst(header.union[0])}.m{header.union[1]}"
        if header.stack is not None:
            return f"{self.stack(header.stack[0])}[{header.stack[1]}]"
        if index in self.c_locals.headers:
            return f"l->h{index}_{identifier(header.name)}"
        return f"{self.pointer}->h{index}_{identifier(header.name)}"

    def siblings(self, ref: HeaderRef, place: str) -> list[str]:
        """The other members of a header's union: they become invalid when the header becomes valid."""
        if isinstance(ref, UnionMember):
            position, count = ref.member, len(self.model.union_of(ref.union).members)
            base = place.rsplit(".", 1)[0]
        elif isinstance(ref, HeaderInst):
            place_in_union = self.model.headers[ref.index].union
            if place_in_union is None:
                return []
            union_index, position = place_in_union
            count = len(self.model.unions[union_index].members)
            base = self.union_inst(union_index)
        else:
            return []
        return [f"{base}.m{k}" for k in range(count) if k != position]
