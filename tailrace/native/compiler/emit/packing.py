# SPDX-License-Identifier: Apache-2.0
"""C text that packs values into bytes at offsets known when the program is compiled."""

from __future__ import annotations

from tailrace.native.compiler.emit.text import Code
from tailrace.native.compiler.model import limbs_of

Chunk = tuple[str, int]


def chunks(place: str, bits: int) -> list[Chunk]:
    """A stored value as pieces of at most 64 bits, most significant first."""
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


def zeros(bits: int) -> list[Chunk]:
    return [("0ULL", bits)] if bits else []


def pack(code: Code, target: str, pieces: list[Chunk]) -> int:
    """Emits the stores of adjoining pieces from byte 0 of ``target`` on.

    A last part of a byte is filled with zero bits.

    Returns:
        the number of bytes written.
    """
    total = sum(bits for _, bits in pieces)
    nbytes = (total + 7) // 8
    for word in range(0, nbytes, 8):
        size = min(8, nbytes - word)
        terms = _word_terms(pieces, 8 * word, 8 * size)
        code.line(f"tr_store_be({target} + {word}, {size}, {' | '.join(terms) or '0'});")
    return nbytes


def _word_terms(pieces: list[Chunk], start: int, bits: int) -> list[str]:
    terms, at = [], 0
    for text, width in pieces:
        left, right = max(at, start), min(at + width, start + bits)
        if left < right and text != "0ULL":
            drop = at + width - right
            part = f"{text} >> {drop}" if drop else text
            if left > at and right - left < 64:
                part = f"({part} & {hex((1 << (right - left)) - 1)}ULL)"
            elif drop:
                part = f"({part})"
            shift = start + bits - right
            terms.append(f"{part} << {shift}" if shift else part)
        at += width
    return terms
