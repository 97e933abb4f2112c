# SPDX-License-Identifier: Apache-2.0
"""The selectors of p4src/presto, p4src/drill and p4src/hermes in Python, written from their descriptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations

ENTRIES_LOG2 = 16
HASH_BITS = 32


@dataclass(slots=True)
class _Cell:
    slot: int
    size_bytes: int


@dataclass(slots=True)
class Presto:
    """Flowcells: one table of cells, and whose turn it is in each group."""

    cell_bytes: int
    cells: dict[int, _Cell] = field(default_factory=dict)
    turn: Counter[int] = field(default_factory=Counter)
    created: int = 0

    def slot(self, flow_hash: int, frame_bytes: int, group: int, size: int) -> int:
        """The slot of a packet of a flow."""
        entry = flow_hash >> (HASH_BITS - ENTRIES_LOG2)
        cell = self.cells.get(entry)
        if cell is None or cell.size_bytes + frame_bytes > self.cell_bytes or cell.slot >= size:
            slot = self.turn[group] if self.turn[group] < size else 0
            cell = self.cells[entry] = _Cell(slot, 0)
            self.turn[group] = (slot + 1) % size
            self.created += 1
        cell.size_bytes += frame_bytes
        return cell.slot


def drill(loads_bytes: Sequence[int], remembered: int | None) -> dict[int, Fraction]:
    """How likely DRILL(2,1) takes each slot of a group, by what waits for their ports; slots that it never takes
    are left out.
    """
    size = len(loads_bytes)
    pairs = list(permutations(range(size), 2)) if size > 1 else [(0, 0)]
    counts: Counter[int] = Counter()
    for first, other in pairs:
        memory = remembered if remembered is not None and remembered < size else first
        # min() takes the earliest of equals
        counts[min((memory, first, other), key=lambda slot: loads_bytes[slot])] += 1
    return {slot: Fraction(count, len(pairs)) for slot, count in counts.items()}


def hermes(sport: int, flow_hash: int, size: int, *, from_host: bool) -> int:
    """The slot of a packet: its tag at the switch of the sender, and its hash further on."""
    return (sport if from_host else flow_hash) % size
