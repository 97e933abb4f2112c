# SPDX-License-Identifier: Apache-2.0
"""Memory layout of registers, and C text of their reads and writes.

Programs store the state of a flow or a port in several registers, at the same index. So registers of the same
size share a block of memory, in which cells with the same index are adjacent and form a record. Access to a
record costs one or two cache lines, instead of one for each register.
"""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.switch.compiler.emit.packing import limbs
from tailrace.switch.compiler.emit.text import CodeWriter, storage
from tailrace.switch.compiler.model import Model, Register, limbs_of

_LIMB_BYTES = 8
_LINE_BYTES = 64


@dataclass(frozen=True, slots=True)
class CellLayout:
    """Layout of a register: cell i is at byte ``offset + i * stride`` of the block with index ``block``."""

    block: int
    offset: int
    stride: int


@dataclass(frozen=True, slots=True)
class RegisterBlock:
    """Memory of registers of the same size: ``size`` records of ``stride`` bytes."""

    size: int
    stride: int


@dataclass(frozen=True, slots=True)
class RegisterLayout:
    """The layout of all registers, by index, and their blocks."""

    cells: tuple[CellLayout, ...]
    blocks: tuple[RegisterBlock, ...]


def cell_bytes(bits: int) -> int:
    """Size of a register cell in bytes: the first that suffices of 1, 2, 4, 8, 16, else 8 bytes per limb."""
    for size in (1, 2, 4, 8, 16):
        if bits <= 8 * size:
            return size
    return _LIMB_BYTES * limbs_of(bits)


def _alignment(size: int) -> int:
    """Alignment of a cell: the largest power of two, up to 16, that divides its size."""
    return min(size & -size, 16)


def _stride(total: int, alignment: int) -> int:
    """The length of a record of `total` bytes, padded so that few records cross cache lines: to a power of
    two up to 16 bytes, else to a multiple of 16 bytes.
    """
    if total <= _LINE_BYTES // 4:
        return max(alignment, 1 << (total - 1).bit_length())
    return -(-total // 16) * 16


def layout(model: Model) -> RegisterLayout:
    """The layout of all registers; in a record, cells with the largest alignment come first."""
    cells: list[CellLayout | None] = [None] * len(model.registers)
    blocks: list[RegisterBlock] = []
    by_size: dict[int, list[Register]] = {}
    for r in model.registers:
        by_size.setdefault(r.size, []).append(r)
    for size, members in by_size.items():
        members.sort(key=lambda r: (-_alignment(cell_bytes(r.bits)), r.index))
        offsets, total = [], 0
        for r in members:
            offsets.append(total)
            total += cell_bytes(r.bits)
        block = RegisterBlock(size, _stride(total, _alignment(cell_bytes(members[0].bits))))
        for r, offset in zip(members, offsets, strict=True):
            cells[r.index] = CellLayout(len(blocks), offset, block.stride)
        blocks.append(block)
    return RegisterLayout(tuple(cell for cell in cells if cell is not None), tuple(blocks))


def emit_register(code: CodeWriter, r: Register, cell: CellLayout) -> None:
    """Emits ``regN_read``, which returns 0 if the index is out of range, else 1, and ``regN_write``."""
    place = f"s->registers[{r.index}] + i * {cell.stride}u"
    if r.bits > 128:
        value, size = "uint64_t *", _LIMB_BYTES * limbs_of(r.bits)
        read = f"memcpy(v, {place}, {size});"
        write = f"memcpy({place}, v, {size});"
        const = "const uint64_t *"
    else:
        kind = storage(r.bits)
        value = "uint64_t *" if r.bits <= 64 else "tr_u128 *"
        const = value[:-1]
        read = f"*v = *({kind} *)(void *)({place});"
        write = f"*({kind} *)(void *)({place}) = ({kind})v;"
    code.comment("register", r.name)
    code.open(f"static inline int reg{r.index}_read(tr_switch *s, uint64_t i, {value}v)")
    code.open(f"if (i >= {r.size}u)")
    if code.tracing:
        code.line(f"TR_TRACE(s, s->traced_pkt, TR_RECORD_READ, {r.index}, i, 0);")
    code.line("return 0;")
    code.close()
    code.line(read)
    _trace_access(code, r, "TR_RECORD_READ", "(*v)" if r.bits <= 128 else "v")
    code.line("return 1;")
    code.close()
    code.open(f"static inline void reg{r.index}_write(tr_switch *s, uint64_t i, {const}v)")
    _trace_access(code, r, "TR_RECORD_WRITE", "v")
    # a dry run saves the cell before the write
    saved = f" && tr_undo_save(s, s->traced_pkt, {place}, {cell_bytes(r.bits)})" if code.tracing else ""
    code.line(f"if (i < {r.size}u{saved})")
    code.line(f"    {write}")
    code.close()


def _trace_access(code: CodeWriter, r: Register, kind: str, value: str) -> None:
    """In a tracing build (tr_tracer.h), emits the trace record of a packet's access to a cell."""
    if not code.tracing:
        return
    fields = ", ".join([kind, str(r.index), "i", f"i < {r.size}u", *limbs(value, r.bits)])
    code.line(f"TR_TRACE(s, s->traced_pkt, {fields});")
