# SPDX-License-Identifier: Apache-2.0
"""Table entries: as parsed from a message, and as stored in the forwarding state.

The switches of a network have many equal entries: a hundred thousand may have a few thousand distinct ones.
So parsed entries are interned: equal messages are parsed once for all switches with the same pipeline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tailrace.p4rt.messages import p4r
from tailrace.switch.core import EncodedTarget, MeterRates
from tailrace.switch.p4runtime.entities.actions import ActionSpec
from tailrace.switch.p4runtime.entities.match import Identity, PackedKey
from tailrace.switch.p4runtime.entities.members import IndirectSpec, OneShotSpec
from tailrace.switch.p4runtime.memory import ENTRY, KEY_BYTE, reference_bytes

if TYPE_CHECKING:
    from tailrace.switch.p4runtime.pins.references import References

DEFAULT_HANDLE = -1
"""The handle of the default entry."""

MOST_BYTES = 512
"""Longest message that is interned, in octets."""
MOST_INTERNED = 1 << 15
"""Most interned entries of a pipeline; a further entry empties the cache."""

TargetSpec = ActionSpec | IndirectSpec


class ParsedEntry(msgspec.Struct):
    """A valid TableEntry message to insert; `identity`: its key among the entries of its table.

    Two caches, filled at the first use: `encoded`, the action as the switch core takes it; `read_entity`, the
    entity with key, priority and action in responses to Reads.
    """

    identity: Identity
    packed: PackedKey
    priority: int
    target: TargetSpec
    rates: MeterRates | None
    metadata: bytes
    controller_metadata: int
    timeout_ns: int
    counter: p4r.CounterData | None
    encoded: EncodedTarget | None = None
    read_entity: p4r.Entity | None = None


Interned = dict[bytes, ParsedEntry]
"""A pipeline's entries whose target is an action, by the octets of their TableEntry messages."""


class StoredEntry(msgspec.Struct):
    """A table entry; `handle` identifies it in the switch core.

    `interned`: the parsed entry as it was inserted; the target may have been modified since. `keys`: the
    tuples by which other entries can refer to this entry (@refers_to); `needs`: its references to other
    entries (pins/references.py).
    """

    packed: PackedKey
    priority: int
    target: TargetSpec | None
    handle: int
    metadata: bytes = b""
    controller_metadata: int = 0
    timeout_ns: int = 0
    meter: MeterRates | None = None
    is_const: bool = False
    interned: ParsedEntry | None = None
    keys: References = ()
    needs: References = ()

    @property
    def weight(self) -> int:
        """Work of reading the entry, as a number of entities: 1, plus 1 for each action of a one-shot."""
        return len(self.target.actions) + 1 if isinstance(self.target, OneShotSpec) else 1

    @property
    def bytes(self) -> int:
        """Estimated bytes of memory."""
        size = ENTRY + KEY_BYTE * len(self.packed.key) + len(self.metadata)
        if self.keys or self.needs:
            size += reference_bytes(self.keys) + reference_bytes(self.needs)
        return size

    def unchanged_interned(self) -> ParsedEntry | None:
        """The interned entry, if its target is unchanged and the entry has no metadata and no timeout."""
        interned = self.interned
        if interned is None or interned.target is not self.target:
            return None
        return None if self.metadata or self.controller_metadata or self.timeout_ns else interned
