# SPDX-License-Identifier: Apache-2.0
"""C text that packs values into bytes at constant bit offsets."""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.switch.compiler.emit.text import CodeWriter
from tailrace.switch.compiler.model import limbs_of

Chunk = tuple[str, int]
"""C text of a value of at most 64 bits, and its width in bits."""


def chunks(place: str, bits: int) -> list[Chunk]:
    """A stored value as chunks of at most 64 bits, the most significant first."""
    if bits == 0:
        return []
    if bits <= 64:
        return [(f"(uint64_t){place}", bits)]
    if bits <= 128:
        return [(f"(uint64_t)({place} >> 64)", bits - 64), (f"(uint64_t){place}", 64)]
    n = limbs_of(bits)
    pieces = [(f"{place}[{i}]", 64) for i in range(n - 1)]
    pieces.append((f"{place}[{n - 1}]", bits - 64 * (n - 1)))
    return pieces[::-1]


def limbs(place: str, bits: int) -> list[str]:
    """A stored value as limbs (64-bit words), at least one, the lowest first."""
    return [text for text, _ in reversed(chunks(place, max(bits, 1)))]


def zeros(bits: int) -> list[Chunk]:
    """Padding of `bits` zero bits."""
    return [("0ULL", bits)] if bits else []


def pack(code: CodeWriter, target: str, pieces: Iterable[Chunk]) -> int:
    """Emits stores of consecutive pieces into ``target``, from byte 0, most significant bit first.

    The last byte is padded with zero bits. The time is linear in the number of pieces.

    Returns:
        the number of bytes written.
    """
    # parts of the 64-bit word that begins at bit `start` of the target: C text, and the bit after the part
    terms: list[tuple[str, int]] = []
    start = position = 0  # in bits
    for text, width in pieces:
        first, end = position, position + width
        while position < end:
            part_end = min(end, start + 64)
            if text != "0ULL":
                # the word before contains the higher bits of this piece, so this part is masked
                keep = part_end - position if position > first and part_end - position < 64 else 64
                terms.append((_part(text, end - part_end, keep), part_end))
            position = part_end
            if position == start + 64:
                _store(code, target, start, 64, terms)
                terms, start = [], position
    if position > start:
        _store(code, target, start, (position - start + 7) // 8 * 8, terms)
    return (position + 7) // 8


def _part(text: str, drop: int, keep: int) -> str:
    """A piece shifted right by `drop` bits, then truncated to its lowest `keep` bits."""
    part = f"{text} >> {drop}" if drop else text
    if keep < 64:
        return f"({part} & {hex((1 << keep) - 1)}ULL)"
    return f"({part})" if drop else part


def _store(code: CodeWriter, target: str, start: int, bits: int, terms: list[tuple[str, int]]) -> None:
    """Emits the store of a word of 64 bits, or of fewer whole bytes for the last word."""
    shifted = [f"{part} << {start + bits - end}" if start + bits > end else part for part, end in terms]
    code.line(f"tr_store_be({target} + {start // 8}, {bits // 8}, {' | '.join(shifted) or '0'});")
