# SPDX-License-Identifier: Apache-2.0
"""Metadata that only one C function uses become local variables of that function ("C locals").

p4c turns each variable and intermediate value into a field of metadata: about a hundred in our programs. Most
are used only by the parser, only by ingress, or only by egress, and start as zero there, as all metadata of
a new packet do. So they need not be in the PHV (the headers and metadata of a packet), which is cleared for
each packet and carried through queues. The C compiler can keep C locals in CPU registers or remove them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from tailrace.switch.compiler.expr import FieldRef, HeaderInst
from tailrace.switch.compiler.model import KeyField, Model, Pipeline


@dataclass(frozen=True, slots=True)
class Locals:
    """The metadata that are C locals.

    headers: indexes of whole metadata headers
    fields: (index of the header, position) of single fields of other metadata headers
    """

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
        # only the validity of the key field's header is read; metadata are always valid
        yield from references(part.value)
        if not isinstance(part.value, FieldRef) or part.value.header != part.header:
            yield from references(part.header)
    elif isinstance(part, msgspec.Struct):
        for name in part.__struct_fields__:
            yield from references(getattr(part, name))


def of_pipeline(model: Model, pipeline: Pipeline) -> tuple[object, ...]:
    """The conditions and tables of a pipeline, and the bodies of the actions that it may run."""
    tables = tuple(model.tables[i] for i in pipeline.tables)
    called = {call.action for call in pipeline.calls}.union(*(t.actions for t in tables))
    called |= {t.default_action for t in tables if t.default_action is not None}
    return (pipeline.conditionals, tables, tuple(model.actions[i].body for i in sorted(called)))


def beside_pipelines(model: Model) -> tuple[object, ...]:
    """The parts of a program outside parser and pipelines, or used by several of them."""
    return (
        model.deparser,
        model.deparser_calls,
        model.calculations,
        model.checksums,
        model.digests,
        model.field_lists,
    )


def used_by_several(model: Model) -> tuple[object, ...]:
    """What `beside_pipelines` returns, and the fields of standard metadata, which the runtime sets."""
    return (tuple(model.standard.values()), *beside_pipelines(model))


def locals_of(model: Model) -> Locals:
    """The metadata of a program that become C locals."""
    users: dict[int, set[int]] = {}
    field_users: dict[tuple[int, int], set[int]] = {}
    headers_used: set[int] = set()
    # a user is the index of a body; user 0 stands for several functions, so its metadata cannot be C locals
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
    # the struct of a header type has no members for fields that are C locals, so a header can be split into
    # fields only if no other header has its type
    standalone = [h for h in model.headers if h.metadata and h.stack is None and h.union is None]
    types = Counter(h.type for h in model.headers)
    headers = {h.index for h in standalone if len(users.get(h.index, ())) == 1 and 0 not in users[h.index]}
    split = {h.index for h in standalone if types[h.type] == 1} - headers - headers_used
    return Locals(
        frozenset(headers),
        frozenset(
            (header, position)
            for (header, position), bodies_using in field_users.items()
            if header in split and len(bodies_using) == 1 and 0 not in bodies_using
        ),
    )
