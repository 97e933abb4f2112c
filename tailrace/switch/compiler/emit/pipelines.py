# SPDX-License-Identifier: Apache-2.0
"""C text of the match-action pipelines: a node (table, condition, call) is a C label, an edge a goto.

Terms of other files used here:

* ``Table.is_call``: the table only runs a constant default action; p4c compiles action calls to such tables.
* ``Table.by_hit``: the next node depends on hit or miss, not on the action.
* places: C lvalues of headers and fields. Chunk: C text of at most 64 bits, and its width.
* ``Values.clean(e, bits)``: C text of an expression's value modulo 2^bits.
* ``CodeWriter.trace`` emits code that records a step, ``count_point`` code that counts its executions for
  coverage; both only in tracing builds (tr_tracer.h).
"""

from __future__ import annotations

from tailrace.switch.compiler.emit.actions import action_name, may_exit
from tailrace.switch.compiler.emit.locals import Locals
from tailrace.switch.compiler.emit.lvalues import labels
from tailrace.switch.compiler.emit.packing import Chunk, chunks, pack, zeros
from tailrace.switch.compiler.emit.text import CodeWriter, identifier, literal
from tailrace.switch.compiler.emit.values import Values
from tailrace.switch.compiler.expr import FieldRef, HeaderInst
from tailrace.switch.compiler.model import Action, KeyField, Model, Pipeline, Table, limbs_of

MATCH = {"exact": "TR_EXACT", "lpm": "TR_LPM", "ternary": "TR_TERNARY", "range": "TR_RANGE"}


def key_words(t: Table) -> int:
    """Length of a table's padded key in 8-byte words."""
    return (t.key_bytes + 7) // 8


def data_limbs(model: Model, t: Table) -> int:
    """Capacity of an entry of this table for action data, in limbs (64-bit words)."""
    return max((model.actions[a].limbs for a in t.actions), default=0)


_INLINE_LIMBS = 6
"""Largest action data, in limbs, that is stored in the slots of a table's hash index."""

_SLOT_BYTES = (16, 32, 64, 128)
"""Sizes of slots in bytes: divisors or multiples of a cache line of 64 bytes."""


def holds_entries(model: Model, t: Table) -> bool:
    """Whether a slot (element of a table's hash index) contains a pointer to the entry.

    Otherwise the slot contains action and data. A pointer is needed if packets access more of an entry than
    action and data, or if the data is long.
    """
    return (
        t.kind != "simple"
        or t.with_counters
        or t.meter is not None
        or t.support_timeout
        or t.match_kind in ("ternary", "range")
        or data_limbs(model, t) > _INLINE_LIMBS
    )


def slot_bytes(model: Model, t: Table) -> int:
    """Size of a slot (``tr_slot``) in bytes: a word with state, the key, then the entry's pointer or data."""
    last_words = 1 if holds_entries(model, t) else data_limbs(model, t)
    size = 8 * (1 + key_words(t) + last_words)
    return next((slot_size for slot_size in _SLOT_BYTES if size <= slot_size), size)


class PipelineEmitter:
    """Emits ``trp_ingress`` or ``trp_egress``."""

    def __init__(self, code: CodeWriter, model: Model, c_locals: Locals, pipeline: Pipeline) -> None:
        self.code = code
        self.model = model
        self.pipeline = pipeline
        self.values = Values(code, model, c_locals)
        names = [model.tables[i].name for i in pipeline.tables]
        names += [c.name for c in pipeline.conditionals] + [c.name for c in pipeline.calls]
        self.labels = labels("node", names)
        # indexes of the actions after which the generated code must test p->exit
        self.may_exit = {a.index for a in model.actions if may_exit(a)}

    def emit(self) -> None:
        """Emits the function."""
        code = self.code
        code.line(f"static void trp_{identifier(self.pipeline.name)}(tr_switch *s, tr_pkt *p,")
        code.open("    struct tr_phv *h)")
        code.line("struct tr_locals locals = {0}, *l = &locals;")
        code.trace_begin(f"TR_STAGE_{self.pipeline.name.upper()}")
        code.line(self._goto(self.pipeline.init))
        for i in self.pipeline.tables:
            self._label(self.model.tables[i].name)
            self._table(self.model.tables[i])
        for index, c in enumerate(self.pipeline.conditionals):
            self._label(c.name)
            code.open("")
            condition = self.values.boolean(c.condition)
            if code.tracing:
                t = code.temp()
                code.line(f"const int {t} = {condition};")
                code.trace("TR_RECORD_CONDITION", index, f"(uint64_t){t}")
                # 2 * index: the point "false" of this condition; t = 1 selects the next point, "true"
                code.count_point("condition", int(self.pipeline.name == "egress"), 2 * index, t)
                condition = t
            code.line(f"if ({condition})")
            code.line(f"    {self._goto(c.true_next)}")
            code.line(self._goto(c.false_next))
            code.close()
        for call in self.pipeline.calls:
            self._label(call.name)
            code.line(f"{action_name(self.model.actions[call.action])}(s, p, h, l, NULL);")
            self._leave(self.model.actions[call.action], call.next)
        code.line("done:;")
        code.close()

    def _label(self, name: str) -> None:
        self.code.line(f"{self.labels[name]}:;")

    def _goto(self, node: str | None) -> str:
        return "goto done;" if node is None else f"goto {self.labels[node]};"

    def _leave(self, action: Action, node: str | None) -> None:
        """Emits the jump to the node after an action, or to the pipeline's end if the action called exit."""
        if node is not None and action.index in self.may_exit:
            self.code.line("if (p->exit)")
            self.code.line("    goto done;")
        self.code.line(self._goto(node))

    def _table(self, t: Table) -> None:
        code = self.code
        if t.source is not None:
            code.comment("table", t.name, "line", t.source.line)
        code.open("")
        if t.is_call:
            self._call_default(t)
        elif holds_entries(self.model, t):
            self._lookup_entry(t)
            self._hit_or_default(t)
        else:
            self._lookup_slot(t)
        code.close()

    def _call_default(self, t: Table) -> None:
        assert t.default_action is not None
        action = self.model.actions[t.default_action]
        data = "NULL"
        if action.params:
            limbs = []
            for p, value in zip(action.params, t.default_data, strict=True):
                masked = value & ((1 << p.bits) - 1)
                limbs += [literal(masked >> 64 * i, 64) for i in range(limbs_of(p.bits))]
            self.code.line(f"static const uint64_t d[] = {{{', '.join(limbs)}}};")
            data = "d"
        self.code.line(f"{action_name(action)}(s, p, h, l, {data});")
        self._leave(action, t.next_miss if t.by_hit else t.next_by_action.get(action.index, t.next_default))

    def _lookup_slot(self, t: Table) -> None:
        """Emits lookup and action of a table whose slots contain action and data."""
        code = self.code
        words = self._pack_key(t)
        code.line("const tr_slot *slot =")
        code.line(f"    tr_find(table, key, {words}, {MATCH[t.match_kind]}, {slot_bytes(self.model, t)});")
        code.line("const int hit = slot != NULL;")
        self._trace_lookup(t, "slot ? slot->taken : 0")  # taken: the entry's handle + 1
        code.line("uint32_t id;")
        code.line("const uint64_t *data;")
        code.open("if (hit)")
        code.line("id = slot->id;")
        code.line(f"data = slot->words + {words};")
        code.orelse()
        code.line("const tr_entry *e = table->defaults;")
        code.open("if (!e)")
        code.line(self._goto(t.next_miss if t.by_hit else t.next_default))
        code.close()
        code.line("id = e->id;")
        code.line("data = e->data;")
        code.close()
        self._run_action(t, "id", "data")

    def _lookup_entry(self, t: Table) -> None:
        code = self.code
        words = self._pack_key(t)
        if t.match_kind == "range":
            code.line("tr_entry *e = tr_lookup_range(table, key);")
        else:
            size = slot_bytes(self.model, t)
            code.line(f"tr_entry *e = tr_lookup(table, key, {words}, {MATCH[t.match_kind]}, {size});")

    def _pack_key(self, t: Table) -> int:
        """Emits the packing of the key; returns its length in words."""
        code = self.code
        code.line(f"tr_table *table = &s->tables[{t.index}];")
        words = key_words(t)
        code.line(f"alignas(8) uint8_t key[{8 * max(words, 1)}];")
        pieces: list[Chunk] = []
        for k in t.key:
            pieces += self._key_chunks(k)
        pieces += zeros(64 * words - 8 * t.key_bytes)
        pack(code, "key", pieces)
        return words

    def _key_chunks(self, k: KeyField) -> list[Chunk]:
        """A key field's value, padded to whole bytes; a field of an invalid header counts as zero."""
        code = self.code
        values = self.values
        padding = zeros(8 * k.nbytes - k.bits)
        valid = ""
        metadata = isinstance(k.header, HeaderInst) and self.model.headers[k.header.index].metadata
        if k.header is not None and not metadata:
            valid = f"{values.header(k.header)}.valid"
        if k.bits > 128:
            t = values.clean_limbs(k.value, k.bits)
            if k.static_mask is not None:
                for i in range(limbs_of(k.bits)):
                    code.line(f"{t}[{i}] &= {literal(k.static_mask >> 64 * i, 64)};")
            if valid:
                code.line(f"if (!{valid})")
                code.line(f"    memset({t}, 0, sizeof {t});")
            return padding + chunks(t, k.bits)
        name = code.temp()
        word = values.clean(k.value, max(k.bits, 1))
        if k.static_mask is not None:
            word = f"({word} & {literal(k.static_mask, k.bits)})"
        kind = "uint64_t" if k.bits <= 64 else "tr_u128"
        code.line(f"{kind} {name} = {f'{valid} ? {word} : 0' if valid else word};")
        return padding + chunks(name, k.bits)

    def _hit_or_default(self, t: Table) -> None:
        code = self.code
        code.line("const int hit = e != NULL;")
        # tr_rest(e): the rarely used fields of an entry, such as its handle and counters (tr_core.h)
        self._trace_lookup(t, "e ? (uint64_t)tr_rest(e)->handle + 1 : 0")
        code.open("if (hit)")
        if t.support_timeout:
            self._if_saved()
            code.line("e->last_hit_ps = s->now_ps;")
        code.orelse()
        code.line("e = table->defaults;")
        code.close()
        code.open("if (!e)")
        code.line(self._goto(t.next_miss if t.by_hit else t.next_default))
        code.close()
        if t.meter is not None and t.meter_target is not None:
            self._direct_meter(t)
        if t.with_counters:
            self._if_saved()
            code.open("")
            code.line("tr_rest(e)->packets++;")
            code.line("tr_rest(e)->bytes += p->in_len;")
            code.close()
        if t.kind != "simple":
            self._resolve_member(t)
        self._run_action(t, "e->id", "e->data")

    def _run_action(self, t: Table, action_id: str, data: str) -> None:
        """Emits an action call and the jump to the next node; `action_id` and `data` are C text."""
        code = self.code
        code.open(f"switch ({action_id})")
        for a in t.actions:
            action = self.model.actions[a]
            code.line(f"case {a}:")
            code.depth += 1
            code.line(f"{action_name(action)}(s, p, h, l, {data});")
            if t.by_hit:
                code.line("break;")
            else:
                self._leave(action, t.next_by_action[a])
            code.depth -= 1
        code.close()
        self._goto_next(t)

    def _goto_next(self, t: Table) -> None:
        """Emits the jump to the next node, by hit or miss; by-action jumps precede it in the switch."""
        if t.by_hit:
            if not self.may_exit.isdisjoint(t.actions):
                self.code.line("if (p->exit)")
                self.code.line("    goto done;")
            self.code.line("if (hit)")
            self.code.line(f"    {self._goto(t.next_hit)}")
            self.code.line(self._goto(t.next_miss))
        else:
            self.code.line(self._goto(t.next_default))

    def _trace_lookup(self, t: Table, handle: str) -> None:
        """In a tracing build (tr_tracer.h), records a lookup and counts it for coverage.

        `handle`: C text of the entry's handle (its number in the table) + 1; 0: miss.
        """
        if self.code.tracing:
            head = f"TR_RECORD_TABLE, {t.index}, {handle}, {t.key_bytes}"
            self.code.line(f"tr_trace_bytes(s, p, (const uint64_t[]){{{head}}}, 4, key, {t.key_bytes});")
            if t.key:
                self.code.count_point("table", t.index, branch=handle)
                self.code.line(f"tr_tracer_mark_entry(s, {t.index}, {handle});")
            else:
                self.code.count_point("table", t.index)

    def _if_saved(self) -> None:
        """In a tracing build, emits an `if` before a change of entry `e`: a dry run saves the entry first."""
        if self.code.tracing:
            self.code.line("if (tr_undo_save_entry(s, p, e))")

    def _direct_meter(self, t: Table) -> None:
        """Emits the execution of the direct meter of the entry, or of the default entry after a miss.

        In BMv2, default entries have no meter, so a miss does not write the field. Here, a miss writes the
        field only if the control plane has set rates of the default entry.
        """
        assert t.meter is not None and isinstance(t.meter_target, FieldRef)
        amount = "p->in_len" if self.model.meters[t.meter].unit == "bytes" else "1"
        place = self.values.field(t.meter_target)
        mask = f"tr_mask64({min(64, self.model.field_type(t.meter_target).bits)})"
        code, colour = self.code, self.code.temp()
        code.line("tr_meter *meter = tr_rest(e)->meter;")
        execute = f"tr_meter_execute(meter, p->in_len, {amount}, s->now_ps)"
        if code.tracing:
            execute = f"tr_trace_meter(s, p, {t.meter}, UINT64_MAX, meter, {amount})"
        code.line(f"uint64_t {colour} = {execute};")
        code.line("if (hit || meter->mode != TR_METER_UNSET)")
        code.line(f"    {place} = {colour} & {mask};")
        code.trace_changes()

    def _group_action(self, t: Table) -> None:
        """Emits the call of a group's action, which runs before the action of the selected member.

        A client may set such an action for a group (tr_group_add). The C variable ``first`` has it, or NULL.
        """
        code, actions = self.code, [self.model.actions[a] for a in t.actions]
        code.open("if (__builtin_expect(first != NULL, 0))")
        code.open("switch (first->id)")
        for action in actions:
            code.line(f"case {action.index}:")
            code.line(f"    {action_name(action)}(s, p, h, l, first->data);")
            code.line("    break;")
        code.close()
        if not self.may_exit.isdisjoint(t.actions):
            code.line("if (p->exit)")
            code.line("    goto done;")
        code.close()

    def _resolve_member(self, t: Table) -> None:
        """Emits code that replaces ``e``, if it refers to a member or a group, by the selected member."""
        assert t.profile is not None
        selector = self.model.profiles[t.profile].selector
        code = self.code
        code.open("if (e->kind != TR_TARGET_ACTION)")
        hash_ = "0"
        if selector is not None:
            hash_ = f"e->kind == TR_TARGET_GROUP ? calc_{selector}(s, p, h) : 0"
        code.line("const tr_entry *first;")
        code.line(f"e = tr_profile_resolve(s, p, {t.profile}, e, {hash_}, &first);")
        if selector is not None:
            self._group_action(t)
        code.open("if (!e)")
        self._goto_next(t)
        code.close()
        code.close()
