# SPDX-License-Identifier: Apache-2.0
"""Metadata that only one C function uses become local variables of that function ("C locals").

p4c turns each variable and intermediate value into a field of metadata: about a hundred in our programs. Most
are used only by the parser, only by ingress, or only by egress, and start as zero there, as all metadata of
a new packet do. So they need not be in the PHV (the headers and metadata of a packet), which is cleared for
each packet and carried through queues. The C compiler can keep C locals in CPU registers or remove them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
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


def _users(
    bodies: Iterable[object],
) -> tuple[dict[int, set[int]], dict[tuple[int, int], set[int]]]:
    """Which of the bodies, by index, use a header as a whole, and a field of a header."""
    headers: dict[int, set[int]] = {}
    fields: dict[tuple[int, int], set[int]] = {}
    for user, body in enumerate(bodies):
        for ref in references(body):
            if isinstance(ref, HeaderInst):
                headers.setdefault(ref.index, set()).add(user)
            elif isinstance(ref.header, HeaderInst):
                fields.setdefault((ref.header.index, ref.field), set()).add(user)
    return headers, fields


def _metadata(model: Model) -> tuple[list[int], set[int]]:
    """The metadata headers outside of stacks and unions, and those of them that may be split into fields: no
    other header has their type, and so their struct.
    """
    types = Counter(h.type for h in model.headers)
    metadata = [h for h in model.headers if h.metadata and h.stack is None and h.union is None]
    return [h.index for h in metadata], {h.index for h in metadata if types[h.type] == 1}


def locals_of(model: Model) -> Locals:
    """The metadata of a program that become C locals."""
    # user 0 stands for several functions, so its metadata cannot be C locals
    bodies = (
        used_by_several(model),
        model.parser,
        of_pipeline(model, model.ingress),
        of_pipeline(model, model.egress),
    )
    whole, fields = _users(bodies)
    users = {header: set(bodies_using) for header, bodies_using in whole.items()}
    for (header, _), bodies_using in fields.items():
        users.setdefault(header, set()).update(bodies_using)
    metadata, splittable = _metadata(model)
    headers = {header for header in metadata if len(users.get(header, ())) == 1 and 0 not in users[header]}
    split = splittable - headers - whole.keys()
    return Locals(
        frozenset(headers),
        frozenset(
            (header, position)
            for (header, position), bodies_using in fields.items()
            if header in split and len(bodies_using) == 1 and 0 not in bodies_using
        ),
    )


@dataclass(frozen=True, slots=True)
class NotCarried:
    """The metadata that packets in queues do not carry: those that egress, deparser, checksums, digests and
    field lists do not use.

    headers: indexes of the metadata headers that are not carried at all
    split: index of a metadata header of which only some fields are carried; None if there is none
    fields: positions of those fields of header `split` that are not carried
    """

    headers: frozenset[int]
    split: int | None
    fields: frozenset[int]


def not_carried(model: Model, c_locals: Locals) -> NotCarried:
    """Metadata that queued packets do not carry, without C locals, which are not in the PHV."""
    whole, fields = _users((of_pipeline(model, model.egress), used_by_several(model)))
    used = whole.keys() | {header for header, _ in fields}
    metadata, splittable = _metadata(model)
    # unused fields come last in the struct of the header's type
    unused_fields = {
        header: frozenset(
            i
            for i in range(len(model.header_types[model.headers[header].type].fields))
            if (header, i) not in fields and (header, i) not in c_locals.fields
        )
        for header in metadata
        if header in splittable & used and header not in whole
    }
    split = max(unused_fields, key=lambda index: len(unused_fields[index]), default=None)
    if split is not None and not unused_fields[split]:
        split = None
    unused = frozenset(header for header in metadata if header not in used | c_locals.headers)
    return NotCarried(unused, split, frozenset() if split is None else unused_fields[split])
