# SPDX-License-Identifier: Apache-2.0
"""What a lookup costs in ternary tables by entries and masks, and in range tables; and what an update does.

The key is that of an access list: IPv4 addresses, protocol, ports. Entries have prefixes of both addresses,
any or one protocol and destination port; in a range table ports have ranges. All are in one network of 8
bits. A packet of "hit" has the key of an entry, and anything where its mask does not care; one of "miss"
differs from that in the last bit of the destination that the mask cares for, so that nothing is ruled out at
the first glance; other entries may match it.
"""

from __future__ import annotations

import random
import statistics
import struct
from dataclasses import dataclass
from typing import Any

from bench.library import C, ffi, load
from bench.loop import one_core
from bench.result import Beside, Result

GROUP = "lookups by entries"
ENTRIES = (500, 2000, 10_000)
MASKS = (1, 10, 100, 500)
GOAL_UPDATE_US = 1000.0
KEYS = 4096
LOOKUPS = 200_000
SCANS = 2000
RUNS = 3
UPDATES = 500

_KEY = struct.Struct("!IIBHH")
_ROOM = (C.BENCH_KEY_BYTES + 7) // 8 * 8
_NETWORK = 10 << 24
_ALL = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Rule:
    """Key and mask of an entry; of a range their bounds."""

    key: bytes
    mask: bytes


def _mask(chooser: random.Random) -> tuple[int, ...]:
    """Prefixes of 9 to 32 bits, perhaps the protocol, perhaps the destination port."""
    source, destination = (_ALL << chooser.randrange(24) & _ALL for _ in range(2))
    return source, destination, chooser.choice((0, 0xFF)), 0, chooser.choice((0, 0xFFFF))


def _values(chooser: random.Random) -> tuple[int, ...]:
    """Of a packet."""
    source, destination = (_NETWORK | chooser.randrange(1 << 24) for _ in range(2))
    return (
        source,
        destination,
        chooser.choice((6, 17)),
        chooser.randrange(1 << 16),
        chooser.randrange(1 << 16),
    )


def rules(entries: int, masks: int, *, ranges: bool, chooser: random.Random) -> list[Rule]:
    """So many different rules with so many different masks; where ports are ranges, of the other fields."""
    kinds = list(dict.fromkeys(_mask(chooser) for _ in range(4 * masks)))[: masks - 1]
    kinds.append((_ALL, _ALL, 0xFF, 0, 0xFFFF))  # of which there are enough for any number of rules
    found: dict[tuple[bytes, bytes], Rule] = {}
    while len(found) < entries:
        mask = kinds[len(found) % len(kinds)]
        key = tuple(v & m for v, m in zip(_values(chooser), mask, strict=True))
        if ranges:
            ports = [sorted(chooser.randrange(1 << 16) for _ in range(2)) for _ in range(2)]
            key, mask = (*key[:3], ports[0][0], ports[1][0]), (*mask[:3], ports[0][1], ports[1][1])
        rule = Rule(_KEY.pack(*key), _KEY.pack(*mask))
        if (rule.key, rule.mask) in found:
            kinds = [kind for kind in kinds if kind != mask] or kinds  # it has no more
            continue
        found[rule.key, rule.mask] = rule
    return list(found.values())


def packet(rule: Rule, *, hit: bool, ranges: bool, chooser: random.Random) -> bytes:
    """The key of a packet that matches a rule, or just not."""
    key, mask, values = _KEY.unpack(rule.key), _KEY.unpack(rule.mask), _values(chooser)
    mixed = [k | v & ~m for k, m, v in zip(key, mask, values, strict=True)]
    if ranges:
        mixed[3:] = [chooser.randint(key[i], mask[i]) for i in (3, 4)]
    if not hit:
        mixed[1] ^= mask[1] & -mask[1]
    return _KEY.pack(*mixed).ljust(_ROOM, b"\0")


class Table:
    """A table of the core, without a program."""

    def __init__(self, most: int, *, ranges: bool) -> None:
        self._library: Any = load("lookup.c")
        self._table = self._library.bench_table_new(ranges, most)
        if not self._table:
            raise RuntimeError("out of memory")
        self._number = ffi.new("uint64_t *")

    def add(self, rule: Rule, priority: int) -> tuple[int, float]:
        """Adds a rule: its handle, and CPU time in ns."""
        handle = self._library.bench_table_add(self._table, rule.key, rule.mask, priority, self._number)
        if handle < 0:
            raise RuntimeError(f"the table refused an entry (error {handle})")
        return int(handle), float(self._number[0])

    def remove(self, handle: int) -> float:
        """Removes an entry; CPU time in ns."""
        if self._library.bench_table_remove(self._table, handle, self._number) < 0:
            raise RuntimeError("the table has no such entry")
        return float(self._number[0])

    def look_up(self, keys: list[bytes], lookups: int) -> tuple[float, float]:
        """Mean CPU time of a lookup in ns, and the share that found something."""
        return self._timed(self._library.bench_table_look_up, keys, lookups)

    def scan(self, keys: list[bytes], lookups: int) -> tuple[float, float]:
        """The same by looking at one entry after the other."""
        return self._timed(self._library.bench_table_scan, keys, lookups)

    def _timed(self, function: Any, keys: list[bytes], lookups: int) -> tuple[float, float]:
        took_ns = function(self._table, b"".join(keys), len(keys), lookups, self._number)
        return took_ns / lookups, self._number[0] / lookups

    def close(self) -> None:
        """Frees it."""
        self._library.bench_table_free(self._table)


def _update_ns(table: Table, chosen: list[Rule], handles: list[int], chooser: random.Random) -> list[float]:
    """CPU times of updates: entries taken out and put in again, in a full table."""
    found = []
    for _ in range(UPDATES):
        i = chooser.randrange(len(chosen))
        gone_ns = table.remove(handles[i])
        handles[i], came_ns = table.add(chosen[i], chooser.randrange(1, 1 << 16))
        found += [gone_ns, came_ns]
    return found


def measure(entries: int, masks: int, *, ranges: bool, quick: bool) -> list[Result]:
    """The lookups of one table, and its updates."""
    chooser = random.Random(entries * 1000 + masks)
    chosen = rules(entries, masks, ranges=ranges, chooser=chooser)
    name = f"{entries:,}, {'ranges' if ranges else f'{masks} masks' if masks > 1 else '1 mask'}"
    table = Table(entries, ranges=ranges)
    try:
        handles = [table.add(rule, chooser.randrange(1, 1 << 16))[0] for rule in chosen]
        results = []
        for hit in (False, True):
            keys = [
                packet(r, hit=hit, ranges=ranges, chooser=chooser) for r in chooser.choices(chosen, k=KEYS)
            ]
            lookups, scans = (1000, 20) if quick else (LOOKUPS, max(SCANS * 500 // entries, 100))
            table.look_up(keys, lookups)
            runs, shares = zip(*(table.look_up(keys, lookups) for _ in range(RUNS)), strict=True)
            scan_ns, _ = table.scan(keys, scans)
            note = "" if shares[0] == hit else f"{shares[0]:.0%} found an entry"
            scan = Beside("one entry after the other", scan_ns)
            title = f"{name}, {'hit' if hit else 'miss'}"
            results.append(
                Result(
                    GROUP,
                    title,
                    statistics.median(runs),
                    "ns",
                    better="less",
                    note=note,
                    runs=runs,
                    rival=scan,
                )
            )
        updates_us = [ns / 1000 for ns in _update_ns(table, chosen, handles, chooser)]
        note = f"the longest of {len(updates_us):,}; median {statistics.median(updates_us):.2f} us"
        results.append(
            Result(GROUP, f"{name}, update", max(updates_us), "us", GOAL_UPDATE_US, "less", note=note)
        )
    finally:
        table.close()
    return results


def run(quick: bool) -> list[Result]:
    """All sizes, numbers of masks, and ranges. `quick`: the smallest of each."""
    sizes = ENTRIES[:1] if quick else ENTRIES
    masks = MASKS[1:3] if quick else MASKS
    found = []
    with one_core():
        for entries in sizes:
            for count in masks:
                found += measure(entries, count, ranges=False, quick=quick)
            found += measure(entries, 10, ranges=True, quick=quick)
    return found
