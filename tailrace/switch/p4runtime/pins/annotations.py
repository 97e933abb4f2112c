# SPDX-License-Identifier: Apache-2.0
"""Reads P4Info's annotations: unstructured ones, `@name(...)`, and structured ones, `@name[...]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

from tailrace.p4rt.messages import p4t

_STRING = re.compile(r'\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(r'\\(["\\nrt])')
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_NAME = re.compile(r'\s*(?:"[\w$\[\].:]+"|[\w$\[\]]+(?:\s*(?:\.|:\s*:)\s*[\w$\[\]]+)*)\s*')
"""A name as p4c writes it: quoted (`"hdr.ip.dst"`), or parts joined by `.` or `::`, perhaps with blanks
between the tokens (`ingress . vrf_table`, `hdr.stack[0].$valid$`).
"""


class Annotated(Protocol):
    """An object with annotations: a preamble, a match field, a parameter."""

    @property
    def annotations(self) -> Iterable[str]: ...

    @property
    def structured_annotations(self) -> Iterable[p4t.StructuredAnnotation]: ...


def _bodies(entity: Annotated, name: str) -> Iterator[tuple[str, str | None]]:
    """Per annotation `@name`: the text after the name, and the text in its parentheses (None: malformed)."""
    for annotation in entity.annotations:
        text = annotation.strip()
        rest = text[len(name) + 1 :]
        if text.startswith(f"@{name}") and not (rest[:1].isalnum() or rest[:1] == "_"):
            rest = rest.lstrip()
            yield rest, rest[1:-1] if rest[:1] == "(" and rest[1:].endswith(")") else None


def _structured(entity: Annotated, name: str) -> Iterator[list[tuple[str, str]]]:
    for annotation in entity.structured_annotations:
        if annotation.name == name:
            pairs = [(pair.key, pair.value.string_value) for pair in annotation.kv_pair_list.kv_pairs]
            yield pairs or [("", item.string_value) for item in annotation.expression_list.expressions]


def texts(entity: Annotated, name: str) -> Iterator[str | None]:
    """The string argument of each annotation; adjacent strings become lines. None: it is not a string."""
    for _, body in _bodies(entity, name):
        yield None if body is None else _text(body)
    for pairs in _structured(entity, name):
        yield "\n".join(value for _, value in pairs) if pairs else None


def _text(body: str) -> str | None:
    lines, offset = [], 0
    body = body.strip()
    while offset < len(body):
        string = _STRING.match(body, offset)
        if string is None:
            return None
        lines.append(_ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[1]), string[1]))
        offset = string.end()
    return "\n".join(lines) if lines else None


def names(entity: Annotated, name: str, keys: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The arguments of each annotation `@name` that takes names, such as `@refers_to(vrf_table, vrf_id)`.

    `keys`: the keys of the arguments in the structured form, such as table and field in
    `@refers_to[table="vrf_table", field="vrf_id"]`. A malformed annotation has one argument: the text after
    its name or, if it is structured, its keys.
    """
    for rest, body in _bodies(entity, name):
        parts = [] if body is None else body.split(",")
        if parts and all(map(_NAME.fullmatch, parts)):
            yield tuple("".join(part.split()).strip('"') for part in parts)
        else:
            yield (rest,)
    for pairs in _structured(entity, name):
        named = [key for key, _ in pairs]
        if sorted(named) == sorted(keys):
            yield tuple(dict(pairs)[key] for key in keys)
        elif any(named):
            yield (", ".join(named),)
        else:
            yield tuple(value for _, value in pairs)
