# SPDX-License-Identifier: Apache-2.0
"""C text: identifiers, literals, and a buffer of indented lines with fresh temporaries.

Names and texts of a program are untrusted. They become C in two ways only: `identifier` makes one the tail of
a name whose head is an index, `string` makes one a string literal. `CodeWriter` refuses lines with comments,
directives, escapes outside a literal, or characters that our text does not have.
"""

from __future__ import annotations

import re
from string import ascii_letters, digits

from tailrace.switch.compiler.coverage_points import CoveragePoints
from tailrace.switch.compiler.errors import CompilerError

MOST_BYTES = 64 << 20
"""Of the C text of a program: some constructs take a line for each element of what they are about."""

_STEPS = 64
"""Of a round that counts as one of those after which a loop is ended."""

_IDENTIFIER_CHARS = 40
STRING_BYTES = 2048
"""Longer texts are cut: no line of the log has room for more."""

# what a line of C is made of beside string literals; no backslash, no quote, no #
_CODE_CHARS = frozenset(" []_(){}<>=+-*/%&|^~!?:;,." + ascii_letters + digits)
_LITERAL = re.compile(r'"(?:[^"\\\x00-\x1f\x7f-\U0010ffff]|\\(?:["\\?]|[0-7]{3}))*"')
_HIDDEN = ("//", "/*", "*/", "??", "<:", "<%", "%:")
_INCLUDE = re.compile(r"[a-z_0-9]+\.h")


def identifier(name: str) -> str:
    """A P4 name as the readable tail of a C identifier, whose head is unique."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name[:_IDENTIFIER_CHARS])


def string(text: str) -> str:
    """A C string literal, with escape sequences for unprintable characters; a long text is cut."""
    start = text[: STRING_BYTES + 1]
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in start).encode()
    if len(shown) > STRING_BYTES:
        shown = shown[: STRING_BYTES - 3].decode(errors="ignore").encode() + b"..."
    out = []
    for byte in shown:
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


def counted(counter: str, steps: int) -> str:
    """C text that counts a round of a loop: one for each 64 of its steps, so that long rounds are fewer."""
    return f"++{counter}" if steps <= _STEPS else f"({counter} += {-(-steps // _STEPS)})"


class CodeWriter:
    """Lines of C, indented by nesting.

    Args:
        points: makes a tracing build (tr_tracer.h), which counts these coverage points.
    """

    def __init__(self, points: CoveragePoints | None = None) -> None:
        self.points, self.tracing = points, points is not None
        self.lines: list[str] = []
        self.depth = 0
        self.temps = 0
        self.size = 0

    def line(self, text: str) -> None:
        """Adds a line; an empty one stays empty.

        Raises:
            CompilerError: it could be more than one line of plain C, or there are too many.
        """
        bare = _LITERAL.sub("", text) if '"' in text else text
        if not _CODE_CHARS.issuperset(bare) or any(mark in bare for mark in _HIDDEN):
            raise CompilerError("the program has a text that cannot be translated to C")
        self.size += len(text)
        if self.size > MOST_BYTES:
            raise CompilerError(f"the program's C text would have more than {MOST_BYTES >> 20} MiB")
        self.lines.append("    " * self.depth + text if text else "")

    def comment(self, *parts: str | int) -> None:
        """Adds a comment, with names of the program made identifiers."""
        self.lines.append("    " * self.depth + f"/* {' '.join(identifier(str(part)) for part in parts)} */")

    def include(self, header: str) -> None:
        """Adds a header of the runtime."""
        assert _INCLUDE.fullmatch(header)
        self.lines.append(f'#include "{header}"')

    def open(self, text: str) -> None:
        """Adds a line that opens a block."""
        self.line(text + " {" if text else "{")
        self.depth += 1

    def close(self, suffix: str = "") -> None:
        self.depth -= 1
        self.line("}" + suffix)

    def orelse(self) -> None:
        """Begins the else branch of an if."""
        self.depth -= 1
        self.line("} else {")
        self.depth += 1

    def trace(self, *fields: str | int) -> None:
        """Adds a record of the packet, in a tracing build: its kind and fields."""
        if self.tracing:
            self.line(f"TR_TRACE(s, p, {', '.join(map(str, fields))});")

    def count_point(self, kind: str, index: int, part: int = 0, way: str = "") -> None:
        """Counts a coverage point, in a tracing build; with `way`, C text, the next one if that is not 0."""
        if self.points is not None:
            number = self.points.number(kind, index, part)
            self.line(f"s->coverage[{number} + !!({way})]++;" if way else f"s->coverage[{number}]++;")

    def changes(self, space: str = "l") -> None:
        """Records changes of the packet's fields since the last record of them, in a tracing build."""
        if self.tracing:
            self.line(f"tr_trace_changes(s, p, h, {space});")

    def begin(self, stage: str, locals_size: str = "sizeof(struct tr_locals)") -> None:
        """Records that a stage begins, in a tracing build."""
        if self.tracing:
            self.line(f"tr_trace_begin(s, p, {stage}, h, sizeof *h, {locals_size});")

    def temp(self) -> str:
        """A fresh temporary."""
        self.temps += 1
        return f"t{self.temps}"

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
