# SPDX-License-Identifier: Apache-2.0
"""Tables and action profiles of a switch, by their index in the program's model."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_int, c_uint32, c_uint64

from tailrace.native.runtime import lib
from tailrace.native.runtime.core import Core, checked, ps, rates_of
from tailrace.native.runtime.types import ActionCall, MeterRates, Target

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
        rc: int = self._lib.tr_table_insert(
            self.handle, table, key, mask, prefix_bits, priority, byref(raw), ps(timeout_ns), ps(now_ns)
        )
        return rc if rc >= 0 else checked(rc, f"table {table}, entry")

    def table_modify(self, table: int, handle: int, target: Target, timeout_ns: int = 0) -> None:
        """Gives an entry another target; its counters stay."""
        raw = self._encode(target)
        rc = self._lib.tr_table_modify(self.handle, table, handle, byref(raw), ps(timeout_ns))
        checked(rc, f"table {table}, entry {handle}")

    def table_delete(self, table: int, handle: int) -> None:
        """Removes an entry."""
        checked(self._lib.tr_table_delete(self.handle, table, handle), f"table {table}, entry {handle}")

    def table_set_default(self, table: int, call: ActionCall | None) -> None:
        """Sets the action of a miss; None restores the program's own."""
        if call is None:
            t = self.model.tables[table]
            if t.default_action is None:
                checked(self._lib.tr_table_default(self.handle, table, None), f"table {table}")
                return
            bits = [p.bits for p in self.model.actions[t.default_action].params]
            data = tuple(v & ((1 << b) - 1) for v, b in zip(t.default_data, bits, strict=True))
            call = ActionCall(t.default_action, data)
        raw = self._encode(call)
        checked(self._lib.tr_table_default(self.handle, table, byref(raw)), f"table {table}")

    def table_count(self, table: int) -> int:
        """Number of entries, the default entry not counted."""
        return checked(self._lib.tr_table_count(self.handle, table), f"table {table}")

    def table_resize(self, table: int, max_size: int) -> None:
        """Gives a table room for another number of entries than its program says.

        p4c sizes a table with initial entries by their number; P4Info has the size the program asks for.

        Raises:
            StateError: ``invalid`` when there are more entries already.
        """
        checked(self._lib.tr_table_resize(self.handle, table, max_size), f"table {table}, size")

    def entry_counter(self, table: int, handle: int) -> tuple[int, int]:
        """Bytes and packets of an entry's direct counter; handle -1 is the default entry."""
        b, p = c_uint64(), c_uint64()
        rc = self._lib.tr_entry_counter(self.handle, table, handle, byref(b), byref(p))
        checked(rc, f"table {table}, entry {handle}")
        return b.value, p.value

    def entry_counter_set(self, table: int, handle: int, bytes_: int, packets: int) -> None:
        """Sets an entry's direct counter."""
        rc = self._lib.tr_entry_counter_set(self.handle, table, handle, bytes_, packets)
        checked(rc, f"table {table}, entry {handle}")

    def entry_meter_set(self, table: int, handle: int, rates: MeterRates | None) -> None:
        """Configures an entry's direct meter; None: every packet is green."""
        rc = self._lib.tr_entry_meter(self.handle, table, handle, rates_of(rates))
        checked(rc, f"table {table}, entry {handle}, meter")

    def entry_last_hit_ns(self, table: int, handle: int) -> int:
        """When an entry was last hit, or made if it never was."""
        t = c_uint64()
        rc = self._lib.tr_entry_last_hit(self.handle, table, handle, byref(t))
        checked(rc, f"table {table}, entry {handle}")
        return t.value // lib.PS_PER_NS

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
        handles, place = (c_int * most)(), c_uint32(first)
        rc = self._lib.tr_table_expired(self.handle, table, ps(now_ns), byref(place), scan, handles, most)
        return list(handles[: checked(rc, f"table {table}")]), place.value

    def member_add(self, profile: int, call: ActionCall) -> int:
        """Adds a member; handles are the smallest free ones."""
        raw = self._encode(call)
        return checked(self._lib.tr_member_add(self.handle, profile, byref(raw)), f"profile {profile}")

    def member_modify(self, profile: int, handle: int, call: ActionCall) -> None:
        """Gives a member another action."""
        raw = self._encode(call)
        rc = self._lib.tr_member_modify(self.handle, profile, handle, byref(raw))
        checked(rc, f"profile {profile}, member {handle}")

    def member_delete(self, profile: int, handle: int) -> None:
        """Removes a member; entries that still name it do nothing."""
        rc = self._lib.tr_member_delete(self.handle, profile, handle)
        checked(rc, f"profile {profile}, member {handle}")

    def group_add(self, profile: int) -> int:
        """Adds an empty group; a packet that hits an empty group goes on untouched."""
        return checked(self._lib.tr_group_add(self.handle, profile), f"profile {profile}")

    def group_set(self, profile: int, handle: int, members: Sequence[int]) -> None:
        """Sets the members among which the hash chooses: ``members[hash % len(members)]``."""
        array = (c_int * max(len(members), 1))(*members)
        rc = self._lib.tr_group_set(self.handle, profile, handle, array, len(members))
        checked(rc, f"profile {profile}, group {handle}")

    def group_delete(self, profile: int, handle: int) -> None:
        """Removes a group."""
        rc = self._lib.tr_group_delete(self.handle, profile, handle)
        checked(rc, f"profile {profile}, group {handle}")
