# SPDX-License-Identifier: Apache-2.0
"""Reads BMv2's type-value objects into expressions and references.

A type-value object is a JSON object with the keys "type" and "value".
"""

from __future__ import annotations

from typing import TypeGuard

from tailrace.switch.compiler.expr import (
    ARITHMETIC,
    CASTS,
    COMPARISONS,
    LOGIC,
    ActionParam,
    BoolConst,
    Const,
    Expr,
    FieldRef,
    HeaderInst,
    HeaderRef,
    IsValid,
    IsValidUnion,
    Lookahead,
    Op,
    RegisterCell,
    SameHeader,
    SameUnion,
    StackCount,
    StackElem,
    StackLast,
    UnionInst,
    UnionMember,
    UnionRef,
    is_boolean,
)
from tailrace.switch.compiler.model import Stack
from tailrace.switch.compiler.read.headers import Headers
from tailrace.switch.compiler.read.node import JsonNode, lookup

Operand = Expr | HeaderRef | UnionRef | Stack


class ExprReader:
    """Converts JSON expressions to trees of ``compiler.expr``; resolves names of headers and registers."""

    def __init__(self, headers: Headers, registers: dict[str, int]) -> None:
        self.headers = headers
        self.registers = registers

    def number(self, node: JsonNode) -> Expr:
        """An expression that yields a number."""
        e = self.expr(node)
        if is_boolean(e):
            node.fail("expected a number, found a boolean expression")
        return e

    def as_number(self, node: JsonNode) -> Expr:
        """An expression that yields a number, or a boolean as 0 or 1."""
        e = self.expr(node)
        return Op("b2d", (e,)) if is_boolean(e) else e

    def boolean(self, node: JsonNode) -> Expr:
        """An expression that yields a boolean."""
        e = self.expr(node)
        if not is_boolean(e):
            node.fail("expected a boolean expression, found a number")
        return e

    def expr(self, node: JsonNode) -> Expr:
        """An expression that yields a number or a boolean."""
        return self._require_value(node, self.any(node))

    def _require_value(self, node: JsonNode, e: Operand) -> Expr:
        if isinstance(e, HeaderInst | StackElem | StackLast | UnionMember | UnionInst):
            node.fail("expected a value, found a header or union")
        if isinstance(e, Stack):
            node.fail("expected a value, found a stack")
        return e

    def header(self, node: JsonNode) -> HeaderRef:
        """An expression that yields a header."""
        e = self.any(node)
        if not self._is_header(e):
            node.fail("expected a header")
        return e

    def union(self, node: JsonNode) -> UnionRef:
        """An expression that yields a header union."""
        e = self.any(node)
        if not self._is_union(e):
            node.fail("expected a header union")
        return e

    def _is_header(self, e: Operand) -> TypeGuard[HeaderRef]:
        return isinstance(e, HeaderInst | StackElem | StackLast | UnionMember) and not self._is_union(e)

    def _is_union(self, e: Operand) -> TypeGuard[UnionRef]:
        if isinstance(e, StackElem):
            return self.headers.stacks[e.stack].of_unions
        return isinstance(e, UnionInst)

    def stack(self, node: JsonNode) -> Stack:
        """A stack of headers or of unions."""
        e = self.any(node)
        if not isinstance(e, Stack):
            node.fail("expected a header stack")
        return e

    def any(self, node: JsonNode) -> Operand:
        """The value, header, union or stack that a type-value object or an operator object denotes."""
        if node.get("op") is not None:
            return self._op(node)
        kind = node["type"].text()
        value = node["value"]
        if kind == "expression":
            return self.any(value)
        if kind == "field":
            return self.headers.field_ref(value)
        if kind == "hexstr":
            return Const(value.hex_number())
        if kind == "bool":
            return BoolConst(value.flag())
        if kind in ("local", "runtime_data"):
            return ActionParam(value.integer())
        return self._named(node, kind, value)

    def _named(self, node: JsonNode, kind: str, value: JsonNode) -> Operand:
        if kind == "header":
            return self.headers.header(value)
        if kind == "header_stack":
            return self.headers.stacks[lookup(self.headers.stack_names, value, "header stack")]
        if kind == "header_union":
            return UnionInst(lookup(self.headers.union_names, value, "header union"))
        if kind == "header_union_stack":
            return self.headers.stacks[lookup(self.headers.union_stack_names, value, "header union stack")]
        if kind == "stack_field":
            return self.headers.stack_field(value)
        if kind == "union_stack_field":
            return self.headers.union_stack_field(value)
        if kind == "lookahead":
            offset, bits = value.elements_of_length(2)
            return Lookahead(offset.integer(), bits.integer(1, 4096))
        if kind == "register":
            array, index_node = value.elements_of_length(2)
            return RegisterCell(lookup(self.registers, array, "register"), self.number(index_node))
        return node["type"].fail(f'type "{kind}" is not supported')

    def _op(self, node: JsonNode) -> Operand:
        op = node["op"].text()
        if op == "valid":
            return IsValid(self.header(node["right"]))
        if op == "valid_union":
            return IsValidUnion(self.union(node["right"]))
        if op in ("last_stack_index", "size_stack"):
            return StackCount(self.stack(node["right"]).index, op == "last_stack_index")
        if op in ("dereference_header_stack", "dereference_union_stack"):
            stack, kind = self.stack(node["left"]), op.removeprefix("dereference_").removesuffix("_stack")
            if stack.of_unions != (kind == "union"):
                node["left"].fail(f"expected a stack of {kind}s")
            return StackElem(stack.index, self.number(node["right"]))
        if op == "access_field":
            return self._access_field(node)
        if op == "access_union_header":
            union = self.union(node["left"])
            member = node["right"].integer()
            if member >= len(self.headers.union_of(union).members):
                node["right"].fail(f"the union has no member {member}")
            return UnionMember(union, member)
        return self._value_op(node, op)

    def _access_field(self, node: JsonNode) -> FieldRef:
        header = self.header(node["left"])
        position = node["right"].integer()
        if position >= len(self.headers.type_of(header).fields):
            node["right"].fail(f"the header has no field {position}")
        return FieldRef(header, position)

    def _value_op(self, node: JsonNode, op: str) -> Expr:
        if op in ("==", "!="):
            return self._equality(node, op)
        if op in COMPARISONS or op in ARITHMETIC or op in CASTS:
            if op in ("+", "-") and node.get("left") is None:
                right = self.number(node["right"])
                return right if op == "+" else Op("-", (Const(0), right))
            args = (self.number(node["left"]), self.number(node["right"]))
            if op in CASTS and not (isinstance(args[1], Const) and 1 <= args[1].value <= 4096):
                node["right"].fail(f"the width of {op} must be a constant from 1 to 4096")
            return Op(op, args)
        if op == "~":
            return Op("~", (self.number(node["right"]),))
        if op in LOGIC:
            if op == "not":
                return Op(op, (self.boolean(node["right"]),))
            return Op(op, (self.boolean(node["left"]), self.boolean(node["right"])))
        if op == "d2b":
            return Op(op, (self.number(node["right"]),))
        if op == "b2d":
            return Op(op, (self.boolean(node["right"]),))
        if op == "?":
            left, right = self.expr(node["left"]), self.expr(node["right"])
            if is_boolean(left) != is_boolean(right):
                node.fail("both branches of ?: must be numbers, or both booleans")
            return Op(op, (self.boolean(node["cond"]), left, right))
        return node["op"].fail(f'operator "{op}" is not supported')

    def _equality(self, node: JsonNode, op: str) -> Expr:
        left, right = self.any(node["left"]), self.any(node["right"])
        e: Expr
        if self._is_header(left) and self._is_header(right):
            # metadata, which BMv2's JSON also lists as headers, cannot be compared as a whole
            e = SameHeader(
                self.headers.require_packet_header(left, node["left"]),
                self.headers.require_packet_header(right, node["right"]),
            )
        elif self._is_union(left) and self._is_union(right):
            e = SameUnion(left, right)
        else:
            # uses `left` and `right`: reading operands again would take 2^n time for n nested comparisons
            pair = (self._require_value(node["left"], left), self._require_value(node["right"], right))
            if is_boolean(pair[0]) != is_boolean(pair[1]):
                node.fail("a number is compared with a boolean")
            return Op(op, pair)
        return e if op == "==" else Op("not", (e,))
