# SPDX-License-Identifier: Apache-2.0
"""C text: identifiers, literals, and a buffer of indented lines with fresh temporaries."""

from __future__ import annotations

import re


def identifier(name: str) -> str:
    """A P4 name as part of a C identifier."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def string(text: str) -> str:
    """A C string literal; bytes outside printable ASCII are escaped in octal."""
    out = []
    for byte in text.encode():
        char = chr(byte)
        if char in '"\\?':
            out.append("\\" + char)
        elif 32 <= byte < 127:
            out.append(char)
        else:
            out.append(f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def literal(value: int, bits: int) -> str:
    """An unsigned literal of 64 (bits <= 64) or 128 bits, taken modulo 2^width."""
    if bits <= 64:
        return f"{hex(value & (2**64 - 1))}ULL"
    value &= 2**128 - 1
    if value < 2**64:
        return f"(tr_u128){hex(value)}ULL"
    return f"((tr_u128){hex(value >> 64)}ULL << 64 | {hex(value & (2**64 - 1))}ULL)"


def storage(bits: int) -> str:
    """The C type that stores a field of at most 128 bits."""
    for width in (8, 16, 32, 64):
        if bits <= width:
            return f"uint{width}_t"
    return "tr_u128"


class Code:
    """Lines of C, indented by nesting."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.temps = 0

    def line(self, text: str) -> None:
        """Adds a line; an empty one stays empty."""
        self.lines.append("    " * self.depth + text if text else "")

    def open(self, text: str) -> None:
        """Adds a line that opens a block."""
        self.line(text + " {" if text else "{")
        self.depth += 1

    def close(self, suffix: str = "") -> None:
        """Closes a block."""
        self.depth -= 1
        self.line("}" + suffix)

    def orelse(self) -> None:
        """Turns from the first to the second branch of an if."""
        self.depth -= 1
        self.line("} else {")
        self.depth += 1

    def temp(self) -> str:
        """A name not used before."""
        self.temps += 1
        return f"t{self.temps}"

    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines) + "\n"
