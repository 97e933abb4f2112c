# SPDX-License-Identifier: Apache-2.0
"""The tables and action profiles that commands write. Each public method carries out a command with its
arguments, and raises SpecError if simple_switch_CLI or the program does not allow it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tailrace.p4rt.by_name import parse
from tailrace.p4rt.by_name.program import ProgramNames, TableNames
from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.switch_cli.handles import Commands, HandleEntry, Handles, number
from tailrace.spec import SpecError

_HIGHEST_PRIORITY = (1 << 31) - 1
"""BMv2's P4Runtime server subtracts priorities from this number (targets/bmv2/pi_tables_imp.cpp of
p4lang/PI): with Thrift the smallest priority wins, with P4Runtime the largest."""
PROFILE_DEFAULT = "P4Runtime cannot set the default entry of such a table"
_NS_PER_MS = 1_000_000
_SEPARATORS = {
    p4i.MatchField.LPM: "/",
    p4i.MatchField.TERNARY: "&&&",
    p4i.MatchField.OPTIONAL: "&&&",
    p4i.MatchField.RANGE: "->",
}


def _values(arguments: Sequence[str]) -> Sequence[str]:
    """The arguments of an action, without a leading arrow."""
    return arguments[1:] if arguments and arguments[0] == "=>" else arguments


@dataclass(slots=True)
class _ProfileGroup(HandleEntry):
    """A group of an action profile without its members; `members`: their ids."""

    members: dict[int, None] = field(default_factory=dict)

    def update(self, kind: p4r.Update.Type.ValueType) -> tuple[int, p4r.Update]:
        """As that of HandleEntry, with the members."""
        for member in self.members:
            self.entity.action_profile_group.members.add(member_id=member, weight=1)
        return HandleEntry.update(self, kind)


class TableCommands(Commands):
    """Entries and default entries of tables; members and groups of action profiles, with ids from 1 on."""

    def __init__(self, program: ProgramNames) -> None:
        self._program = program
        self._tables: dict[int, Handles[HandleEntry]] = {}
        self._defaults: dict[int, HandleEntry] = {}
        self._members: dict[int, Handles[HandleEntry]] = {}
        self._groups: dict[int, Handles[_ProfileGroup]] = {}

    def updates(self) -> Iterator[tuple[int, p4r.Update]]:
        """The updates that make the entities, each with its line: members before groups before entries."""
        kinds: list[Handles[Any]] = [*self._members.values(), *self._groups.values(), *self._tables.values()]
        for handles in kinds:
            for entry in handles.by_handle.values():
                yield entry.update(p4r.Update.INSERT)
        for default in self._defaults.values():
            yield default.update(p4r.Update.MODIFY)

    # ---- tables ----

    def entry_of(self, table: TableNames, handle: str) -> HandleEntry:
        """The entry of a table with a handle."""
        if table.info.is_const_table or table.info.has_initial_entries:
            raise SpecError(
                f"table {table.full_name} has entries of the program, so handles are not known here"
            )
        return self._handles(table).get(handle)

    def entries_of(self, table: int) -> Iterator[p4r.TableEntry]:
        """The entries of the table with this id."""
        if table in self._tables:
            yield from (entry.entity.table_entry for entry in self._tables[table].by_handle.values())

    def _handles(self, table: TableNames) -> Handles[HandleEntry]:
        # As in BMv2, a handle of an entry has a version, which changes when the handle's slot is used again;
        # handles of members and groups have none.
        return self._tables.setdefault(
            table.info.preamble.id, Handles(f"entry of table {table.full_name}", versioned=True)
        )

    def add(self, table: str, action: str, *key: str) -> None:
        names = self._program.table(table)
        if names.info.implementation_id:
            raise SpecError(f"table {names.full_name} has an action profile: use table_indirect_add")
        entry, values = self._keyed(names, key)
        entry.action.action.CopyFrom(names.action(action).encode(values))
        self._handles(names).add(HandleEntry(self.line, p4r.Entity(table_entry=entry)))

    def _keyed(self, table: TableNames, arguments: Sequence[str]) -> tuple[p4r.TableEntry, list[str]]:
        """An entry without its action, from `KEY => REST [PRIORITY]`, and the rest."""
        if "=>" not in arguments:
            raise SpecError("expected => after the key")
        arrow = arguments.index("=>")
        keys, rest = arguments[:arrow], list(arguments[arrow + 1 :])
        entry = p4r.TableEntry(table_id=table.info.preamble.id)
        if table.with_priority:
            if not rest:
                raise SpecError(f"table {table.full_name} needs a priority at the end of the line")
            entry.priority = _HIGHEST_PRIORITY - number(rest.pop(), "priority", _HIGHEST_PRIORITY - 1)
        if len(keys) != len(table.fields):
            known = " ".join(item.name for item in table.fields.values())
            raise SpecError(
                f"table {table.full_name} has {len(table.fields)} key fields ({known}), found {len(keys)}"
            )
        for info, text in zip(table.info.match_fields, keys, strict=True):
            match = _match(table, info, text)
            if match is not None:
                entry.match.append(match)
        return entry, rest

    def set_default(self, table: str, action: str, *values: str) -> None:
        names = self._program.table(table)
        if names.info.implementation_id:
            raise SpecError(f"table {names.full_name} has an action profile: {PROFILE_DEFAULT}")
        entry = p4r.TableEntry(table_id=names.info.preamble.id, is_default_action=True)
        entry.action.action.CopyFrom(names.action(action).encode(_values(values)))
        self._defaults[entry.table_id] = HandleEntry(self.line, p4r.Entity(table_entry=entry))

    def reset_default(self, table: str) -> None:
        self._defaults.pop(self._program.table(table).info.preamble.id, None)

    def modify(self, table: str, action: str, handle: str, *values: str) -> None:
        names = self._program.table(table)
        entry = self.entry_of(names, handle)
        call = names.action(action).encode(_values(values))
        entry.entity.table_entry.action.action.CopyFrom(call)
        entry.line = self.line

    def delete(self, table: str, handle: str) -> None:
        names = self._program.table(table)
        self.entry_of(names, handle)
        self._handles(names).take(self._handles(names).parse(handle))

    def clear(self, table: str) -> None:
        handles = self._handles(self._program.table(table))
        for handle in list(handles.by_handle):
            handles.take(handle)

    def set_timeout(self, table: str, handle: str, milliseconds: str) -> None:
        entry = self.entry_of(self._program.table(table), handle).entity.table_entry
        entry.idle_timeout_ns = number(milliseconds, "timeout") * _NS_PER_MS

    # ---- action profiles ----

    def _profile(self, name: str) -> p4i.ActionProfile:
        """An action profile, by its name or by the name of a table that uses it."""
        profiles = self._program.profiles
        try:
            return profiles.named(name)
        except SpecError as error:
            try:
                profile_id = self._program.table(name).info.implementation_id
            except SpecError:
                raise error from None
            if profile_id not in profiles.by_id:
                raise
            return profiles.by_id[profile_id]

    def _members_of(self, profile: p4i.ActionProfile) -> Handles[HandleEntry]:
        return self._members.setdefault(profile.preamble.id, Handles(f"member of {profile.preamble.name}"))

    def _groups_of(self, profile: p4i.ActionProfile) -> Handles[_ProfileGroup]:
        return self._groups.setdefault(profile.preamble.id, Handles(f"group of {profile.preamble.name}"))

    def _call(self, profile: p4i.ActionProfile, action: str, values: Sequence[str]) -> p4r.Action:
        if not profile.table_ids or profile.table_ids[0] not in self._program.tables:
            raise SpecError(f"action profile {profile.preamble.name} belongs to no table")
        table = self._program.tables[profile.table_ids[0]]
        return table.action(action).encode(_values(values))

    def create_member(self, profile: str, action: str, *values: str) -> None:
        info = self._profile(profile)
        member = p4r.ActionProfileMember(
            action_profile_id=info.preamble.id, action=self._call(info, action, values)
        )
        new_member = HandleEntry(self.line, p4r.Entity(action_profile_member=member))
        new_member.entity.action_profile_member.member_id = self._members_of(info).add(new_member) + 1

    def modify_member(self, profile: str, action: str, member: str, *values: str) -> None:
        info = self._profile(profile)
        modified = self._members_of(info).get(member)
        modified.entity.action_profile_member.action.CopyFrom(self._call(info, action, values))
        modified.line = self.line

    def delete_member(self, profile: str, member: str) -> None:
        members = self._members_of(self._profile(profile))
        members.take(members.parse(member))

    def create_group(self, profile: str) -> None:
        info = self._profile(profile)
        if not info.with_selector:
            raise SpecError(f"action profile {info.preamble.name} has no selector, so no groups")
        group = p4r.ActionProfileGroup(action_profile_id=info.preamble.id)
        new_group = _ProfileGroup(self.line, p4r.Entity(action_profile_group=group))
        new_group.entity.action_profile_group.group_id = self._groups_of(info).add(new_group) + 1

    def delete_group(self, profile: str, group: str) -> None:
        groups = self._groups_of(self._profile(profile))
        groups.take(groups.parse(group))

    def add_to_group(self, profile: str, member: str, group: str) -> None:
        changed, member_id = self._in_group(profile, member, group)
        if member_id in changed.members:
            raise SpecError(f"member {member} is in group {group} already")
        changed.members[member_id] = None

    def remove_from_group(self, profile: str, member: str, group: str) -> None:
        changed, member_id = self._in_group(profile, member, group)
        if member_id not in changed.members:
            raise SpecError(f"member {member} is not in group {group}")
        del changed.members[member_id]

    def _in_group(self, profile: str, member: str, group: str) -> tuple[_ProfileGroup, int]:
        """The group that the command changes, and the id of a member of its profile."""
        info = self._profile(profile)
        changed = self._groups_of(info).get(group)
        changed.line = self.line
        return changed, self._members_of(info).parse(member) + 1

    def add_indirect(self, table: str, *key: str) -> None:
        self._add_indirect(table, key, group=False)

    def add_with_group(self, table: str, *key: str) -> None:
        self._add_indirect(table, key, group=True)

    def _add_indirect(self, table: str, key: Sequence[str], *, group: bool) -> None:
        names = self._program.table(table)
        entry, rest = self._keyed(names, key)
        if len(rest) != 1:
            raise SpecError(f"expected one handle after =>, found {len(rest)} arguments")
        profile = self._program.profiles.by_id.get(names.info.implementation_id)
        if profile is None:
            raise SpecError(f"table {names.full_name} has no action profile")
        if group:
            entry.action.action_profile_group_id = self._groups_of(profile).parse(rest[0]) + 1
        else:
            entry.action.action_profile_member_id = self._members_of(profile).parse(rest[0]) + 1
        self._handles(names).add(HandleEntry(self.line, p4r.Entity(table_entry=entry)))


def _match(table: TableNames, info: p4i.MatchField, text: str) -> p4r.FieldMatch | None:
    separator = _SEPARATORS.get(info.match_type, "")
    if separator not in text:
        raise SpecError(f"{info.name}: expected VALUE{separator}..., found {text[:40]!r}")
    kind = table.fields[info.id]
    if info.match_type != p4i.MatchField.OPTIONAL:
        return parse.match(kind, info, text)
    value, _, mask = text.partition(separator)
    bits = parse.number(kind, mask)
    if bits not in (0, (1 << kind.width) - 1):
        raise SpecError(
            f"{info.name}: an optional field has a mask of all ones, or of zeros, not {mask[:40]}"
        )
    return parse.match(kind, info, value) if bits else None
