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
    EncodedTarget,
    MeterRates,
    StateError,
    Target,
)

EXPIRED_SCAN = 4096
"""Entries of a table whose timeouts are checked at one time, under the lock."""


class TableControl(Core):
    """Entries, default actions, counters and meters of entries; members and groups of profiles."""

    def table_insert(
        self,
        table: int,
        key: bytes,
        mask: bytes,
        *,
        target: Target | EncodedTarget,
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
            target: an encoded one is valid on all switches with the same program.
            priority: of a ternary or range table's entry; larger wins.
            timeout_ns: after so long without a hit ``table_expired`` lists the entry; 0: never.

        Returns:
            the entry's handle.

        Raises:
            StateError: ``exists``, ``full``, or bad arguments.
        """
        raw = target.raw if isinstance(target, EncodedTarget) else self._encode(target)
        timeout_ps = ps(timeout_ns) if timeout_ns else 0
        now_ps = ps(now_ns) if now_ns else 0
        arguments = (table, key, mask, prefix_bits, priority, raw, timeout_ps, now_ps)
        return self._do(f"table {table}, entry", self._lib.tr_table_insert, *arguments)

    def encode_target(self, call: ActionCall) -> EncodedTarget:
        """The target of many entries, for `table_insert`.

        Raises:
            StateError: as for `table_insert`.
        """
        data = self._encode(call)
        return EncodedTarget(ffi.new("tr_target[]", data), data)

    def table_modify(self, table: int, handle: int, target: Target, timeout_ns: int = 0) -> None:
        """Replaces the target of an entry; its counters stay."""
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
        """Sets the size of a table, instead of that of its program.

        p4c sizes a table with initial entries by their number; P4Info has the size the program asks for.

        Raises:
            StateError: ``invalid`` when there are more entries already.
        """
        self._do(f"table {table}, size", self._lib.tr_table_resize, table, max_size)

    def entry_counter(self, table: int, handle: int) -> tuple[int, int]:
        """Bytes and packets of an entry's direct counter; handle -1 is the default entry."""
        counts = ffi.new("uint64_t[2]")
        self._do(
            f"table {table}, entry {handle}", self._lib.tr_entry_counter, table, handle, counts, counts + 1
        )
        return counts[0], counts[1]

    def entry_counter_set(self, table: int, handle: int, bytes_: int, packets: int) -> None:
        """Sets an entry's direct counter."""
        self._do(
            f"table {table}, entry {handle}", self._lib.tr_entry_counter_set, table, handle, bytes_, packets
        )

    def entry_meter_set(self, table: int, handle: int, rates: MeterRates | None) -> None:
        """Configures an entry's direct meter; None: every packet is green. Its counts stay.

        Raises:
            StateError: ``invalid``: the table has no direct meter.
        """
        self._do(
            f"table {table}, entry {handle}, meter", self._lib.tr_entry_meter, table, handle, rates_of(rates)
        )

    def entry_colours(self, table: int, handle: int) -> ColourCounts:
        """Bytes and packets of green, yellow and red of an entry's direct meter."""
        counts = ffi.new("uint64_t[]", COLOUR_NUMBERS)
        self._do(f"table {table}, entry {handle}, meter", self._lib.tr_entry_colours, table, handle, counts)
        return tuple(counts)

    def entry_colours_set(self, table: int, handle: int, counts: ColourCounts) -> None:
        """Sets the counts of an entry's direct meter."""
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
        """Entries whose idle timeout has expired, each again only after another timeout.

        Args:
            first: the handle to begin with.
            scan: handles to check, while packets wait.
            most: limit of the entries.

        Returns:
            their handles, and the handle to continue with: 0 behind the last entry.
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
        """Adds `count` members with the same action, all or none."""
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
        """Replaces the action of a member."""
        raw = self._encode(call)
        self._do(f"profile {profile}, member {handle}", self._lib.tr_member_modify, profile, handle, raw)

    def members_modify(self, profile: int, handles: Iterable[int], call: ActionCall) -> None:
        """Replaces the action of several members, one after the other."""
        raw, what = self._encode(call), f"profile {profile}"
        for handle in handles:
            self._do(what, self._lib.tr_member_modify, profile, handle, raw)

    def member_delete(self, profile: int, handle: int) -> None:
        """Removes a member; entries that refer to it do nothing."""
        self._do(f"profile {profile}, member {handle}", self._lib.tr_member_delete, profile, handle)

    def group_add(self, profile: int, *, drawn: bool = False, first: ActionCall | None = None) -> int:
        """Adds an empty group; a packet that hits an empty group stays unchanged.

        Args:
            drawn: each packet's member is drawn at random, not by the hash.
            first: an action before that of the member, also without a member.
        """
        raw = ffi.NULL if first is None else self._encode(first)
        return self._do(f"profile {profile}", self._lib.tr_group_add, profile, drawn, raw)

    def group_set(self, profile: int, handle: int, members: Sequence[int]) -> None:
        """Sets the members, of which the hash selects ``members[hash % len(members)]``."""
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
