# SPDX-License-Identifier: Apache-2.0
"""Tables and action profiles of a switch, identified by their index in the program's model.

Entries, members and groups are identified by handles: numbers that the switch assigns.
`Core._do(what, function, ...)` calls a C function; StateError if that fails, with `what` as its subject.
`ps` converts ns to ps.
"""

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
"""Default number of entries whose idle timeouts one call checks; packets wait meanwhile."""


class TableControl(Core):
    """Control of tables (entries, default actions, direct counters and meters) and of action profiles."""

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
            key: packed key fields; for a range field the lower bound.
            mask: packed masks; for a range field the upper bound. Ignored by exact tables.
            prefix_bits: prefix length; LPM tables only.
            target: an encoded target is valid on all switches with the same program.
            priority: ternary and range tables only; the matching entry with the largest value is used.
            timeout_ns: idle timeout, after which ``table_expired`` lists the entry; 0: never.
            now_ns: time of creation, or the switch's time if that is later.

        Returns:
            the entry's handle.

        Raises:
            StateError: ``exists``, ``full``, or the code for an invalid argument.
        """
        raw = target.raw if isinstance(target, EncodedTarget) else self._encode(target)
        timeout_ps = ps(timeout_ns) if timeout_ns else 0
        now_ps = ps(now_ns) if now_ns else 0
        arguments = (table, key, mask, prefix_bits, priority, raw, timeout_ps, now_ps)
        return self._do(f"table {table}, entry", self._lib.tr_table_insert, *arguments)

    def encode_target(self, call: ActionCall) -> EncodedTarget:
        """Encodes a target once, for many calls of `table_insert`.

        Raises:
            StateError: as for `table_insert`.
        """
        data = self._encode(call)
        return EncodedTarget(ffi.new("tr_target[]", data), data)

    def table_modify(self, table: int, handle: int, target: Target, timeout_ns: int = 0) -> None:
        """Replaces the target and the idle timeout of an entry; the entry's counters keep their values."""
        raw = self._encode(target)
        self._do(
            f"table {table}, entry {handle}", self._lib.tr_table_modify, table, handle, raw, ps(timeout_ns)
        )

    def table_delete(self, table: int, handle: int) -> None:
        """Removes an entry."""
        self._do(f"table {table}, entry {handle}", self._lib.tr_table_delete, table, handle)

    def table_set_default(self, table: int, call: ActionCall | None) -> None:
        """Sets the default action, which runs on a miss; None: the default action in the program."""
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
        """Number of entries, without the default entry."""
        return self._do(f"table {table}", self._lib.tr_table_count, table)

    def table_resize(self, table: int, max_size: int) -> None:
        """Sets the maximum size of a table, overriding the size in the compiled program.

        p4c sets the size of a table with initial entries to their number; P4Info has the declared size.

        Raises:
            StateError: ``invalid``: the table has more entries already.
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
        """Configures an entry's direct meter; None: every packet is green. The counts by colour stay.

        Raises:
            StateError: ``invalid``: the table has no direct meter.
        """
        self._do(
            f"table {table}, entry {handle}, meter", self._lib.tr_entry_meter, table, handle, rates_of(rates)
        )

    def entry_colours(self, table: int, handle: int) -> ColourCounts:
        """Counts of an entry's direct meter: bytes and packets of green, yellow and red, in this order."""
        counts = ffi.new("uint64_t[]", COLOUR_NUMBERS)
        self._do(f"table {table}, entry {handle}, meter", self._lib.tr_entry_colours, table, handle, counts)
        return tuple(counts)

    def entry_colours_set(self, table: int, handle: int, counts: ColourCounts) -> None:
        """Sets the counts of an entry's direct meter."""
        self._do(
            f"table {table}, entry {handle}, meter", self._lib.tr_entry_colours_set, table, handle, counts
        )

    def entry_last_hit_ns(self, table: int, handle: int) -> int:
        """The time in ns at which an entry was last hit, or at which it was created if it was never hit."""
        time_ps = ffi.new("uint64_t *")
        self._do(f"table {table}, entry {handle}", self._lib.tr_entry_last_hit, table, handle, time_ps)
        return int(time_ps[0]) // PS_PER_NS

    def table_expired(
        self, table: int, now_ns: int, first: int = 0, scan: int = EXPIRED_SCAN, most: int = EXPIRED_SCAN
    ) -> tuple[list[int], int]:
        """Lists entries whose idle timeout has expired; an entry is listed again after another timeout.

        Args:
            first: the handle to begin with.
            scan: the number of handles to check; packets wait meanwhile.
            most: the maximum number of entries to list.

        Returns:
            the handles of the listed entries, and the handle to continue with; 0: the end was reached.
        """
        handles, position = ffi.new("int[]", most), ffi.new("uint32_t *", first)
        count = self._do(
            f"table {table}", self._lib.tr_table_expired, table, ps(now_ns), position, scan, handles, most
        )
        return ffi.unpack(handles, count), position[0]

    def members_add(self, profile: int, call: ActionCall, count: int) -> list[int]:
        """Adds `count` members with the same action; on an error it adds none. Returns their handles."""
        raw, what, handles = self._encode(call), f"profile {profile}", list[int]()
        try:
            for _ in range(count):
                handles.append(self._do(what, self._lib.tr_member_add, profile, raw))
        except StateError:
            for handle in handles:
                self.member_delete(profile, handle)
            raise
        return handles

    def members_modify(self, profile: int, handles: Iterable[int], call: ActionCall) -> None:
        """Replaces the action of several members, one after the other."""
        raw, what = self._encode(call), f"profile {profile}"
        for handle in handles:
            self._do(what, self._lib.tr_member_modify, profile, handle, raw)

    def member_delete(self, profile: int, handle: int) -> None:
        """Removes a member; a hit of an entry that still refers to it runs no action."""
        self._do(f"profile {profile}, member {handle}", self._lib.tr_member_delete, profile, handle)

    def group_add(self, profile: int, *, drawn: bool = False, first: ActionCall | None = None) -> int:
        """Adds an empty group and returns its handle; a hit of an empty group runs no action of a member.

        Args:
            drawn: the member is drawn at random for each packet, not selected by the hash.
            first: an action that runs before the member's action, even if the group is empty.
        """
        raw = ffi.NULL if first is None else self._encode(first)
        return self._do(f"profile {profile}", self._lib.tr_group_add, profile, drawn, raw)

    def group_set(self, profile: int, handle: int, members: Sequence[int]) -> None:
        """Sets a group's members by handle; the hash selects ``members[hash % len(members)]``."""
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
