# SPDX-License-Identifier: Apache-2.0
"""An entry of a table as the client sees it."""

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
    """An entry as the client sees it; `handle` is the switch's name for it.

    `form` is what it was inserted as; its target may have been replaced since. `keys` is what
    others can refer to it by, `needs` what it refers to itself.
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
        """The actions that stand in it, where they are many."""
        return len(self.target.actions) + 1 if isinstance(self.target, OneShotSpec) else 1

    @property
    def bytes(self) -> int:
        """What it takes of the memory."""
        size = memory.entry_bytes(self.packed.key) + len(self.metadata)
        if self.keys or self.needs:
            size += memory.reference_bytes(self.keys) + memory.reference_bytes(self.needs)
        return size

    def unchanged_interned(self) -> InternedEntry | None:
        """The form, where the entry still has its target and nothing beside key, priority and target."""
        interned = self.interned
        if interned is None or interned.target is not self.target:
            return None
        return None if self.metadata or self.controller_metadata or self.timeout_ns else interned
