# SPDX-License-Identifier: Apache-2.0
"""@refers_to and @referenced_by: referential integrity between entries.

P4Runtime's specification does not have these annotations; the rules are those of sonic-pins
(p4_pdpi/references.cc). All values of an entry's key and of one action that refer to the same table must be
in one entry of that table, the target. A second value for the same field starts another reference. Omitted
optional fields refer to nothing. The program's initial entries can be targets, and refer to nothing.

An index counts, for each tuple of values, the entries that contain it and the entries that refer to it. So
neither inserts nor deletions scan a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.status import P4RtError, invalid
from tailrace.switch.p4runtime.entities.bytestring import encode, shortest
from tailrace.switch.p4runtime.entities.match import MatchField, MatchKind, NamedField, PackedKey
from tailrace.switch.p4runtime.pins.annotations import Annotated, names

if TYPE_CHECKING:
    from tailrace.switch.p4runtime.entities.actions import ActionSpec
    from tailrace.switch.p4runtime.entities.schema import ParamPlan, Schema, TablePlan

MULTICAST = 0
"""Id that stands for the table of multicast groups, which P4Info does not have."""
MULTICAST_TABLE = "builtin::multicast_group_table"
MAX_REFERENCES = 16
"""Most @refers_to annotations of one key, or of one action."""
MAX_OPTIONAL = 4
"""Most @refers_to annotations of the optional fields of one key."""
MAX_SHAPES = 16
"""Most sets of fields of a table that are referred to together (shapes). An entry counts once per shape."""

_REPLICA = ("replica.port", "replica.instance")


class Reference(NamedTuple):
    """Values that an entry of table `target` must have in the fields at the positions `fields`."""

    target: int
    fields: tuple[int, ...]
    values: tuple[bytes, ...]


References = tuple[Reference, ...]


class _ReferencePart(NamedTuple):
    """A key's field, or an action's parameter, at `position`: refers to field `field` of table `target`."""

    position: int
    target: int
    field: int


@dataclass(slots=True)
class _Target:
    """A table that is referred to; `strings`: positions of its string fields; `shapes`: see MAX_SHAPES."""

    name: str
    fields: Sequence[str]
    strings: frozenset[int]
    shapes: set[tuple[int, ...]] = field(default_factory=set)


def _grouped(parts: Iterable[tuple[_ReferencePart, bytes]]) -> References:
    """The references made of these parts: one per target table, or more if a field is referred to twice."""
    groups: dict[int, list[dict[int, bytes]]] = {}
    for part, value in parts:
        target_groups = groups.setdefault(part.target, [])
        group = next((group for group in target_groups if part.field not in group), None)
        if group is None:
            target_groups.append({part.field: value})
        else:
            group[part.field] = value
    return tuple(
        Reference(target, *(tuple(each) for each in zip(*sorted(group.items()), strict=True)))
        for target, target_groups in groups.items()
        for group in target_groups
    )


@dataclass(slots=True)
class ReferencePlan:
    """The annotations of one pipeline, by P4Info id of table and action.

    `keys`, `actions`, `replicas`: what keys, actions and multicast replicas refer to. `targets`: the tables
    that are referred to. `fields`: the key fields of all tables.
    """

    keys: dict[int, tuple[_ReferencePart, ...]] = field(default_factory=dict)
    actions: dict[int, tuple[_ReferencePart, ...]] = field(default_factory=dict)
    replicas: tuple[_ReferencePart, ...] = ()
    targets: dict[int, _Target] = field(default_factory=dict)
    fields: dict[int, tuple[MatchField, ...]] = field(default_factory=dict)

    def index(self) -> ReferenceIndex:
        """An index for one forwarding state."""
        return ReferenceIndex(self)

    def involves(self, table: TablePlan) -> bool:
        """Whether entries of a table have references or are targets."""
        ids = (
            table.id in self.keys,
            table.id in self.targets,
            *(action_id in self.actions for action_id in table.actions),
        )
        return any(ids)

    def of_entry(self, table_id: int, packed: PackedKey, actions: Sequence[ActionSpec]) -> References:
        """The references of an entry with one action, none, or a set of actions."""
        fields = self.fields.get(table_id, ())
        key = [
            (part, _value(fields[part.position], packed))
            for part in self.keys.get(table_id, ())
            if _is_given(fields[part.position], packed)
        ]
        if not actions:
            return _grouped(key)
        references = (reference for spec in actions for reference in _grouped([*key, *self._of_action(spec)]))
        return tuple(dict.fromkeys(references))

    def of_action(self, spec: ActionSpec) -> References:
        """The references of an action that has no key: of a member's, or of a default entry's."""
        return _grouped(self._of_action(spec))

    def _of_action(self, spec: ActionSpec) -> Iterator[tuple[_ReferencePart, bytes]]:
        for part in self.actions.get(spec.plan.id, ()):
            number, names_ = spec.call.data[part.position], spec.plan.ordered[part.position].names
            yield part, encode(number) if names_ is None else names_.to_sdn(number)

    def of_group(self, group: p4r.MulticastGroupEntry) -> References:
        """The references of a multicast group with its replicas, backups included."""
        if not self.replicas:
            return ()
        pairs = []
        for replica in group.replicas:
            is_bytestring = replica.WhichOneof("port_kind") == "port"
            port = shortest(replica.port) if is_bytestring else encode(replica.egress_port)
            pairs.append((port, encode(replica.instance)))
            pairs += [(shortest(backup.port), encode(backup.instance)) for backup in replica.backup_replicas]
        references = (
            reference
            for pair in pairs
            for reference in _grouped((part, pair[part.position]) for part in self.replicas)
        )
        return tuple(dict.fromkeys(references))

    def keys_of(self, table_id: int, packed: PackedKey) -> References:
        """The tuples by which an entry is referred to."""
        target = self.targets.get(table_id)
        if target is None:
            return ()
        fields = self.fields[table_id]
        return tuple(
            Reference(table_id, shape, tuple(_value(fields[position], packed) for position in shape))
            for shape in sorted(target.shapes)
        )

    def keys_of_group(self, group_id: int) -> References:
        """The tuples by which a multicast group is referred to."""
        return (Reference(MULTICAST, (0,), (encode(group_id),)),) if MULTICAST in self.targets else ()

    def shown(self, reference: Reference) -> str:
        """A reference as text, for errors."""
        target = self.targets[reference.target]
        parts = (
            f"{target.fields[position]} {_shown(value, string=position in target.strings)}"
            for position, value in zip(reference.fields, reference.values, strict=True)
        )
        return f"'{target.name}' with {', '.join(parts)}"


class ReferenceIndex:
    """The targets and references of one forwarding state.

    While `deferred` is set, `check` rejects nothing, so entries may be added in any order; afterwards `unmet`
    yields the errors.
    """

    def __init__(self, plan: ReferencePlan) -> None:
        self.plan = plan
        self.deferred = False
        self._counts: dict[Reference, list[int]] = {}  # numbers of entries with the values, and of references

    def check(self, needs: References, what: str) -> None:
        """Rejects references without a target.

        Raises:
            P4RtError: INVALID_ARGUMENT, naming table, fields and values.
        """
        for reference in needs if not self.deferred else ():
            if reference not in self._counts or not self._counts[reference][0]:
                raise invalid(f"{what}: @refers_to: there is no entry in {self.plan.shown(reference)}")

    def check_deletion(self, keys: References, needs: References, what: str) -> None:
        """Rejects the deletion of an entry that other entries refer to.

        Raises:
            P4RtError: INVALID_ARGUMENT.
        """
        for reference in keys:
            targets, referring = self._counts[reference]
            referring -= needs.count(reference)  # the entry's references to itself
            if targets == 1 and referring > 0:
                shown = self.plan.shown(reference)
                raise invalid(f"{what}: {referring} entries refer (@refers_to) to the entry in {shown}")

    def add(self, keys: References, needs: References) -> None:
        """Counts an entry that was added: the tuples it contains (`keys`), and its references (`needs`)."""
        self._count(keys, 0, 1)
        self._count(needs, 1, 1)

    def remove(self, keys: References, needs: References) -> None:
        """Subtracts a removed entry from the counts."""
        self._count(keys, 0, -1)
        self._count(needs, 1, -1)

    def _count(self, references: References, column: int, change: int) -> None:
        """Adds `change` to the numbers of entries with the values (column 0) or of references (1)."""
        for reference in references:
            counts = self._counts.setdefault(reference, [0, 0])
            counts[column] += change
            if counts == [0, 0]:
                del self._counts[reference]

    def unmet(self) -> Iterator[P4RtError | None]:
        """For each reference the error that it has no target, or None if it has one."""
        for reference, (targets, referring) in self._counts.items():
            missing = referring and not targets
            shown = self.plan.shown
            yield invalid(f"@refers_to: there is no entry in {shown(reference)}") if missing else None


def _is_given(key: MatchField, packed: PackedKey) -> bool:
    return key.kind is MatchKind.EXACT or any(packed.mask[key.offset : key.offset + key.nbytes])


def _value(key: MatchField, packed: PackedKey) -> bytes:
    """A value as in messages: canonical, so that fields of different widths can be compared."""
    return key.sdn(packed.key[key.offset : key.offset + key.nbytes])


def _shown(value: bytes, *, string: bool) -> str:
    return f"'{value.decode(errors='replace')}'" if string else f"0x{value.hex()}"


# ---- P4Info ----


class AnnotationReader:
    """Reads the reference annotations of a pipeline, whose schema must have its tables."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._plan = ReferencePlan()
        self._tables = {
            name: table
            for table in schema.info.tables
            for name in (table.preamble.name, table.preamble.alias)
        }

    def read(self) -> ReferencePlan | None:
        """The annotations; None: there are none.

        Raises:
            P4RtError: INVALID_ARGUMENT: an annotation names an object that is unknown or cannot be a target.
        """
        plan, schema = self._plan, self._schema
        params: dict[int, tuple[ParamPlan, ...]] = {
            action.id: action.ordered for table in schema.tables.values() for action in table.actions.values()
        }
        for table in schema.info.tables:
            table_plan = schema.tables.get(table.preamble.id)
            if table_plan is not None:
                plan.fields[table_plan.id] = table_plan.key.fields
                self._read_key(table, table_plan)
        for action in schema.info.actions:
            # empty if no table of the program has the action
            given = zip(action.params, params.get(action.preamble.id, ()), strict=False)
            what = f"action '{action.preamble.name}'"
            parts = [
                part
                for position, (param, plan_) in enumerate(given)
                for part in self._parts(
                    param, position, f"{what}, parameter '{param.name}'", plan_.names is not None
                )
            ]
            if parts:
                plan.actions[action.preamble.id] = self._bounded(parts, what)
        plan.replicas = self._bounded(sorted(plan.replicas), MULTICAST_TABLE)
        if not plan.targets:
            return None
        self._find_shapes()
        return plan

    def _read_key(self, table: p4i.Table, plan: TablePlan) -> None:
        what = f"table '{table.preamble.name}'"
        parts: list[_ReferencePart] = []
        for position, (match, field_) in enumerate(zip(table.match_fields, plan.key.fields, strict=True)):
            of_field = f"{what}, field '{match.name}'"
            string = isinstance(field_, NamedField)
            refers = list(self._parts(match, position, of_field, string))
            if refers and field_.kind not in (MatchKind.EXACT, MatchKind.OPTIONAL):
                raise invalid(f"P4Info: {of_field}: @refers_to is for exact and optional fields")
            parts += refers
            for target, name in self._arguments(match, "referenced_by", of_field):
                if target != MULTICAST_TABLE or name not in _REPLICA:
                    raise invalid(
                        f"P4Info: {of_field}: @referenced_by takes {MULTICAST_TABLE} "
                        f"and one of {', '.join(_REPLICA)}, "
                        f"not {target} and {name}"
                    )
                if name == "replica.instance" and string:
                    raise invalid(f"P4Info: {of_field}: an instance is a number, but the field is a string")
                self._check_target(plan, position, of_field)
                replica = _ReferencePart(_REPLICA.index(name), plan.id, position)
                self._plan.replicas += (replica,)
        optional = sum(plan.key.fields[part.position].kind is MatchKind.OPTIONAL for part in parts)
        if optional > MAX_OPTIONAL:
            raise invalid(
                f"P4Info: {what} has @refers_to on {optional} optional fields; the limit is {MAX_OPTIONAL}"
            )
        if parts:
            self._plan.keys[plan.id] = self._bounded(parts, what)

    @staticmethod
    def _bounded(parts: Sequence[_ReferencePart], what: str) -> tuple[_ReferencePart, ...]:
        if len(parts) > MAX_REFERENCES:
            raise invalid(f"P4Info: {what} has {len(parts)} references; the limit is {MAX_REFERENCES}")
        return tuple(parts)

    @staticmethod
    def _arguments(entity: Annotated, annotation: str, what: str) -> Iterator[tuple[str, str]]:
        for given in names(entity, annotation, ("table", "field")):
            if len(given) != 2:
                raise invalid(
                    f"P4Info: {what}: @{annotation} takes a table and a field, not '{', '.join(given)}'"
                )
            yield given[0], given[1]

    def _parts(self, entity: Annotated, place: int, what: str, string: bool) -> Iterator[_ReferencePart]:
        """The parts made by @refers_to of the field or parameter at position `place`."""
        for name, field_name in self._arguments(entity, "refers_to", what):
            if name == MULTICAST_TABLE:
                if field_name != "multicast_group_id" or string:
                    raise invalid(
                        f"P4Info: {what}: @refers_to {name} takes the field multicast_group_id, a number"
                    )
                self._plan.targets.setdefault(
                    MULTICAST, _Target(MULTICAST_TABLE, ("multicast_group_id",), frozenset())
                )
                yield _ReferencePart(place, MULTICAST, 0)
                continue
            table = self._tables.get(name)
            if table is None:
                raise invalid(f"P4Info: {what}: @refers_to: there is no table '{name}'")
            if table.preamble.id in self._schema.absent:
                continue  # the program does not have the table, so it has no entries
            target = self._schema.tables[table.preamble.id]
            position = next(
                (n for n, match in enumerate(table.match_fields) if match.name == field_name), None
            )
            if position is None:
                raise invalid(f"P4Info: {what}: @refers_to: table '{name}' has no field '{field_name}'")
            self._check_target(target, position, what)
            if isinstance(target.key.fields[position], NamedField) is not string:
                raise invalid(
                    f"P4Info: {what}: @refers_to mixes a string and a number ('{name}.{field_name}')"
                )
            yield _ReferencePart(place, target.id, position)

    def _check_target(self, table: TablePlan, position: int, what: str) -> None:
        fields = table.key.fields
        if fields[position].kind is not MatchKind.EXACT:
            raise invalid(f"P4Info: {what}: @refers_to can only name exact fields")
        if table.id not in self._plan.targets:
            strings = frozenset(n for n, key in enumerate(fields) if isinstance(key, NamedField))
            self._plan.targets[table.id] = _Target(
                table.name, [match.name for match in self._tables[table.name].match_fields], strings
            )

    def _find_shapes(self) -> None:
        """Collects the sets of fields that are referred to together, over all pairs of key and action."""
        plan = self._plan
        for table in self._schema.tables.values():
            actions = {plan.actions.get(action_id, ()) for action_id in table.actions} | {()}
            for key in self._keys_of(table):
                for action in actions:
                    self._add_shapes((*key, *action))
        for action in plan.actions.values():
            self._add_shapes(action)
        self._add_shapes(plan.replicas)

    def _keys_of(self, table: TablePlan) -> Iterator[tuple[_ReferencePart, ...]]:
        """The parts of a table's key, for each set of optional fields that an entry may omit."""
        parts, fields = self._plan.keys.get(table.id, ()), table.key.fields
        optional = sorted({p.position for p in parts if fields[p.position].kind is MatchKind.OPTIONAL})
        for count in range(len(optional) + 1):
            for omitted in combinations(optional, count):
                yield tuple(part for part in parts if part.position not in omitted)

    def _add_shapes(self, parts: Iterable[_ReferencePart]) -> None:
        for reference in _grouped((part, b"") for part in parts):
            target = self._plan.targets[reference.target]
            target.shapes.add(reference.fields)
            if len(target.shapes) > MAX_SHAPES:
                raise invalid(
                    f"P4Info: @refers_to: more than {MAX_SHAPES} sets of fields refer to '{target.name}'"
                )
