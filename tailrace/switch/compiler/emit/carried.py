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
    """Metadata that queued packets do not carry, without C locals (locals.py), which are not in the PHV."""
    # headers used as a whole, and the positions of the fields that are used, by header
    headers_used: set[int] = set()
    fields_used: dict[int, set[int]] = {}
    for ref in references((of_pipeline(model, model.egress), used_by_several(model))):
        if isinstance(ref, HeaderInst):
            headers_used.add(ref.index)
        elif isinstance(ref.header, HeaderInst):
            fields_used.setdefault(ref.header.index, set()).add(ref.field)
    standalone = [h for h in model.headers if h.metadata and h.stack is None and h.union is None]
    unused_headers = frozenset(
        h.index
        for h in standalone
        if h.index not in headers_used and h.index not in fields_used and h.index not in c_locals.headers
    )
    # a header can be split only if no other header has its type: unused fields come last in the type's struct
    types = Counter(h.type for h in model.headers)
    unused_fields = {
        h.index: frozenset(
            i
            for i in range(len(model.header_types[h.type].fields))
            if i not in fields_used[h.index] and (h.index, i) not in c_locals.fields
        )
        for h in standalone
        if h.index in fields_used and h.index not in headers_used and types[h.type] == 1
    }
    split = max(unused_fields, key=lambda index: len(unused_fields[index]), default=None)
    if split is None or not unused_fields[split]:
        return NotCarried(unused_headers, None, frozenset())
    return NotCarried(unused_headers, split, unused_fields[split])
