# SPDX-License-Identifier: Apache-2.0
"""P4Info joined with the compiled program by name: the objects that messages refer to, by P4Info id.

A `...Plan` describes one object: `id` and `name` are those in P4Info, and `index` is its position among the
objects of its kind in the program. A difference in a width, a size or a match kind makes the configuration
invalid. P4Info may have objects that the program lacks, since p4c's midend removes unreachable tables,
actions and externs from the program only. Requests that refer to such an object are rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from tailrace.p4rt.messages import p4i
from tailrace.p4rt.status import Code, P4RtError, invalid, not_found
from tailrace.switch.compiler import model
from tailrace.switch.compiler.model import Model
from tailrace.switch.p4runtime.context import preambles_of
from tailrace.switch.p4runtime.entities.match import KeyPlan, MatchField, MatchKind, NamedField, key_plan
from tailrace.switch.p4runtime.entities.p4types import TypePlan, TypePlanner
from tailrace.switch.p4runtime.entities.translation import Sdn, Translations

if TYPE_CHECKING:
    from tailrace.switch.p4runtime.entities.entry import Interned
    from tailrace.switch.p4runtime.pins.references import ReferencePlan
    from tailrace.switch.p4runtime.pins.restrictions import ActionRestriction, ConstraintSet, EntryRestriction
    from tailrace.switch.p4runtime.pins.roles import Roles
    from tailrace.switch.p4runtime.pins.strings import SdnStrings


ABSENT = -1
"""Index of an action that is in P4Info, but not in the program."""
GROUP_ACTION = 3
"""An ActionRef.Scope added after P4Runtime 1.5.0: for ActionProfileActionSet.group_action only."""
MAX_SIZE = (1 << 31) - 1
"""Largest size of a table, in entries."""

_ANNOTATIONS = (
    b"entry_restriction",
    b"action_restriction",
    b"refers_to",
    b"referenced_by",
    b"p4runtime_role",
)
"""PINS's annotations. If none of these strings is in the serialized P4Info, it has no such annotation."""


class _P4InfoObject(Protocol):
    @property
    def preamble(self) -> p4i.Preamble: ...


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_E = TypeVar("_E", bound=_P4InfoObject)
_N = TypeVar("_N", bound=_Named)
_T = TypeVar("_T")


class ParamPlan(msgspec.Struct, frozen=True):
    """A parameter of an action; `names`: translation of its values, if messages contain strings."""

    id: int
    name: str
    position: int
    bits: int
    names: SdnStrings | None = None


class _Plan(msgspec.Struct, frozen=True):
    id: int
    name: str
    index: int


class SizedPlan(_Plan, frozen=True):
    """An object with a size, for example a counter array, which has no other properties."""

    size: int


class ActionPlan(_Plan, frozen=True):
    """An action of one table (or profile); `index`: in the program, or ABSENT.

    `scope`: a value of P4Info's ActionRef.Scope, or GROUP_ACTION. `ordered`: the parameters in order.
    """

    scope: int
    params: dict[int, ParamPlan]
    ordered: tuple[ParamPlan, ...]
    restriction: ActionRestriction | None = None


class MeterPlan(SizedPlan, frozen=True):
    """A meter array, or a direct meter with size 0; `type`: a value of P4Info's MeterSpec.Type."""

    type: int


class RegisterPlan(SizedPlan, frozen=True):
    """A register array; a cell is the concatenation of the scalar fields of its type."""

    type: TypePlan


class DigestPlan(_Plan, frozen=True):
    """A digest and the type of its records."""

    type: TypePlan


class ValueSetPlan(SizedPlan, frozen=True):
    """A parser value set."""

    key: KeyPlan


class ProfilePlan(SizedPlan, frozen=True):
    """An action profile or selector; `tables`: P4Info ids of its tables.

    `sum_of_members`: whether the size of a group is its number of members, not the sum of their weights.
    """

    with_selector: bool
    max_group_size: int
    sum_of_members: bool
    max_member_weight: int
    weights_allowed: bool
    actions: dict[int, ActionPlan]
    tables: tuple[int, ...]


class TablePlan(SizedPlan, frozen=True):
    """A table; `counter`: the id of its direct counter, 0 if it has none."""

    key: KeyPlan
    actions: dict[int, ActionPlan]
    profile: ProfilePlan | None
    is_const: bool
    const_default: bool
    idle_timeout: bool
    counter: int
    meter: MeterPlan | None
    restriction: EntryRestriction | None = None


class Schema(msgspec.Struct, frozen=True):
    """The objects of a pipeline, by P4Info id.

    `absent`: descriptions of objects that only P4Info has, for errors. Shared by all switches with this
    pipeline: `interned`, the parsed entries, and `types`, the translated types. `constraints`, `roles`,
    `references`: from P4Info's annotations (pins/); None: it has no such annotations.
    """

    info: p4i.P4Info
    model: Model
    types: Translations
    tables: dict[int, TablePlan] = msgspec.field(default_factory=dict)
    profiles: dict[int, ProfilePlan] = msgspec.field(default_factory=dict)
    counters: dict[int, SizedPlan] = msgspec.field(default_factory=dict)
    meters: dict[int, MeterPlan] = msgspec.field(default_factory=dict)
    registers: dict[int, RegisterPlan] = msgspec.field(default_factory=dict)
    digests: dict[int, DigestPlan] = msgspec.field(default_factory=dict)
    value_sets: dict[int, ValueSetPlan] = msgspec.field(default_factory=dict)
    absent: dict[int, str] = msgspec.field(default_factory=dict)
    interned: Interned = msgspec.field(default_factory=dict)
    constraints: ConstraintSet | None = None
    roles: Roles | None = None
    references: ReferencePlan | None = None


def build_schema(info: p4i.P4Info, program: Model, *, lenient: bool = False) -> Schema:
    """Joins P4Info with the program.

    Args:
        info: the client's P4Info.
        program: the compiled program.
        lenient: as simple_switch_grpc, accepts P4Info that seems to be another program's, and ignores roles.

    Raises:
        P4RtError: INVALID_ARGUMENT: they differ; the message has the first difference.
    """
    schema = Schema(info, program, Translations(info.type_info))
    octets = info.SerializeToString()
    annotated = any(name in octets for name in _ANNOTATIONS)
    if annotated:
        schema = _with_annotations(schema, lenient=lenient)
    _check_ids(info)
    if not lenient:
        _check_tables(info, program)
    actions = {action.preamble.id: action for action in info.actions}
    used = [profile for profile in info.action_profiles if profile.table_ids]
    for profile, program_profile in _joined(schema, used, program.profiles, "action profile"):
        schema.profiles[profile.preamble.id] = _profile(profile, program_profile, schema, actions)
    direct = {c.preamble.id: c.direct_table_id for c in info.direct_counters}
    meters = {m.preamble.id: m for m in info.direct_meters}
    for table, program_table in _joined(schema, info.tables, program.tables, "table"):
        schema.tables[table.preamble.id] = _table(table, program_table, schema, actions, direct, meters)
    for counter, cells in _joined(schema, info.counters, program.counters, "counter"):
        schema.counters[counter.preamble.id] = SizedPlan(*_array(counter, cells, "counter"))
    for meter, array in _joined(schema, info.meters, program.meters, "meter"):
        schema.meters[meter.preamble.id] = MeterPlan(*_array(meter, array, "meter"), meter.spec.type)
    for register, registers in _joined(schema, info.registers, program.registers, "register"):
        schema.registers[register.preamble.id] = _register(register, registers, schema.types)
    for digest, program_digest in _digests(schema):
        schema.digests[digest.preamble.id] = _digest(digest, program_digest, schema.types)
    for value_set, program_set in _joined(schema, info.value_sets, program.vsets, "value set"):
        schema.value_sets[value_set.preamble.id] = _value_set(value_set, program_set, schema.types)
    return _with_references(schema) if annotated else schema


def _with_annotations(schema: Schema, *, lenient: bool) -> Schema:
    from tailrace.switch.p4runtime.pins.restrictions import ConstraintSet
    from tailrace.switch.p4runtime.pins.roles import roles_of

    return replace(schema, constraints=ConstraintSet(), roles=None if lenient else roles_of(schema.info))


def _with_references(schema: Schema) -> Schema:
    from tailrace.switch.p4runtime.pins.references import AnnotationReader

    return replace(schema, references=AnnotationReader(schema).read())


def _check_tables(info: p4i.P4Info, program: Model) -> None:
    """Rejects the P4Info of another program: each of the two has tables that the other lacks.

    Tables without a key are ignored: p4c adds such tables for statements between tables, but not to P4Info.
    """
    declared = {table.preamble.name for table in info.tables}
    unknown = next((t.name for t in program.tables if t.key and t.name not in declared), None)
    missing = next((name for name in sorted(declared - {t.name for t in program.tables})), None)
    if unknown is not None and missing is not None:
        raise invalid(
            f"P4Info does not match the program: the program has no table '{missing}', "
            f"and P4Info has no table '{unknown}'"
        )


def _joined(
    schema: Schema, declared: Iterable[_E], items: Sequence[_N], what: str
) -> Iterator[tuple[_E, _N]]:
    """The objects of one kind in P4Info, each with the program's object of the same name.

    Adds those that the program lacks to `schema.absent`.
    """
    by_name = {item.name: item for item in reversed(items)}
    for entity in declared:
        item = by_name.get(entity.preamble.name)
        if item is None:
            schema.absent[entity.preamble.id] = f"{what} '{entity.preamble.name}'"
        else:
            yield entity, item


def _digests(schema: Schema) -> Iterable[tuple[p4i.Digest, model.Digest]]:
    """The digests in P4Info, each with the program's."""
    info, program_digests = schema.info.digests, schema.model.digests
    names = {digest.name for digest in program_digests}
    if len(info) != len(program_digests) or names.issuperset(digest.preamble.name for digest in info):
        return _joined(schema, info, program_digests, "digest")
    # p4c gives a digest of a tuple different names in P4Info and BMv2 JSON, but the same order
    return zip(info, program_digests, strict=True)


def find(objects: Mapping[int, _T], object_id: int, what: str) -> _T:
    """The object of P4Info with an id, or its state.

    Raises:
        P4RtError: NOT_FOUND.
    """
    item = objects.get(object_id)
    if item is None:
        raise not_found(f"there is no {what} with id {object_id}")
    return item


def chosen(objects: Mapping[int, _T], object_id: int, what: str) -> list[_T]:
    """The object with an id, or all objects for id 0, the wildcard. Raises P4RtError like `find`."""
    return [find(objects, object_id, what)] if object_id else list(objects.values())


def absent(what: str) -> P4RtError:
    """The error for a request that refers to an object that only P4Info has."""
    return P4RtError(Code.UNIMPLEMENTED, f"{what} is in P4Info, but not in the program")


def _check_same(what: str, quantity: str, in_info: int, in_program: int) -> None:
    if in_info != in_program:
        raise _mismatch(what, f"{quantity} is {in_info} in P4Info and {in_program} in the program")


def _mismatch(what: str, message: str) -> P4RtError:
    return invalid(f"P4Info does not match the program: {what}: {message}")


def _check_ids(info: p4i.P4Info) -> None:
    seen: dict[int, str] = {}
    for preamble in preambles_of(info):
        if preamble.id == 0:
            raise invalid(f"P4Info: '{preamble.name}' has no id")
        if preamble.id in seen:
            raise invalid(f"P4Info: '{preamble.name}' and '{seen[preamble.id]}' have the same id")
        seen[preamble.id] = preamble.name


def _sdn(what: str, bitwidth: int, type_name: str, types: Translations, bits: int) -> Sdn:
    """How messages represent a value of `bits` bits in the program and `bitwidth` bits in P4Info."""
    sdn = types.sdn(type_name, bits)
    if sdn is not None:
        return sdn
    # P4Info gives 0 for the type `error`, and may give more bits than the program for another named type
    if bitwidth and not (type_name and bitwidth > bits):
        _check_same(what, "width", bitwidth, bits)
    return Sdn(bits)


def _action_plan(
    ref: p4i.ActionRef,
    table: str,
    schema: Schema,
    program_actions: tuple[int, ...],
    actions: dict[int, p4i.Action],
) -> ActionPlan:
    """The action of a reference; `program_actions`: indices of the actions of the program's table."""
    action = actions.get(ref.id)
    if action is None:
        raise invalid(f"P4Info: table '{table}' refers to action id {ref.id}, which P4Info does not have")
    name = action.preamble.name
    for index in program_actions:
        if schema.model.actions[index].name == name:
            break
    else:
        return ActionPlan(ref.id, name, ABSENT, _scope(ref), {}, ())
    program_action = schema.model.actions[index]
    _check_same(f"action '{name}'", "number of parameters", len(action.params), len(program_action.params))
    params = []
    for position, (param, program_param) in enumerate(zip(action.params, program_action.params, strict=True)):
        what = f"action '{name}', parameter '{param.name}'"
        sdn = _sdn(what, param.bitwidth, param.type_name.name, schema.types, program_param.bits)
        params.append(ParamPlan(param.id, param.name, position, sdn.bits, sdn.names))
    by_id = {param.id: param for param in params}
    if len(by_id) != len(params):
        raise invalid(f"P4Info: action '{name}' has parameters with the same id")
    restriction = None
    if schema.constraints is not None:
        restriction = schema.constraints.of_action(action, [(p.name, p.bits, p.names) for p in params])
    return ActionPlan(ref.id, name, index, _scope(ref), by_id, tuple(params), restriction)


def _scope(ref: p4i.ActionRef) -> int:
    """The scope of an action; compilers that do not know GROUP_ACTION keep the annotation @groupaction."""
    group = any(text.partition("(")[0].strip() == "@groupaction" for text in ref.annotations)
    return GROUP_ACTION if group else ref.scope


_KINDS = {getattr(p4i.MatchField, kind.name): kind for kind in MatchKind}


def _match_field(
    match: p4i.MatchField, owner: str, types: Translations, bits: int, offset: int
) -> MatchField:
    what = f"{owner}, field '{match.name}'"
    kind = _KINDS.get(match.match_type)
    if kind is None:
        raise invalid(f"{what}: match type {match.match_type} in P4Info is not known")
    sdn = _sdn(what, match.bitwidth, match.type_name.name, types, bits)
    if sdn.names is not None:
        if kind not in (MatchKind.EXACT, MatchKind.OPTIONAL):
            raise invalid(f"P4Info: {what}: a string field must be exact or optional, not {kind.value}")
        return NamedField(match.id, match.name, sdn.names, offset, kind)
    return MatchField(match.id, match.name, sdn.bits, offset, kind, bits)


def _table(
    table: p4i.Table,
    program_table: model.Table,
    schema: Schema,
    actions: dict[int, p4i.Action],
    direct: dict[int, int],
    meters: dict[int, p4i.DirectMeter],
) -> TablePlan:
    name = table.preamble.name
    what = f"table '{name}'"
    _check_same(what, "number of key fields", len(table.match_fields), len(program_table.key))
    # the sizes in p4c's P4Info and BMv2 JSON differ if p4c chose them: 1024, or the number of initial entries
    if 1024 not in (table.size, program_table.max_size) and not program_table.entries:
        _check_same(what, "size", table.size, program_table.max_size)
    for size in (table.size, program_table.max_size):
        if not 0 <= size <= MAX_SIZE:
            raise invalid(f"{what}: size {size} is not in 0..{MAX_SIZE}")
    fields = []
    for match, key in zip(table.match_fields, program_table.key, strict=True):
        field_ = _match_field(match, what, schema.types, key.bits, key.offset)
        kind = MatchKind.TERNARY if field_.kind is MatchKind.OPTIONAL else field_.kind  # as p4c compiles it
        if kind.value != key.kind:
            raise _mismatch(f"{what}, field '{match.name}'", f"matches {key.kind} in the program")
        fields.append(field_)
    profile = None
    if table.implementation_id:
        profile = schema.profiles.get(table.implementation_id)
        if profile is None or profile.index != program_table.profile:
            raise _mismatch(what, "its action profile is another one in the program")
    elif program_table.profile is not None:
        raise _mismatch(
            what, f"P4Info lacks its action profile '{schema.model.profiles[program_table.profile].name}'"
        )
    counter, meter = 0, None
    for resource in table.direct_resource_ids:
        if resource in direct:
            counter = resource if program_table.with_counters else 0
        elif resource not in meters:
            raise invalid(f"P4Info: {what} refers to direct resource {resource}, which P4Info does not have")
        elif program_table.meter is not None:
            spec = meters[resource]
            meter = MeterPlan(resource, spec.preamble.name, program_table.meter, 0, spec.spec.type)
    refs = (_action_plan(ref, name, schema, program_table.actions, actions) for ref in table.action_refs)
    plan = key_plan(what, fields)
    return TablePlan(
        id=table.preamble.id,
        name=name,
        index=program_table.index,
        # if a table has initial entries, BMv2 JSON has their number as its size, P4Info the declared size
        size=max(table.size, program_table.max_size) if program_table.entries else program_table.max_size,
        key=plan,
        actions={ref.id: ref for ref in refs},
        profile=profile,
        is_const=table.is_const_table,
        const_default=table.const_default_action_id != 0 or program_table.default_const,
        idle_timeout=table.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL,
        counter=counter,
        meter=meter,
        restriction=None if schema.constraints is None else schema.constraints.of_table(table, plan),
    )


def _profile(
    profile: p4i.ActionProfile, program_profile: model.Profile, schema: Schema, actions: dict[int, p4i.Action]
) -> ProfilePlan:
    name = profile.preamble.name
    what = f"action profile '{name}'"
    _check_same(what, "size", profile.size, program_profile.max_size)
    if profile.with_selector != program_profile.with_selector:
        raise _mismatch(what, "only one of the two has a selector")
    plans: dict[int, ActionPlan] = {}
    for table in schema.info.tables:
        if table.preamble.id in profile.table_ids:
            in_program = next((t.actions for t in schema.model.tables if t.name == table.preamble.name), ())
            for ref in table.action_refs:
                if ref.scope != p4i.ActionRef.DEFAULT_ONLY and ref.id not in plans:
                    plans[ref.id] = _action_plan(ref, table.preamble.name, schema, in_program, actions)
    by_members = profile.WhichOneof("selector_size_semantics") == "sum_of_members"
    return ProfilePlan(
        id=profile.preamble.id,
        name=name,
        index=program_profile.index,
        size=profile.size,
        with_selector=profile.with_selector,
        max_group_size=profile.max_group_size,
        sum_of_members=by_members,
        max_member_weight=profile.sum_of_members.max_member_weight if by_members else 0,
        weights_allowed=not profile.weights_disallowed,
        actions=plans,
        tables=tuple(profile.table_ids),
    )


def _array(
    array: p4i.Counter | p4i.Meter | p4i.Register,
    cells: model.Counter | model.Meter | model.Register,
    kind: str,
) -> tuple[int, str, int, int]:
    """The first fields of the plan of an array."""
    name = array.preamble.name
    _check_same(f"{kind} '{name}'", "size", array.size, cells.size)
    return array.preamble.id, name, cells.index, cells.size


def _register(register: p4i.Register, array: model.Register, types: Translations) -> RegisterPlan:
    what = f"register '{register.preamble.name}'"
    fields = _array(register, array, "register")
    plan = TypePlanner(types, (array.bits,), what).plan(register.type_spec)
    _check_same(what, "width", sum(plan.widths), array.bits)
    return RegisterPlan(*fields, plan)


def _digest(digest: p4i.Digest, program_digest: model.Digest, types: Translations) -> DigestPlan:
    what = f"digest '{digest.preamble.name}'"
    plan = TypePlanner(types, program_digest.field_bits, what).plan(digest.type_spec)
    if plan.widths != program_digest.field_bits:
        raise _mismatch(
            what, f"fields are {plan.widths} bits wide in P4Info, {program_digest.field_bits} in the program"
        )
    return DigestPlan(digest.preamble.id, digest.preamble.name, program_digest.index, plan)


def _value_set(value_set: p4i.ValueSet, program_set: model.ValueSet, types: Translations) -> ValueSetPlan:
    name = value_set.preamble.name
    what = f"value set '{name}'"
    _check_same(what, "number of fields", len(value_set.match), len(program_set.field_bits))
    fields, offset = [], 0
    for match, bits in zip(value_set.match, program_set.field_bits, strict=True):
        fields.append(_match_field(match, what, types, bits, offset))
        offset += (bits + 7) // 8
    key = key_plan(what, fields)
    return ValueSetPlan(value_set.preamble.id, name, program_set.index, value_set.size, key)
