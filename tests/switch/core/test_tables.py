# SPDX-License-Identifier: Apache-2.0
"""Lookups of every match kind against a naive model, over random inserts and deletes."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.core import ActionCall, StateError, V1ModelSwitch
from tests.switch.bmv2_builder import Builder, field, pack, unpack

INPUTS = [("a", 6), ("b", 16)]
OUTPUTS = [("id", 16)]
PREFIX_FIELD = 16


@functools.cache
def program(kind: str, *, timeouts: bool = False) -> SwitchProgram:
    """Key: exact a (ternary in ternary and range tables) and b of the kind under test. With timeouts packets need
    entries; without, exact and LPM tables have all that packets need in their slots.
    """
    b = Builder(INPUTS, OUTPUTS)
    param = {"type": "runtime_data", "value": 0}
    action = b.action("found", [{"op": "assign", "parameters": [field("out", "id"), param]}], [("id", 16)])
    first = {"exact": "exact", "lpm": "exact", "ternary": "ternary", "range": "ternary"}[kind]
    b.table(
        "t",
        [(first, "in", "a"), (kind, "in", "b")],
        kind,
        [action],
        default=(action, ["0xffff"]),
        max_size=64,
        support_timeout=timeouts,
    )
    return load_program(b.text())


@dataclass(frozen=True)
class Entry:
    key: tuple[int, int]
    mask: tuple[int, int]
    prefix: int
    priority: int
    id: int
    order: int


def matches(kind: str, e: Entry, a: int, b: int) -> bool:
    if (a & e.mask[0]) != e.key[0]:
        return False
    if kind == "range":
        return e.key[1] <= b <= e.mask[1]
    return (b & e.mask[1]) == e.key[1]


def lookup(kind: str, entries: list[Entry], a: int, b: int) -> int:
    """What the naive model finds: longest prefix, else highest priority, else oldest."""
    hits = [e for e in entries if matches(kind, e, a, b)]
    if not hits:
        return 0xFFFF
    best = max(hits, key=lambda e: (e.prefix if kind == "lpm" else e.priority, -e.order))
    return best.id


@st.composite
def entry(draw: st.DrawFn, kind: str, number: int) -> Entry:
    a, b = draw(st.integers(0, 7)), draw(st.integers(0, 0xFFFF))
    full = 0xFFFF
    if kind == "exact":
        return Entry((a, b % 8), (0x3F, full), 0, 0, number, number)
    if kind == "lpm":
        prefix = draw(st.integers(0, PREFIX_FIELD))
        mask = full >> (16 - prefix) << (16 - prefix)
        return Entry((a, b & mask), (0x3F, mask), prefix, 0, number, number)
    amask = draw(st.sampled_from([0, 1, 7, 0x3F]))
    priority = draw(st.integers(1, 4))
    if kind == "range":
        c = draw(st.integers(0, full))
        return Entry((a & amask, min(b, c)), (amask, max(b, c)), 0, priority, number, number)
    mask = draw(st.sampled_from([0, 1, 0xFF, 0xFF00, full]))
    return Entry((a & amask, b & mask), (amask, mask), 0, priority, number, number)


def packed(values: tuple[int, int]) -> bytes:
    return values[0].to_bytes(1, "big") + values[1].to_bytes(2, "big")


@pytest.mark.parametrize("timeouts", [False, True])
@pytest.mark.parametrize("kind", ["exact", "lpm", "ternary", "range"])
@settings(max_examples=60)
@given(data=st.data())
def test_lookups_equal_the_naive_model(kind: str, timeouts: bool, data: st.DataObject) -> None:
    """Inserts, duplicate inserts, changes, deletes and lookups in any order."""
    p = program(kind, timeouts=timeouts)
    action = p.model.action("found").index
    entries: dict[int, Entry] = {}
    with V1ModelSwitch(p) as switch:
        for number in range(data.draw(st.integers(1, 40))):
            step = data.draw(
                st.sampled_from(["insert", "insert", "insert", "modify", "delete", "look", "look"])
            )
            if step == "insert":
                e = data.draw(entry(kind, number))
                same = [(o.key, o.mask, o.priority) for o in entries.values()]
                try:
                    handle = switch.table_insert(
                        0,
                        packed(e.key),
                        packed(e.mask),
                        prefix_bits=e.prefix + 6 if kind == "lpm" else 0,
                        priority=e.priority,
                        target=ActionCall(action, (e.id,)),
                    )
                except StateError as error:
                    assert error.code == "exists"
                    assert (e.key, e.mask, e.priority) in same
                else:
                    assert (e.key, e.mask, e.priority) not in same
                    entries[handle] = e
            elif step == "modify" and entries:
                handle = data.draw(st.sampled_from(sorted(entries)))
                switch.table_modify(0, handle, ActionCall(action, (number,)))
                entries[handle] = replace(entries[handle], id=number)
            elif step == "delete" and entries:
                handle = data.draw(st.sampled_from(sorted(entries)))
                switch.table_delete(0, handle)
                del entries[handle]
            a, b = data.draw(st.integers(0, 7)), data.draw(st.integers(0, 0xFFFF))
            aim = data.draw(st.booleans())
            if entries and aim:
                near = data.draw(st.sampled_from(list(entries.values())))
                a, b = near.key[0], near.key[1]
            frame = pack(INPUTS, [a, b])
            switch.inject(0, frame + pack(OUTPUTS, [0]), number)
            (out,) = switch.outputs()
            assert [lookup(kind, list(entries.values()), a, b)] == unpack(OUTPUTS, out.data[len(frame) :])
            assert len(entries) == switch.table_count(0)


def test_a_full_table_refuses_and_a_freed_place_is_used_again() -> None:
    """max_size counts entries; handles are the smallest free ones."""
    p = program("exact")
    call = ActionCall(p.model.action("found").index, (1,))
    with V1ModelSwitch(p) as switch:
        for i in range(64):
            assert i == switch.table_insert(0, packed((0, i)), b"\xff" * 3, target=call)
        with pytest.raises(StateError, match="is full") as caught:
            switch.table_insert(0, packed((1, 1)), b"\xff" * 3, target=call)
        assert caught.value.code == "full"
        switch.table_delete(0, 17)
        assert 17 == switch.table_insert(0, packed((1, 1)), b"\xff" * 3, target=call)


def test_deleted_entries_leave_no_memory() -> None:
    """A hundred thousand of them, one after the other: they would take 10 MB."""
    p = program("exact")
    call = ActionCall(p.model.action("found").index, (1,))
    with V1ModelSwitch(p) as switch:
        for number in range(100_000):
            handle = switch.table_insert(0, packed((0, 1)), b"\xff" * 3, target=call)
            switch.table_delete(0, handle)
            if number == 10_000:
                before = resident_bytes()
        assert resident_bytes() < before + (4 << 20)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_bad_control_calls_name_what_is_wrong() -> None:
    """Unknown handles and tables, values too large, wrong number of values."""
    p = program("exact")
    action = p.model.action("found").index
    with V1ModelSwitch(p) as switch:
        for bad, code in [
            (lambda: switch.table_delete(0, 3), "not_found"),
            (lambda: switch.table_delete(9, 0), "range"),
            (lambda: switch.table_modify(0, -1, ActionCall(action, (1,))), "not_found"),
            (lambda: switch.table_insert(0, b"abc", b"abc", target=ActionCall(action, (1 << 16,))), "range"),
            (lambda: switch.table_insert(0, b"abc", b"abc", target=ActionCall(action, ())), "invalid"),
            (lambda: switch.inject(512, b"", 0), "range"),
            (lambda: switch.mcast_set(0, []), "range"),
            (lambda: switch.clone_set(1 << 15, []), "range"),
        ]:
            with pytest.raises(StateError) as caught:
                bad()
            assert code == caught.value.code


def test_entries_expire_when_not_hit() -> None:
    """table_expired lists an entry when its timeout has passed since the last hit."""
    p = program("exact", timeouts=True)
    call = ActionCall(p.model.action("found").index, (1,))
    with V1ModelSwitch(p) as switch:
        handle = switch.table_insert(0, packed((1, 1)), b"", target=call, timeout_ns=100, now_ns=50)
        assert ([], 0) == switch.table_expired(0, 149)
        assert ([handle], 0) == switch.table_expired(0, 150)
        assert ([], 0) == switch.table_expired(0, 249), "it was listed less than a timeout ago"
        assert ([handle], 0) == switch.table_expired(0, 250)
        switch.inject(0, pack(INPUTS, [1, 1]) + pack(OUTPUTS, [0]), 200)
        assert 200 == switch.entry_last_hit_ns(0, handle)
        assert ([], 0) == switch.table_expired(0, 299)
        assert ([], 0) == switch.table_expired(0, 349), "it was hit, and listed at 250"
        assert ([handle], 0) == switch.table_expired(0, 350)


def test_a_table_can_be_given_another_size() -> None:
    """Never fewer places than there are entries."""
    p = program("exact")
    call = ActionCall(p.model.action("found").index, (1,))
    with V1ModelSwitch(p) as switch:
        for i in range(3):
            switch.table_insert(0, packed((0, i)), b"\xff" * 3, target=call)
        with pytest.raises(StateError, match="invalid"):
            switch.table_resize(0, 2)
        switch.table_resize(0, 3)
        with pytest.raises(StateError, match="is full"):
            switch.table_insert(0, packed((0, 3)), b"\xff" * 3, target=call)
        switch.table_resize(0, 4)
        switch.table_insert(0, packed((0, 3)), b"\xff" * 3, target=call)
