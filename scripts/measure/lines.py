#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines by room (component, see rooms.toml), share of comments and docstrings, median lengths of files and
functions.

    .venv/bin/python -m scripts.measure.lines

The product is every .py, .c, .h, .js and .ts file outside `tests/` and `ptf_tests/`. Functions are Python's.
"""

from __future__ import annotations

import ast
import collections
import io
import re
import statistics
import tokenize

from scripts.measure.rooms import SUFFIXES, product, room_of, text_of, tracked

C_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def python_comments(text: str) -> int:
    """The number of lines that consist of a comment or are part of a docstring."""
    lines = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
    }
    for node in ast.walk(ast.parse(text)):
        # docstrings of modules, classes and functions, and the strings below constants that describe them
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def c_comments(text: str) -> int:
    """The number of lines on which a comment begins or continues."""
    return sum(part.count("\n") + 1 for part in C_COMMENT.findall(text) if not part.startswith('"'))


def function_lengths(text: str) -> list[int]:
    """The number of lines of each Python function, without decorators."""
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTIONS))
    return [(node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes]


def main() -> None:
    """Prints a row per room, then the whole product and the tests."""
    lines: collections.Counter[str] = collections.Counter()
    files: collections.Counter[str] = collections.Counter()
    comments = 0
    longest = ("", 0)
    file_lengths: list[int] = []
    functions: list[int] = []
    for path in product():
        text = text_of(path)
        room, length = room_of(path), text.count("\n")
        lines[room] += length
        files[room] += 1
        comments += python_comments(text) if path.endswith(".py") else c_comments(text)
        file_lengths.append(length)
        if path.endswith(".py"):
            functions += function_lengths(text)
        longest = max(longest, (path, max(map(len, text.splitlines()), default=0)), key=lambda pair: pair[1])
    for room in sorted(lines):
        print(f"{room:18}{lines[room]:8,}{files[room]:6}")
    total = lines.total()
    print(f"{'product':18}{total:8,}{files.total():6}")
    tests = [path for path in tracked(*SUFFIXES) if path.startswith(("tests/", "ptf_tests/"))]
    print(f"{'tests':18}{sum(text_of(path).count(chr(10)) for path in tests):8,}{len(tests):6}")
    print(f"comments and docstrings: {comments / total:.1%} of the lines")
    print(f"median length of a file: {statistics.median(file_lengths):.0f} lines")
    print(f"median length of a function: {statistics.median(functions):.0f} lines")
    print(f"longest line: {longest[1]} characters in {longest[0]}")


if __name__ == "__main__":
    main()
