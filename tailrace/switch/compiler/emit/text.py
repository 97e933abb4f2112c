# SPDX-License-Identifier: Apache-2.0
"""C text: identifiers, literals, and a buffer of indented lines with fresh temporaries.

Names and strings of a program are untrusted. They get into the C text in two ways only: `identifier` makes a
suffix of a C name that begins with an index, `string` makes a string literal. `CodeWriter` rejects lines with
comments, directives, escapes outside of literals, or characters that the compiler itself never emits.
"""

from __future__ import annotations

import re
from string import ascii_letters, digits

from tailrace.switch.compiler.coverage_points import CoveragePoints
from tailrace.switch.compiler.errors import CompilerError

MOST_BYTES = 64 << 20
"""Limit of a program's C text, which for some constructs has a line for each element of a stack or list."""

_STEPS = 64
"""A pass through a loop counts as one for each 64 steps in it; loops are ended after a limit of passes."""

_IDENTIFIER_CHARS = 40
STRING_BYTES = 2048
"""Most bytes of a string literal, and of a line of the log; longer strings are truncated."""

# the characters of emitted C outside of string literals: no backslash, no quote, no #
_CODE_CHARS = frozenset(" []_(){}<>=+-*/%&|^~!?:;,." + ascii_letters + digits)
_LITERAL = re.compile(r'"(?:[^"\\\x00-\x1f\x7f-\U0010ffff]|\\(?:["\\?]|[0-7]{3}))*"')
# comments, trigraphs and digraphs
_FORBIDDEN = ("//", "/*", "*/", "??", "<:", "<%", "%:")
_INCLUDE = re.compile(r"[a-z_0-9]+\.h")


def identifier(name: str) -> str:
    """A P4 name as the readable suffix of a C identifier; the caller adds a unique prefix."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name[:_IDENTIFIER_CHARS])


def string(text: str) -> str:
    """A C string literal, with escape sequences for unprintable characters; a long string is truncated."""
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
    """An unsigned C literal of 64 bits (if bits <= 64) or 128, of the value modulo 2^64 or 2^128."""
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
    """C text that counts a pass through a loop: one for each 64 steps, so long passes end the loop sooner."""
    return f"++{counter}" if steps <= _STEPS else f"({counter} += {-(-steps // _STEPS)})"


class CodeWriter:
    """Lines of C, indented by nesting.

    Args:
        points: the coverage points that a tracing build (tr_tracer.h) counts; None for a regular build.
    """

    def __init__(self, points: CoveragePoints | None = None) -> None:
        self.points, self.tracing = points, points is not None
        self.lines: list[str] = []
        self.depth = 0
        self.temps = 0
        self.size = 0

    def line(self, text: str) -> None:
        """Adds an indented line; an empty line is not indented.

        Raises:
            CompilerError: the line could be more than one line of plain C, or the C text becomes too long.
        """
        bare = _LITERAL.sub("", text) if '"' in text else text
        if not _CODE_CHARS.issuperset(bare) or any(mark in bare for mark in _FORBIDDEN):
            raise CompilerError("the program contains a string or name that cannot be translated to C")
        self.size += len(text)
        if self.size > MOST_BYTES:
            raise CompilerError(f"the program's C text would have more than {MOST_BYTES >> 20} MiB")
        self.lines.append("    " * self.depth + text if text else "")

    def comment(self, *parts: str | int) -> None:
        """Adds a comment; names of the program are made identifiers."""
        self.lines.append("    " * self.depth + f"/* {' '.join(identifier(str(part)) for part in parts)} */")

    def include(self, header: str) -> None:
        """Adds an #include of a header file of the runtime."""
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
        """In a tracing build, adds code that records an event: `fields` are C text of its kind and fields."""
        if self.tracing:
            self.line(f"TR_TRACE(s, p, {', '.join(map(str, fields))});")

    def count_point(self, kind: str, index: int, part: int = 0, branch: str = "") -> None:
        """In a tracing build, adds code that counts a coverage point.

        With `branch`, C text of a number, it counts the next point instead if the number is not zero.
        """
        if self.points is not None:
            point = self.points.index(kind, index, part)
            self.line(f"s->coverage[{point} + !!({branch})]++;" if branch else f"s->coverage[{point}]++;")

    def trace_changes(self, space: str = "l") -> None:
        """In a tracing build, adds code that records changes of fields since the last such record.

        `space`: C text of a pointer to the locals; "NULL" where there are none.
        """
        if self.tracing:
            self.line(f"tr_trace_changes(s, p, h, {space});")

    def trace_begin(self, stage: str, locals_size: str = "sizeof(struct tr_locals)") -> None:
        """In a tracing build, adds code that records the begin of a stage."""
        if self.tracing:
            self.line(f"tr_trace_begin(s, p, {stage}, h, sizeof *h, {locals_size});")

    def temp(self) -> str:
        """The name of a new temporary variable."""
        self.temps += 1
        return f"t{self.temps}"

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
