# SPDX-License-Identifier: Apache-2.0
"""Makes broken files of good ones: for each kind of reader what its format can get wrong, always the same."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.bad_input.case import File

DIGITS = 10**6
DEEP = 100_000
HUGE_BYTES = 1 << 30

SEED = 20261124
CUTS = 3
"""How often each file is cut off."""


class Broken(NamedTuple):
    """What is wrong, the file, and what the line must hold beside the file's name."""

    what: str
    content: File
    says: tuple[str, ...] = ()


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(HUGE_BYTES)


def _locked_up(path: Path) -> None:
    path.write_text("{}")
    path.chmod(0)


def places(*, text: bool = True) -> Iterator[Broken]:
    """What is there instead of a file, or nothing that any format takes: for one command of each reader."""
    yield A_PIPE
    yield Broken("a folder", Path.mkdir)
    yield Broken("a device", lambda path: path.symlink_to("/dev/zero"))
    yield Broken("no end", lambda path: path.symlink_to("/dev/full"))
    yield Broken("nowhere", lambda path: path.symlink_to("nowhere"))
    yield Broken("itself", lambda path: path.symlink_to(path.name))
    yield Broken("1 GiB", _huge)
    yield Broken("noise", random.Random(SEED).randbytes(4096))
    yield Broken("NUL", bytes(100))
    yield Broken("an ELF file", b"\x7fELF\x02\x01\x01" + bytes(57))
    yield Broken("gzip", bytes.fromhex("1f8b0800000000000003") + bytes(range(200)))
    if os.geteuid() != 0:
        yield Broken("not to be read", _locked_up)
    if text:
        yield Broken("empty", b"")
        yield Broken("UTF-16", '{"a": 1}'.encode("utf-16"))
        yield Broken("surrogates", b'{"\xed\xa0\x80": 1}')
        yield Broken("half a character", b'a = "\xe2\x82"')
        yield Broken("escapes", b"\x1b]0;title\x07\x1b[31mred\r\nnext")


A_PIPE = Broken("a pipe", os.mkfifo)
"""Of the places, the one for every other command: who opens it like a file waits for ever."""


def set_at(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of a document in which something has another value."""
    copied = copy.deepcopy(document)
    at = copied
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return copied


def without(document: Any, path: tuple[Any, ...]) -> Any:
    """A copy of a document in which something is missing."""
    copied = copy.deepcopy(document)
    at = copied
    for step in path[:-1]:
        at = at[step]
    del at[path[-1]]
    return copied


class Literal(float):
    """A number as it is written; what JSON's own numbers cannot say."""

    text: str

    def __new__(cls, text: str) -> Literal:
        """Remember the text."""
        made = super().__new__(cls, 0.0)
        made.text = text
        return made

    def __repr__(self) -> str:
        return self.text


def json_bytes(document: Any) -> bytes:
    """A document as JSON, which may hold literals that are none."""
    marks: dict[str, str] = {}

    def marked(value: Any) -> Any:
        if isinstance(value, Literal):
            mark = f"@{len(marks)}@"
            marks[f'"{mark}"'] = value.text
            return mark
        if isinstance(value, dict):
            return {key: marked(each) for key, each in value.items()}
        if isinstance(value, list):
            return [marked(each) for each in value]
        return value

    text = json.dumps(marked(document), ensure_ascii=False)
    for mark, literal in marks.items():
        text = text.replace(mark, literal)
    return text.encode("utf-8", "surrogatepass")


WRONG: dict[str, tuple[tuple[str, Any], ...]] = {
    "number": (
        ("NaN", Literal("NaN")),
        ("infinite", Literal("-Infinity")),
        ("beyond a double", Literal("1e999")),
        ("a million digits", Literal("9" * DIGITS)),
        ("negative", -1),
        ("a text", "many"),
        ("a list", [1]),
        ("null", None),
    ),
    "text": (
        ("a number", 7),
        ("true", True),
        ("a list", ["x"]),
        ("a table", {"x": 1}),
        ("NUL", "a\0b"),
        ("half a pair", "\ud800"),
    ),
    "list": (("a text", "x"), ("a table", {"a": 1}), ("a number", 1)),
    "table": (("a list", []), ("a text", "x"), ("a number", 0.5)),
}
"""Values that a key of a kind does not take."""

NO_JSON = ("a million digits", "half a pair")
"""Of those, what no JSON is: refused before anybody knows whose it is."""


def of_json(document: Any, keys: dict[str, tuple[tuple[Any, ...], str]]) -> Iterator[Broken]:
    """Documents in which one key is missing or not as it should be, and one with a key too many.

    Args:
        document: a good one.
        keys: what messages call a key, with its place and the kind of its values: the first of a kind gets all that
            the kind does not take, each other one of them.
    """
    seen: set[str] = set()
    for name, (path, kind) in keys.items():
        for what, value in WRONG[kind][: 1 if kind in seen else None]:
            says = () if what in NO_JSON else (name.rpartition(".")[2],)
            yield Broken(f"{name} is {what}", json_bytes(set_at(document, path, value)), says)
        seen.add(kind)
        yield Broken(f"{name} is missing", json_bytes(without(document, path)), (name,))
    yield Broken("an unknown key", json_bytes(document | {"nonsense": 1}), ("nonsense",))


def of_json_text(document: Any) -> Iterator[Broken]:
    """Texts that are no JSON: cut off at places of chance, and what parsers trip over."""
    text = json_bytes(document)
    rng = random.Random(SEED)
    for place in sorted(rng.sample(range(1, len(text) - 1), CUTS)):
        yield Broken(f"cut at {place}", text[:place])
    yield Broken("deep", b'{"a":' * DEEP + b"1" + b"}" * DEEP)
    yield Broken("deep lists", b"[" * DEEP)
    yield Broken("a BOM and nothing", b"\xef\xbb\xbf")
    yield Broken("two documents", text + text)
    yield Broken("a comment", b"// good\n" + text)
    yield Broken("a list", b"[1, 2, 3]")
    yield Broken("a text", b'"text"')
    yield Broken("null", b"null")
    yield Broken("one long number", b"9" * DIGITS)


def flipped(content: bytes, count: int) -> Iterator[Broken]:
    """Octets cut off and turned over at places of chance, in a format with a checksum or a size."""
    rng = random.Random(SEED)
    for place in sorted(rng.sample(range(1, len(content) - 1), count)):
        yield Broken(f"cut at {place}", content[:place])
    yield Broken("doubled", content + content)
