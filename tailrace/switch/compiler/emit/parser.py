# SPDX-License-Identifier: Apache-2.0
"""C text of the parser and the deparser.

Terms of other files used here: places are C lvalues of headers and fields. ``Values.clean(e, bits)`` is C
text of an expression's value modulo 2^bits, ``Values.index(e)`` of its value as uint64_t. In tracing builds
(tr_tracer.h), ``CodeWriter.trace`` emits code that records a step, and ``count_point`` code that counts its
executions for coverage.
"""

from __future__ import annotations

from tailrace.switch.compiler.emit.actions import ActionBody
from tailrace.switch.compiler.emit.locals import Locals
from tailrace.switch.compiler.emit.lvalues import labels
from tailrace.switch.compiler.emit.packing import limbs
from tailrace.switch.compiler.emit.text import CodeWriter, counted, literal
from tailrace.switch.compiler.emit.values import Values
from tailrace.switch.compiler.errors import CompilerError
from tailrace.switch.compiler.expr import (
    Expr,
    FieldRef,
    HeaderInst,
    Lookahead,
    StackLast,
    UnionMember,
    parts,
)
from tailrace.switch.compiler.model import (
    Advance,
    Extract,
    Model,
    ParserOp,
    ParserSet,
    ParseState,
    Primitive,
    Transition,
    Verify,
    limbs_of,
)


class ParserEmitter:
    """Emits ``trp_parse``: a state is a label, a transition a goto."""

    def __init__(self, code: CodeWriter, model: Model, c_locals: Locals) -> None:
        self.code = code
        self.model = model
        self.values = Values(code, model, c_locals)
        self.labels = labels("state", [s.name for s in model.parser.states])

    def emit(self) -> None:
        """Emits the function."""
        code = self.code
        code.open("static uint32_t trp_parse(tr_switch *s, tr_pkt *p, struct tr_phv *h)")
        code.line("struct tr_locals locals = {0}, *l = &locals;")
        code.line("const uint8_t *pkt = p->buf + p->off;")
        code.line(f"uint32_t pos = 0, len = p->len, error = {self.model.errors['NoError']}, visited = 0;")
        code.trace_begin("TR_STAGE_PARSER")
        code.line(self._goto(self.model.parser.init))
        for index, state in enumerate(self.model.parser.states):
            self._state(state, index)
        code.line("done:;")
        code.line("p->parsed = pos;")
        code.line("return error;")
        code.close()

    def _fail(self, name: str) -> str:
        """C text that ends the parser with an error."""
        return f"{{ error = {self.model.errors[name]}; goto done; }}"

    def _goto(self, state: str | None) -> str:
        return "goto done;" if state is None else f"goto {self.labels[state]};"

    def _state(self, state: ParseState, index: int) -> None:
        code = self.code
        code.line(f"{self.labels[state.name]}:;")
        # `counted` increases `visited`, by more than 1 if the state has many operations, and yields the sum
        code.line(f"if ({counted('visited', len(state.ops))} > TR_PARSER_LIMIT)")
        code.line(f"    {self._fail('ParserTimeout')}")
        code.trace("TR_RECORD_STATE", index)
        code.count_point("state", index)
        for position, op in enumerate(state.ops):
            code.open("")
            code.trace("TR_RECORD_STEP", "TR_OWNER_STATE", index, position)
            code.count_point("op", index, position)
            self._op(op)
            code.trace_changes()
            code.close()
        code.open("")
        self._select(state, index)
        code.close()

    def _require_bytes(self, nbytes: str) -> None:
        """Emits the check that the packet has `nbytes` (C text) more bytes."""
        self.code.line(f"if (len - pos < {nbytes})")
        self.code.line(f"    {self._fail('PacketTooShort')}")

    def _require_lookahead(self, operand: object) -> None:
        """Emits the check that the packet has the bytes that the lookaheads in an operand read."""
        bytes_ahead = [(e.offset + e.bits + 7) // 8 for e in parts(operand) if isinstance(e, Lookahead)]
        if bytes_ahead:
            self._require_bytes(str(max(bytes_ahead)))

    def _op(self, op: ParserOp) -> None:
        if isinstance(op, Extract):
            self._extract(op)
        elif isinstance(op, ParserSet):
            self._require_lookahead(op.value)
            self._set(op)
        elif isinstance(op, Verify):
            self.code.line(f"if (!{self.values.boolean(op.condition)})")
            error = self.values.clean(op.error, 32)
            self.code.line(f"    {{ error = (uint32_t){error}; goto done; }}")
        elif isinstance(op, Advance):
            self._advance(op.bits)
        else:
            assert isinstance(op, Primitive)
            # outside actions a primitive has no parameters, and its index (0) is not used: it is no jump
            ActionBody(self.values, "done").primitive(op, 0)

    def _set(self, op: ParserSet) -> None:
        target = self.model.field_type(op.target)
        if not target.varbit:
            self.values.assign(op.target, op.value)
            return
        if not isinstance(op.value, FieldRef):
            raise CompilerError(f"{self.model.name}: varbit field {target.name} is set from a number")
        body = ActionBody(self.values, "done")
        body.primitive(Primitive("assign_VL", (op.target, op.value)), 0)

    def _advance(self, bits: Expr) -> None:
        t = self.code.temp()
        self.code.line(f"uint64_t {t} = {self.values.index(bits)};")
        self.code.line(f"if ({t} % 8)")
        self.code.line(f"    {self._fail('ParserInvalidArgument')}")
        self._require_bytes(f"{t} / 8")
        self.code.line(f"pos += (uint32_t)({t} / 8);")

    def _extract(self, op: Extract) -> None:
        code, values, ref, counter = self.code, self.values, op.target, ""
        element = ref.union if isinstance(ref, UnionMember) else ref
        if isinstance(element, StackLast):
            size, counter = len(self.model.stacks[element.stack].elements), values.stack_next(element.stack)
            place = f"{values.stack(element.stack)}[{counter}]"
            place += f".m{ref.member}" if isinstance(ref, UnionMember) else ""
            code.line(f"if ({counter} >= {size})")
            code.line(f"    {self._fail('StackOutOfBounds')}")
        else:
            place = values.header(ref)
        self._extract_to(op, self.model.type_of(ref).index, place)
        # before the counter increases, because these lvalues may contain the counter
        for other in values.siblings(ref, place):
            code.line(f"{other}.valid = 0;")
        if counter:
            code.line(f"{counter}++;")

    def _extract_to(self, op: Extract, type_index: int, place: str) -> None:
        code, t = self.code, self.model.header_types[type_index]
        fixed = t.fixed_bits // 8
        if op.length is None:
            if fixed:
                self._require_bytes(str(fixed))
            code.trace("TR_RECORD_EXTRACT", "pos", fixed)
            code.line(f"extract_ht{type_index}(&{place}, pkt + pos);")
            code.line(f"pos += {fixed};")
            return
        vl = code.temp()  # width of the varbit field in bits
        code.line(f"uint64_t {vl} = {self.values.index(op.length)};")
        code.line(f"if ({vl} % 8)")
        code.line(f"    {self._fail('ParserInvalidArgument')}")
        self._require_bytes(f"{fixed} + {vl} / 8")
        code.line(f"if ({vl} / 8 > {op.max_bytes - fixed})")
        code.line(f"    {self._fail('HeaderTooShort')}")
        code.trace("TR_RECORD_EXTRACT", "pos", f"{fixed} + {vl} / 8")
        code.line(f"extract_ht{type_index}(&{place}, pkt + pos, (uint32_t){vl});")
        code.line(f"pos += {fixed} + (uint32_t)({vl} / 8);")

    # ---- select ----

    def _select(self, state: ParseState, index: int) -> None:
        code = self.code
        if not state.key or not state.transitions:
            code.line(self._goto(state.default))
            return
        self._require_lookahead(tuple(k.value for k in state.key))
        keys: list[str] = []
        for part in state.key:
            t = code.temp()
            if part.bits > 128:
                keys.append(self.values.clean_limbs(part.value, part.bits))
                continue
            kind = "uint64_t" if part.bits <= 64 else "tr_u128"
            code.line(f"{kind} {t} = {self.values.clean(part.value, max(part.bits, 1))};")
            keys.append(t)
        packed = None
        if any(t.vset is not None for t in state.transitions):
            packed = self._packed_key(state, keys)
        # the key in trace records
        parts_of_key = [limbs(key, part.bits) for part, key in zip(state.key, keys, strict=True)]
        key_limbs = [limb for part in parts_of_key for limb in part]
        for i, case in enumerate(state.transitions):
            code.open(f"if ({self._matches(state, case, keys, packed)})")
            code.trace("TR_RECORD_SELECT", i, *key_limbs)
            code.count_point("select", index, i)
            code.line(self._goto(case.next))
            code.close()
        code.trace("TR_RECORD_SELECT", len(state.transitions), *key_limbs)
        code.count_point("select", index, len(state.transitions))
        code.line(self._goto(state.default))

    def _packed_key(self, state: ParseState, keys: list[str]) -> str:
        """Emits the key as bytes, each part in whole bytes, for value sets; returns the array's name."""
        size = sum((k.bits + 7) // 8 for k in state.key)
        name = self.code.temp()
        self.code.line(f"uint8_t {name}[{size}];")
        offset = 0  # in bits
        for part, key in zip(state.key, keys, strict=True):
            width = (part.bits + 7) // 8 * 8
            put = "tr_put64" if width <= 64 else "tr_put128" if width <= 128 else "tr_put_limbs"
            self.code.line(f"{put}({name}, {offset}, {width}, {key});")
            offset += width
        return name

    def _matches(self, state: ParseState, case: Transition, keys: list[str], packed: str | None) -> str:
        """C text of the condition under which a case of a select matches."""
        if case.vset is not None:
            mask_bytes = "NULL"
            if case.vset_mask is not None:
                mask_bytes = "(const uint8_t[]){" + ", ".join(str(b) for b in case.vset_mask) + "}"
            return f"tr_vset_match(&s->vsets[{case.vset}], {packed}, {mask_bytes})"
        assert case.values is not None
        terms = []
        for part, key, (value, mask) in zip(state.key, keys, case.values, strict=True):
            if mask == 0:
                continue
            if part.bits > 128:
                terms += self._limb_terms(part.bits, key, value, mask)
            elif mask == (1 << part.bits) - 1:
                terms.append(f"{key} == {literal(value, part.bits)}")
            else:
                terms.append(f"({key} & {literal(mask, part.bits)}) == {literal(value, part.bits)}")
        return " && ".join(terms) or "1"

    def _limb_terms(self, bits: int, key: str, value: int, mask: int) -> list[str]:
        """C conditions for the limbs (64-bit words) of a key part."""
        terms = []
        for i in range(limbs_of(bits)):
            m, v = mask >> 64 * i & (2**64 - 1), value >> 64 * i & (2**64 - 1)
            if m:
                terms.append(f"({key}[{i}] & {literal(m, 64)}) == {literal(v, 64)}")
        return terms


def emit_deparser(code: CodeWriter, model: Model) -> None:
    """Emits ``trp_deparse``, which updates checksums, then writes all valid headers before the payload."""
    values = Values(code, model)
    refs = [ref for ref in model.deparser if isinstance(ref, HeaderInst)]
    code.open("static int trp_deparse(tr_switch *s, tr_pkt *p, struct tr_phv *h)")
    code.line("trp_update(s, p, h);")
    code.trace_begin("TR_STAGE_DEPARSER", "0")
    for i, call in enumerate(model.deparser_calls):
        code.open("")
        code.trace("TR_RECORD_STEP", "TR_OWNER_DEPARSER", 0, i)
        code.count_point("deparser", 0, i)
        ActionBody(values, "calls_done").primitive(call, i)
        code.close()
        code.trace_changes("NULL")
    if model.deparser_calls:
        code.line("calls_done:;")
    code.line("uint32_t n = 0;")
    for ref in refs:
        t, place = model.type_of(ref), values.header(ref)
        extra = f" + {place}.vl_bits / 8" if t.varbit is not None else ""
        code.line(f"n += {place}.valid ? {t.fixed_bits // 8}u{extra} : 0;")
    code.line("uint8_t *b = tr_pkt_prepend(p, n);")
    code.line("if (!b)")
    code.line("    return 0;")
    for ref in refs:
        t, place = model.type_of(ref), values.header(ref)
        code.line(f"if ({place}.valid)")
        code.line(f"    b += deparse_ht{t.index}(&{place}, b);")
    code.line("return 1;")
    code.close()
