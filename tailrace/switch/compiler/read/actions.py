# SPDX-License-Identifier: Apache-2.0
"""Reads actions and the primitives in them (core and simple_switch primitives of BMv2).

Const, FieldRef and Op are nodes of expressions (compiler/expr.py): a constant, a field, an operation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tailrace.switch.compiler.expr import ActionParam, Const, Expr, FieldRef, Op, parts
from tailrace.switch.compiler.model import Action, Param, Primitive, Source
from tailrace.switch.compiler.read.expr import ExprReader
from tailrace.switch.compiler.read.node import JsonNode, lookup


@dataclass(slots=True)
class ActionScope:
    """Indexes of the named objects that primitives refer to."""

    registers: dict[str, int]
    counters: dict[str, int]
    meters: dict[str, int]
    calculations: dict[str, int]
    field_lists: set[int]
    digests: dict[int, int]


def source_of(node: JsonNode) -> Source | None:
    """The file and line in the P4 source, if the JSON object contains them."""
    info = node.get("source_info")
    if info is None:
        return None
    name, line = info.get("filename"), info.get("line")
    if name is None or line is None:
        return None
    return Source(name.text(), line.integer())


def source_text(node: JsonNode) -> str:
    """The P4 source of a statement or condition, if the JSON object contains it; else ""."""
    info = node.get("source_info")
    return "" if info is None else info.text_at("source_fragment", "")


_SYNONYMS = {"modify_field": "assign", "copy_header": "assign_header"}

_IN_PLACE = {"add_to_field": "+", "subtract_from_field": "-"}

# operators of the arithmetic primitives of P4_14
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
    """Reads actions and the primitives in their bodies."""

    def __init__(self, exprs: ExprReader, names: ActionScope) -> None:
        self.exprs = exprs
        self.names = names
        self.param_count = 0
        field, truncated, num = self._field, self._truncated_field, exprs.number
        header, union, stack, expr = exprs.header, exprs.union, exprs.stack, exprs.expr
        fields, jump_target = self._field_list, self._jump_target
        register = self._object(names.registers, "register")
        counter, meter = self._object(names.counters, "counter"), self._object(names.meters, "meter")
        calculation = self._object(names.calculations, "calculation")
        # by primitive: the function that reads each parameter; None: the parameter is ignored
        self._simple: dict[str, tuple[Callable[[JsonNode], Any] | None, ...]] = {
            "exit": (),
            "no_op": (),
            "drop": (),
            "assign": (field, exprs.as_number),
            "assign_VL": (field, field),
            "assign_header": (header, header),
            "assign_union": (union, union),
            "assign_header_stack": (stack, stack),
            "assign_union_stack": (stack, stack),
            "add_header": (header,),
            "mark_to_drop": (self._standard_header,),
            "remove_header": (header,),
            "push": (stack, num),
            "pop": (stack, num),
            "register_read": (truncated, register, num),
            "register_write": (register, num, num),
            "count": (counter, num),
            "execute_meter": (meter, num, truncated),
            "modify_field_rng_uniform": (truncated, num, num),
            "modify_field_with_hash_based_offset": (truncated, num, calculation, num),
            "clone_ingress_pkt_to_egress": (num, fields),
            "clone_egress_pkt_to_egress": (num, fields),
            "resubmit": (fields,),
            "recirculate": (fields,),
            "generate_digest": (None, self._digest),
            "truncate": (num,),
            "assert": (expr,),
            "assume": (expr,),
            "log_msg": (lambda node: node["value"].text(), self._logged),
            "_jump": (jump_target,),
            "_jump_if_zero": (expr, jump_target),
        }

    def action(self, index: int, node: JsonNode) -> Action:
        """Reads an action."""
        params = []
        for p in node.optional_elements("runtime_data"):
            params.append(Param(p["name"].text(), p["bitwidth"].integer(0, 4096)))
        self.param_count = len(params)
        calls = node.optional_elements("primitives")
        body = tuple(self.primitive(p, len(calls)) for p in calls)
        return Action(index, node["name"].text(), tuple(params), body, source_of(node))

    def primitive(self, node: JsonNode, body_length: int = 0) -> Primitive:
        """Reads one primitive call; `body_length` is the number of primitives of its action.

        0: the primitive is not in an action, so it cannot be a jump.
        """
        op = node["op"].text()
        args = node.optional_elements("parameters")
        op, operands = self._operands(node, op, args)
        for target in operands[-1:] if op in ("_jump", "_jump_if_zero") else ():
            if not body_length or not isinstance(target, int) or target > body_length:
                node.fail("jump target outside the action")
        for operand in operands:
            self._check_params(node, operand)
        return Primitive(op, operands, source_of(node), source_text(node))

    def _operands(self, node: JsonNode, op: str, args: list[JsonNode]) -> tuple[str, tuple[object, ...]]:
        op = _SYNONYMS.get(op, op)
        if op in _BINARY or op in _IN_PLACE:
            return "assign", self._arithmetic_operands(node, op, args)
        readers = self._simple.get(op)
        if readers is None:
            node["op"].fail(f'primitive "{op}" is not supported')
        # as in BMv2, primitives that take no parameters ignore the parameters in the JSON
        if len(args) != len(readers) and readers:
            node["parameters"].fail(f'primitive "{op}" takes {len(readers)} parameters')
        pairs = zip(readers, args, strict=False)
        operands = tuple(read(arg) for read, arg in pairs if read is not None)
        stacks = operands if op in ("assign_header_stack", "assign_union_stack") else ()
        if len({stack.of_unions for stack in stacks}) > 1:
            args[0].fail("one stack is of headers, the other of unions: they cannot be assigned")
        return op, operands

    def _arithmetic_operands(self, node: JsonNode, op: str, args: list[JsonNode]) -> tuple[object, ...]:
        operator = _IN_PLACE.get(op)
        if len(args) != (3 if operator is None else 2):
            node["parameters"].fail(f'wrong number of parameters of "{op}"')
        dst = self._field(args[0])
        if operator is not None:
            return dst, Op(operator, (dst, self.exprs.number(args[1])))
        return dst, Op(_BINARY[op], (self.exprs.number(args[1]), self.exprs.number(args[2])))

    def _check_params(self, node: JsonNode, operand: object) -> None:
        """Checks the indexes of the action parameters that an operand reads."""
        for part in parts(operand):
            if isinstance(part, ActionParam) and part.index >= self.param_count:
                problem = f"but the action has only {self.param_count} parameters"
                node.fail(f"parameter {part.index} is used, {problem}")

    def _standard_header(self, node: JsonNode) -> tuple[FieldRef, ...]:
        """The fields egress_spec and mcast_grp of standard_metadata or of a header of the same type."""
        header = self.exprs.headers.header(node["value"])
        fields = self.exprs.headers.positions[self.exprs.headers.type_of(header).index]
        if "egress_spec" not in fields:
            node.fail("expected standard_metadata or a copy of it")
        return tuple(
            FieldRef(header, fields[name]) for name in ("egress_spec", "mcast_grp") if name in fields
        )

    def _field(self, node: JsonNode) -> FieldRef:
        e = self.exprs.expr(node)
        if not isinstance(e, FieldRef):
            node.fail("expected a field that can be written")
        return e

    def _truncated_field(self, node: JsonNode) -> FieldRef:
        """A field that a primitive other than an assignment writes; such primitives truncate the value."""
        ref = self._field(node)
        if self.exprs.headers.field_type(ref).saturating:
            node.fail("this primitive cannot write a saturating field")
        return ref

    @staticmethod
    def _object(table: dict[str, int], what: str) -> Callable[[JsonNode], int]:
        """A function that reads the name of an object and returns the object's index."""
        return lambda node: lookup(table, node["value"], what)

    def _jump_target(self, node: JsonNode) -> int:
        e = self.exprs.expr(node)
        if not isinstance(e, Const) or e.value < 0:
            node.fail("expected a constant jump target")
        return e.value

    def _field_list(self, node: JsonNode) -> int:
        """A field list id; 0 and unknown ids, which p4c writes for empty lists, preserve no fields."""
        e = self.exprs.expr(node)
        if not isinstance(e, Const) or not 0 <= e.value < 2**15:
            node.fail("expected a constant field list")
        return e.value

    def _digest(self, node: JsonNode) -> int:
        e = self.exprs.expr(node)
        if not isinstance(e, Const) or e.value not in self.names.digests:
            node.fail("no such digest")
        return self.names.digests[e.value]

    def _logged(self, node: JsonNode) -> tuple[Expr, ...]:
        values = node["value"]
        return tuple(map(self.exprs.as_number, values.elements())) if values.value else ()
