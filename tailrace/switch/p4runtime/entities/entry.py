# SPDX-License-Identifier: Apache-2.0
"""A table entry in the forwarding state."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.switch.core import MeterRates
from tailrace.switch.p4runtime import memory
from tailrace.switch.p4runtime.annotated.references import References
from tailrace.switch.p4runtime.entities.actions import ActionSpec
from tailrace.switch.p4runtime.entities.interned import InternedEntry
from tailrace.switch.p4runtime.entities.match import PackedKey
from tailrace.switch.p4runtime.entities.members import IndirectSpec, OneShotSpec

DEFAULT_HANDLE = -1

TargetSpec = ActionSpec | IndirectSpec
Identity = bytes | tuple[bytes, bytes, int]


@dataclass(slots=True)
class StoredEntry:
    """A table entry; `handle` identifies it in the switch core.

    `interned` is the entry as inserted; its target may have been modified since. `keys`: references to it,
    `needs`: its references (annotated/references.py).
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
    interned: InternedEntry | None = None
    keys: References = ()
    needs: References = ()

    @property
    def weight(self) -> int:
        """Its work, in entities: the actions of a one-shot count."""
        return len(self.target.actions) + 1 if isinstance(self.target, OneShotSpec) else 1

    @property
    def bytes(self) -> int:
        """Its memory."""
        size = memory.entry_bytes(self.packed.key) + len(self.metadata)
        if self.keys or self.needs:
            size += memory.reference_bytes(self.keys) + memory.reference_bytes(self.needs)
        return size

    def unchanged_interned(self) -> InternedEntry | None:
        """The interned entry, if this one still has its target, and nothing beside key, priority, target."""
        interned = self.interned
        if interned is None or interned.target is not self.target:
            return None
        return None if self.metadata or self.controller_metadata or self.timeout_ns else interned
