# SPDX-License-Identifier: Apache-2.0
"""What of the PHV a packet needs after ingress: the rest lies behind it and is not kept in queues.

Most metadata of a program are temporaries of its ingress. A header or a field of metadata is left behind when
nothing after ingress mentions it: neither egress nor the deparser, checksums, digests or field lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

from tailrace.native.compiler.expr import FieldRef, HeaderInst
from tailrace.native.compiler.model import Model


@dataclass(frozen=True, slots=True)
class Carried:
    """Indexes of `headers` left behind, and positions of `fields` left behind of the header `split`."""

    headers: frozenset[int]
    split: int | None
    fields: frozenset[int]


def _references(part: object) -> Iterator[FieldRef | HeaderInst]:
    """The fields and whole headers that something mentions."""
    if isinstance(part, FieldRef | HeaderInst):
        yield part
        if isinstance(part, FieldRef) and not isinstance(part.header, HeaderInst):
            yield from _references(part.header)
    elif isinstance(part, tuple):
        for item in part:
            yield from _references(item)
    elif is_dataclass(part):
        for f in fields(part):
            yield from _references(getattr(part, f.name))


def _after_ingress(model: Model) -> tuple[object, ...]:
    pipeline = model.egress
    tables = tuple(model.tables[i] for i in pipeline.tables)
    called = {call.action for call in pipeline.calls}.union(*(t.actions for t in tables))
    return (
        pipeline.conditionals,
        tables,
        tuple(model.actions[i].body for i in sorted(called)),
        tuple(model.standard.values()),
        model.deparser,
        model.deparser_calls,
        model.calculations,
        model.checksums,
        model.digests,
        model.field_lists,
    )


def carried(model: Model) -> Carried:
    """What the packets of a program leave behind when they are queued."""
    whole: set[int] = set()
    used: dict[int, set[int]] = {}
    for ref in _references(_after_ingress(model)):
        if isinstance(ref, HeaderInst):
            whole.add(ref.index)
        elif isinstance(ref.header, HeaderInst):
            used.setdefault(ref.header.index, set()).add(ref.field)
    movable = [h for h in model.headers if h.metadata and h.stack is None and h.union is None]
    left = frozenset(h.index for h in movable if h.index not in whole and h.index not in used)
    types = [h.type for h in model.headers]
    unused = {
        h.index: frozenset(range(len(model.header_types[h.type].fields))) - used[h.index]
        for h in movable
        if h.index in used and h.index not in whole and types.count(h.type) == 1
    }
    split = max(unused, key=lambda index: len(unused[index]), default=None)
    if split is None or not unused[split]:
        return Carried(left, None, frozenset())
    return Carried(left, split, unused[split])
