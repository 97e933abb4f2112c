# SPDX-License-Identifier: Apache-2.0
"""TableEntry: writes to one table, and its entries (P4Runtime specification 9.1).

Terms of other files: a `handle` is an entry's number in the switch core, whose errors are StateError. `Undo`
is the list of functions that roll back a batch; None: not needed. References (pins/references.py) count which
entries refer to which (@refers_to); `check` and `check_deletion` raise an error if a reference would have no
target. `bmv2_compat`: behave as simple_switch_grpc.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import Code, P4RtError, invalid, not_found
from tailrace.switch.core import (
    ActionCall,
    ColourCounts,
    EncodedTarget,
    MeterRates,
    StateError,
)
from tailrace.switch.core.types import Target
from tailrace.switch.p4runtime.context import (
    DELETE,
    INSERT,
    MAX_METADATA_BYTES,
    MODIFY,
    Context,
    Undo,
    long_metadata,
)
from tailrace.switch.p4runtime.entities.actions import ActionSpec, ActionUse, parse_action
from tailrace.switch.p4runtime.entities.direct import EntryStore, has_direct_fields
from tailrace.switch.p4runtime.entities.entry import (
    DEFAULT_HANDLE,
    MOST_BYTES,
    MOST_INTERNED,
    ParsedEntry,
    StoredEntry,
    TargetSpec,
)
from tailrace.switch.p4runtime.entities.match import Identity, PackedKey
from tailrace.switch.p4runtime.entities.members import IndirectSpec, OneShotSpec
from tailrace.switch.p4runtime.entities.meters import (
    check_counter,
    check_reset,
    parse_rates,
)
from tailrace.switch.p4runtime.entities.profiles import ProfileState
from tailrace.switch.p4runtime.entities.schema import Schema, TablePlan
from tailrace.switch.p4runtime.memory import reference_bytes

if TYPE_CHECKING:
    from tailrace.switch.p4runtime.pins.references import References

EXPIRED_SCANS = 16
"""Most calls of the core per search for expired entries; each call scans a part of a table."""


_Values = tuple[TargetSpec | None, bytes, int, int, "References"]
"""The parts of an entry that MODIFY changes: target, metadata, controller_metadata, timeout, references."""


class TableState(EntryStore):
    """The entries of one table, and the execution of updates on them."""

    def __init__(
        self, plan: TablePlan, schema: Schema, context: Context, profile: ProfileState | None
    ) -> None:
        self.profile = profile
        super().__init__(plan, context)
        self._next_expired = 0  # handle at which the search for expired entries continues
        self._model = schema.model
        reference_plan = schema.references
        # the index of references (@refers_to); None: the table has no references and is no target
        self._references = (
            context.references if reference_plan is not None and reference_plan.involves(plan) else None
        )
        self._interned = schema.interned
        if plan.size > schema.model.tables[plan.index].max_size:
            self._switch.table_resize(plan.index, plan.size)
        self.default: StoredEntry = self.initial_default()
        self._load_initial_entries()

    # ---- lookups ----

    def find(self, message: p4r.TableEntry) -> StoredEntry:
        """The entry with the message's key, or the default entry.

        Raises:
            P4RtError: NOT_FOUND, or INVALID_ARGUMENT: the key is invalid for the table.
        """
        if message.is_default_action:
            self._check_default_key(message)
            return self.default
        packed = self.plan.key.look_up(message.match)
        self._check_priority(message.priority)
        entry = None if packed is None else self.entries.get(self.plan.key.identity(packed, message.priority))
        if entry is None:
            raise not_found(f"{self._what} has no such entry")
        return entry

    def find_direct(self, message: p4r.TableEntry) -> StoredEntry:
        """Like `find`, for access to the entry's direct counter or meter.

        Raises:
            P4RtError: as `find`; UNIMPLEMENTED for the default entry of a table whose misses run no action.
        """
        entry = self.find(message)
        if not self.has_direct(entry):
            raise self.no_direct()
        return entry

    def all(self) -> Iterator[StoredEntry | None]:
        """All entries by handle; yields None for an unused handle.

        The table may change during the iteration; entries that exist throughout are yielded once.
        """
        handle = 0
        while handle < self._top:
            yield self.by_handle.get(handle)
            handle += 1

    def demand(self, message: p4r.TableEntry) -> int:
        """The number of entries that `select` has to scan."""
        if message.is_default_action or (
            message.match and (message.priority or not self.plan.key.needs_priority)
        ):
            return 1
        return len(self.entries)

    def select(self, message: p4r.TableEntry) -> Iterator[StoredEntry | None]:
        """The entries that match a read request; yields None for an entry that does not match."""
        if message.is_default_action:
            self._check_default_key(message)
            candidates: Iterator[StoredEntry | None] = iter((self.default,))
        elif message.match:
            candidates = self._matching(message)
        else:
            candidates = self.all()
        for entry in candidates:
            yield entry if entry is not None and self._passes(entry, message) else None

    @staticmethod
    def _passes(entry: StoredEntry, message: p4r.TableEntry) -> bool:
        if message.priority and entry.priority != message.priority:
            return False
        if message.controller_metadata and entry.controller_metadata != message.controller_metadata:
            return False
        if message.metadata and entry.metadata != message.metadata:
            return False
        action_id = message.action.action.action_id
        target = entry.target
        return not action_id or (isinstance(target, ActionSpec) and target.plan.id == action_id)

    def _matching(self, message: p4r.TableEntry) -> Iterator[StoredEntry | None]:
        packed = self.plan.key.look_up(message.match)
        if packed is None:
            return
        if not self.plan.key.needs_priority or message.priority:
            yield self.entries.get(self.plan.key.identity(packed, message.priority))
            return
        for entry in self.all():
            yield entry if entry is not None and entry.packed[:2] == packed[:2] else None

    def expired(self, now_ns: int, limit: int) -> list[StoredEntry]:
        """Up to `limit` entries whose idle timeout has expired; the next call continues the scan."""
        entries: list[StoredEntry] = []
        for _ in range(EXPIRED_SCANS):
            handles, self._next_expired = self._switch.table_expired(
                self.plan.index, now_ns, self._next_expired, most=limit - len(entries)
            )
            entries += [self.by_handle[handle] for handle in handles]
            if self._next_expired == 0 or len(entries) >= limit:
                break
        return entries

    # ---- writes ----

    def write(self, kind: int, message: p4r.TableEntry, undo: Undo | None) -> None:
        """Applies one update.

        Raises:
            P4RtError: the update is rejected; nothing has changed.
        """
        if kind == INSERT:
            octets = message.SerializeToString()
            interned = self._interned.get(octets)
            if interned is not None:  # already validated, on this switch or another
                self._insert(interned, undo)
                return
        if message.is_const:  # checked for deletions, too, although only their key matters otherwise
            raise invalid(f"{self._what}: is_const is true; it must not be set by a client")
        if kind != DELETE and len(message.metadata) > MAX_METADATA_BYTES:
            raise long_metadata(message.metadata, self._what)
        if message.is_default_action:
            self._write_default(kind, message, undo)
        elif kind == INSERT:
            self._insert(self._parse(message, octets), undo)
        elif kind == MODIFY:
            self._modify(message, undo)
        else:
            self._delete(message, undo)

    def _parse(self, message: p4r.TableEntry, octets: bytes) -> ParsedEntry:
        """Validates an entry to insert, and interns it."""
        plan, priority = self.plan, message.priority
        if plan.is_const:
            raise P4RtError(Code.PERMISSION_DENIED, f"{self._what} is constant")
        if not plan.key.fields:
            self._check_keyless()
        packed = plan.key.pack(message.match)
        identity = plan.key.identity(packed, priority)
        self._check_priority(priority)
        if identity in self.entries:
            raise self._exists()
        rates = self._check_attributes(message)
        target = self._target(message)
        if target is None:
            raise invalid(f"{self._what}: an entry needs an action")
        if plan.restriction is not None:
            plan.restriction.check(packed, priority)
        counter = None
        if message.HasField("counter_data"):
            counter = p4r.CounterData()  # a copy: a submessage would keep the full request in memory
            counter.CopyFrom(message.counter_data)
        entry = ParsedEntry(
            identity,
            packed,
            priority,
            target,
            rates,
            message.metadata,
            message.controller_metadata,
            message.idle_timeout_ns,
            counter,
        )
        if isinstance(target, ActionSpec) and len(octets) <= MOST_BYTES:
            if len(self._interned) >= MOST_INTERNED:
                self._interned.clear()
            self._interned[octets] = entry
        return entry

    def _exists(self) -> P4RtError:
        return P4RtError(Code.ALREADY_EXISTS, f"{self._what} already has an entry with this key")

    def _insert(self, parsed: ParsedEntry, undo: Undo | None) -> None:
        if parsed.identity in self.entries:
            raise self._exists()
        keys: References = ()
        needs: References = ()
        if self._references is not None:
            keys, needs = self._references_of(parsed.packed, parsed.target)
        entry = StoredEntry(
            parsed.packed,
            parsed.priority,
            parsed.target,
            0,  # the handle, which `_add` sets
            parsed.metadata,
            parsed.controller_metadata,
            parsed.timeout_ns,
            parsed.rates,
            False,  # not constant
            parsed if isinstance(parsed.target, ActionSpec) else None,
            keys,
            needs,
        )
        self._add(entry, parsed.identity)
        if parsed.counter is not None:
            self.set_counter(entry, parsed.counter, None)
        if undo is not None:
            undo.append(lambda: self._remove(entry))

    def _modify(self, message: p4r.TableEntry, undo: Undo | None) -> None:
        entry = self.find(message)
        if entry.is_const and message.HasField("action"):
            raise P4RtError(
                Code.PERMISSION_DENIED, f"{self._what}: the action of a constant entry cannot change"
            )
        rates = self._check_attributes(message)
        target = self._target(message, entry.target)
        if self.plan.restriction is not None:  # initial entries were not checked
            self.plan.restriction.check(entry.packed, entry.priority)
        needs = entry.needs
        if self._references is not None and target is not None:
            needs = self._references_of(entry.packed, target)[1]
        before = (entry.target, entry.metadata, entry.controller_metadata, entry.timeout_ns, entry.needs)
        after = (
            target or entry.target,
            message.metadata,
            message.controller_metadata,
            message.idle_timeout_ns,
            needs,
        )
        # of a constant entry, only meter and counts change
        self._retarget(entry, before if entry.is_const else after)
        if undo is not None:
            undo.append(lambda: self._retarget(entry, before))
        try:
            self.set_meter(entry, rates, undo)
        except StateError:
            if undo is None:
                self._retarget(entry, before)
            raise
        self.set_counts(entry, message, undo)

    def _delete(self, message: p4r.TableEntry, undo: Undo | None) -> None:
        if self.plan.is_const:
            raise P4RtError(Code.PERMISSION_DENIED, f"{self._what} is constant")
        entry = self.find(message)
        if entry.is_const:
            raise P4RtError(Code.PERMISSION_DENIED, f"{self._what}: a constant entry cannot be deleted")
        if self._references is not None:
            self._references.check_deletion(entry.keys, entry.needs, self._what)
        if undo is not None:
            counter = self._switch.entry_counter(self.plan.index, entry.handle) if self.plan.counter else None
            colours = self.colours(entry) if self.plan.meter is not None else None
            undo.append(lambda: self._restore(entry, counter, colours))
        self._remove(entry)

    def _write_default(self, kind: int, message: p4r.TableEntry, undo: Undo | None) -> None:
        self._check_default_key(message)
        if kind != MODIFY:
            raise invalid(f"{self._what}: the default entry can only be modified")
        if self.plan.const_default:
            raise P4RtError(Code.PERMISSION_DENIED, f"{self._what}: the default action is constant")
        if self.profile is not None and message.HasField("action"):
            raise P4RtError(
                Code.PERMISSION_DENIED, f"{self._what}: the default entry of an indirect table is fixed"
            )
        entry = self.default
        rates = self._check_attributes(message)
        before = (entry.target, entry.metadata, entry.controller_metadata, 0, entry.needs)
        if message.HasField("action"):
            if message.action.WhichOneof("type") != "action":
                raise invalid(f"{self._what}: a default entry takes an action")
            spec = parse_action(message.action.action, self.plan.actions, self._what, ActionUse.DEFAULT)
            needs: References = ()
            if self._references is not None:
                needs = self._references.plan.of_action(spec)
                self._references.check(needs, self._what)
            self._assign(entry, (spec, message.metadata, message.controller_metadata, 0, needs))
        else:
            initial = self.initial_default()
            if not self.has_direct(initial) and has_direct_fields(message):
                raise self.no_direct()
            if self.has_direct(entry):
                # before _assign, which deletes the entry in the core if the program has no default action
                self.reset_direct(entry, undo)
            self._assign(entry, (initial.target, b"", 0, 0, ()))
        if undo is not None:
            undo.append(lambda: self._assign(entry, before))
        if message.HasField("action"):
            self.set_meter(entry, rates, undo)
        self.set_counts(entry, message, undo)

    # ---- helpers ----

    def _check_keyless(self) -> None:
        """Rejects an entry of a table without a key; simple_switch_grpc accepts it: all packets hit it."""
        if not self._context.settings.bmv2_compat:
            raise invalid(f"{self._what} has no key and takes no entries")
        if self._model.tables[self.plan.index].default_const:
            # such a table is compiled to a call of its action
            raise P4RtError(
                Code.UNIMPLEMENTED,
                f"{self._what} has no key and a constant default action: it cannot have entries",
            )

    def _check_priority(self, priority: int) -> None:
        if self.plan.key.needs_priority:
            if priority <= 0:
                raise invalid(f"{self._what}: priority is {priority}; it must be above 0")
        elif priority:
            raise invalid(f"{self._what}: priority is {priority}; entries of this table have none")

    def _check_default_key(self, message: p4r.TableEntry) -> None:
        if message.match or message.priority:
            raise invalid(f"{self._what}: a default entry has neither match nor priority")
        if message.idle_timeout_ns or message.HasField("time_since_last_hit"):
            raise invalid(f"{self._what}: a default entry has no idle timeout")

    def _check_attributes(self, message: p4r.TableEntry) -> MeterRates | None:
        """Validates all fields of a write except key and action; returns the meter's rates, or None."""
        plan = self.plan
        if message.idle_timeout_ns:
            if not plan.idle_timeout:
                raise invalid(f"{self._what} has no idle timeout")
            if message.idle_timeout_ns < 0:
                raise invalid(
                    f"{self._what}: idle_timeout_ns is {message.idle_timeout_ns}; it cannot be negative"
                )
        if message.HasField("time_since_last_hit"):
            raise invalid(f"{self._what}: time_since_last_hit cannot be written")
        if message.HasField("counter_data"):
            check_counter(message.counter_data, self._what)
            if not plan.counter:
                raise invalid(f"{self._what} has no direct counter")
        if message.HasField("meter_counter_data"):
            check_reset(message.meter_counter_data, self._what)
            if plan.meter is None:
                raise invalid(f"{self._what} has no direct meter")
        if message.HasField("meter_config"):
            if plan.meter is None:
                raise invalid(f"{self._what} has no direct meter")
            return parse_rates(message.meter_config, plan.meter)
        return None

    def _target(self, message: p4r.TableEntry, replaced: TargetSpec | None = None) -> TargetSpec | None:
        kind = message.action.WhichOneof("type")
        if kind is None:
            return None
        if self.profile is not None:
            return self.profile.parse_target(message.action, self._what, self.plan.actions, replaced)
        if kind != "action":
            raise invalid(f"{self._what} is direct: its entries take an action")
        return parse_action(message.action.action, self.plan.actions, self._what)

    def _references_of(self, packed: PackedKey, target: TargetSpec) -> tuple[References, References]:
        """The tuples by which other entries refer to an entry, and its references (pins/references.py).

        Raises:
            P4RtError: INVALID_ARGUMENT: a reference has no target.
        """
        assert self._references is not None
        actions = [target] if isinstance(target, ActionSpec) else []
        if isinstance(target, OneShotSpec):
            actions = [spec for spec, _ in target.actions]
            actions += [] if target.group_action is None else [target.group_action]
        plan = self._references.plan
        needs = plan.of_entry(self.plan.id, packed, actions)
        self._references.check(needs, self._what)
        return plan.keys_of(self.plan.id, packed), needs

    def _release(self, target: TargetSpec | None) -> None:
        if self.profile is not None and target is not None:
            self.profile.release(cast(IndirectSpec, target))

    def _reference(self, target: TargetSpec) -> Target:
        return target.call if isinstance(target, ActionSpec) else target.reference()

    def _add(self, entry: StoredEntry, identity: Identity) -> None:
        target, packed, switch = cast(TargetSpec, entry.target), entry.packed, self._context.switch
        size, uses, handle = entry.bytes, False, -1
        self._context.memory.reserve(size, self._what)
        try:
            if self.profile is not None:
                self.profile.use(cast(IndirectSpec, target))
                uses = True
            entry.handle = handle = switch.table_insert(
                self.plan.index,
                packed.key,
                packed.mask,
                target=self._encoded(entry.interned, target),
                prefix_bits=packed.prefix_bits,
                priority=entry.priority,
                timeout_ns=entry.timeout_ns,
                now_ns=self._context.now_ns() if self.plan.idle_timeout else 0,
            )
            if entry.meter is not None:
                switch.entry_meter_set(self.plan.index, handle, entry.meter)
        except (P4RtError, StateError):
            if handle >= 0:
                switch.table_delete(self.plan.index, handle)
            if uses:
                self._release(target)
            self._context.memory.release(size)
            raise
        self.entries[identity] = self.by_handle[handle] = entry
        if handle >= self._top:
            self._top = handle + 1
        if self._references is not None:
            self._references.add(entry.keys, entry.needs)

    def _encoded(self, interned: ParsedEntry | None, target: TargetSpec) -> EncodedTarget | Target:
        """The target for the core; that of an interned entry is encoded only once, for all switches."""
        if interned is None or not isinstance(target, ActionSpec) or interned.target is not target:
            return self._reference(target)
        if interned.encoded is None:
            interned.encoded = self._context.switch.encode_target(target.call)
        return interned.encoded

    def _remove(self, entry: StoredEntry) -> None:
        self._switch.table_delete(self.plan.index, entry.handle)
        del self.by_handle[entry.handle]
        del self.entries[self.plan.key.identity(entry.packed, entry.priority)]
        if self._references is not None:
            self._references.remove(entry.keys, entry.needs)
        self._release(entry.target)
        self._context.memory.release(entry.bytes)

    def _restore(
        self, entry: StoredEntry, counter: tuple[int, int] | None, colours: ColourCounts | None
    ) -> None:
        self._add(entry, self.plan.key.identity(entry.packed, entry.priority))
        if counter is not None:
            self._switch.entry_counter_set(self.plan.index, entry.handle, *counter)
        if colours is not None:
            self.set_colours(entry, colours, None)

    def _retarget(self, entry: StoredEntry, values: _Values) -> None:
        """Like `_assign`, but also counts the references to both targets in the action profile."""
        new, old = values[0], entry.target
        uses_new = self.profile is not None and new is not old and new is not None
        if self.profile is not None and uses_new:
            self.profile.use(cast(IndirectSpec, new))
        try:
            self._assign(entry, values)
        except (P4RtError, StateError):
            if uses_new:
                self._release(new)
            raise
        if new is not old:
            self._release(old)

    def _assign(self, entry: StoredEntry, values: _Values) -> None:
        """Sets the parts of an entry that MODIFY changes, also in the switch core."""
        target, metadata, _, timeout_ns, needs = values
        more_bytes = len(metadata) - len(entry.metadata)
        if needs is not entry.needs:
            more_bytes += reference_bytes(needs) - reference_bytes(entry.needs)
        with self._context.memory.reserved(more_bytes, self._what):
            if entry.handle == DEFAULT_HANDLE:
                call = target.call if isinstance(target, ActionSpec) else None
                self._switch.table_set_default(self.plan.index, call)
            elif target is not None and (target is not entry.target or timeout_ns != entry.timeout_ns):
                self._switch.table_modify(self.plan.index, entry.handle, self._reference(target), timeout_ns)
        if needs is not entry.needs and self._references is not None:
            # (): the tuples by which other entries refer to this entry do not change
            self._references.remove((), entry.needs)
            self._references.add((), needs)
        entry.target, entry.metadata, entry.controller_metadata, entry.timeout_ns, entry.needs = values

    # ---- initial entries of the program ----

    def _spec_of(self, action: int, data: tuple[int, ...]) -> ActionSpec | None:
        for plan in self.plan.actions.values():
            if plan.index == action:
                return ActionSpec(plan, ActionCall(action, data))
        return None

    def initial_default(self) -> StoredEntry:
        """The default entry that the program declares."""
        table = self._model.tables[self.plan.index]
        target = (
            None if table.default_action is None else self._spec_of(table.default_action, table.default_data)
        )
        return StoredEntry(PackedKey(b"", b"", 0), 0, target, DEFAULT_HANDLE)

    def default_is_initial(self) -> bool:
        """Whether the default entry is as the program declares it, and has counted nothing."""
        entry = self.default
        counts = (0, 0)
        if self.plan.counter and self.has_direct(entry):
            counts = self._switch.entry_counter(self.plan.index, entry.handle)
        values = (entry.target, entry.metadata, entry.controller_metadata, entry.meter)
        return values == (self.initial_default().target, b"", 0, None) and not any(counts)

    def _load_initial_entries(self) -> None:
        # the core installed them in order when it loaded the program, with handles 0, 1, …; of entries with
        # the same key it installed only the first
        plan = self.plan
        for initial in self._model.tables[plan.index].entries:
            packed = PackedKey(
                initial.key, plan.key.full_mask if plan.key.only_exact else initial.mask, initial.prefix_bits
            )
            priority = initial.priority if plan.key.needs_priority else 0
            identity = self.plan.key.identity(packed, priority)
            if identity not in self.entries:
                target = self._spec_of(initial.action, initial.data)
                entry = StoredEntry(packed, priority, target, len(self.entries), is_const=plan.is_const)
                if self._references is not None:
                    entry.keys = self._references.plan.keys_of(plan.id, packed)
                    self._references.add(entry.keys, ())
                self.entries[identity] = self.by_handle[entry.handle] = entry
                self._context.memory.reserve(entry.bytes, self._what)
        self._top = len(self.by_handle)
