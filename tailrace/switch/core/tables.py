# SPDX-License-Identifier: Apache-2.0
"""Tables and action profiles of a switch, by their index in the program's model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tailrace.spec.constants import PS_PER_NS
from tailrace.switch.core.core import Core, ps, rates_of
from tailrace.switch.core.lib import ffi
from tailrace.switch.core.types import (
    COLOUR_NUMBERS,
    ActionCall,
    ColourCounts,
    MeterRates,
    Row,
    RowTarget,
    StateError,
    Target,
)

EXPIRED_SCAN = 4096
"""Entries of a table that are looked at for their timeout at one time, under the lock."""


class Tables(Core):
    """Entries, default actions, counters and meters of entries; members and groups of profiles."""

    def table_insert(
        self,
        table: int,
        key: bytes,
        mask: bytes,
        *,
        target: Target,
        prefix_bits: int = 0,
        priority: int = 0,
        timeout_ns: int = 0,
        now_ns: int = 0,
    ) -> int:
        """Adds an entry.

        Args:
            key: packed key fields; for a range field its lower bound.
            mask: packed masks; for a range field its upper bound. Not read by exact tables.
            prefix_bits: length of the prefix of an LPM table's entry.
            priority: of a ternary or range table's entry; larger wins.
            timeout_ns: after so long without a hit ``table_expired`` lists the entry; 0: never.

        Returns:
            the entry's handle.

        Raises:
            StateError: ``exists``, ``full``, or bad arguments.
        """
        raw = self._encode(target)
        return self._do(
            f"table {table}, entry",
            self._lib.tr_table_insert,
            table,
            key,
            mask,
            prefix_bits,
            priority,
            raw,
            ps(timeout_ns),
            ps(now_ns),
        )

    def row_target(self, call: ActionCall) -> RowTarget:
        """The target of a `Row`, and what it points to.

        Raises:
            StateError: as for `table_insert`.
        """
        data = self._encode(call)
        return RowTarget(ffi.new("tr_target[]", data), data)

    def table_fill(self, table: int, rows: Iterable[Row], now_ns: int) -> list[int]:
        """Adds entries, all or none; their handles.

        Raises:
            StateError: as for `table_insert`; nothing was added.
        """
        insert, switch, now_ps = self._lib.tr_table_insert, self.handle, ps(now_ns)
        handles = [
            insert(switch, table, key, mask, prefix_bits, priority, target.raw, 0, now_ps)
            for key, mask, prefix_bits, priority, target in rows
        ]
        refused = min(handles, default=0)
        if refused < 0:
            for handle in handles:
                if handle >= 0:
                    self.table_delete(table, handle)
            self._do(f"table {table}, entry", lambda _: refused)
        return handles

    def table_modify(self, table: int, handle: int, target: Target, timeout_ns: int = 0) -> None:
        """Gives an entry another target; its counters stay."""
        raw = self._encode(target)
        self._do(
            f"table {table}, entry {handle}", self._lib.tr_table_modify, table, handle, raw, ps(timeout_ns)
        )

    def table_delete(self, table: int, handle: int) -> None:
        """Removes an entry."""
        self._do(f"table {table}, entry {handle}", self._lib.tr_table_delete, table, handle)

    def table_set_default(self, table: int, call: ActionCall | None) -> None:
        """Sets the action of a miss; None restores the program's own."""
        if call is None:
            t = self.model.tables[table]
            if t.default_action is None:
                self._do(f"table {table}", self._lib.tr_table_default, table, ffi.NULL)
                return
            bits = [p.bits for p in self.model.actions[t.default_action].params]
            data = tuple(v & ((1 << b) - 1) for v, b in zip(t.default_data, bits, strict=True))
            call = ActionCall(t.default_action, data)
        raw = self._encode(call)
        self._do(f"table {table}", self._lib.tr_table_default, table, raw)

    def table_count(self, table: int) -> int:
        """Number of entries, the default entry not counted."""
        return self._do(f"table {table}", self._lib.tr_table_count, table)

    def table_resize(self, table: int, max_size: int) -> None:
        """Gives a table room for another number of entries than its program says.

        p4c sizes a table with initial entries by their number; P4Info has the size the program asks for.

        Raises:
            StateError: ``invalid`` when there are more entries already.
        """
        self._do(f"table {table}, size", self._lib.tr_table_resize, table, max_size)

    def entry_counter(self, table: int, handle: int) -> tuple[int, int]:
        """Bytes and packets of an entry's direct counter; handle -1 is the default entry."""
        found = ffi.new("uint64_t[2]")
        self._do(
            f"table {table}, entry {handle}", self._lib.tr_entry_counter, table, handle, found, found + 1
        )
        return found[0], found[1]

    def entry_counter_set(self, table: int, handle: int, bytes_: int, packets: int) -> None:
        """Sets an entry's direct counter."""
        self._do(
            f"table {table}, entry {handle}", self._lib.tr_entry_counter_set, table, handle, bytes_, packets
        )

    def entry_meter_set(self, table: int, handle: int, rates: MeterRates | None) -> None:
        """Configures an entry's direct meter; None: every packet is green. What it has counted stays.

        Raises:
            StateError: ``invalid``: the table has no direct meter.
        """
        self._do(
            f"table {table}, entry {handle}, meter", self._lib.tr_entry_meter, table, handle, rates_of(rates)
        )

    def entry_colours(self, table: int, handle: int) -> ColourCounts:
        """Bytes and packets of green, yellow and red that an entry's direct meter has counted."""
        found = ffi.new("uint64_t[]", COLOUR_NUMBERS)
        self._do(f"table {table}, entry {handle}, meter", self._lib.tr_entry_colours, table, handle, found)
        return tuple(found)

    def entry_colours_set(self, table: int, handle: int, counts: ColourCounts) -> None:
        """Sets what an entry's direct meter has counted."""
        self._do(
            f"table {table}, entry {handle}, meter", self._lib.tr_entry_colours_set, table, handle, counts
        )

    def entry_last_hit_ns(self, table: int, handle: int) -> int:
        """When an entry was last hit, or made if it never was."""
        time_ps = ffi.new("uint64_t *")
        self._do(f"table {table}, entry {handle}", self._lib.tr_entry_last_hit, table, handle, time_ps)
        return int(time_ps[0]) // PS_PER_NS

    def table_expired(
        self, table: int, now_ns: int, first: int = 0, scan: int = EXPIRED_SCAN, most: int = EXPIRED_SCAN
    ) -> tuple[list[int], int]:
        """Entries whose timeout has run out, each again only after another timeout.

        Args:
            first: the handle to begin with.
            scan: handles to look at, while packets wait.
            most: entries to find at most.

        Returns:
            their handles, and where to go on: 0 behind the last entry.
        """
        handles, place = ffi.new("int[]", most), ffi.new("uint32_t *", first)
        count = self._do(
            f"table {table}", self._lib.tr_table_expired, table, ps(now_ns), place, scan, handles, most
        )
        return ffi.unpack(handles, count), place[0]

    def member_add(self, profile: int, call: ActionCall) -> int:
        """Adds a member; handles are the smallest free ones."""
        raw = self._encode(call)
        return self._do(f"profile {profile}", self._lib.tr_member_add, profile, raw)

    def members_add(self, profile: int, call: ActionCall, count: int) -> list[int]:
        """Adds as many members with the same action, one after the other; all of them, or none."""
        raw, what, handles = self._encode(call), f"profile {profile}", list[int]()
        try:
            for _ in range(count):
                handles.append(self._do(what, self._lib.tr_member_add, profile, raw))
        except StateError:
            for handle in handles:
                self.member_delete(profile, handle)
            raise
        return handles

    def member_modify(self, profile: int, handle: int, call: ActionCall) -> None:
        """Gives a member another action."""
        raw = self._encode(call)
        self._do(f"profile {profile}, member {handle}", self._lib.tr_member_modify, profile, handle, raw)

    def members_modify(self, profile: int, handles: Iterable[int], call: ActionCall) -> None:
        """Gives several members the same other action, one after the other."""
        raw, what = self._encode(call), f"profile {profile}"
        for handle in handles:
            self._do(what, self._lib.tr_member_modify, profile, handle, raw)

    def member_delete(self, profile: int, handle: int) -> None:
        """Removes a member; entries that still name it do nothing."""
        self._do(f"profile {profile}, member {handle}", self._lib.tr_member_delete, profile, handle)

    def group_add(self, profile: int, *, drawn: bool = False, first: ActionCall | None = None) -> int:
        """Adds an empty group; a packet that hits an empty group goes on untouched.

        Args:
            drawn: each packet's member is drawn at random, and not chosen by the hash.
            first: an action that comes before the member's, also where there is no member.
        """
        raw = ffi.NULL if first is None else self._encode(first)
        return self._do(f"profile {profile}", self._lib.tr_group_add, profile, drawn, raw)

    def group_set(self, profile: int, handle: int, members: Sequence[int]) -> None:
        """Sets the members among which the hash chooses: ``members[hash % len(members)]``."""
        self._do(
            f"profile {profile}, group {handle}",
            self._lib.tr_group_set,
            profile,
            handle,
            members,
            len(members),
        )

    def group_delete(self, profile: int, handle: int) -> None:
        """Removes a group."""
        self._do(f"profile {profile}, group {handle}", self._lib.tr_group_delete, profile, handle)
