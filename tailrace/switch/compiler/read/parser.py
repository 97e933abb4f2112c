# SPDX-License-Identifier: Apache-2.0
"""Reads the parser, value sets and the deparser."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tailrace.switch.compiler.expr import (
    ActionParam,
    Const,
    Expr,
    FieldRef,
    HeaderInst,
    HeaderRef,
    Lookahead,
    Op,
    StackCount,
    StackLast,
    UnionMember,
    ValidBit,
)
from tailrace.switch.compiler.model import (
    Advance,
    Extract,
    HeaderType,
    KeyPart,
    Parser,
    ParserOp,
    ParserSet,
    ParseState,
    Transition,
    ValueSet,
    Verify,
)
from tailrace.switch.compiler.read.actions import ActionReader
from tailrace.switch.compiler.read.headers import Headers
from tailrace.switch.compiler.read.node import JsonNode, add_name, lookup


class ParserReader:
    """Reads the parser; collects the field widths of value sets from the selects that use them."""

    def __init__(
        self, headers: Headers, actions: ActionReader, vset_names: dict[str, int], errors: Collection[int]
    ) -> None:
        self.headers = headers
        self.errors = errors
        self.actions = actions
        self.exprs = actions.exprs
        self.vset_names = vset_names
        self.vset_fields: dict[int, tuple[int, ...]] = {}

    def parser(self, node: JsonNode) -> Parser:
        """Reads the states."""
        nodes = node.optional_elements("parse_states")
        names: dict[str, int] = {}
        for n in nodes:
            add_name(names, n, len(names), "parse state")
        states = tuple(self._state(n, names) for n in nodes)
        return Parser(_next_state(node, "init_state", names), states)

    def _state(self, node: JsonNode, names: dict[str, int]) -> ParseState:
        ops = tuple(self._op(n) for n in node.optional_elements("parser_ops"))
        key = tuple(self._key_part(n) for n in node.optional_elements("transition_key"))
        default: str | None = None
        cases: list[Transition] = []
        for t in node.optional_elements("transitions"):
            next_state = _next_state(t, "next_state", names)
            # before JSON 2.18, transitions had no type, and the value of the default was "default"
            kind = t.text_at("type", "hexstr")
            if kind == "hexstr" and t.text_at("value", "") == "default":
                kind = "default"
            if kind == "default":
                default = next_state
            elif kind == "hexstr":
                cases += self._cases(t, key, next_state)
            elif kind == "parse_vset":
                cases.append(self._vset_case(t, key, next_state))
            else:
                t["type"].fail(f'transition type "{kind}" is not supported')
        return ParseState(node["name"].text(), ops, key, tuple(cases), default)

    def _key_part(self, node: JsonNode) -> KeyPart:
        e = self.exprs.number(node)
        if isinstance(e, Lookahead):
            return KeyPart(e, e.bits)
        if isinstance(e, ValidBit):
            return KeyPart(e, 1)
        if isinstance(e, StackCount):
            return KeyPart(e, 32)
        if not isinstance(e, FieldRef):
            node.fail("expected a field, a lookahead or the index of a stack's last element")
        ftype = self.headers.field_type(e)
        if ftype.varbit:
            node.fail("a varbit field cannot be a transition key")
        return KeyPart(e, ftype.bits)

    def _cases(self, node: JsonNode, key: tuple[KeyPart, ...], next_state: str | None) -> list[Transition]:
        """The transition of a case, as a list; empty if no key can match it.

        BMv2 compares whole bytes: a value with a bit above the width of a key part never matches.
        """
        value = node["value"].hex_number()
        mask_node = node.get("mask")
        total = sum((k.bits + 7) // 8 for k in key) * 8
        mask = (1 << total) - 1 if mask_node is None else mask_node.hex_number()
        values: list[tuple[int, int]] = []
        shift = total
        if value >> total:
            node["value"].fail("wider than the transition key")
        for part in key:
            width = (part.bits + 7) // 8 * 8
            shift -= width
            m = mask >> shift & ((1 << width) - 1)
            v = value >> shift & m
            if v >> part.bits:
                return []
            values.append((v, m & (1 << part.bits) - 1))
        return [Transition(tuple(values), None, None, next_state)]  # no value set, and no mask of its values

    def _vset_case(self, node: JsonNode, key: tuple[KeyPart, ...], next_state: str | None) -> Transition:
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

    def _op(self, node: JsonNode) -> ParserOp:
        op = node["op"].text()
        args = node.optional_elements("parameters")
        if op == "extract" and len(args) == 1:
            return self._extract(args[0], None)
        if op == "extract_VL" and len(args) == 2:
            return self._extract(args[0], self.exprs.number(args[1]))
        if op == "set" and len(args) == 2:
            target = self.exprs.expr(args[0])
            if not isinstance(target, FieldRef):
                args[0].fail("expected a field")
            return ParserSet(target, self.exprs.as_number(args[1]))
        if op == "verify" and len(args) == 2:
            condition = self.exprs.expr(args[0])
            return Verify(condition, self._error_code(args[1]))
        if op == "advance" and len(args) == 1:
            return Advance(self.exprs.number(args[0]))
        if op == "shift" and len(args) == 1:
            return Advance(Const(8 * args[0].integer()))  # from bytes to bits
        if op == "primitive" and len(args) == 1:
            self.actions.param_count = 0
            return self.actions.primitive(args[0])
        return node["op"].fail(f'parser operation "{op}" with {len(args)} parameters is not supported')

    def _error_code(self, node: JsonNode) -> Expr:
        """An expression or, in the first versions of the format, the number of a declared error."""
        if isinstance(node.value, int):
            number = node.integer(0, 2**31 - 1)
            if number not in self.errors:
                node.fail(f"no error has the number {number}")
            return Const(number)
        return self.exprs.number(node)

    def _length_of_type(self, htype: HeaderType) -> Expr | None:
        """The width of a varbit field if its header type computes it from other fields, as in P4_14.

        The expression may use only fields before the varbit field. Their offsets are constant, so lookaheads
        read them.
        """
        node = self.headers.lengths.get(htype.index)
        if node is None:
            return None
        offset, fields_before = 0, []
        for f in htype.wire[: htype.varbit]:
            e: Expr = Lookahead(offset, f.bits)
            # two_comp_mod: cast to int<W>
            fields_before.append(Op("two_comp_mod", (e, Const(f.bits))) if f.signed else e)
            offset += f.bits
        # the JSON refers to these fields by index, like to action parameters
        try:
            return _with_fields(self.exprs.number(node), fields_before)
        except IndexError:
            return node.fail("the length may depend only on fields before the varbit field")

    def _extract(self, node: JsonNode, length: Expr | None) -> Extract:
        kind, value = node["type"].text(), node["value"]
        target: HeaderRef
        if kind == "regular":
            target = self.headers.packet_header(value)
        elif kind == "stack":
            target = StackLast(lookup(self.headers.stack_names, value, "header stack"))
        elif kind == "union_stack":
            name, member = value.elements_of_length(2)
            index = lookup(self.headers.union_stack_names, name, "header union stack")
            target = UnionMember(StackLast(index), self.headers.member_of_stack(index, member))
        else:
            node["type"].fail(f'extraction to a "{kind}" is not supported')
        htype = self.headers.type_of(target)
        if length is None:
            length = self._length_of_type(htype)
        if (length is None) != (htype.varbit is None):
            node.fail(f'extract: a length is needed if and only if header "{htype.name}" has a varbit field')
        max_bytes = htype.fixed_bits // 8
        if htype.varbit is not None:
            max_bytes += htype.fields[htype.varbit].bits // 8
        return Extract(target, length, max_bytes)


def _with_fields(e: Expr, fields: Sequence[Expr]) -> Expr:
    """The expression with each action parameter replaced by the field at its index.

    Raises:
        IndexError: the expression reads a parameter for which there is no field.
    """
    if isinstance(e, ActionParam):
        return fields[e.index]
    return Op(e.name, tuple(_with_fields(a, fields) for a in e.args)) if isinstance(e, Op) else e


def _next_state(node: JsonNode, key: str, names: dict[str, int]) -> str | None:
    """The name of the next state, under a key; None means the end of the parser."""
    name = node.name_at(key)
    if name is not None and name not in names:
        node[key].fail(f'no state is named "{name}"')
    return name


def read_vsets(root: JsonNode, fields: dict[int, tuple[int, ...]]) -> tuple[ValueSet, ...]:
    """Reads the value sets; ``fields`` are the key widths of the selects that use them."""
    sets = []
    for index, node in enumerate(root.optional_elements("parse_vsets")):
        bits = node["compressed_bitwidth"].integer(0, 65536)
        size = node.integer_at("max_size", 65536)
        sets.append(ValueSet(index, node["name"].text(), bits, size, fields.get(index, (bits,))))
    return tuple(sets)


def read_deparser(node: JsonNode, headers: Headers) -> tuple[HeaderInst, ...]:
    """The headers in the order in which the deparser emits them."""
    return tuple(headers.packet_header(n) for n in node.optional_elements("order"))
