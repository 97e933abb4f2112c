# SPDX-License-Identifier: Apache-2.0
"""Action profiles and selectors: members, groups and one-shot action sets (P4Runtime specification 9.2).

A selector chooses `members[hash % n]`, so the order of a group's members decides which member a flow gets.
For the same decisions as simple_switch_grpc, members are sorted by their handle in the data plane. A new
handle is the smallest free number, and a member of weight w is w copies with a handle each. Copies are made
when a group first needs them and removed when no group needs them (p4lang/PI, action_prof_mgr.cpp;
behavioral-model, ras.h). Members whose watch port is down are left out.

A plan (schema.py) describes an object of P4Info and its index in the program. Context.copy_changes counts the
changes of copies in a batch, because packets wait meanwhile. `bmv2_compat` of the device's settings: requests
are also valid that simple_switch_grpc accepts against the specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import Code, P4RtError, exhausted, invalid, not_found
from tailrace.switch.core import StateError, V1ModelSwitch
from tailrace.switch.p4runtime import memory
from tailrace.switch.p4runtime.context import DELETE, INSERT, Context, Undo
from tailrace.switch.p4runtime.entities.actions import ActionSpec, ActionUse, parse_action
from tailrace.switch.p4runtime.entities.members import (
    GroupSpec,
    IndirectSpec,
    MemberSpec,
    OneShotSpec,
    StoredGroup,
    StoredMember,
    WatchPort,
    WeightedMember,
    read_group_action,
)
from tailrace.switch.p4runtime.entities.schema import ActionPlan, ProfilePlan

if TYPE_CHECKING:
    from tailrace.switch.p4runtime.pins.references import References

MAX_GROUP_WEIGHT = 16384
"""Largest sum of the weights in a group."""


class ProfileState:
    """The state of one action profile or selector."""

    def __init__(self, plan: ProfilePlan, context: Context) -> None:
        self.plan = plan
        self.members: dict[int, StoredMember] = {}
        self.groups: dict[int, StoredGroup] = {}
        self.one_shots: dict[int, OneShotSpec] = {}
        self._what = f"action profile '{plan.name}'"
        self.groups_and_members = 0  # the number of groups plus the number of members in them
        self._size = 0  # sum of the sizes of all groups and one-shots
        self._context = context

    @property
    def _switch(self) -> V1ModelSwitch:
        return self._context.switch

    # ---- targets of table entries ----

    def parse_target(
        self,
        action: p4r.TableAction,
        table: str,
        actions: dict[int, ActionPlan],
        replaced: object = None,
    ) -> IndirectSpec:
        """Parses a TableAction of an indirect table.

        Args:
            actions: the table's actions, for a one-shot's group_action (members.py).
            replaced: the entry's present target, if an entry is modified.

        Raises:
            P4RtError: the message is invalid, or the profile has no such member or group.
        """
        kind = action.WhichOneof("type")
        if kind == "action_profile_member_id":
            self._check_not_mixed(one_shot=False)
            if action.action_profile_member_id not in self.members:
                raise not_found(f"{self._what} has no member {action.action_profile_member_id}")
            return MemberSpec(action.action_profile_member_id)
        if not self.plan.with_selector or kind == "action":
            raise invalid(f"{table} has an action profile: its entries cannot have an '{kind}'")
        if kind == "action_profile_group_id":
            self._check_not_mixed(one_shot=False)
            if action.action_profile_group_id not in self.groups:
                raise not_found(f"{self._what} has no group {action.action_profile_group_id}")
            return GroupSpec(action.action_profile_group_id)
        self._check_not_mixed(one_shot=True)
        action_set = action.action_profile_action_set
        message, group_action = read_group_action(action_set, table), None
        if message is not None:
            group_action = parse_action(message, actions, table, ActionUse.GROUP)
        target = self._parse_one_shot(action_set, group_action)
        self._check_size(target.size - (replaced.size if isinstance(replaced, OneShotSpec) else 0))
        return target

    def _check_not_mixed(self, *, one_shot: bool) -> None:
        """Rejects a one-shot beside members or groups, and members and groups beside a one-shot."""
        if self.one_shots if not one_shot else (self.members or self.groups):
            raise invalid(f"{self._what}: one-shot programming cannot be mixed with members and groups")

    def _parse_one_shot(
        self, message: p4r.ActionProfileActionSet, group_action: ActionSpec | None
    ) -> OneShotSpec:
        for what, value, values in (
            (
                "action_selection_mode",
                message.action_selection_mode,
                p4r.ActionProfileActionSet.ActionSelectionMode,
            ),
            ("size_semantics", message.size_semantics, p4r.ActionProfileActionSet.SizeSemantics),
        ):
            if value not in values.values():
                raise invalid(f"{self._what}: {what} is {value}; expected one of {', '.join(values.keys())}")
        actions = []
        self._check_copies(len(message.action_profile_actions))  # each has at least one copy
        for item in message.action_profile_actions:
            spec = parse_action(item.action, self.plan.actions, self._what)
            actions.append((spec, self._weighted(item)))
        total = sum(weighted.copies for _, weighted in actions)
        by_members = self.plan.sum_of_members
        if message.size_semantics:
            by_members = message.size_semantics == p4r.ActionProfileActionSet.SUM_OF_MEMBERS
        size = len(actions) if by_members else total
        if self.plan.max_group_size and size > self.plan.max_group_size:
            raise invalid(f"{self._what}: a group of size {size} exceeds {self.plan.max_group_size}")
        self._check_copies(total)
        return OneShotSpec(message, actions, group_action, size)

    def use(self, target: IndirectSpec) -> None:
        """Counts an entry's reference to the target; for a one-shot, makes its group in the core."""
        if isinstance(target, MemberSpec):
            member = self.members[target.member_id]
            member.references += 1
            target.handle = member.handles[0]
        elif isinstance(target, GroupSpec):
            group = self.groups[target.group_id]
            group.references += 1
            target.handle = group.handle
        elif isinstance(target, OneShotSpec):
            self._use_one_shot(target)

    def _use_one_shot(self, target: OneShotSpec) -> None:
        """Makes the member copies and the group of a one-shot in the core.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED; nothing was made.
        """
        self._context.memory.reserve(target.bytes, self._what)
        target.handles, target.handle = [], -1
        try:
            for spec, weighted in target.actions:
                target.handles.append(self._new_copies(spec, weighted.copies))
            at_random = target.mode == p4r.ActionProfileActionSet.RANDOM
            target.handle = self._new_group(at_random=at_random, group_action=target.group_action)
            self._update_core_group(target)
        except (P4RtError, StateError):
            self._delete_one_shot(target)
            raise
        self.one_shots[target.handle] = target
        self._size += target.size

    def _delete_one_shot(self, target: OneShotSpec) -> None:
        if target.handle >= 0:
            self._switch.group_delete(self.plan.index, target.handle)
        for handles in target.handles:
            self._delete_copies(handles)
        self._context.memory.release(target.bytes)

    def release(self, target: IndirectSpec) -> None:
        """Removes an entry's reference to the target; for a one-shot, deletes its group in the core."""
        if isinstance(target, MemberSpec):
            self.members[target.member_id].references -= 1
        elif isinstance(target, GroupSpec):
            self.groups[target.group_id].references -= 1
        elif isinstance(target, OneShotSpec):
            del self.one_shots[target.handle]
            self._size -= target.size
            self._delete_one_shot(target)

    # ---- members ----

    def write_member(self, kind: int, message: p4r.ActionProfileMember, undo: Undo | None) -> None:
        """Applies one update of a member.

        Raises:
            P4RtError: the update is rejected; nothing has changed.
        """
        member_id = message.member_id
        if member_id == 0:
            raise invalid(f"{self._what}: member_id 0 is not allowed")
        member = self.members.get(member_id)
        if kind == INSERT:
            self._check_not_mixed(one_shot=False)
            if member is not None:
                raise P4RtError(Code.ALREADY_EXISTS, f"{self._what} has member {member_id} already")
            action = self._member_action(message)
            if self.plan.size and len(self.members) >= self.plan.size:
                raise P4RtError(Code.RESOURCE_EXHAUSTED, f"{self._what} has {self.plan.size} members already")
            self._add_member(member_id, action)
            if undo is not None:
                undo.append(lambda: self._remove_member(member_id))
            return
        if member is None:
            raise not_found(f"{self._what} has no member {member_id}")
        before = member.action
        if kind == DELETE:
            if member.references or member.group_counts:
                raise P4RtError(Code.FAILED_PRECONDITION, f"{self._what}: member {member_id} is in use")
            self._remove_member(member_id)
            if undo is not None:
                undo.append(lambda: self._add_member(member_id, before))
            return
        self._set_action(member, self._member_action(message))
        if undo is not None:
            # by id: if the batch deletes and inserts the member again, it becomes another object
            undo.append(lambda: self._set_action(self.members[member_id], before))

    def _member_action(self, message: p4r.ActionProfileMember) -> ActionSpec:
        if not message.HasField("action"):
            raise invalid(f"{self._what}: a member needs an action")
        action = parse_action(message.action, self.plan.actions, self._what)
        if self._context.references is not None:
            self._context.references.check(self._references_of(action), self._what)
        return action

    def _references_of(self, action: ActionSpec) -> References:
        """The references of the action's parameters (@refers_to)."""
        references = self._context.references
        return () if references is None else references.plan.of_action(action)

    def _update_references(self, before: References, after: References) -> None:
        """Replaces the references of a member (@refers_to) in the index, as its action changes."""
        if self._context.references is not None:
            # first argument: the entry that refers to others; (): a member, to which no entry refers
            self._context.references.remove((), before)
            self._context.references.add((), after)

    def _add_member(self, member_id: int, action: ActionSpec) -> None:
        refers_to = self._references_of(action)
        size = memory.MEMBER + memory.reference_bytes(refers_to)
        with self._context.memory.reserved(size, self._what):
            self.members[member_id] = StoredMember(action, self._new_copies(action, 1))
        self._update_references((), refers_to)

    def _remove_member(self, member_id: int) -> None:
        member = self.members.pop(member_id)
        self._delete_copies(member.handles)
        refers_to = self._references_of(member.action)
        self._update_references(refers_to, ())
        self._context.memory.release(memory.MEMBER + memory.reference_bytes(refers_to))

    def _set_action(self, member: StoredMember, action: ActionSpec) -> None:
        before, after = self._references_of(member.action), self._references_of(action)
        more_bytes = memory.reference_bytes(after) - memory.reference_bytes(before)
        with self._context.memory.reserved(more_bytes, self._what):
            self._switch.members_modify(self.plan.index, member.handles, action.call)
        self._context.copy_changes += len(member.handles)
        member.action = action
        self._update_references(before, after)

    def _new_copies(self, action: ActionSpec, count: int) -> list[int]:
        """Makes copies of a member with an action in the core; returns their handles. Makes all or none."""
        with self._context.memory.reserved(memory.COPY * count, self._what):
            self._context.copy_changes += count
            return self._switch.members_add(self.plan.index, action.call, count)

    def _delete_copies(self, handles: Sequence[int]) -> None:
        for handle in handles:
            self._switch.member_delete(self.plan.index, handle)
        self._context.copy_changes += len(handles)
        self._context.memory.release(memory.COPY * len(handles))

    def _new_group(self, *, at_random: bool = False, group_action: ActionSpec | None = None) -> int:
        """Makes an empty group in the core; returns its handle.

        Args:
            at_random: the group selects members at random, not by a hash.
            group_action: runs before the selected member's action.
        """
        call = None if group_action is None else group_action.call
        return self._switch.group_add(self.plan.index, drawn=at_random, first=call)

    # ---- groups ----

    def write_group(self, kind: int, message: p4r.ActionProfileGroup, undo: Undo | None) -> None:
        """Applies one update of a group.

        Raises:
            P4RtError: the update is rejected; nothing has changed.
        """
        group_id = message.group_id
        if not self.plan.with_selector:
            raise invalid(f"{self._what} has no selector and no groups")
        if group_id == 0:
            raise invalid(f"{self._what}: group_id 0 is not allowed")
        group = self.groups.get(group_id)
        if kind == INSERT:
            self._check_not_mixed(one_shot=False)
            if group is not None:
                raise P4RtError(Code.ALREADY_EXISTS, f"{self._what} has group {group_id} already")
            self._check_max_size(message.max_size)
            members = self._group_members(message, message.max_size, 0)
            self._add_group(group_id, message.max_size, members)
            if undo is not None:
                undo.append(lambda: self._remove_group(group_id))
            return
        if group is None:
            raise not_found(f"{self._what} has no group {group_id}")
        before, max_size = group.members, group.max_size
        if kind == DELETE:
            if group.references:
                raise P4RtError(Code.FAILED_PRECONDITION, f"{self._what}: group {group_id} is in use")
            self._remove_group(group_id)
            if undo is not None:
                undo.append(lambda: self._add_group(group_id, max_size, before))
            return
        if message.max_size != max_size and (message.max_size or not self._context.settings.bmv2_compat):
            raise invalid(f"{self._what}: max_size of group {group_id} cannot change")
        self._set_members(group, self._group_members(message, max_size, self._size_of(before)))
        if undo is not None:
            undo.append(lambda: self._set_members(self.groups[group_id], before))

    def _check_max_size(self, max_size: int) -> None:
        limit = self.plan.max_group_size
        least = 1 if limit and not self._context.settings.bmv2_compat else 0
        if max_size < least or (limit and max_size > limit):
            raise invalid(f"{self._what}: max_size {max_size} is not in {least}..{limit or ''}")
        if max_size > MAX_GROUP_WEIGHT:
            raise exhausted(f"{self._what}: max_size is {max_size}; the limit is {MAX_GROUP_WEIGHT}")

    def _size_of(self, members: dict[int, WeightedMember]) -> int:
        """The size of a group by P4Info's selector_size_semantics: sum of weights, or number of members."""
        if self.plan.sum_of_members:
            return len(members)
        return sum(member.copies for member in members.values())

    def _check_size(self, more: int) -> None:
        """Checks that the sizes of groups and one-shots, plus `more`, are within P4Info's selector size."""
        size = self._size + more
        if not self._context.settings.bmv2_compat and 0 < self.plan.size < size and more > 0:
            raise exhausted(
                f"{self._what}: all groups together have size {size}; P4Info's limit is {self.plan.size}"
            )

    def _group_members(
        self, message: p4r.ActionProfileGroup, max_size: int, size_before: int
    ) -> dict[int, WeightedMember]:
        members: dict[int, WeightedMember] = {}
        self._check_copies(len(message.members))
        for item in sorted(message.members, key=lambda m: m.member_id):
            if item.member_id not in self.members:
                raise not_found(f"{self._what} has no member {item.member_id}")
            if item.member_id in members:
                raise invalid(f"{self._what}: member {item.member_id} is in the group twice; use weights")
            members[item.member_id] = self._weighted(item)
        total = sum(member.copies for member in members.values())
        size = self._size_of(members)
        most = max_size or self.plan.max_group_size
        if most and size > most:
            raise P4RtError(Code.RESOURCE_EXHAUSTED, f"{self._what}: size {size} of the group exceeds {most}")
        self._check_copies(total)
        self._check_size(size - size_before)
        return members

    def _check_copies(self, total: int) -> None:
        if total > MAX_GROUP_WEIGHT:
            raise exhausted(f"{self._what}: the sum of weights is {total}; the limit is {MAX_GROUP_WEIGHT}")

    def _weighted(self, item: p4r.ActionProfileGroup.Member | p4r.ActionProfileAction) -> WeightedMember:
        if self.plan.weights_allowed:
            if item.weight <= 0:
                raise invalid(f"{self._what}: weight {item.weight} is not positive")
        elif item.weight:
            raise invalid(f"{self._what}: weights are not allowed")
        limit = self.plan.max_member_weight
        if limit and item.weight > limit:
            raise invalid(f"{self._what}: weight {item.weight} exceeds {limit}")
        return WeightedMember(item.weight, self._watch(item))

    def _watch(self, item: p4r.ActionProfileGroup.Member | p4r.ActionProfileAction) -> WatchPort:
        kind = item.WhichOneof("watch_kind")
        if kind is None or (kind == "watch_port" and not item.watch_port):
            return WatchPort()
        if kind == "watch":
            # the SDN port 0 means "unknown": no port is watched
            watch = WatchPort(item.watch or None, item.watch)
        else:
            watch = WatchPort(*self._context.port(item.watch_port, "watch_port"))
        if watch.port is not None and not self._context.ports.exists(watch.port):
            raise invalid(f"{self._what}: watch port {watch.port} does not exist")
        return watch

    def _add_group(self, group_id: int, max_size: int, members: dict[int, WeightedMember]) -> None:
        with self._context.memory.reserved(memory.GROUP, self._what):
            group = StoredGroup(self._new_group(), max_size)
            try:
                self._set_members(group, members)
            except (P4RtError, StateError):
                self._switch.group_delete(self.plan.index, group.handle)
                raise
        self.groups[group_id] = group
        self.groups_and_members += 1

    def _remove_group(self, group_id: int) -> None:
        group = self.groups.pop(group_id)
        self._switch.group_delete(self.plan.index, group.handle)
        self._remove_uses(group.members)
        self._delete_unused_copies(group.members)
        self._size -= self._size_of(group.members)
        self._context.memory.release(memory.GROUP + memory.GROUP_MEMBER * len(group.members))
        self.groups_and_members -= 1 + len(group.members)

    def _set_members(self, group: StoredGroup, members: dict[int, WeightedMember]) -> None:
        """Replaces the members of a group.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED; nothing has changed.
        """
        before, more_members = group.members, len(members) - len(group.members)
        used: dict[int, WeightedMember] = {}
        self._context.memory.reserve(memory.GROUP_MEMBER * more_members, self._what)
        try:
            for member_id, weighted in members.items():
                member = self.members[member_id]
                missing = weighted.copies - len(member.handles)
                if missing > 0:
                    member.handles += self._new_copies(member.action, missing)
                member.group_counts[weighted.copies] += 1  # groups by number of the member's copies
                used[member_id] = weighted
            group.members = members
            self._update_core_group(group)
        except (P4RtError, StateError):
            group.members = before
            self._remove_uses(used)
            self._delete_unused_copies(members)
            self._context.memory.release(memory.GROUP_MEMBER * more_members)
            raise
        self.groups_and_members += more_members
        self._size += self._size_of(members) - self._size_of(before)
        self._remove_uses(before)
        self._delete_unused_copies(sorted({*before, *members}))

    def _remove_uses(self, members: dict[int, WeightedMember]) -> None:
        """Subtracts a group that contained these members from the members' `group_counts`."""
        self._context.copy_changes += len(members)  # this loop, too, may delay packets
        for member_id, weighted in members.items():
            counts = self.members[member_id].group_counts
            counts[weighted.copies] -= 1
            if not counts[weighted.copies]:
                del counts[weighted.copies]

    def _delete_unused_copies(self, member_ids: Iterable[int]) -> None:
        """Deletes those copies of the members that no group needs, except each member's first copy."""
        for member_id in member_ids:
            member = self.members[member_id]
            needed = max(member.group_counts, default=1)  # the largest number of copies in a group
            self._delete_copies(member.handles[: needed - 1 : -1])  # the last copy first
            del member.handles[needed:]

    # ---- watch ports ----

    def _live_copies(self, group: StoredGroup | OneShotSpec) -> Iterator[int]:
        """Handles of the copies of members that watch no port or a port that is up."""
        members: Iterable[tuple[WeightedMember, list[int]]]
        if isinstance(group, StoredGroup):
            members = ((each, self.members[member_id].handles) for member_id, each in group.members.items())
        else:
            members = zip((each for _, each in group.actions), group.handles, strict=True)
        for each, handles in members:
            if each.watch.port is None or self._context.ports.is_up(each.watch.port):
                yield from handles[: each.copies]

    def _update_core_group(self, group: StoredGroup | OneShotSpec) -> None:
        """Sets the members of a group, or of a one-shot's group, in the core."""
        order = sorted(self._live_copies(group))
        self._context.copy_changes += len(order)
        self._switch.group_set(self.plan.index, group.handle, order)

    def port_changed(self, port: int) -> None:
        """Adds the members that watch a port to their groups, or removes them."""
        for group in self.groups.values():
            if any(weighted.watch.port == port for weighted in group.members.values()):
                self._update_core_group(group)
        for target in self.one_shots.values():
            if any(weighted.watch.port == port for _, weighted in target.actions):
                self._update_core_group(target)

    # ---- reads ----

    def member_id(self, handle: int) -> int | None:
        """The id of the member of which the core has a copy with this handle; None: there is none."""
        return next((key for key, member in self.members.items() if handle in member.handles), None)

    def group_id(self, handle: int) -> int | None:
        """The id of the group with this handle in the core; None: there is none."""
        return next((key for key, group in self.groups.items() if group.handle == handle), None)

    def fill_member(self, member_id: int, out: p4r.ActionProfileMember) -> None:
        """Writes a member into an empty message."""
        out.action_profile_id = self.plan.id
        out.member_id = member_id
        self.members[member_id].action.fill_action(out.action)

    def fill_group(self, group_id: int, out: p4r.ActionProfileGroup) -> None:
        """Writes a group into an empty message."""
        group = self.groups[group_id]
        out.action_profile_id = self.plan.id
        out.group_id = group_id
        out.max_size = group.max_size
        for member_id, weighted in group.members.items():
            item = out.members.add()
            item.member_id = member_id
            item.weight = weighted.weight
            weighted.watch.fill(item)
