# SPDX-License-Identifier: Apache-2.0
"""Reads the parser, value sets and the deparser."""

from __future__ import annotations

from native.compiler.expr import (
    Const,
    Expr,
    FieldRef,
    HeaderInst,
    HeaderRef,
    Lookahead,
    Op,
    StackCount,
    ValidBit,
    is_boolean,
)
from native.compiler.model import (
    Advance,
    Extract,
    KeyPart,
    Parser,
    ParserOp,
    ParserSet,
    ParseState,
    Transition,
    ValueSet,
    Verify,
)
from native.compiler.node import Node, lookup
from native.compiler.read_actions import ActionReader
from native.compiler.read_headers import Headers


class ParserReader:
    """Reads one parser; value sets get their field widths from the selects that use them."""

    def __init__(self, headers: Headers, actions: ActionReader, vset_names: dict[str, int]) -> None:
        self.headers = headers
        self.actions = actions
        self.exprs = actions.exprs
        self.vset_names = vset_names
        self.vset_fields: dict[int, tuple[int, ...]] = {}

    def parser(self, node: Node) -> Parser:
        """Reads the states."""
        nodes = node["parse_states"].elements()
        names = {n["name"].text() for n in nodes}
        states = tuple(self._state(n, names) for n in nodes)
        init = node["init_state"].opt_text()
        if init is not None and init not in names:
            node["init_state"].fail(f'no state is named "{init}"')
        return Parser(init, states)

    def _state(self, node: Node, names: set[str]) -> ParseState:
        ops = tuple(self._op(n) for n in node["parser_ops"].elements())
        key = tuple(self._key_part(n) for n in node["transition_key"].elements())
        default: str | None = None
        cases: list[Transition] = []
        for t in node["transitions"].elements():
            next_state = t["next_state"].opt_text()
            if next_state is not None and next_state not in names:
                t["next_state"].fail(f'no state is named "{next_state}"')
            kind = t["type"].text()
            if kind == "default":
                default = next_state
            elif kind == "hexstr":
                cases.append(self._case(t, key, next_state))
            elif kind == "parse_vset":
                cases.append(self._vset_case(t, key, next_state))
            else:
                t["type"].fail(f'transition type "{kind}" is not supported')
        return ParseState(node["name"].text(), ops, key, tuple(cases), default)

    def _key_part(self, node: Node) -> KeyPart:
        e = self.exprs.number(node)
        if isinstance(e, Lookahead):
            return KeyPart(e, e.bits)
        if isinstance(e, ValidBit):
            return KeyPart(e, 1)
        if isinstance(e, StackCount):
            return KeyPart(e, 32)
        if not isinstance(e, FieldRef):
            node.fail("expected a field, a lookahead or the index of a stack's last element")
        ftype = self.headers.types[self.headers.type_of(e.header)].fields[e.field]
        if ftype.varbit:
            node.fail("a varbit field cannot be a transition key")
        return KeyPart(e, ftype.bits)

    def _case(self, node: Node, key: tuple[KeyPart, ...], next_state: str | None) -> Transition:
        value = node["value"].hex_number()
        mask_node = node.get("mask")
        total = sum((k.bits + 7) // 8 for k in key) * 8
        mask = (1 << total) - 1 if mask_node is None else mask_node.hex_number()
        values: list[tuple[int, int]] = []
        shift = total
        for part in key:
            width = (part.bits + 7) // 8 * 8
            shift -= width
            part_mask = (1 << part.bits) - 1
            m = mask >> shift & ((1 << width) - 1) & part_mask
            values.append((value >> shift & ((1 << width) - 1) & m, m))
        if value >> total:
            node["value"].fail("wider than the transition key")
        return Transition(tuple(values), None, None, next_state)

    def _vset_case(self, node: Node, key: tuple[KeyPart, ...], next_state: str | None) -> Transition:
        vset = lookup(self.vset_names, node["value"], "value set")
        widths = tuple(k.bits for k in key)
        if self.vset_fields.setdefault(vset, widths) != widths:
            node.fail("one value set is used with keys of different widths")
        mask_node = node.get("mask")
        size = sum((k.bits + 7) // 8 for k in key)
        mask = (
            None
            if mask_node is None
            else (mask_node.hex_number() & ((1 << 8 * size) - 1)).to_bytes(size, "big")
        )
        return Transition(None, vset, mask, next_state)

    def _op(self, node: Node) -> ParserOp:
        op = node["op"].text()
        args = node["parameters"].elements()
        if op == "extract" and len(args) == 1:
            return self._extract(args[0], None)
        if op == "extract_VL" and len(args) == 2:
            return self._extract(args[0], self.exprs.number(args[1]))
        if op == "set" and len(args) == 2:
            value = self.exprs.expr(args[1])
            target = self.exprs.expr(args[0])
            if not isinstance(target, FieldRef):
                args[0].fail("expected a field")
            return ParserSet(target, Op("b2d", (value,)) if is_boolean(value) else value)
        if op == "verify" and len(args) == 2:
            condition = self.exprs.expr(args[0])
            return Verify(condition, self.exprs.number(args[1]))
        if op == "advance" and len(args) == 1:
            return Advance(self.exprs.number(args[0]))
        if op == "shift" and len(args) == 1:
            return Advance(Const(8 * args[0]["value"].integer()))
        if op == "primitive" and len(args) == 1:
            self.actions.params = 0
            return self.actions.primitive(args[0])
        return node["op"].fail(f'parser operation "{op}" with {len(args)} parameters is not supported')

    def _extract(self, node: Node, length: Expr | None) -> Extract:
        kind, value = node["type"].text(), node["value"]
        stack: int | None = None
        union_stack: tuple[int, int] | None = None
        target: HeaderRef | None = None
        if kind == "regular":
            target = self.headers.header(value)
            type_index = self.headers.type_of(target)
        elif kind == "stack":
            stack = lookup(self.headers.stack_names, value, "header stack")
            type_index = self.headers.stacks[stack].type
        elif kind == "union_stack":
            name, member = value.pair()
            index = lookup(self.headers.union_stack_names, name, "header union stack")
            union_stack = (index, self.headers.member_of_stack(index, member))
            union = self.headers.unions[self.headers.union_stacks[index].unions[0]]
            type_index = self.headers.headers[union.members[union_stack[1]]].type
        else:
            node["type"].fail(f'extraction to a "{kind}" is not supported')
        htype = self.headers.types[type_index]
        if (length is None) != (htype.varbit is None):
            node.fail(f'header "{htype.name}" and the extraction do not agree about a varbit field')
        most = htype.fixed_bits // 8
        if htype.varbit is not None:
            most += htype.fields[htype.varbit].bits // 8
        return Extract(target, stack, union_stack, length, most)


def read_vsets(root: Node, fields: dict[int, tuple[int, ...]]) -> tuple[ValueSet, ...]:
    """Reads the value sets; ``fields`` are the key widths of the selects that use them."""
    sets = []
    for index, node in enumerate(root.optional_elements("parse_vsets")):
        bits = node["compressed_bitwidth"].integer()
        size_node = node.get("max_size")
        size = 65536 if size_node is None else size_node.integer()
        sets.append(ValueSet(index, node["name"].text(), bits, size, fields.get(index, (bits,))))
    return tuple(sets)


def read_deparser(node: Node, headers: Headers) -> tuple[HeaderInst, ...]:
    """The headers in the order in which the deparser emits them."""
    return tuple(headers.header(n) for n in node["order"].elements())
