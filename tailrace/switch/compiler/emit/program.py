# SPDX-License-Identifier: Apache-2.0
"""The whole C file of a program; it depends only on the program's model."""

from __future__ import annotations

from tailrace.switch.compiler.coverage_points import CoveragePoints
from tailrace.switch.compiler.emit.actions import emit_actions
from tailrace.switch.compiler.emit.calculations import emit_calculation, emit_checksums
from tailrace.switch.compiler.emit.headers import (
    carried_bytes,
    emit_standard,
    emit_type_functions,
    emit_types,
)
from tailrace.switch.compiler.emit.locals import (
    Locals,
    beside_pipelines,
    locals_of,
    not_carried,
    of_pipeline,
    references,
)
from tailrace.switch.compiler.emit.lvalues import Lvalues, field_name
from tailrace.switch.compiler.emit.parser import ParserEmitter, emit_deparser
from tailrace.switch.compiler.emit.pipelines import (
    MATCH,
    PipelineEmitter,
    data_limbs,
    holds_entries,
    key_words,
    slot_bytes,
)
from tailrace.switch.compiler.emit.registers import cell_bytes, emit_register, layout
from tailrace.switch.compiler.emit.text import CodeWriter, string
from tailrace.switch.compiler.emit.values import Values
from tailrace.switch.compiler.expr import FieldRef, HeaderInst
from tailrace.switch.compiler.model import Digest, Header, Model, Table, limbs_of

_HEAD = """\
/* Generated from a P4 program by Tailrace's compiler. Do not edit. */
#include "tr_core.h"
#include "tr_hash.h"
#include "tr_wide.h"
"""


def emit(model: Model, *, tracing: bool = False) -> str:
    """The C text of a program; it exports ``const tr_program tr_program_entry``.

    Args:
        tracing: makes the tracing build (tr_tracer.h), which is compiled with TR_TRACING and also exports
            ``tr_program_places``, the layout of the program's fields.

    Raises:
        CompilerError: the program uses a construct that is not supported.
    """
    code = CodeWriter(CoveragePoints(model) if tracing else None)
    # metadata that become local variables of C functions; metadata that packets in queues do not carry
    c_locals = locals_of(model)
    omitted = not_carried(model, c_locals)
    emit_types(code, model, omitted, c_locals)
    emit_standard(code, model)
    emit_type_functions(code, model)
    for r, cell in zip(model.registers, layout(model).cells, strict=True):
        emit_register(code, r, cell)
    for c in model.calculations:
        emit_calculation(code, model, c)
    emit_actions(code, model, c_locals)
    emit_checksums(code, model, verify=True)
    emit_checksums(code, model, verify=False)
    ParserEmitter(code, model, c_locals).emit()
    emit_deparser(code, model)
    PipelineEmitter(code, model, c_locals, model.ingress).emit()
    PipelineEmitter(code, model, c_locals, model.egress).emit()
    _emit_field_lists(code, model, c_locals)
    _emit_digests(code, model)
    code.line(f"enum {{ TRP_CARRIED = {carried_bytes(model, omitted)} }};")
    _emit_timestamps(code, model, tracing=tracing)
    code.line("")
    code.include("tr_v1model.h")
    code.line("")
    _emit_description(code, model)
    if tracing:
        _emit_places(code, model, c_locals)
    return _HEAD + "\n" + code.text()


def _emit_timestamps(code: CodeWriter, model: Model, *, tracing: bool) -> None:
    """Emits a constant for each timestamp: 1 if the program uses it, so that the clock is read only then.

    A tracing build uses all timestamps.
    """
    bodies = (
        model.parser,
        of_pipeline(model, model.ingress),
        of_pipeline(model, model.egress),
        beside_pipelines(model),
    )
    referenced = set(references(bodies))

    def uses(*names: str) -> int:
        refs = [ref for name in names if (ref := model.standard.get(name)) is not None]
        return int(tracing or any(ref in referenced or ref.header in referenced for ref in refs))

    code.line(f"enum {{ TRP_ASKS_INGRESS = {uses('ingress_global_timestamp')} }};")
    code.line(f"enum {{ TRP_ASKS_ENQUEUED = {uses('enq_timestamp', 'deq_timedelta')} }};")
    code.line(f"enum {{ TRP_ASKS_EGRESS = {uses('egress_global_timestamp')} }};")


def _emit_field_lists(code: CodeWriter, model: Model, c_locals: Locals) -> None:
    """Emits ``trp_copy_fields``, which copies the fields of a list, and ``trp_reset_metadata``."""
    places = Lvalues(model)
    code.line("static void trp_copy_fields(struct tr_phv *to, const struct tr_phv *from,")
    code.open("    uint32_t list)")
    code.open("switch (list)")
    for field_list in model.field_lists:
        code.line(f"case {field_list.id}:")
        for ref in field_list.fields:
            code.line(f"    {_copy(places, model, ref)}")
        code.line("    break;")
    code.close()
    code.close()
    code.open("static void trp_reset_metadata(struct tr_phv *h)")
    for header in model.headers:
        if header.metadata and header.index not in c_locals.headers:
            place = places.header_inst(header.index)
            code.line(f"memset(&{place}, 0, sizeof {place});")
    code.close()


def _copy(places: Lvalues, model: Model, ref: FieldRef) -> str:
    assert isinstance(ref.header, HeaderInst)
    inst = places.header_inst(ref.header.index)[1:]  # without the pointer h
    member = f"{inst}.{field_name(model.type_of(ref.header), ref.field)}"
    if model.field_type(ref).bits > 128:
        return f"memcpy(to{member}, from{member}, sizeof to{member});"
    return f"to{member} = from{member};"


def _emit_digests(code: CodeWriter, model: Model) -> None:
    code.open("static void trp_digest(tr_switch *s, tr_pkt *p, struct tr_phv *h)")
    code.open("switch (p->digest)")
    for d in model.digests:
        code.line(f"case {d.index + 1}:")
        code.depth += 1
        code.open("")
        n = digest_limbs(d)
        code.line(f"uint64_t record[{max(n, 1)}];")
        values, offset = Values(code, model), 0
        for e, bits in d.values:
            values.store_limbs(e, bits, "record", offset)
            offset += limbs_of(bits)
        code.line(f"tr_digest_push(s, {d.index}, s->now_ps, record, {n});")
        code.line("break;")
        code.close()
        code.depth -= 1
    code.close()
    code.close()


def digest_limbs(d: Digest) -> int:
    """Number of limbs (64-bit words) of one message of a digest."""
    return sum(limbs_of(bits) for bits in d.field_bits)


def _emit_description(code: CodeWriter, model: Model) -> None:
    """Emits ``tr_program_entry``: the sizes of tables and externs, and the functions of the data plane.

    The values of a struct have the order of its members in tr_core.h.
    """
    for t in model.tables:
        if t.key:
            code.open(f"static const tr_key_field key_{t.index}[] =")
            for k in t.key:
                code.line(f"{{{k.offset}, {k.nbytes}, {int(k.kind == 'range')}}},")
            code.close(";")
    _emit_array(code, "tr_table_desc", "tables", [_table_desc(model, t) for t in model.tables])
    most_limbs: dict[int | None, int] = {}  # by profile
    for t in model.tables:
        most_limbs[t.profile] = max(most_limbs.get(t.profile, 0), data_limbs(model, t))
    profiles = [f"{{{string(p.name)}, {p.max_size}, {most_limbs.get(p.index, 0)}}}" for p in model.profiles]
    _emit_array(code, "tr_profile_desc", "profiles", profiles)
    counters = [f"{{{string(c.name)}, {c.size}u, 0, 0}}" for c in model.counters]
    _emit_array(code, "tr_array_desc", "counters", counters)
    register_layout = layout(model)
    registers = [
        f"{{{string(r.name)}, {r.size}u, {r.bits}, {cell_bytes(r.bits)}, {c.block}, {c.offset}, {c.stride}}}"
        for r, c in zip(model.registers, register_layout.cells, strict=True)
    ]
    _emit_array(code, "tr_array_desc", "registers", registers)
    blocks = [f"{{{b.size}u, {b.stride}}}" for b in register_layout.blocks]
    _emit_array(code, "tr_block_desc", "blocks", blocks)
    meters = [f"{{{string(m.name)}, {m.size}u, {int(m.unit == 'bytes')}, 0}}" for m in model.meters]
    _emit_array(code, "tr_array_desc", "meters", meters)
    vsets = [f"{{{string(v.name)}, {v.size}u, {v.bits}, {v.key_bytes}}}" for v in model.vsets]
    _emit_array(code, "tr_array_desc", "vsets", vsets)
    code.line("extern const tr_program tr_program_entry;")
    code.open('const tr_program tr_program_entry __attribute__((visibility("default"))) =')
    code.line(".abi = TR_ABI,")
    code.line(".phv_size = sizeof(struct tr_phv),")
    code.line(".phv_carried = TRP_CARRIED,")
    code.line(f".name = {string(model.name)},")
    for name in ("tables", "profiles", "counters", "registers", "meters", "vsets"):
        code.line(f".n_{name} = {len(getattr(model, name))},")
        code.line(f".{name} = {name if getattr(model, name) else 'NULL'},")
    code.line(f".n_blocks = {len(blocks)},")
    code.line(f".blocks = {'blocks' if blocks else 'NULL'},")
    code.line(f".digest_limbs = {max((digest_limbs(d) for d in model.digests), default=0)},")
    code.line(".ingress = trm_ingress,")
    code.line(".egress = trm_egress,")
    code.line(".rx = tr_data_rx,")
    code.line(".run = tr_data_run,")
    code.close(";")


def _table_desc(model: Model, t: Table) -> str:
    return (
        f"{{{string(t.name)}, {MATCH[t.match_kind]}, {t.key_bytes}, {key_words(t)}, {t.max_size}, "
        f"{data_limbs(model, t)}, {int(t.kind != 'simple')}, {-1 if t.profile is None else t.profile}, "
        f"{int(holds_entries(model, t))}, {int(t.meter is not None)}, {slot_bytes(model, t)}, "
        f"{f'key_{t.index}' if t.key else 'NULL'}, {len(t.key)}}}"
    )


def _emit_array(code: CodeWriter, kind: str, name: str, items: list[str]) -> None:
    if not items:
        return
    code.open(f"static const {kind} {name}[] =")
    for item in items:
        code.line(item + ",")
    code.close(";")


def _emit_places(code: CodeWriter, model: Model, c_locals: Locals) -> None:
    """Emits ``tr_program_places``, the layout of fields in PHV and C locals, to decode trace records: an
    array of ``tr_place`` whose last element has kind TR_PLACE_END.
    """
    places = Lvalues(model, c_locals)
    code.line("extern const tr_place tr_program_places[];")
    code.open('const tr_place tr_program_places[] __attribute__((visibility("default"))) =')
    split_headers = {header for header, _ in c_locals.fields}
    # (header type, position) of the fields that are C locals, not members of the struct of their header type
    fields_in_locals = {(model.headers[header].type, i) for header, i in c_locals.fields}
    for header in model.headers:
        if not header.metadata and header.index in split_headers:
            raise AssertionError("a field of a packet header is a C local")
        _emit_places_of_header(code, model, places, header, fields_in_locals)
    for stack in model.stacks:
        _emit_place(code, "STACK", stack.index, 0, places.stack_next(stack.index))
    code.line("{TR_PLACE_END, 0, 0, 0, 0, 0},")
    code.close(";")


def _emit_places_of_header(
    code: CodeWriter, model: Model, places: Lvalues, header: Header, fields_in_locals: set[tuple[int, int]]
) -> None:
    t = model.header_types[header.type]
    inst = places.header_inst(header.index)
    if not header.metadata:
        _emit_place(code, "VALID", header.index, 0, f"{inst}.valid")
    for i, f in enumerate(t.fields):
        if not f.bits:
            continue
        if (header.index, i) in places.c_locals.fields:
            _emit_place(code, "FIELD", header.index, i, f"l->h{header.index}_{field_name(t, i)}")
            continue
        if (header.type, i) in fields_in_locals:
            continue
        _emit_place(code, "FIELD", header.index, i, f"{inst}.{field_name(t, i)}")
        if f.varbit:
            _emit_place(code, "BITS", header.index, i, f"{inst}.vl_bits")


def _emit_place(code: CodeWriter, kind: str, index: int, field: int, place: str) -> None:
    pointer, member = place.split("->", 1)
    struct = "struct tr_locals" if pointer == "l" else "struct tr_phv"
    size = f"sizeof(({struct} *)0)->{member}"
    code.line(
        f"{{TR_PLACE_{kind}, {int(pointer == 'l')}, {index}, {field}, offsetof({struct}, {member}), {size}}},"
    )
