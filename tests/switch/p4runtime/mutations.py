# SPDX-License-Identifier: Apache-2.0
"""What controllers get wrong: mutations of updates, by name. An oracle says what each must lead to.

The first are those that SwitchV names for its p4-fuzzer (Albab et al., SIGCOMM 2022), as far as they are not about
tables of its own; the others follow from the rules of P4Runtime-Spec 8 to 12. Some leave the update right, in a form
that no client writes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from finsy.proto import p4i, p4r
from google.protobuf.message import DecodeError

from tests.switch.p4runtime.holdings import DELETE, INSERT, MODIFY
from tests.switch.p4runtime.rules import kind_of
from tests.switch.p4runtime.updates import Drawer

Mutation = Callable[[random.Random, p4r.Update, Drawer], bool]
"""Changes an update; whether it could."""

MUTATIONS: dict[str, Mutation] = {}


def mutation(change: Mutation) -> Mutation:
    """Registers a mutation by its name."""
    MUTATIONS[change.__name__] = change
    return change


def mutation_of(
    pick: Callable[[random.Random, p4r.Update], Any],
) -> Callable[[Callable[[random.Random, p4r.Update, Drawer, Any], None]], Mutation]:
    """Registers a mutation of a part of updates; without one, or without anything in it, an update stays as it is."""

    def register(change: Callable[[random.Random, p4r.Update, Drawer, Any], None]) -> Mutation:
        def changed(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
            picked = pick(rng, update)
            if not picked:
                return False
            change(rng, update, drawer, picked)
            return True

        changed.__name__ = change.__name__
        return mutation(changed)

    return register


def part(kind: str) -> Callable[[random.Random, p4r.Update], Any]:
    """The entity of an update, if it is of this kind."""
    return lambda _, update: getattr(update.entity, kind) if update.entity.HasField(kind) else None


def actions_of(update: p4r.Update) -> list[p4r.Action]:
    """All actions in an update."""
    entry, shot = update.entity.table_entry, update.entity.table_entry.action.action_profile_action_set
    actions = [item.action for item in shot.action_profile_actions]
    if entry.action.HasField("action"):
        actions.append(entry.action.action)
    if update.entity.action_profile_member.HasField("action"):
        actions.append(update.entity.action_profile_member.action)
    return actions


def any_action(rng: random.Random, update: p4r.Update) -> p4r.Action | None:
    """One of them."""
    actions = actions_of(update)
    return rng.choice(actions) if actions else None


def any_match(rng: random.Random, update: p4r.Update) -> p4r.FieldMatch | None:
    """One of the matches of an entry or of a value set's member."""
    matches = list(update.entity.table_entry.match)
    matches += [match for member in update.entity.value_set_entry.members for match in member.match]
    return rng.choice(matches) if matches else None


def table_of(update: p4r.Update, drawer: Drawer) -> p4i.Table | None:
    """The table of an entry."""
    return drawer.oracle.facts.tables.get(update.entity.table_entry.table_id)


def absurd_id(rng: random.Random, update: p4r.Update) -> int:
    """A number that is hardly an id, or one of another kind of thing."""
    return rng.choice((1, 2**32 - 1, rng.getrandbits(32), update.entity.table_entry.table_id ^ 1))


def weighted(update: p4r.Update) -> list[p4r.ActionProfileGroup.Member | p4r.ActionProfileAction]:
    """Members with weights."""
    shot = update.entity.table_entry.action.action_profile_action_set
    return [*update.entity.action_profile_group.members, *shot.action_profile_actions]


def replicas_of(update: p4r.Update) -> list[p4r.Replica]:
    """The replicas of a multicast group or clone session."""
    engine = update.entity.packet_replication_engine_entry
    return [*engine.multicast_group_entry.replicas, *engine.clone_session_entry.replicas]


# ---- those of SwitchV ----


@mutation_of(part("table_entry"))
def invalid_table_id(rng: random.Random, update: p4r.Update, drawer: Drawer, entry: p4r.TableEntry) -> None:
    entry.table_id = absurd_id(rng, update)


@mutation_of(any_action)
def invalid_action_id(rng: random.Random, update: p4r.Update, drawer: Drawer, action: p4r.Action) -> None:
    action.action_id = rng.choice((0, absurd_id(rng, update), rng.choice(list(drawer.oracle.facts.actions))))


@mutation_of(any_match)
def invalid_match_field_id(
    rng: random.Random, update: p4r.Update, drawer: Drawer, match: p4r.FieldMatch
) -> None:
    match.field_id = rng.choice((0, match.field_id + 1, 2**32 - 1))


@mutation_of(lambda _, update: update.entity.table_entry.match)
def missing_match_field(rng: random.Random, update: p4r.Update, drawer: Drawer, matches: Any) -> None:
    del matches[rng.randrange(len(matches))]


@mutation_of(lambda _, update: update.entity.table_entry.match)
def duplicate_match_field(rng: random.Random, update: p4r.Update, drawer: Drawer, matches: Any) -> None:
    matches.add().CopyFrom(rng.choice(list(matches)))


@mutation
def invalid_table_implementation(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    if not update.entity.table_entry.HasField("action"):
        return False
    action = update.entity.table_entry.action
    kind = rng.randrange(4)
    if kind == 0:
        action.action_profile_member_id = rng.randrange(14)
    elif kind == 1:
        action.action_profile_group_id = rng.randrange(14)
    elif kind == 2:
        inner = p4r.Action()
        inner.CopyFrom(action.action)
        action.action_profile_action_set.action_profile_actions.add(action=inner, weight=1)
    else:
        action.action.action_id = rng.choice(list(drawer.oracle.facts.actions))
    return True


@mutation_of(lambda _, update: weighted(update))
def invalid_selector_weight(
    rng: random.Random, update: p4r.Update, drawer: Drawer, members: list[Any]
) -> None:
    rng.choice(members).weight = rng.choice((0, -1, 2**31 - 1, -(2**31), 16385))


@mutation
def duplicate_insert(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    held = list(drawer.oracle.entities.values())
    if held and rng.randrange(8) == 0:
        update.entity.CopyFrom(rng.choice(held))
    update.type = INSERT
    return True


@mutation
def nonexisting_delete(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    update.type = DELETE
    return True


@mutation
def nonexisting_modify(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    update.type = MODIFY
    return True


@mutation
def invalid_port(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    port, replicas, members = rng.choice((512, 2**31, 2**32 - 1)), replicas_of(update), weighted(update)
    if replicas:
        replica = rng.choice(replicas)
        if rng.randrange(2):
            replica.egress_port = port
        else:
            replica.port = rng.choice((b"", port.to_bytes(4, "big"), bytes(9) + b"\1", b"\1" + bytes(4)))
        return True
    if members:
        member = rng.choice(members)
        if rng.randrange(2):
            member.watch = rng.choice((-1, 512, 2**31 - 1))
        else:
            member.watch_port = rng.choice((b"", port.to_bytes(4, "big"), b"\1" + bytes(4)))
        return True
    return False


@mutation
def invalid_reference(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    action, members = update.entity.table_entry.action, update.entity.action_profile_group.members
    if action.HasField("action_profile_member_id"):
        action.action_profile_member_id = rng.choice((0, 99, 2**32 - 1))
    elif action.HasField("action_profile_group_id"):
        action.action_profile_group_id = rng.choice((0, 99, 2**32 - 1))
    elif members:
        rng.choice(list(members)).member_id = rng.choice((0, 99, 2**32 - 1))
    else:
        return False
    return True


# ---- keys, values, priorities ----


@mutation_of(any_match)
def wrong_match_kind(rng: random.Random, update: p4r.Update, drawer: Drawer, match: p4r.FieldMatch) -> None:
    kind = rng.choice(("exact", "ternary", "lpm", "range", "optional", None))
    if kind is None:
        match.ClearField(match.WhichOneof("field_match_type") or "exact")
    else:
        getattr(match, kind).SetInParent()


@mutation
def wrong_value_length(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    """Of a match: too wide, empty, or longer than need be, which is right."""
    match = any_match(rng, update)
    if match is None:
        return False
    message = getattr(match, match.WhichOneof("field_match_type"))
    name = rng.choice(
        [field.name for field, _ in message.ListFields() if field.type == field.TYPE_BYTES] or [""]
    )
    if not name:
        return False
    value = getattr(message, name)
    setattr(
        message, name, rng.choice((b"", b"\0" + value, bytes(30) + value, b"\1" + bytes(16), b"\xff" * 40))
    )
    return True


@mutation
def wrong_mask(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    """Prefixes, masks and bounds that make no sense."""
    match = any_match(rng, update)
    if match is None:
        return False
    if match.HasField("lpm"):
        match.lpm.prefix_len = rng.choice((0, -1, match.lpm.prefix_len - 1, 33, 129, 2**31 - 1))
    elif match.HasField("ternary"):
        match.ternary.mask = rng.choice((b"\0", b"", b"\1"))
    elif match.HasField("range"):
        match.range.low, match.range.high = match.range.high, match.range.low
    else:
        return False
    return True


@mutation
def dont_care_match(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    """Matches that every value passes must be left out."""
    table = table_of(update, drawer)
    fields = (
        []
        if table is None
        else [declared for declared in table.match_fields if kind_of(declared) in ("range", "ternary")]
    )
    if not fields:
        return False
    field = rng.choice(fields)
    match = update.entity.table_entry.match.add(field_id=field.id)
    if kind_of(field) == "range":
        match.range.low, match.range.high = b"\0", ((1 << field.bitwidth) - 1).to_bytes(20, "big")
    else:
        match.ternary.value = match.ternary.mask = b"\0"
    return True


@mutation_of(part("table_entry"))
def wrong_priority(rng: random.Random, update: p4r.Update, drawer: Drawer, entry: p4r.TableEntry) -> None:
    entry.priority = rng.choice((0, 1, -1, -(2**31)))


# ---- actions ----


@mutation
def wrong_params(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    """A parameter is missing, given twice, unknown, too wide, empty or too long."""
    action = any_action(rng, update)
    if action is None or not action.params:
        return False
    param = rng.choice(list(action.params))
    kind = rng.randrange(5)
    if kind == 0:
        action.params.remove(param)
    elif kind == 1:
        action.params.add().CopyFrom(param)
    elif kind == 2:
        param.param_id = rng.choice((0, param.param_id + 1, 2**32 - 1))
    else:
        param.value = rng.choice((b"", b"\0" + param.value, b"\1" + bytes(20), b"\xff" * len(param.value)))
    return True


@mutation
def no_action(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    entity = update.entity
    for owner in (entity.table_entry, entity.action_profile_member):
        if owner.HasField("action"):
            if rng.randrange(2):
                owner.action.Clear()
            else:
                owner.ClearField("action")
            return True
    return False


# ---- entries ----


@mutation_of(part("table_entry"))
def default_entry(rng: random.Random, update: p4r.Update, drawer: Drawer, entry: p4r.TableEntry) -> None:
    """An entry as a default entry, and the other way round."""
    entry.is_default_action = not entry.is_default_action
    if entry.is_default_action and rng.randrange(2):
        del entry.match[:]
        entry.priority = 0


@mutation_of(part("table_entry"))
def unwritable_field(rng: random.Random, update: p4r.Update, drawer: Drawer, entry: p4r.TableEntry) -> None:
    kind = rng.randrange(7)
    if kind == 0:
        entry.is_const = True
    elif kind == 1:
        entry.time_since_last_hit.elapsed_ns = rng.choice((0, 1))
    elif kind == 2:
        entry.idle_timeout_ns = rng.choice((-1, 1, -(2**63)))
    elif kind == 3:
        entry.counter_data.byte_count = rng.choice((-1, 1, -(2**63)))
    elif kind == 4:
        entry.meter_counter_data.SetInParent()
        entry.meter_counter_data.yellow.packet_count = rng.choice((0, 1, -1))
    elif kind == 5:
        entry.meter_config.cir = rng.choice((0, 1, -1, 2**63 - 1))
    else:
        entry.metadata = bytes(rng.choice((4096, 4097)))


# ---- profiles and replication ----


@mutation_of(part("action_profile_group"))
def wrong_group(
    rng: random.Random, update: p4r.Update, drawer: Drawer, group: p4r.ActionProfileGroup
) -> None:
    """Its size, its number, its profile, a member twice."""
    kind = rng.randrange(4)
    if kind == 0:
        group.max_size = rng.choice((-1, 0, 1, 2**31 - 1))
    elif kind == 1:
        group.group_id = 0
    elif kind == 2:
        group.action_profile_id = rng.choice((0, group.action_profile_id + 1))
    elif group.members:
        group.members.add().CopyFrom(group.members[0])


@mutation_of(part("action_profile_member"))
def wrong_member(
    rng: random.Random, update: p4r.Update, drawer: Drawer, member: p4r.ActionProfileMember
) -> None:
    """Its number, its profile; one that is in use goes."""
    kind = rng.randrange(3)
    if kind == 0:
        member.member_id = 0
    elif kind == 1:
        member.action_profile_id = rng.choice((0, member.action_profile_id + 1))
    else:
        update.type = DELETE


@mutation
def wrong_selection(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    """Mode and meaning of size of a one-shot."""
    if not update.entity.table_entry.action.HasField("action_profile_action_set"):
        return False
    shot = update.entity.table_entry.action.action_profile_action_set
    shot.action_selection_mode = p4r.ActionProfileActionSet.ActionSelectionMode.ValueType(rng.randrange(4))
    shot.size_semantics = p4r.ActionProfileActionSet.SizeSemantics.ValueType(rng.randrange(3))
    return True


@mutation
def duplicate_replica(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    engine, replicas = update.entity.packet_replication_engine_entry, replicas_of(update)
    if not replicas:
        return False
    which = engine.WhichOneof("type")
    other = getattr(engine, str(which)).replicas.add()
    other.CopyFrom(rng.choice(replicas))
    if rng.randrange(2):
        other.instance = rng.choice((1, 65536, 2**32 - 1))
    elif rng.randrange(2):
        other.backup_replicas.add(port=rng.choice((other.port, b"", b"\1\0\0\0\0")), instance=3)
    return True


@mutation
def wrong_replication_id(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    engine = update.entity.packet_replication_engine_entry
    number = rng.choice((0, 32767, 32768, 65535, 65536, 2**32 - 1))
    if engine.HasField("multicast_group_entry"):
        engine.multicast_group_entry.multicast_group_id = number
    elif engine.HasField("clone_session_entry"):
        session = engine.clone_session_entry
        session.session_id = number if rng.randrange(2) else session.session_id
        session.class_of_service = rng.choice((7, 8, 2**32 - 1))
        session.packet_length_bytes = rng.choice((0, -1, -(2**31)))
    else:
        return False
    return True


# ---- arrays, digests, value sets ----


@mutation
def wrong_cell(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    entity = update.entity
    for name in ("counter_entry", "meter_entry", "register_entry"):
        if entity.HasField(name):
            cell = getattr(entity, name)
            cell.index.index = rng.choice((-1, -(2**63), 2**63 - 1, 2**32, 65536))
            return True
    return False


@mutation
def wrong_data(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    entity, negative = update.entity, rng.choice((-1, -(2**63)))
    if entity.HasField("counter_entry"):
        entity.counter_entry.data.packet_count = negative
    elif entity.HasField("direct_counter_entry"):
        entity.direct_counter_entry.data.byte_count = negative
    elif entity.HasField("meter_entry"):
        entity.meter_entry.config.pir = rng.choice((negative, 0))
        entity.meter_entry.counter_data.green.byte_count = rng.choice((0, 1, negative))
    elif entity.HasField("direct_meter_entry"):
        entity.direct_meter_entry.config.cburst = negative
        entity.direct_meter_entry.counter_data.red.packet_count = rng.choice((0, 1))
    elif entity.HasField("register_entry"):
        entity.register_entry.data.bitstring = rng.choice((b"", b"\1" + bytes(600), bytes(600)))
    elif entity.HasField("digest_entry"):
        entity.digest_entry.config.max_timeout_ns = negative
    else:
        return False
    return True


@mutation
def wrong_direct_owner(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    """A direct resource of an entry that is not there, or of a table without."""
    entity = update.entity
    for name in ("direct_counter_entry", "direct_meter_entry"):
        if entity.HasField(name):
            entry = getattr(entity, name).table_entry
            if rng.randrange(2):
                entry.table_id = rng.choice((0, rng.choice(drawer.tables).preamble.id))
            else:
                del entry.match[:]
            return True
    return False


@mutation_of(lambda _, update: update.entity.value_set_entry.members)
def wrong_value_set(rng: random.Random, update: p4r.Update, drawer: Drawer, members: Any) -> None:
    members.add().CopyFrom(members[0])


# ---- whole updates ----


@mutation
def unknown_type(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    update.type = p4r.Update.Type.ValueType(rng.choice((0, 4, 77)))
    return True


@mutation
def no_entity(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    if rng.randrange(2):
        update.ClearField("entity")
    else:
        update.entity.extern_entry.extern_type_id = rng.getrandbits(32)
    return True


@mutation
def damaged_octets(rng: random.Random, update: p4r.Update, drawer: Drawer) -> bool:
    """Bits of the message turned; what is no message any more is left alone."""
    data = bytearray(update.SerializeToString())
    for _ in range(rng.randint(1, 3)):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    try:
        changed = p4r.Update.FromString(bytes(data))
    except DecodeError:
        return False
    update.CopyFrom(changed)
    return True


def mutated(rng: random.Random, drawer: Drawer, names: list[str]) -> tuple[str, p4r.Update]:
    """An update with one mutation that suits it, and its name; `names` are those to choose from."""
    while True:
        name, update = rng.choice(names), drawer.update()
        if MUTATIONS[name](rng, update, drawer):
            return name, update
