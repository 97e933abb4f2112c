# SPDX-License-Identifier: Apache-2.0
"""Reads actions and the primitives in them (core and simple_switch primitives of BMv2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tailrace.native.compiler.expr import Const, Expr, FieldRef, Op, is_boolean
from tailrace.native.compiler.model import Action, Param, Primitive, Source
from tailrace.native.compiler.read.expr import ExprReader
from tailrace.native.compiler.read.node import Node, lookup
from tailrace.native.compiler.walk import locals_of


@dataclass(slots=True)
class Names:
    """Indexes of the named objects that primitives refer to."""

    registers: dict[str, int]
    counters: dict[str, int]
    meters: dict[str, int]
    calculations: dict[str, int]
    field_lists: set[int]
    digests: dict[int, int]


def source_of(node: Node) -> Source | None:
    """The place in the P4 program that a JSON object came from, if it says so."""
    info = node.get("source_info")
    if info is None:
        return None
    name, line = info.get("filename"), info.get("line")
    if name is None or line is None:
        return None
    return Source(name.text(), line.integer())


# P4_14 arithmetic primitives, as operators
_BINARY = {
    "add": "+",
    "subtract": "-",
    "bit_xor": "^",
    "bit_or": "|",
    "bit_and": "&",
    "shift_left": "<<",
    "shift_right": ">>",
}


class ActionReader:
    """Reads action bodies; one method for each family of primitives."""

    def __init__(self, exprs: ExprReader, names: Names) -> None:
        self.exprs = exprs
        self.names = names
        self.params = 0
        self._simple: dict[str, Callable[[list[Node]], tuple[object, ...]]] = {
            "assign": self._assign,
            "assign_VL": lambda a: (self._field(a[0]), self._field(a[1])),
            "assign_header": lambda a: (self.exprs.header(a[0]), self.exprs.header(a[1])),
            "assign_union": lambda a: (self.exprs.union(a[0]), self.exprs.union(a[1])),
            "assign_header_stack": self._stacks,
            "assign_union_stack": self._stacks,
            "add_header": lambda a: (self.exprs.header(a[0]),),
            "mark_to_drop": self._standard_header,
            "remove_header": lambda a: (self.exprs.header(a[0]),),
            "push": lambda a: (self.exprs.stack(a[0]), self.exprs.number(a[1])),
            "pop": lambda a: (self.exprs.stack(a[0]), self.exprs.number(a[1])),
            "register_read": lambda a: (self._cut_field(a[0]), self._register(a[1]), self._num(a[2])),
            "register_write": lambda a: (self._register(a[0]), self._num(a[1]), self._num(a[2])),
            "count": lambda a: (self._object(a[0], self.names.counters, "counter"), self._num(a[1])),
            "execute_meter": lambda a: (
                self._object(a[0], self.names.meters, "meter"),
                self._num(a[1]),
                self._cut_field(a[2]),
            ),
            "modify_field_rng_uniform": lambda a: (self._cut_field(a[0]), self._num(a[1]), self._num(a[2])),
            "modify_field_with_hash_based_offset": lambda a: (
                self._cut_field(a[0]),
                self._num(a[1]),
                self._object(a[2], self.names.calculations, "calculation"),
                self._num(a[3]),
            ),
            "clone_ingress_pkt_to_egress": lambda a: (self._num(a[0]), self._list(a[1])),
            "clone_egress_pkt_to_egress": lambda a: (self._num(a[0]), self._list(a[1])),
            "resubmit": lambda a: (self._list(a[0]),),
            "recirculate": lambda a: (self._list(a[0]),),
            "generate_digest": lambda a: (self._digest(a[1]),),
            "truncate": lambda a: (self._num(a[0]),),
            "assert": lambda a: (self.exprs.expr(a[0]),),
            "assume": lambda a: (self.exprs.expr(a[0]),),
            "log_msg": self._log_msg,
            "_jump": lambda a: (self._offset(a[0]),),
            "_jump_if_zero": lambda a: (self.exprs.expr(a[0]), self._offset(a[1])),
        }
        self._arity = {"register_read": 3, "register_write": 3, "execute_meter": 3}
        self._arity |= {"modify_field_rng_uniform": 3, "modify_field_with_hash_based_offset": 4}
        for one in ("mark_to_drop", "add_header", "remove_header", "resubmit", "recirculate", "truncate"):
            self._arity[one] = 1
        self._arity |= {"assert": 1, "assume": 1, "_jump": 1}

    def action(self, index: int, node: Node) -> Action:
        """Reads one action."""
        params = []
        for p in node.optional_elements("runtime_data"):
            params.append(Param(p["name"].text(), p["bitwidth"].integer(0, 4096)))
        self.params = len(params)
        calls = node.optional_elements("primitives")
        body = tuple(self.primitive(p, len(calls)) for p in calls)
        return Action(index, node["name"].text(), tuple(params), body, source_of(node))

    def primitive(self, node: Node, body_length: int = 0) -> Primitive:
        """Reads one primitive call."""
        op = node["op"].text()
        args = node.optional_elements("parameters")
        info = node.get("source_info")
        fragment = info.get("source_fragment") if info is not None else None
        text = fragment.text() if fragment is not None else ""
        place = source_of(node)
        op, operands = self._operands(node, op, args)
        for target in operands[-1:] if op in ("_jump", "_jump_if_zero") else ():
            if not isinstance(target, int) or target > body_length:
                node.fail("jump target outside the action")
        for operand in operands:
            self._check_locals(node, operand)
        return Primitive(op, operands, place, text)

    def _operands(self, node: Node, op: str, args: list[Node]) -> tuple[str, tuple[object, ...]]:
        if op in ("exit", "no_op"):
            return op, ()
        if op == "drop":
            return op, ()
        if op == "modify_field":
            op = "assign"
        if op == "copy_header":
            op = "assign_header"
        if op in _BINARY or op in ("add_to_field", "subtract_from_field"):
            return "assign", self._p4_14(node, op, args)
        read = self._simple.get(op)
        if read is None:
            node["op"].fail(f'primitive "{op}" is not supported')
        expected = self._arity.get(op, 2)
        if len(args) != expected:
            node["parameters"].fail(f'primitive "{op}" takes {expected} parameters')
        return op, read(args)

    def _p4_14(self, node: Node, op: str, args: list[Node]) -> tuple[object, ...]:
        in_place = op in ("add_to_field", "subtract_from_field")
        if len(args) != (2 if in_place else 3):
            node["parameters"].fail(f'wrong number of parameters of "{op}"')
        dst = self._field(args[0])
        if in_place:
            sign = "+" if op == "add_to_field" else "-"
            return dst, Op(sign, (dst, self._num(args[1])))
        return dst, Op(_BINARY[op], (self._num(args[1]), self._num(args[2])))

    def _check_locals(self, node: Node, operand: object) -> None:
        for index in locals_of(operand):
            if index >= self.params:
                node.fail(f"parameter {index} is used, the action has {self.params}")

    def _assign(self, args: list[Node]) -> tuple[object, ...]:
        value = self.exprs.expr(args[1])
        return self._field(args[0]), Op("b2d", (value,)) if is_boolean(value) else value

    def _standard_header(self, args: list[Node]) -> tuple[object, ...]:
        """The fields egress_spec and mcast_grp of standard_metadata or of a copy of it."""
        header = self.exprs.headers.header(args[0]["value"])
        kind = self.exprs.headers.type_of(header)
        fields = self.exprs.headers.positions[kind]
        if "egress_spec" not in fields:
            args[0].fail("expected standard_metadata or a copy of it")
        found = [FieldRef(header, fields[name]) for name in ("egress_spec", "mcast_grp") if name in fields]
        return (tuple(found),)

    def _stacks(self, args: list[Node]) -> tuple[object, ...]:
        left, right = self.exprs.stack(args[0]), self.exprs.stack(args[1])
        if left[1] != right[1]:
            args[0].fail("a stack of headers is assigned to one of unions")
        return left, right

    def _field(self, node: Node) -> FieldRef:
        e = self.exprs.expr(node)
        if not isinstance(e, FieldRef):
            node.fail("expected a field that can be written")
        return e

    def _cut_field(self, node: Node) -> FieldRef:
        """A field that a primitive other than an assignment writes, which cuts the value."""
        ref = self._field(node)
        headers = self.exprs.headers
        if headers.types[headers.type_of(ref.header)].fields[ref.field].saturating:
            node.fail("this primitive cannot write a saturating field")
        return ref

    def _num(self, node: Node) -> Expr:
        return self.exprs.number(node)

    def _register(self, node: Node) -> int:
        return self._object(node, self.names.registers, "register")

    def _object(self, node: Node, table: dict[str, int], what: str) -> int:
        return lookup(table, node["value"], what)

    def _offset(self, node: Node) -> int:
        e = self.exprs.expr(node)
        if not isinstance(e, Const) or e.value < 0:
            node.fail("expected a constant jump target")
        return e.value

    def _list(self, node: Node) -> int:
        """A field list id; 0 (none) and, as p4c uses it for "no fields", an unknown id keep nothing."""
        e = self.exprs.expr(node)
        if not isinstance(e, Const) or not 0 <= e.value < 2**15:
            node.fail("expected a constant field list")
        return e.value

    def _digest(self, node: Node) -> int:
        e = self.exprs.expr(node)
        if not isinstance(e, Const) or e.value not in self.names.digests:
            node.fail("no such digest")
        return self.names.digests[e.value]

    def _log_msg(self, args: list[Node]) -> tuple[object, ...]:
        text = args[0]["value"].text()
        values = args[1]["value"]
        if not values.value:
            return text, ()
        numbers = []
        for n in values.elements():
            e = self.exprs.expr(n)
            numbers.append(Op("b2d", (e,)) if is_boolean(e) else e)
        return text, tuple(numbers)
