# SPDX-License-Identifier: Apache-2.0
"""The parts of the PHV (the headers and metadata of a packet) that need not be carried through queues.

Most metadata of a program are temporary variables of ingress. A packet in a queue does not carry metadata
that egress, deparser, checksums, digests and field lists do not use.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tailrace.switch.compiler.emit.locals import Locals, of_pipeline, references, used_by_several
from tailrace.switch.compiler.expr import HeaderInst
from tailrace.switch.compiler.model import Model


@dataclass(frozen=True, slots=True)
class NotCarried:
    """The metadata that queued packets do not carry.

    headers: indexes of the metadata headers that are not carried at all
    split: index of a metadata header of which only some fields are carried; None if there is none
    fields: positions of those fields of header `split` that are not carried
    """

    headers: frozenset[int]
    split: int | None
    fields: frozenset[int]


def not_carried(model: Model, c_locals: Locals) -> NotCarried:
    """The metadata that queued packets do not carry, without C locals, which are not in the PHV."""
    headers_used: set[int] = set()
    used: dict[int, set[int]] = {}
    for ref in references((of_pipeline(model, model.egress), used_by_several(model))):
        if isinstance(ref, HeaderInst):
            headers_used.add(ref.index)
        elif isinstance(ref.header, HeaderInst):
            used.setdefault(ref.header.index, set()).add(ref.field)
    movable = [h for h in model.headers if h.metadata and h.stack is None and h.union is None]
    dead = frozenset(
        h.index
        for h in movable
        if h.index not in headers_used and h.index not in used and h.index not in c_locals.headers
    )
    types = Counter(h.type for h in model.headers)
    unused = {
        h.index: frozenset(
            i
            for i in range(len(model.header_types[h.type].fields))
            if i not in used[h.index] and (h.index, i) not in c_locals.fields
        )
        for h in movable
        if h.index in used and h.index not in headers_used and types[h.type] == 1
    }
    split = max(unused, key=lambda index: len(unused[index]), default=None)
    if split is None or not unused[split]:
        return NotCarried(dead, None, frozenset())
    return NotCarried(dead, split, unused[split])
