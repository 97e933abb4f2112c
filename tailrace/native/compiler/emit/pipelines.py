# SPDX-License-Identifier: Apache-2.0
"""C text of the match-action pipelines: a node is a label, what follows it a goto."""

from __future__ import annotations

from tailrace.native.compiler.emit.actions import action_name
from tailrace.native.compiler.emit.lvalues import Places, field_name, labels
from tailrace.native.compiler.emit.packing import Chunk, chunks, pack, zeros
from tailrace.native.compiler.emit.text import Code, identifier, literal, string
from tailrace.native.compiler.emit.values import Values
from tailrace.native.compiler.expr import FieldRef, HeaderInst
from tailrace.native.compiler.model import KeyField, Model, Pipeline, Table, limbs_of

MATCH = {"exact": "TR_EXACT", "lpm": "TR_LPM", "ternary": "TR_TERNARY", "range": "TR_RANGE"}


def key_words(t: Table) -> int:
    """Length of a padded key in 8-byte words."""
    return (t.key_bytes + 7) // 8


def data_limbs(model: Model, t: Table) -> int:
    """Limbs an entry of this table has room for."""
    return max((model.actions[a].limbs for a in t.actions), default=0)


class PipelineEmitter:
    """Emits ``trp_ingress`` or ``trp_egress``."""

    def __init__(self, code: Code, model: Model, pipeline: Pipeline) -> None:
        self.code = code
        self.model = model
        self.pipeline = pipeline
        self.places = Places(model)
        names = [model.tables[i].name for i in pipeline.tables]
        names += [c.name for c in pipeline.conditionals] + [c.name for c in pipeline.calls]
        self.labels = labels("node", names)

    def emit(self) -> None:
        """The whole function."""
        code = self.code
        code.line(f"static void trp_{identifier(self.pipeline.name)}(tr_switch *s, tr_pkt *p,")
        code.open("    struct tr_phv *h)")
        for name in ("s", "p", "h"):
            code.line(f"(void){name};")
        code.line(self._goto(self.pipeline.init))
        for i in self.pipeline.tables:
            self._label(self.model.tables[i].name)
            self._table(self.model.tables[i])
        for c in self.pipeline.conditionals:
            self._label(c.name)
            code.open("")
            condition = Values(self.model, self.places, code).boolean(c.condition)
            code.line(f"if ({condition})")
            code.line(f"    {self._goto(c.true_next)}")
            code.line(self._goto(c.false_next))
            code.close()
        for call in self.pipeline.calls:
            self._label(call.name)
            code.line(f"{action_name(self.model.actions[call.action])}(s, p, h, NULL);")
            self._leave(call.next)
        code.line("done: __attribute__((unused));")
        code.close()
        code.line("")

    def _label(self, name: str) -> None:
        self.code.line(f"{self.labels[name]}: __attribute__((unused));")

    def _goto(self, node: str | None) -> str:
        return "goto done;" if node is None else f"goto {self.labels[node]};"

    def _leave(self, node: str | None) -> None:
        """Goes on after an action that may have executed exit."""
        if node is not None:
            self.code.line("if (p->exit)")
            self.code.line("    goto done;")
        self.code.line(self._goto(node))

    def _is_call(self, t: Table) -> bool:
        """A table that can only run its default action, with values known now."""
        return (
            not t.key
            and t.kind == "simple"
            and t.default_const
            and t.default_action is not None
            and not t.with_counters
            and t.meter is None
        )

    def _table(self, t: Table) -> None:
        code = self.code
        if t.source is not None:
            code.comment("table", t.name, "line", t.source.line)
        code.open("")
        if self._is_call(t):
            self._call_default(t)
        else:
            self._lookup(t)
            self._hit_or_default(t)
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
        self.code.line(f"{action_name(action)}(s, p, h, {data});")
        self._leave(t.next_miss if t.by_hit else t.next_by_action.get(action.index, t.next_default))

    def _lookup(self, t: Table) -> None:
        code = self.code
        code.line(f"tr_table *table = &s->tables[{t.index}];")
        words = key_words(t)
        code.line(f"alignas(8) uint8_t key[{8 * max(words, 1)}];")
        pieces: list[Chunk] = []
        for k in t.key:
            pieces += self._key_chunks(k)
        pieces += zeros(64 * words - 8 * t.key_bytes)
        pack(code, "key", pieces)
        if t.match_kind == "range":
            code.line("tr_entry *e = tr_lookup_range(table, key);")
        else:
            code.line(f"tr_entry *e = tr_lookup(table, key, {words}, {MATCH[t.match_kind]});")

    def _key_chunks(self, k: KeyField) -> list[Chunk]:
        """The field's value padded to whole bytes; a field of an invalid header counts as zero."""
        code = self.code
        values = Values(self.model, self.places, code)
        padding = zeros(8 * k.nbytes - k.bits)
        valid = ""
        metadata = isinstance(k.header, HeaderInst) and self.model.headers[k.header.index].metadata
        if k.header is not None and not metadata:
            valid = f"{self.places.header(k.header, code, values)}.valid"
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
        code.open("if (hit)")
        code.line("e->last_hit_ps = s->now_ps;")
        if t.meter is not None and t.meter_target is not None:
            self._direct_meter(t)
        code.orelse()
        code.line("e = table->defaults;")
        code.close()
        self._trace(t)
        code.open("if (!e)")
        code.line(self._goto(t.next_miss if t.by_hit else t.next_default))
        code.close()
        if t.with_counters:
            code.line("tr_rest(e)->packets++;")
            code.line("tr_rest(e)->bytes += p->in_len;")
        if t.kind != "simple":
            self._resolve(t)
        code.open("switch (e->id)")
        for a in t.actions:
            action = self.model.actions[a]
            code.line(f"case {a}:")
            code.depth += 1
            code.line(f"{action_name(action)}(s, p, h, e->data);")
            if t.by_hit:
                code.line("break;")
            else:
                self._leave(t.next_by_action[a])
            code.depth -= 1
        code.line("default:")
        code.line("    break;")
        code.close()
        self._after(t)

    def _after(self, t: Table) -> None:
        if t.by_hit:
            self.code.line("if (p->exit)")
            self.code.line("    goto done;")
            self.code.line("if (hit)")
            self.code.line(f"    {self._goto(t.next_hit)}")
            self.code.line(self._goto(t.next_miss))
        else:
            self.code.line(self._goto(t.next_default))

    def _trace(self, t: Table) -> None:
        self.code.line(f'TR_TRACE(s, "table %s: %s", {string(t.name)},')
        self.code.line('         hit ? "hit" : "miss");')

    def _direct_meter(self, t: Table) -> None:
        assert t.meter is not None and isinstance(t.meter_target, FieldRef)
        amount = "p->in_len" if self.model.meters[t.meter].unit == "bytes" else "1"
        values = Values(self.model, self.places, self.code)
        place = self.places.header(t.meter_target.header, self.code, values)
        place += "." + field_name(self.model.type_of(t.meter_target.header), t.meter_target.field)
        mask = f"tr_mask64({min(64, self.model.field_type(t.meter_target).bits)})"
        self.code.line(f"{place} = tr_meter_execute(tr_rest(e)->meter, {amount}, s->now_ps) & {mask};")

    def _resolve(self, t: Table) -> None:
        """From an entry to the action profile's member that it stands for."""
        assert t.profile is not None
        selector = self.model.profiles[t.profile].selector
        code = self.code
        code.open("if (e->kind != TR_TARGET_ACTION)")
        hash_ = "0"
        if selector is not None:
            hash_ = f"e->kind == TR_TARGET_GROUP ? calc_{selector}(s, p, h) : 0"
        code.line(f"e = tr_profile_resolve(s, {t.profile}, e, {hash_});")
        code.open("if (!e)")
        if t.by_hit:
            code.line("if (hit)")
            code.line(f"    {self._goto(t.next_hit)}")
            code.line(self._goto(t.next_miss))
        else:
            code.line(self._goto(t.next_default))
        code.close()
        code.close()
