#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the private words of terms.toml in the product, and class names that stand in two modules or more.

.venv/bin/python -m scripts.measure.terms [WORD]     with a word: the places of it, a line each
"""

from __future__ import annotations

import ast
import collections
import io
import keyword
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from scripts.measure.rooms import product, text_of

IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
C_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|[A-Za-z_]\w*', re.DOTALL)


Token = tuple[int, str, str]


def tokens(path: str, text: str) -> Iterator[Token]:
    """The line, kind (`names` or `text`) and text of each identifier, string and comment."""
    if not path.endswith(".py"):
        line = start = 0
        for match in C_TOKEN.finditer(text):
            line, start = line + text.count("\n", start, match.start()), match.start()
            yield line + 1, "names" if IDENTIFIER.fullmatch(match[0]) else "text", match[0]
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
            yield token.start[0], "names", token.string
        elif token.type in (tokenize.STRING, tokenize.COMMENT):
            yield token.start[0], "text", token.string


def matches(term: dict[str, str], text: str, read: Iterable[Token]) -> Iterator[tuple[int, str]]:
    """The line and text of each place in a file, with its tokens, where a term's word stands."""
    if "lines" in term:
        pattern = re.compile(term["lines"])
        for number, line in enumerate(text.splitlines(), 1):
            yield from ((number, match[0]) for match in pattern.finditer(line))
    names = re.compile(term.get("names", r"(?!)"))
    prose = re.compile(term.get("text", r"(?!)"))
    for number, kind, token in read:
        if kind == "text":
            yield from ((number, match[0]) for match in prose.finditer(token))
        elif any(names.fullmatch(part.lower()) for part in PART.findall(token)):
            yield number, token


def doubled_classes(texts: dict[str, str]) -> dict[str, list[str]]:
    """The class names that are defined in more than one module, and these modules."""
    modules: dict[str, list[str]] = collections.defaultdict(list)
    for path, text in texts.items():
        if path.endswith(".py"):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ClassDef):
                    modules[node.name].append(path)
    return {name: paths for name, paths in sorted(modules.items()) if len(set(paths)) > 1}


def main() -> None:
    """Prints the count of each word, the sum, and the doubled class names."""
    terms = msgspec.toml.decode((Path(__file__).parent / "terms.toml").read_bytes())["term"]
    # the tables that hold the words are no use of them
    texts = {path: text_of(path) for path in product() if not path.startswith("scripts/measure/")}
    read = {path: list(tokens(path, text)) for path, text in texts.items()}
    total = 0
    for term in terms:
        places = [(path, *place) for path, text in texts.items() for place in matches(term, text, read[path])]
        total += len(places)
        if len(sys.argv) == 1:
            print(f"{term['word']:50}{len(places):7,}")
        elif sys.argv[1] == term["word"]:
            print("\n".join(f"{path}:{number}: {text}" for path, number, text in places))
    if len(sys.argv) == 1:
        doubled = doubled_classes(texts)
        print(f"{'sum':50}{total:7,}")
        print(f"{'class names in two modules or more':50}{len(doubled):7,}")


if __name__ == "__main__":
    main()
