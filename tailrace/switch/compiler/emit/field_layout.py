# SPDX-License-Identifier: Apache-2.0
"""C text of an array with the memory layout of a program's fields, needed to decode trace records.

A field is in the PHV (``h``, the headers and metadata of a packet) or a C local (``l``, locals.py).
"""

from __future__ import annotations

from tailrace.switch.compiler.emit.locals import Locals
from tailrace.switch.compiler.emit.lvalues import Lvalues, field_name
from tailrace.switch.compiler.emit.text import CodeWriter
from tailrace.switch.compiler.model import Header, Model


def emit_places(code: CodeWriter, model: Model, c_locals: Locals) -> None:
    """Emits ``tr_program_places``, an array of ``tr_place`` whose last element has kind TR_PLACE_END."""
    places = Lvalues(model, c_locals)
    code.line("extern const tr_place tr_program_places[];")
    code.open('const tr_place tr_program_places[] __attribute__((visibility("default"))) =')
    split_headers = {header for header, _ in c_locals.fields}
    # (header type, position) of the fields that are C locals, not members of the struct of their header type
    fields_in_locals = {(model.headers[header].type, i) for header, i in c_locals.fields}
    for header in model.headers:
        if not header.metadata and header.index in split_headers:
            raise AssertionError("a field of a packet header is a C local")
        _emit_header(code, model, places, header, fields_in_locals)
    for stack in model.stacks:
        _emit_place(code, "STACK", stack.index, 0, places.stack_next(stack.index))
    for unions in model.union_stacks:
        _emit_place(code, "UNION_STACK", unions.index, 0, places.union_stack_next(unions.index))
    code.line("{TR_PLACE_END, 0, 0, 0, 0, 0},")
    code.close(";")
    code.line("")


def _emit_header(
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
        if f.varbit:
            _emit_place(code, "BITS", header.index, i, f"{inst}.vl_bits")
        _emit_place(code, "FIELD", header.index, i, f"{inst}.{field_name(t, i)}")


def _emit_place(code: CodeWriter, kind: str, index: int, field: int, place: str) -> None:
    pointer, member = place.split("->", 1)
    struct = "struct tr_locals" if pointer == "l" else "struct tr_phv"
    size = f"sizeof(({struct} *)0)->{member}"
    code.line(
        f"{{TR_PLACE_{kind}, {int(pointer == 'l')}, {index}, {field}, offsetof({struct}, {member}), {size}}},"
    )
