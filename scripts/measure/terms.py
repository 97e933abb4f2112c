#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts private words in the product, which terms of the field should replace (terms.toml lists both), and
class names that are defined in two modules or more. The product is all source files outside the tests.

.venv/bin/python -m scripts.measure.terms [WORD]     with WORD: prints the places of this word

The places in remainder.toml, where a word is a standard term, are counted separately.
"""

from __future__ import annotations

import ast
import collections
import io
import keyword
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

import msgspec

from scripts.measure.rooms import product, text_of  # the paths of the product, and a file's text

IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
C_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|[A-Za-z_]\w*', re.DOTALL)


Token = tuple[int, str, str]

Place = tuple[str, int, str]
"""The file, line and text of a word."""


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


def matches(term: dict[str, str], text: str, file_tokens: Iterable[Token]) -> Iterator[tuple[int, str]]:
    """The line and text of each place in a file that a term's patterns match.

    Args:
        term: an item of terms.toml; a missing pattern matches nothing.
        text: the file's text.
        file_tokens: the result of `tokens` for the file.
    """
    if "lines" in term:
        pattern = re.compile(term["lines"])
        for number, line in enumerate(text.splitlines(), 1):
            yield from ((number, match[0]) for match in pattern.finditer(line))
    names = re.compile(term.get("names", r"(?!)"))
    prose = re.compile(term.get("text", r"(?!)"))
    for number, kind, token in file_tokens:
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


class Remainder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Places of a word that may stay: `files` are globs, `pattern` is searched in the matched text."""

    word: str
    files: list[str]
    pattern: str
    reason: str

    def covers(self, place: Place) -> bool:
        """Whether this entry includes a place of the word."""
        path, _, text = place
        return any(fnmatch(path, glob) for glob in self.files) and re.search(self.pattern, text) is not None


def remaining(word: str, places: Sequence[Place], remainder: Sequence[Remainder]) -> list[Place]:
    """The places of a word that are in no entry of the remainder.

    Raises:
        ValueError: an entry of the word matches no place.
    """
    entries = [entry for entry in remainder if entry.word == word]
    for entry in entries:
        if not any(map(entry.covers, places)):
            raise ValueError(f"remainder.toml: {word}: {entry.pattern!r} in {entry.files} matches nothing")
    return [place for place in places if not any(entry.covers(place) for entry in entries)]


def read_toml(name: str) -> dict[str, list[dict[str, str]]]:
    """The content of a TOML file beside this file."""
    tables: dict[str, list[dict[str, str]]] = msgspec.toml.decode((Path(__file__).parent / name).read_bytes())
    return tables


def main() -> None:
    """Prints the count and remainder of each word, the sums, and the number of doubled class names."""
    terms = read_toml("terms.toml")["term"]
    remainder = msgspec.convert(read_toml("remainder.toml")["remainder"], list[Remainder])
    if unknown := {entry.word for entry in remainder} - {term["word"] for term in terms}:
        raise ValueError(f"remainder.toml: no such word: {', '.join(sorted(unknown))}")
    # without the files that list the words
    texts = {path: text_of(path) for path in product() if not path.startswith("scripts/measure/")}
    tokens_of = {path: list(tokens(path, text)) for path, text in texts.items()}
    total = kept = 0
    for term in terms:
        all_places = [
            (path, *place) for path, text in texts.items() for place in matches(term, text, tokens_of[path])
        ]
        places = remaining(term["word"], all_places, remainder)
        total, kept = total + len(places), kept + len(all_places) - len(places)
        if len(sys.argv) == 1:
            print(f"{term['word']:50}{len(places):7,}{len(all_places) - len(places):7,}")
        elif sys.argv[1] == term["word"]:
            print("\n".join(f"{path}:{number}: {text}" for path, number, text in places))
    if len(sys.argv) == 1:
        doubled = doubled_classes(texts)
        print(f"{'sum, and the remainder':50}{total:7,}{kept:7,}")
        print(f"{'class names in two modules or more':50}{len(doubled):7,}")


if __name__ == "__main__":
    main()
