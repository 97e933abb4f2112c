# SPDX-License-Identifier: Apache-2.0
"""C text: identifiers, literals, and a buffer of indented lines that also numbers temporary variables.

Names and strings of a program are untrusted. They enter the C text only as the result of two functions:
`identifier` returns a suffix for a C name that begins with an index, `string` returns a string literal.
`CodeWriter` rejects lines with comments, directives, escapes outside of literals, or characters that the
compiler never emits.
"""

from __future__ import annotations

import re
from string import ascii_letters, digits

from tailrace.switch.compiler.coverage_points import CoveragePoints
from tailrace.switch.compiler.errors import CompilerError

MOST_BYTES = 64 << 20
"""Maximum size of a program's C text. Some constructs need a line for each element of a stack or list."""

_STEPS = 64
"""A pass through a loop counts once for each 64 steps in it; a loop ends when its count exceeds a limit."""

_IDENTIFIER_CHARS = 40
STRING_BYTES = 2048
"""Maximum length of a string literal and of a log line; longer strings are truncated."""

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
    """An unsigned C literal: the value modulo 2^64 if bits <= 64, else modulo 2^128."""
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
    """A C expression that adds a pass through a loop to a counter, 1 per 64 steps, and yields the sum."""
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
        """Adds a comment; each part is reduced to the characters of identifiers."""
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
        """Adds a line that closes a block, and an empty line after a function or another outermost block."""
        self.depth -= 1
        self.line("}" + suffix)
        if self.depth == 0:
            self.lines.append("")

    def orelse(self) -> None:
        """Begins the else branch of an if."""
        self.depth -= 1
        self.line("} else {")
        self.depth += 1

    def trace(self, *fields: str | int) -> None:
        """In a tracing build, adds code that records an event; `fields`: C text of its kind and fields."""
        if self.tracing:
            self.line(f"TR_TRACE(s, p, {', '.join(map(str, fields))});")

    def count_point(self, kind: str, index: int, part: int = 0, branch: str = "") -> None:
        """In a tracing build, adds code that counts a coverage point.

        `branch`: C text of a number; if the number is not zero, the next point is counted instead.
        """
        if self.points is not None:
            point = self.points.index(kind, index, part)
            self.line(f"s->coverage[{point} + !!({branch})]++;" if branch else f"s->coverage[{point}]++;")

    def trace_changes(self, space: str = "l") -> None:
        """In a tracing build, adds code that records changes of fields since the last such record.

        `space`: C text of a pointer to the C locals; "NULL" in functions without C locals.
        """
        if self.tracing:
            self.line(f"tr_trace_changes(s, p, h, {space});")

    def trace_begin(self, stage: str, locals_size: str = "sizeof(struct tr_locals)") -> None:
        """In a tracing build, adds code that records the start of a stage, such as ingress.

        `locals_size`: C text of the size of the C locals; "0" in functions without C locals.
        """
        if self.tracing:
            self.line(f"tr_trace_begin(s, p, {stage}, h, sizeof *h, {locals_size});")

    def temp(self) -> str:
        """The name of a new temporary variable."""
        self.temps += 1
        return f"t{self.temps}"

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
