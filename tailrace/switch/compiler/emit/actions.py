# SPDX-License-Identifier: Apache-2.0
"""C text of actions: one C function for each action, one C block for each primitive in the action.

Terms of other files used here: places are C lvalues of headers, fields and stacks. ``Values.clean(e, bits)``
is C text of an expression's value modulo 2^bits, ``Values.index(e)`` of its value as uint64_t. In tracing
builds (tr_tracer.h), ``CodeWriter.trace`` emits code that records a step, ``count_point`` code that counts
its executions. ``tr_undo_save`` saves state in a dry run, before a write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tailrace.switch.compiler.emit.locals import Locals
from tailrace.switch.compiler.emit.lvalues import field_name, set_valid
from tailrace.switch.compiler.emit.text import CodeWriter, counted, identifier, string
from tailrace.switch.compiler.emit.values import Val, Values, kind_of
from tailrace.switch.compiler.errors import CompilerError
from tailrace.switch.compiler.expr import Expr, FieldRef, HeaderInst, HeaderRef, StackLast, UnionRef
from tailrace.switch.compiler.model import Action, HeaderType, Model, Primitive, Stack, limbs_of

_INLINED_PRIMITIVES = 32
"""Actions of up to this many primitives are inlined at each call; larger actions only if called once."""


def action_name(a: Action) -> str:
    """The name of an action's C function."""
    return f"action_{a.index}_{identifier(a.name)}"


def emit_actions(code: CodeWriter, model: Model, c_locals: Locals) -> None:
    """Emits all actions as functions ``action_N(s, p, h, l, d)``: switch, packet, PHV, C locals, action data.

    The PHV contains the headers and metadata of the packet, except metadata that are C locals (locals.py).
    ``d`` contains the action's parameters as limbs: 64-bit words of each parameter, the lowest word first.
    """
    call_counts = _call_counts(model)
    for a in model.actions:
        if a.source is not None:
            code.comment("action", a.name, "line", a.source.line)
        inlined = call_counts[a.index] <= 1 or len(a.body) <= _INLINED_PRIMITIVES
        qualifiers = "TR_INLINE" if inlined else "static"
        code.line(f"{qualifiers} void {action_name(a)}(tr_switch *s, tr_pkt *p,")
        code.open("    struct tr_phv *h, struct tr_locals *l, const uint64_t *d)")
        if code.tracing:
            head = f"(const uint64_t[]){{TR_RECORD_ACTION, {a.index}}}"
            code.line(f"tr_trace_bytes(s, p, {head}, 2, d, {8 * a.limbs});")
            code.count_point("action", a.index)
        body = ActionBody(Values(code, model, c_locals, a.params), "end")
        targets = {p.args[-1] for p in a.body if p.op in ("_jump", "_jump_if_zero")}
        if any(isinstance(t, int) and t <= i for i, p in enumerate(a.body) for t in _jump_targets(p)):
            code.line("uint32_t jumps = 0;")
        for i, primitive in enumerate(a.body):
            if i in targets:
                code.line(f"at_{i}:;")
            code.open("")
            code.trace("TR_RECORD_STEP", "TR_OWNER_ACTION", a.index, i)
            code.count_point("statement", a.index, i)
            body.primitive(primitive, i)
            code.close()
            code.trace_changes()
        if len(a.body) in targets:
            code.line(f"at_{len(a.body)}:;")
        code.line("end:;")
        code.close()


def _call_counts(model: Model) -> Counter[int]:
    """The number of calls of each action in the program, by the action's index."""
    counts: Counter[int] = Counter()
    for pipeline in (model.ingress, model.egress):
        counts.update(call.action for call in pipeline.calls)
        for i in pipeline.tables:
            table = model.tables[i]
            counts.update(table.actions)
            if table.default_action is not None and table.default_action not in table.actions:
                counts[table.default_action] += 1
    return counts


def may_exit(a: Action) -> bool:
    """Whether an action may end the pipeline: by exit, a failed assertion or an endless loop."""
    return any(
        p.op in ("exit", "assert", "assume") or any(isinstance(t, int) and t <= i for t in _jump_targets(p))
        for i, p in enumerate(a.body)
    )


def _jump_targets(p: Primitive) -> list[Any]:
    return [p.args[-1]] if p.op in ("_jump", "_jump_if_zero") else []


class ActionBody:
    """Emits the primitives of an action. ``end`` is the C label after the last primitive."""

    def __init__(self, values: Values, end: str) -> None:
        self.code, self.model, self.values, self.end = values.code, values.model, values, end
        self.position = 0

    def primitive(self, p: Primitive, position: int) -> None:
        """Emits one primitive; ``position`` is its index in the action."""
        self.position = position
        emit: Callable[..., None] = getattr(self, f"_do_{p.op.strip('_').lower()}")
        if p.op in ("assert", "assume"):
            emit(p, *p.args)
        else:
            emit(*p.args)

    # ---- assignment ----

    def _do_no_op(self) -> None:
        pass

    def _do_assign(self, target: FieldRef, value: Expr) -> None:
        self.values.assign(target, value)

    def _do_assign_vl(self, target: FieldRef, source: FieldRef) -> None:
        """Assigns a varbit field: its current width in bits (``vl_bits``) and its bytes."""
        to_type, from_type = self.model.type_of(target.header), self.model.type_of(source.header)
        to_field, from_field = to_type.fields[target.field], from_type.fields[source.field]
        if not to_field.varbit or not from_field.varbit or to_field.bits < from_field.bits:
            problem = f"varbit field {to_field.name} cannot hold {from_field.name}"
            raise CompilerError(f"{self.model.name}: {problem}")
        dst = self.values.header(target.header)
        src = self.values.header(source.header)
        self.code.line(f"{dst}.vl_bits = {src}.vl_bits;")
        to_name, from_name = field_name(to_type, target.field), field_name(from_type, source.field)
        self.code.line(f"memcpy({dst}.{to_name}, {src}.{from_name}, {src}.vl_bits / 8);")

    def _do_assign_header(self, target: HeaderRef, source: HeaderRef) -> None:
        t, u = self.model.type_of(target), self.model.type_of(source)
        if t.index != u.index:
            problem = f"a header of type {u.name} is assigned to a header of type {t.name}"
            raise CompilerError(f"{self.model.name}: {problem}")
        dst = self.values.header(target)
        src = self.values.header(source)
        self._copy_header(t, dst, src, self.values.siblings(target, dst))

    def _copy_header(self, t: HeaderType, dst: str, src: str, siblings: list[str]) -> None:
        """Copies a header; if the source is invalid, the target becomes invalid and keeps its fields."""
        self.code.open(f"if ({src}.valid)")
        self.code.line(f"{dst} = {src};")
        for other in siblings:
            self.code.line(f"{other}.valid = 0;")
        self.code.orelse()
        set_valid(self.code, t, dst, 0)
        self.code.close()

    def _do_assign_union(self, target: UnionRef, source: UnionRef) -> None:
        if self.model.union_of(target).type != self.model.union_of(source).type:
            raise CompilerError(f"{self.model.name}: a union is assigned to a union of another type")
        dst = self.values.union(target)
        src = self.values.union(source)
        self.code.line(f"{dst} = {src};")

    def _do_assign_header_stack(self, target: Stack, source: Stack) -> None:
        values, size = self.values, len(target.elements)
        if values.element_type(target) != values.element_type(source) or size != len(source.elements):
            problem = f"stacks {target.name} and {source.name} differ in type or size"
            raise CompilerError(f"{self.model.name}: {problem}")
        dst, src = values.stack(target.index), values.stack(source.index)
        self.code.line(f"{values.stack_next(target.index)} = {values.stack_next(source.index)};")
        if target.of_unions:
            self.code.line(f"memmove({dst}, {src}, sizeof {dst});")
            return
        for i, header in enumerate(target.elements):
            self._copy_header(self.model.type_of(HeaderInst(header)), f"{dst}[{i}]", f"{src}[{i}]", [])

    _do_assign_union_stack = _do_assign_header_stack

    # ---- headers ----

    def _length(self, ref: HeaderRef, place: str) -> str:
        """C text of a header's length in bytes."""
        t = self.model.type_of(ref)
        return f"{t.fixed_bits // 8}u" + (f" + {place}.vl_bits / 8" if t.varbit is not None else "")

    def _do_add_header(self, ref: HeaderRef) -> None:
        t = self.model.type_of(ref)
        place = self.values.header(ref)
        self.code.open(f"if (!{place}.valid)")
        if t.varbit is not None:
            self.code.line(f"uint32_t vl = {place}.vl_bits;")
        self.code.line(f"memset(&{place}, 0, sizeof {place});")
        if t.varbit is not None:
            self.code.line(f"{place}.vl_bits = vl;")
        set_valid(self.code, t, place, 1)
        for other in self.values.siblings(ref, place):
            self.code.line(f"{other}.valid = 0;")
        self.code.line(f"p->plen += {self._length(ref, place)};")
        self.code.close()

    def _do_remove_header(self, ref: HeaderRef) -> None:
        place = self.values.header(ref)
        self.code.open(f"if ({place}.valid)")
        set_valid(self.code, self.model.type_of(ref), place, 0)
        self.code.line(f"p->plen -= {self._length(ref, place)};")
        self.code.close()

    def _do_push(self, stack: Stack, count: Expr) -> None:
        array, counter, size, n = self._shift(stack, count)
        self.code.line(f"{counter} = {counter} + {n} > {size} ? {size} : {counter} + {n};")
        self.code.line(f"memmove({array} + {n}, {array}, ({size} - {n}) * sizeof *{array});")
        self._invalidate(stack, array, "0", n)

    def _do_pop(self, stack: Stack, count: Expr) -> None:
        array, counter, size, n = self._shift(stack, count)
        self.code.line(f"{counter} = {counter} > {n} ? {counter} - {n} : 0;")
        self.code.line(f"memmove({array}, {array} + {n}, ({size} - {n}) * sizeof *{array});")
        self._invalidate(stack, array, f"{size} - {n}", str(size))

    def _shift(self, stack: Stack, count: Expr) -> tuple[str, str, int, str]:
        """A stack's array, counter, size, and the name of a new C variable with `count`, at most the size."""
        n, size = self.code.temp(), len(stack.elements)
        self.code.line(f"uint64_t {n}_wanted = {self.values.index(count)};")
        self.code.line(f"uint32_t {n} = {n}_wanted > {size} ? {size} : (uint32_t){n}_wanted;")
        return self.values.stack(stack.index), self.values.stack_next(stack.index), size, n

    def _invalidate(self, stack: Stack, array: str, first: str, end: str) -> None:
        self.code.open(f"for (uint32_t i = {first}; i < {end}; i++)")
        if stack.of_unions:
            self.code.line(f"memset(&{array}[i], 0, sizeof {array}[i]);")
        else:
            set_valid(self.code, self.model.type_of(StackLast(stack.index)), f"{array}[i]", 0)
        self.code.close()

    # ---- externs ----

    def _do_register_read(self, target: FieldRef, register: int, index: Expr) -> None:
        bits = self.model.registers[register].bits
        t = self.code.temp()
        limbs = limbs_of(bits)
        f = self.model.field_type(target)
        place = self.values.field(target)
        if bits <= 128 and f.bits <= 128:
            kind = "uint64_t" if bits <= 64 else "tr_u128"
            self.code.line(f"{kind} {t};")
            self.code.line(f"if (reg{register}_read(s, {self.values.index(index)}, &{t}))")
            mask = f"tr_mask64({f.bits})" if f.bits <= 64 else f"tr_mask128({f.bits})"
            self.code.line(f"    {place} = {t} & {mask};")
            return
        self.code.line(f"uint64_t {t}[{max(limbs, limbs_of(f.bits))}] = {{0}};")
        self.code.open(f"if (reg{register}_read(s, {self.values.index(index)}, (void *){t}))")
        if f.bits > 128:
            self.code.line(f"trw_mask({t}, {limbs_of(f.bits)}, {f.bits});")
            self.code.line(f"memcpy({place}, {t}, sizeof {place});")
        else:
            self.code.line(f"{place} = trw_low128({t}, {max(limbs, 1)}) & tr_mask128({f.bits});")
        self.code.close()

    def _do_register_write(self, register: int, index: Expr, value: Expr) -> None:
        bits = self.model.registers[register].bits
        cell = self.values.index(index)
        if bits > 128:
            limbs = self.values.clean_limbs(value, bits)
            self.code.line(f"reg{register}_write(s, {cell}, {limbs});")
        else:
            self.code.line(f"reg{register}_write(s, {cell}, {self.values.clean(value, bits)});")

    def _do_count(self, counter: int, index: Expr) -> None:
        size, cell = self.model.counters[counter].size, self.values.index(index)
        if self.code.tracing:
            t, cells = self.code.temp(), f"s->counters[{counter}]"
            self.code.line(f"uint64_t {t} = {cell};")
            self.code.trace("TR_RECORD_COUNT", counter, t, f"{t} < {size}u")
            self.code.line(f"if ({t} < {size}u && tr_undo_save(s, p, &{cells}[{t}], sizeof *{cells}))")
            cell = t
        self.code.line(f"tr_count(s->counters[{counter}], {size}u, {cell}, p);")

    def _do_execute_meter(self, meter: int, index: Expr, target: FieldRef) -> None:
        m, t = self.model.meters[meter], self.code.temp()
        amount = "p->in_len" if m.unit == "bytes" else "1"
        place = self.values.field(target)
        mask = f"tr_mask64({min(64, self.model.field_type(target).bits)})"
        self.code.line(f"uint64_t {t} = {self.values.index(index)};")
        self.code.line(f"if ({t} < {m.size}u)")
        execute = f"tr_meter_execute(&s->meters[{meter}][{t}], p->in_len, {amount}, s->now_ps)"
        if self.code.tracing:
            execute = f"tr_trace_meter(s, p, {meter}, {t}, &s->meters[{meter}][{t}], {amount})"
        self.code.line(f"    {place} = {execute} & {mask};")

    def _do_modify_field_rng_uniform(self, target: FieldRef, low: Expr, high: Expr) -> None:
        a, b = self.code.temp(), self.code.temp()
        self.code.line(f"uint64_t {a} = {self.values.clean(low, 64)};")
        self.code.line(f"uint64_t {b} = {self.values.clean(high, 64)};")
        self.code.line(f"if ({a} <= {b})")
        draw = f"tr_trace_random(s, p, {a}, {b})" if self.code.tracing else f"tr_random(s, {a}, {b})"
        self._store_word(target, draw, "    ")

    def _do_modify_field_with_hash_based_offset(
        self, target: FieldRef, base: Expr, calculation: int, size: Expr
    ) -> None:
        b, n = self.code.temp(), self.code.temp()
        self.code.line(f"uint64_t {b} = {self.values.clean(base, 64)};")
        self.code.line(f"uint64_t {n} = {self.values.clean(size, 64)};")
        self._store_word(target, f"calc_{calculation}(s, p, h) % ({n} ? {n} : 1) + {b}")

    def _store_word(self, target: FieldRef, word: str, indent: str = "") -> None:
        """Emits the store of a uint64_t in a field, truncated to the field's width."""
        f = self.model.field_type(target)
        place = self.values.field(target)
        if f.bits > 128:
            self.code.line(f"{indent}trw_from_u128({place}, {limbs_of(f.bits)}, {word});")
        else:
            self.code.line(f"{indent}{place} = ({word}) & tr_mask64({min(64, f.bits)});")

    # ---- drop, clone, resubmit, recirculate, digest, truncate, exit ----

    def _do_mark_to_drop(self, fields: tuple[FieldRef, ...]) -> None:
        # fields: egress_spec, then mcast_grp if the header has it
        self._store_word(fields[0], "s->cfg.drop_port")
        for group in fields[1:]:
            self._store_word(group, "0")

    def _do_drop(self) -> None:
        self.code.line("trp_set_egress_spec(h, s->cfg.drop_port);")
        self.code.line("trp_set_mcast_grp(h, 0);")

    def _do_clone_ingress_pkt_to_egress(self, session: Expr, field_list: int) -> None:
        self.code.line(f"p->clone_session = TR_CLONE_VALID | (uint16_t){self.values.clean(session, 16)};")
        self.code.line(f"p->clone_fields = {field_list};")

    _do_clone_egress_pkt_to_egress = _do_clone_ingress_pkt_to_egress

    def _do_resubmit(self, field_list: int) -> None:
        self.code.line(f"p->resubmit = {field_list};")

    def _do_recirculate(self, field_list: int) -> None:
        self.code.line(f"p->recirculate = {field_list};")

    def _do_generate_digest(self, digest: int) -> None:
        # 0: no digest
        self.code.line(f"p->digest = {digest + 1};")

    def _do_truncate(self, length: Expr) -> None:
        t = self.code.temp()
        self.code.line(f"uint64_t {t} = {self.values.index(length)};")
        self.code.line(f"if ({t} < p->trunc)")
        self.code.line(f"    p->trunc = (uint32_t){t};")

    def _do_exit(self) -> None:
        self.code.line("p->exit = 1;")

    def _do_assert(self, p: Primitive, condition: Expr) -> None:
        where = f", line {p.source.line}" if p.source is not None else ""
        self.code.open(f"if (!{self.values.boolean(condition)})")
        text = f"{p.op} failed{where}: {p.text}"
        self.code.line(f'tr_logf(s, 3, "%s", {string(text)});')
        # the reason of the drop + 1; 0: not failed
        self.code.line("p->failed = TR_DROP_ASSERT + 1;")
        self.code.line("p->exit = 1;")
        self.code.line(f"goto {self.end};")
        self.code.close()

    _do_assume = _do_assert

    # ---- control ----

    def _do_jump(self, target: int) -> None:
        if target <= self.position:  # a loop, whose passes are limited
            steps = self.position - target + 1
            self.code.open(f"if ({counted('jumps', steps)} > TR_LOOP_LIMIT)")
            self.code.line("p->failed = TR_DROP_LOOP + 1;")
            self.code.line("p->exit = 1;")
            self.code.line(f"goto {self.end};")
            self.code.close()
        self.code.line(f"goto at_{target};")

    def _do_jump_if_zero(self, condition: Expr, target: int) -> None:
        self.code.open(f"if (!{self.values.boolean(condition)})")
        self._do_jump(target)
        self.code.close()

    def _do_log_msg(self, text: str, numbers: tuple[Expr, ...]) -> None:
        self.code.open("if (s->log || s->tracer)" if self.code.tracing else "if (s->log)")
        names = []
        for e in numbers:
            names.append(self._decimal(self.values.exact(e)))
        listed = ", ".join(names) or "NULL"
        self.code.line(f"const char *const numbers[] = {{{listed}}};")
        self.code.line(f"tr_log_msg(s, {string(text)}, numbers, {len(names)});")
        self.code.close()

    def _decimal(self, v: Val) -> str:
        """Emits the conversion of a number to decimal text; returns the name of the C string."""
        limbs, text = self.code.temp(), self.code.temp()
        n = v.limbs or 3  # 3: a number of 128 bits and its sign
        self.code.line(f"uint64_t {limbs}[{n}];")
        if v.limbs:
            self.code.line(f"memcpy({limbs}, {v.code}, sizeof {limbs});")
        else:
            convert = "trw_from_s128" if kind_of(v.bounds).startswith("s") else "trw_from_u128"
            self.code.line(f"{convert}({limbs}, {n}, {v.code});")
        self.code.line(f"char {text}[{20 * n + 2}];")
        self.code.line(f"tr_decimal({limbs}, {n}, 1, {text});")
        return text
