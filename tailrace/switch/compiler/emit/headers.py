# SPDX-License-Identifier: Apache-2.0
"""C text of the PHV (headers and metadata of a packet): structs, extraction, deparsing and comparison."""

from __future__ import annotations

from tailrace.switch.compiler.emit.locals import Locals, NotCarried
from tailrace.switch.compiler.emit.lvalues import (
    Lvalues,
    declare_field,
    field_name,
    set_valid,
    type_name,
    union_type_name,
)
from tailrace.switch.compiler.emit.packing import chunks, pack
from tailrace.switch.compiler.emit.text import CodeWriter, storage
from tailrace.switch.compiler.expr import HeaderInst
from tailrace.switch.compiler.model import HeaderType, Model

# fields of standard_metadata that the runtime reads or writes
STANDARD = (
    "ingress_port",
    "egress_spec",
    "egress_port",
    "instance_type",
    "packet_length",
    "enq_timestamp",
    "enq_qdepth",
    "deq_timedelta",
    "deq_qdepth",
    "ingress_global_timestamp",
    "egress_global_timestamp",
    "mcast_grp",
    "egress_rid",
    "checksum_error",
    "parser_error",
    "priority",
    "qid",
)


def emit_types(code: CodeWriter, model: Model, omitted: NotCarried, c_locals: Locals) -> None:
    """Emits structs of header types and unions, ``struct tr_phv`` and ``struct tr_locals``.

    Fields that queued packets do not carry (`omitted`) come last in ``struct tr_phv``: first the header of
    which only some fields are carried (`omitted.split`), then the headers that are not carried at all.
    """
    fields_in_locals = {(model.headers[h].type, i) for h, i in c_locals.fields}
    split = None if omitted.split is None else model.headers[omitted.split].type
    for t in model.header_types:
        code.open(type_name(t))
        code.line("uint8_t valid;")
        last_fields = omitted.fields if t.index == split else frozenset[int]()
        for i in sorted(range(len(t.fields)), key=lambda i: i in last_fields):
            if (t.index, i) not in fields_in_locals:
                code.line(declare_field(t, i, t.fields[i]))
        code.close(";")
    # one union of each type (u.kind): the first
    for _, union in sorted({u.kind: u for u in reversed(model.unions)}.items()):
        code.open(union_type_name(union))
        for k, member in enumerate(union.members):
            t = model.header_types[model.headers[member].type]
            code.line(f"{type_name(t)} m{k};")
        code.close(";")
    _emit_phv(code, model, omitted, c_locals)
    _emit_locals(code, model, c_locals)


def _emit_phv(code: CodeWriter, model: Model, omitted: NotCarried, c_locals: Locals) -> None:
    # with an empty pointer name an lvalue is "->member", so [2:] of it is the name of the member
    places = Lvalues(model, pointer="")
    last_headers = ([] if omitted.split is None else [omitted.split]) + sorted(omitted.headers)
    code.open("struct tr_phv")
    for header in model.headers:
        if header.index in c_locals.headers or header.index in last_headers:
            continue
        if header.stack is None and header.union is None:
            code.line(_member(model, places, header.index))
    for stack in model.stacks:
        array = places.stack(stack.index)[2:]
        code.line(f"{places.element_type(stack)} {array}[{len(stack.elements)}];")
        code.line(f"uint32_t {places.stack_next(stack.index)[2:]};")
    for union in model.unions:
        if union.stack is None:
            code.line(f"{union_type_name(union)} {places.union_inst(union.index)[2:]};")
    for index in last_headers:
        code.line(_member(model, places, index))
    code.close(";")


def _emit_locals(code: CodeWriter, model: Model, c_locals: Locals) -> None:
    places = Lvalues(model, c_locals)
    code.open("struct tr_locals")
    for index in sorted(c_locals.headers):
        code.line(_member(model, places, index))
    for index, i in sorted(c_locals.fields):
        t = model.header_types[model.headers[index].type]
        code.line(declare_field(t, i, t.fields[i], f"h{index}_"))
    # C has no empty structs
    code.line("uint8_t none;")
    code.close(";")


def _member(model: Model, places: Lvalues, index: int) -> str:
    """The C declaration of a header as a member of a struct."""
    place = places.header_inst(index).rpartition(">")[2]
    return f"{type_name(model.header_types[model.headers[index].type])} {place};"


def carried_bytes(model: Model, omitted: NotCarried) -> str:
    """A C expression: the number of bytes of the PHV that a queued packet carries."""
    # as in _emit_phv, [2:] is the name of the member
    places = Lvalues(model, pointer="")
    if omitted.split is not None:
        t = model.header_types[model.headers[omitted.split].type]
        first = f"{places.header_inst(omitted.split)[2:]}.{field_name(t, min(omitted.fields))}"
    elif omitted.headers:
        first = places.header_inst(min(omitted.headers))[2:]
    else:
        return "sizeof(struct tr_phv)"
    return f"offsetof(struct tr_phv, {first})"


def emit_standard(code: CodeWriter, model: Model) -> None:
    """Emits accessors of standard_metadata; a field that the program does not have reads as 0."""
    places = Lvalues(model)
    for name in STANDARD:
        ref, setter, value = model.standard.get(name), "", "0"
        if ref is not None:
            f = model.field_type(ref)
            assert isinstance(ref.header, HeaderInst)
            member = field_name(model.type_of(ref.header), ref.field)
            place = f"{places.header_inst(ref.header.index)}.{member}"
            setter = f"{place} = ({storage(f.bits)})(v & tr_mask64({min(f.bits, 64)}));"
            value = f"(uint64_t){place}"
        code.line(f"TR_INLINE void trp_set_{name}(struct tr_phv *h, uint64_t v) {{ {setter} }}")
        code.line(f"TR_INLINE uint64_t trp_get_{name}(const struct tr_phv *h) {{ return {value}; }}")


def emit_type_functions(code: CodeWriter, model: Model) -> None:
    """Emits ``extract_htN``, ``deparse_htN`` and ``same_htN`` (equality) for each type of packet headers."""
    used = {h.type for h in model.headers if not h.metadata}
    for t in model.header_types:
        if t.index not in used:
            continue
        _emit_extract(code, t)
        if t.varbit is None:
            _emit_deparse(code, t)
        else:
            _emit_deparse_varbit(code, t)
        _emit_same(code, t)


def _emit_extract(code: CodeWriter, t: HeaderType) -> None:
    """Emits ``extract_htN(x, b)``; with a varbit field its last argument is the width of that field."""
    kind, more = ("TR_INLINE", "") if t.varbit is None else ("static", ", uint32_t vl")
    code.open(f"{kind} void extract_ht{t.index}({type_name(t)} *x, const uint8_t *b{more})")
    code.line("uint32_t o = 0;")  # offset in bits; a constant for the C compiler up to a varbit field
    for i, f in enumerate(t.wire):  # t.fields without a hidden field, which is last
        place = f"x->{field_name(t, i)}"
        if f.varbit:
            code.line("x->vl_bits = vl;")
            code.line(f"tr_get_bytes(b, o, vl, {place});")
        elif f.bits > 128:
            code.line(f"tr_get_limbs(b, o, {f.bits}, {place});")
        elif f.bits > 64:
            code.line(f"{place} = tr_get128(b, o, {f.bits});")
        elif f.bits:
            code.line(f"{place} = ({storage(f.bits)})tr_get64(b, o, {f.bits});")
        code.line("o += vl;" if f.varbit else f"o += {f.bits};")
    set_valid(code, t, "(*x)", 1)
    code.close()


def _emit_deparse(code: CodeWriter, t: HeaderType) -> None:
    code.open(f"TR_INLINE uint32_t deparse_ht{t.index}(const {type_name(t)} *x, uint8_t *b)")
    pieces = []
    for i, f in enumerate(t.wire):
        pieces += chunks(f"x->{field_name(t, i)}", f.bits)
    code.line(f"return {pack(code, 'b', pieces)};")
    code.close()


def _emit_deparse_varbit(code: CodeWriter, t: HeaderType) -> None:
    code.open(f"static uint32_t deparse_ht{t.index}(const {type_name(t)} *x, uint8_t *b)")
    code.line("uint32_t o = 0;")
    for i, f in enumerate(t.wire):
        place = f"x->{field_name(t, i)}"
        if f.varbit:
            code.line(f"tr_put_bytes(b, o, x->vl_bits, {place});")
            code.line("o += x->vl_bits;")
        elif f.bits:
            put = "tr_put64" if f.bits <= 64 else "tr_put128" if f.bits <= 128 else "tr_put_limbs"
            code.line(f"{put}(b, o, {f.bits}, {place});")
            code.line(f"o += {f.bits};")
    code.line("return o / 8;")
    code.close()


def _emit_same(code: CodeWriter, t: HeaderType) -> None:
    name = type_name(t)
    code.open(f"static inline int same_ht{t.index}(const {name} *a, const {name} *b)")
    code.line("if (!a->valid || !b->valid)")
    code.line("    return 0;")
    for i, f in enumerate(t.fields):
        n = field_name(t, i)
        if f.varbit:
            code.line(f"if (a->vl_bits != b->vl_bits || memcmp(a->{n}, b->{n}, a->vl_bits / 8))")
            code.line("    return 0;")
        elif f.bits > 128:
            code.line(f"if (memcmp(a->{n}, b->{n}, sizeof a->{n}))")
            code.line("    return 0;")
        elif f.bits:
            code.line(f"if (a->{n} != b->{n})")
            code.line("    return 0;")
    code.line("return 1;")
    code.close()
