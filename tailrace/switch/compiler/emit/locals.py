# SPDX-License-Identifier: Apache-2.0
"""Metadata that a single function uses becomes a C local there, in a register or optimised away.

p4c makes a field of metadata of each variable and each intermediate value, some hundred in our programs. Most
are known to the parser alone, to ingress or to egress, and begin as zeros there, as all metadata of a packet
do that has just come in. So they need no place in the PHV, which is cleared for each packet and kept in
queues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

from tailrace.switch.compiler.expr import FieldRef, HeaderInst
from tailrace.switch.compiler.model import KeyField, Model, Pipeline


@dataclass(frozen=True, slots=True)
class Locals:
    """Metadata headers, and fields (header, position) of others, that are C locals."""

    headers: frozenset[int] = frozenset()
    fields: frozenset[tuple[int, int]] = frozenset()


def references(part: object) -> Iterator[FieldRef | HeaderInst]:
    """The fields and headers that a part of a program refers to."""
    if isinstance(part, FieldRef | HeaderInst):
        yield part
        if isinstance(part, FieldRef) and not isinstance(part.header, HeaderInst):
            yield from references(part.header)
    elif isinstance(part, tuple):
        for item in part:
            yield from references(item)
    elif isinstance(part, KeyField):
        # its header is asked only whether it is valid, which metadata always are
        yield from references(part.value)
        if not isinstance(part.value, FieldRef) or part.value.header != part.header:
            yield from references(part.header)
    elif is_dataclass(part):
        for f in fields(part):
            yield from references(getattr(part, f.name))


def of_pipeline(model: Model, pipeline: Pipeline) -> tuple[object, ...]:
    """All calls and tables of a pipeline."""
    tables = tuple(model.tables[i] for i in pipeline.tables)
    called = {call.action for call in pipeline.calls}.union(*(t.actions for t in tables))
    called |= {t.default_action for t in tables if t.default_action is not None}
    return (pipeline.conditionals, tables, tuple(model.actions[i].body for i in sorted(called)))


def beside_pipelines(model: Model) -> tuple[object, ...]:
    """The parts of a program outside parser and pipelines, or called by several of them."""
    return (
        model.deparser,
        model.deparser_calls,
        model.calculations,
        model.checksums,
        model.digests,
        model.field_lists,
    )


def used_by_several(model: Model) -> tuple[object, ...]:
    """The same, and the fields that the runtime sets."""
    return (tuple(model.standard.values()), *beside_pipelines(model))


def locals_of(model: Model) -> Locals:
    """The metadata of a program that become C locals."""
    users: dict[int, set[int]] = {}
    field_users: dict[tuple[int, int], set[int]] = {}
    headers_used: set[int] = set()
    bodies = (
        used_by_several(model),
        model.parser,
        of_pipeline(model, model.ingress),
        of_pipeline(model, model.egress),
    )
    for user, body in enumerate(bodies):
        for ref in references(body):
            if isinstance(ref, HeaderInst):
                headers_used.add(ref.index)
                users.setdefault(ref.index, set()).add(user)
            elif isinstance(ref.header, HeaderInst):
                users.setdefault(ref.header.index, set()).add(user)
                field_users.setdefault((ref.header.index, ref.field), set()).add(user)
    alone = [h for h in model.headers if h.metadata and h.stack is None and h.union is None]
    types = Counter(h.type for h in model.headers)
    headers = {h.index for h in alone if len(users.get(h.index, ())) == 1 and 0 not in users[h.index]}
    split = {h.index for h in alone if types[h.type] == 1} - headers - headers_used
    return Locals(
        frozenset(headers),
        frozenset(
            place for place, by in field_users.items() if place[0] in split and len(by) == 1 and 0 not in by
        ),
    )
