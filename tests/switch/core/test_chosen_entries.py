# SPDX-License-Identifier: Apache-2.0
"""Entries that somebody has chosen who knows the code: no update or lookup of theirs walks far."""

from __future__ import annotations

import ctypes
import functools
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tailrace.cbuild.artifacts import RUNTIME
from tailrace.cbuild.cc import library_recipe
from tailrace.switch.compiler import load_program
from tailrace.switch.core import ActionCall, Replica, StateError, V1ModelSwitch
from tailrace.switch.core.lib import runtime_library
from tests.switch.bmv2_builder import Builder, assign, field, pack, unpack

ENTRIES = 4096
FAR = 128
"""Slots, or entries, that nothing walks past: with hashes that nobody knows some 30 of ENTRIES."""

INPUTS, OUTPUTS = [("key", 64)], [("id", 16)]
FULL = b"\xff" * 8
MISS = 0xFFFF


@functools.cache
def shapes() -> ctypes.CDLL:
    """What shape.c tells of tables."""
    runtime_library()  # its symbols are global, for this code
    return library_recipe("shape", [Path(__file__).parent / "shape.c"], [RUNTIME]).load()


@contextmanager
def table(kind: str) -> Iterator[tuple[V1ModelSwitch, int]]:
    """A table by one key, whose entries have numbers."""
    b = Builder(INPUTS, OUTPUTS)
    value = {"type": "runtime_data", "value": 0}
    action = b.action("act", [assign(field("out", "id"), value)], [("id", 16)])
    b.table("t", [(kind, "in", "key")], kind, [action], max_size=1 << 20, default=(action, [hex(MISS)]))
    with V1ModelSwitch(load_program(b.text())) as switch:
        yield switch, action


def walks(switch: V1ModelSwitch) -> int:
    address = ctypes.c_void_p(switch.address)
    far: int = max(shapes().shape_longest_run(address, 0), shapes().shape_longest_chain(address, 0))
    return far


def multiplied(number: int) -> bytes:
    """A key whose hash was a number, when the hash was a product with a constant, bytes turned round."""
    inverse = pow(0xFF51AFD7ED558CCD, -1, 1 << 64)
    product = int.from_bytes(number.to_bytes(8, "little"), "big")
    return (product * inverse % (1 << 64) ^ 0x9E3779B97F4A7C15).to_bytes(8, "little")


def folded(number: int, seed: int) -> bytes:
    """A key whose hash ends in zeros for a seed that somebody guesses: 32 bits of it are free."""
    chooser = random.Random(number)
    while True:
        word = chooser.getrandbits(64)
        product = (seed ^ word) * (seed | 1) % (1 << 128)
        if (product ^ product >> 64) % 64 == 0:
            return word.to_bytes(8, "little")


KEYS: dict[str, Callable[[int], bytes]] = {
    "inverted": lambda i: multiplied(i << 32),
    "guessed seed": lambda i: folded(i, 0x9E3779B97F4A7C15),
    "highest bits": lambda i: (i << 52).to_bytes(8, "little"),
    "lowest bits": lambda i: i.to_bytes(8, "little"),
}


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("kind", ["exact", "lpm", "ternary"])
def test_chosen_keys_do_not_collide(kind: str, keys: str) -> None:
    with table(kind) as (switch, action):
        for i in range(ENTRIES):
            switch.table_insert(
                0, KEYS[keys](i), FULL, prefix_bits=64, priority=1, target=ActionCall(action, (i,))
            )
        assert 0 < walks(switch) < FAR


@pytest.mark.parametrize("shift", [0, 8, 32, 48])
def test_keys_that_count_up_do_not_collide_for_any_seed(shift: int) -> None:
    assert 0 < shapes().shape_worst_run(500, shift) < FAR


def test_each_process_has_a_seed_of_its_own() -> None:
    script = """
import ctypes
from tailrace.switch.core.lib import runtime_library
seed = runtime_library().tr_seed
seed.restype = ctypes.c_uint64
print(seed())
"""
    runs = [subprocess.run([sys.executable, "-c", script], capture_output=True, check=True) for _ in range(2)]
    assert len({run.stdout for run in runs}) == 2


Entry = tuple[bytes, bytes, int]
ENTRY: dict[str, Callable[[int], Entry]] = {
    "rising priorities": lambda i: (bytes(8), FULL, i + 1),
    "falling priorities": lambda i: (bytes(8), FULL, ENTRIES - i),
    "masks": lambda i: ((i + 1).to_bytes(8, "big"), (i + 1).to_bytes(8, "big"), i + 1),
    "bounds": lambda i: (i.to_bytes(8, "big"), FULL, i + 1),
}


@pytest.mark.parametrize(
    ("kind", "entries"),
    [
        *(("ternary", name) for name in list(ENTRY)[:3]),
        *(("range", name) for name in ENTRY if name != "masks"),
    ],
)
def test_entries_that_have_much_in_common_are_not_walked(kind: str, entries: str) -> None:
    """One key in many priorities, many masks, many ranges that overlap; the best is the one that is hit."""
    with table(kind) as (switch, action):
        handles = []
        for i in range(ENTRIES):
            key, mask, priority = ENTRY[entries](i)
            target = ActionCall(action, (i,))
            handles.append(switch.table_insert(0, key, mask, priority=priority, target=target))
        with pytest.raises(StateError):
            switch.table_insert(0, key, mask, priority=priority, target=target)
        assert 0 < walks(switch) < FAR
        # many masks are in vectors; few are left to be searched one after the other
        assert shapes().shape_masks(ctypes.c_void_p(switch.address), 0) < FAR
        random.Random(1).shuffle(handles)
        for handle in handles[: ENTRIES // 2]:
            switch.table_delete(0, handle)
        assert 0 < walks(switch) < FAR
        for handle in handles[ENTRIES // 2 :]:
            switch.table_delete(0, handle)
        assert walks(switch) == 0


@pytest.mark.parametrize("kind", ["ternary", "range"])
@pytest.mark.parametrize("seed", [1, 2])
def test_few_keys_in_many_priorities_equal_a_scan(kind: str, seed: int) -> None:
    """The entry with the highest priority wins, whatever has come and gone, and whatever was modified."""
    chooser = random.Random(seed)
    keys = [bytes(8), bytes([*bytes(7), 1])]
    there: dict[int, tuple[bytes, int, int]] = {}
    with table(kind) as (switch, action):
        for number in range(1, 3000):
            filling = chooser.random() < (0.8 if number < 1500 else 0.3)
            if filling or not there:
                key, priority = chooser.choice(keys), chooser.randrange(1, 2000)
                same = any(entry[:2] == (key, priority) for entry in there.values())
                mask = FULL if kind == "ternary" else key
                target = ActionCall(action, (number,))
                try:
                    handle = switch.table_insert(0, key, mask, priority=priority, target=target)
                except StateError:
                    assert same
                    continue
                assert not same
                assert handle == min(set(range(len(there) + 1)) - there.keys())
                there[handle] = (key, priority, number)
            elif chooser.random() < 0.3:
                handle = chooser.choice(list(there))
                switch.table_modify(0, handle, target=ActionCall(action, (number,)))
                there[handle] = (*there[handle][:2], number)
            else:
                handle = chooser.choice(list(there))
                switch.table_delete(0, handle)
                del there[handle]
            for key in keys:
                switch.inject(0, key + pack(OUTPUTS, [0]), number)
                (out,) = switch.outputs()
                entries = [entry for entry in there.values() if entry[0] == key]
                expected = max(entries, key=lambda entry: entry[1])[2] if entries else MISS
                assert unpack(OUTPUTS, out.data[8:]) == [expected]


def test_groups_whose_numbers_are_alike() -> None:
    """Each is where its number says, and none is looked for among others."""
    b = Builder([("a", 16)])
    b.run([assign(field("standard_metadata", "mcast_grp"), field("in", "a"))])
    with V1ModelSwitch(load_program(b.text())) as switch:
        numbers = [1, *range(64, 1 << 16, 64), 0xFFFF]
        for number in numbers:
            switch.mcast_set(number, [Replica(number % 500, 0)])
        for number in numbers[::2]:
            switch.mcast_delete(number)
            with pytest.raises(StateError):
                switch.mcast_delete(number)
        for at, number in enumerate(numbers):
            switch.inject(0, number.to_bytes(2, "big") + b"\0", 0)
            assert [out.port for out in switch.outputs()] == [number % 500] * (at % 2)
