# SPDX-License-Identifier: Apache-2.0
"""C text of hashes and checksums."""

from __future__ import annotations

from tailrace.switch.compiler.emit.lvalues import field_name
from tailrace.switch.compiler.emit.packing import Chunk, chunks, pack, zeros
from tailrace.switch.compiler.emit.text import CodeWriter, identifier
from tailrace.switch.compiler.emit.values import Values
from tailrace.switch.compiler.expr import FieldRef, HeaderRef
from tailrace.switch.compiler.model import CalcInput, Calculation, ConstInput, Model

# algorithms that use the function of another algorithm; custom CRCs have the standard parameters, as in BMv2
_FUNCTION = {
    "crc16_custom": "crc16",
    "crc32_custom": "crc32",
    "cksum16": "csum16",
    "bmv2_hash": "xxh64",
}


# a header (None: metadata and constants), consecutive inputs from that header, the sum of their bits
_Group = tuple[HeaderRef | None, list[CalcInput], int]


def _max_bits(model: Model, item: CalcInput) -> int:
    """The width of an input; of a varbit field the maximum width."""
    return item.bits if isinstance(item, ConstInput) else model.field_type(item).bits


def _header_of(item: CalcInput) -> HeaderRef | None:
    return None if isinstance(item, ConstInput) else item.header


def emit_calculation(code: CodeWriter, model: Model, c: Calculation) -> None:
    """Emits a function ``calc_N(s, p, h)`` for a calculation. h: the packet's headers and metadata."""
    code.open(f"static uint64_t calc_{c.index}(tr_switch *s, const tr_pkt *p, struct tr_phv *h)")
    if c.algo == "random":
        draw = "tr_trace_random(s, p, 0, UINT64_MAX)" if code.tracing else "tr_random(s, 0, UINT64_MAX)"
        code.line(f"return {draw};")
        code.close()
        return
    groups, function = _groups(model, c), _FUNCTION.get(c.algo, c.algo)
    can_add = groups is not None and all(bits % 16 == 0 for _, _, bits in groups[:-1])
    if groups is not None and can_add and function == "csum16" and not c.payload:
        # group by group: lengths are constants, so the C compiler unrolls loops
        code.line("uint64_t sum = 0;")
        code.line(f"uint8_t part[{(max((bits for _, _, bits in groups), default=0) + 7) // 8 + 8}];")
        _emit_groups(code, model, groups, "part", "sum = tr_csum_add(sum, part, {});")
        code.line("return tr_csum_end(sum);")
        code.close()
        return
    # 8 bytes more, because the last store may write a whole word
    size = (sum(_max_bits(model, i) for i in c.inputs) + 7) // 8 + 8
    code.line(f"uint8_t buf[{f'{size} + TR_MAX_FRAME' if c.payload else size}];")
    if groups is None:
        _emit_bitwise(code, model, c)
    else:
        code.line("uint32_t o = 0;")  # counts the bytes
        _emit_groups(code, model, groups, "(buf + o)", "o += {};")
    if c.payload:
        code.line("memcpy(buf + o, p->buf + p->off + p->parsed, p->len - p->parsed);")
        code.line("o += p->len - p->parsed;")
    code.line(f"return tr_hash_{identifier(function)}(buf, o);")
    code.close()


def _groups(model: Model, c: Calculation) -> list[_Group] | None:
    """Groups consecutive inputs by header.

    Returns None if an input is varbit, or if a group before the last does not fill whole bytes; then
    _emit_bitwise packs the inputs.
    """
    groups: list[_Group] = []
    for item in c.inputs:
        if _is_varbit(model, item):
            return None
        header = _header_of(item)
        if header is not None and _is_metadata(model, header):
            header = None
        bits = _max_bits(model, item)
        if groups and groups[-1][0] == header:
            groups[-1][1].append(item)
            groups[-1] = (header, groups[-1][1], groups[-1][2] + bits)
        else:
            groups.append((header, [item], bits))
    return groups if all(bits % 8 == 0 for _, _, bits in groups[:-1]) else None


def _is_metadata(model: Model, header: HeaderRef) -> bool:
    index = getattr(header, "index", None)
    return isinstance(index, int) and model.headers[index].metadata


def _is_varbit(model: Model, item: CalcInput) -> bool:
    return isinstance(item, FieldRef) and model.field_type(item).varbit


def _pieces(values: Values, item: CalcInput) -> list[Chunk]:
    if isinstance(item, ConstInput):
        return _const_chunks(item)
    return chunks(values.field(item), values.model.field_type(item).bits)


def _const_chunks(item: ConstInput) -> list[Chunk]:
    parts: list[Chunk] = []
    bits = item.bits
    while bits > 0:
        n = (bits - 1) % 64 + 1
        bits -= n
        part = item.value >> bits & ((1 << n) - 1)
        parts += [(f"{hex(part)}ULL", n)] if part else zeros(n)
    return parts


def _emit_groups(code: CodeWriter, model: Model, groups: list[_Group], target: str, add: str) -> None:
    """Emits the packing of each group whose header is valid into `target`, and then `add`: C text, in which
    `{}` stands for the number of bytes.
    """
    values = Values(code, model)
    for header, items, _ in groups:
        pieces = [piece for item in items for piece in _pieces(values, item)]
        code.open("" if header is None else f"if ({values.header(header)}.valid)")
        code.line(add.format(pack(code, target, pieces)))
        code.close()


def _emit_bitwise(code: CodeWriter, model: Model, c: Calculation) -> None:
    """Emits the packing of inputs whose bit offsets depend on which headers are valid."""
    values = Values(code, model)
    code.line("uint32_t bit = 0;")
    code.line("memset(buf, 0, sizeof buf);")
    for item in c.inputs:
        header = _header_of(item)
        place = "" if header is None else values.header(header)
        guarded = header is not None and not _is_metadata(model, header)
        if guarded:
            code.open(f"if ({place}.valid)")
        if isinstance(item, FieldRef) and _is_varbit(model, item):
            name = field_name(model.type_of(item.header), item.field)
            code.line(f"tr_put_bytes(buf, bit, {place}.vl_bits, {place}.{name});")
            code.line(f"bit += {place}.vl_bits;")
        else:
            for text, bits in _pieces(values, item):
                code.line(f"tr_put64(buf, bit, {bits}, {text});")
                code.line(f"bit += {bits};")
        if guarded:
            code.close()
    code.line("uint32_t o = (bit + 7) / 8;")


def emit_checksums(code: CodeWriter, model: Model, *, verify: bool) -> None:
    """Emits ``trp_verify``, which returns 1 if a checksum is wrong, or ``trp_update``."""
    values = Values(code, model)
    chosen = [(i, c) for i, c in enumerate(model.checksums) if (c.verify if verify else c.update)]
    name, stage = ("int trp_verify", "VERIFY") if verify else ("void trp_update", "UPDATE")
    code.open(f"static {name}(tr_switch *s, tr_pkt *p, struct tr_phv *h)")
    if verify:
        code.line("int wrong = 0;")
    if chosen:
        code.trace_begin(f"TR_STAGE_{stage}", "0")
    for i, c in chosen:
        code.open("")
        place = values.header(c.target.header)
        valid = f"{place}.valid" if verify and not _is_metadata(model, c.target.header) else "1"
        condition = "1" if c.condition is None else values.boolean(c.condition)
        field = f"{place}.{field_name(model.type_of(c.target.header), c.target.field)}"
        code.open(f"if ({valid} && {condition})")
        if verify:
            t = code.temp()
            code.line(f"const int {t} = calc_{c.calculation}(s, p, h) != (uint64_t){field};")
            code.trace("TR_RECORD_CHECKSUM", i, 0, f"!{t}")  # 0: verified
            code.line(f"wrong |= {t};")
        else:
            mask = f"tr_mask64({min(64, model.field_type(c.target).bits)})"
            code.trace("TR_RECORD_CHECKSUM", i, 1, 1)  # updated, and so correct
            code.line(f"{field} = calc_{c.calculation}(s, p, h) & {mask};")
            code.trace_changes("NULL")
        code.close()
        code.close()
    if verify:
        code.line("return wrong;")
    code.close()
