# SPDX-License-Identifier: Apache-2.0
"""Tables of many masks and of ranges, which bit vectors search, against a scan of all entries."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.core import ActionCall, StateError, V1ModelSwitch
from tests.switch.bmv2_builder import Builder, field, pack, unpack
from tests.switch.core.test_tables import Entry, lookup, packed

INPUTS = [("a", 6), ("b", 16)]
OUTPUTS = [("id", 16)]
MISS = 0xFFFF
MOST = 1400
STEPS = 2400
LOOKUPS = 4
Mask = Callable[[random.Random], tuple[int, int]]


def program(kind: str) -> SwitchProgram:
    """Like that of test_tables, with room for two blocks of vectors."""
    b = Builder(INPUTS, OUTPUTS)
    param = {"type": "runtime_data", "value": 0}
    action = b.action("found", [{"op": "assign", "parameters": [field("out", "id"), param]}], [("id", 16)])
    keys = [("ternary", "in", "a"), (kind, "in", "b")]
    b.table("t", keys, kind, [action], default=(action, [hex(MISS)]), max_size=MOST)
    return load_program(b.text())


def few(chooser: random.Random) -> tuple[int, int]:
    """So few masks that a table has to change between vectors and hash tables."""
    return chooser.choice((0, 0x3F)), chooser.choice((0xFF00, 0xFFFF, 0x0FF0, 1, 0xFFF))


def any_mask(chooser: random.Random) -> tuple[int, int]:
    """Mostly masks that no other entry has."""
    return chooser.randrange(1 << 6), chooser.randrange(1 << 16) | chooser.randrange(1 << 16)


def new(kind: str, mask: Mask, chooser: random.Random, number: int) -> Entry:
    a, b, priority = chooser.randrange(64), chooser.randrange(1 << 16), chooser.randrange(1, 50)
    mask_a, mask_b = mask(chooser)
    if kind == "range":
        bounds = sorted((b, min(0xFFFF, b + chooser.choice((0, 3, 300, 30_000)))))
        return Entry((a & mask_a, bounds[0]), (mask_a, bounds[1]), 0, priority, number, number)
    return Entry((a & mask_a, b & mask_b), (mask_a, mask_b), 0, priority, number, number)


@pytest.mark.parametrize(
    ("kind", "mask"),
    [("ternary", few), ("ternary", any_mask), ("range", any_mask)],
    ids=["few masks", "many masks", "ranges"],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_lookups_equal_a_scan(kind: str, mask: Mask, seed: int) -> None:
    """A table fills, has updates and deletes in between, empties and fills again; each lookup is compared."""
    chooser = random.Random(seed)
    loaded = program(kind)
    action = loaded.model.action("found").index
    entries: dict[int, Entry] = {}
    filling = True
    with V1ModelSwitch(loaded) as switch:
        for number in range(STEPS):
            if len(entries) == MOST or (number > STEPS // 2 and len(entries) > MOST // 2):
                filling = False
            filling = filling or not entries
            if chooser.random() < (0.95 if filling else 0.2):
                # as often as not one that is there already, to be refused or to win by its priority
                old = chooser.choice(list(entries.values())) if entries and chooser.random() < 0.2 else None
                e = new(kind, mask, chooser, number)
                if old is not None:
                    e = Entry(
                        old.key, old.mask, 0, chooser.choice((old.priority, e.priority)), number, number
                    )
                _insert(switch, entries, e, action)
            elif entries:
                for handle in chooser.sample(sorted(entries), min(len(entries), chooser.choice((1, 1, 9)))):
                    switch.table_delete(0, handle)
                    del entries[handle]
            for at in range(LOOKUPS):
                a, b = chooser.randrange(64), chooser.randrange(1 << 16)
                if entries and chooser.random() < 0.5:
                    a, b = chooser.choice(list(entries.values())).key
                frame = pack(INPUTS, [a, b])
                switch.inject(0, frame + pack(OUTPUTS, [0]), number * LOOKUPS + at)
                (out,) = switch.outputs()
                result = unpack(OUTPUTS, out.data[len(frame) :])
                assert result == [lookup(kind, list(entries.values()), a, b)]


def _insert(switch: V1ModelSwitch, entries: dict[int, Entry], e: Entry, action: int) -> None:
    same = any((o.key, o.mask, o.priority) == (e.key, e.mask, e.priority) for o in entries.values())
    call = ActionCall(action, (e.id,))
    try:
        handle = switch.table_insert(0, packed(e.key), packed(e.mask), priority=e.priority, target=call)
    except StateError as error:
        assert error.code == ("exists" if same else "full")
        assert same or len(entries) == MOST
    else:
        assert not same
        entries[handle] = e
