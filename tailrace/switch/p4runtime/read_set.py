# SPDX-License-Identifier: Apache-2.0
"""The read set of a traced packet: the entities that another switch needs for the same trace.

It contains table entries that were hit, and default actions that ran; groups with only the selected members,
so that the hash does not matter; and replicas whose ports are up. It omits idle timeouts, metadata, register
cells that are 0, and counters, as programs cannot read counters.

A choice is an outcome of a trace that state and packet do not determine: a meter colour, a random number, or
the member that a group selects. The other switch must make the same choices.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import ClassVar, Literal, TypeVar

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.requests import TraceNeeds
from tailrace.switch.core import SwitchConfig
from tailrace.switch.p4runtime.entities.entry import StoredEntry
from tailrace.switch.p4runtime.entities.members import OneShotSpec
from tailrace.switch.p4runtime.entities.profiles import ProfileState
from tailrace.switch.p4runtime.entities.tables import TableState
from tailrace.switch.p4runtime.state import ForwardingState
from tailrace.switch.trace import TraceError, events
from tailrace.switch.trace.dry_run import FIRST_VALUE
from tailrace.switch.trace.records import IN_VALUE_SET, NumberedEvents

_WITH_METER = p4r.TableEntry(meter_config=p4r.MeterConfig())
_M = TypeVar("_M", p4r.ActionProfileGroup.Member, p4r.ActionProfileAction)

_CHANGED = "the switch's entries have changed during the trace: trace the packet again"


def needs(
    state: ForwardingState,
    trace_steps: NumberedEvents,
    device_config: bytes,
    config: SwitchConfig,
    time_ns: int,
) -> TraceNeeds:
    """What another switch needs to repeat a trace: the read set, the program, the settings.

    Raises:
        TraceError: the state has changed since the trace, or cannot be saved.
    """
    read_set = ReadSet(state, trace_steps)
    return TraceNeeds(
        program=hashlib.sha256(device_config).hexdigest(),
        time_ns=time_ns,
        tick_ns=config.tick_ns,
        cpu_port=config.cpu_port,
        drop_port=config.drop_port,
        priority_queues=config.priority_queues,
        entities=tuple(entity.SerializeToString() for entity in read_set.entities),
        choices=tuple(read_set.choices),
    )


class ReadSet:
    """The entities that one trace needs, and the outcomes of its choices on a switch with only these."""

    def __init__(self, state: ForwardingState, trace_steps: NumberedEvents) -> None:
        """Looks up all entities.

        Raises:
            TraceError: the state has changed since the trace, or cannot be saved.
        """
        self._state = state
        self._tables = {table.plan.name: table for table in state.tables.values()}
        self._profiles = {profile.plan.name: profile for profile in state.profiles.values()}
        self._register_plans = {plan.name: plan for plan in state.schema.registers.values()}
        self._meter_plans = {plan.name: plan for plan in state.schema.meters.values()}
        # caches: a packet may read an entity many times
        self._ids: dict[tuple[Literal["member", "group"], int, int], int] = {}
        self._entries: dict[tuple[int, int], tuple[TableState, StoredEntry]] = {}
        self._defaults: dict[int, TableState] = {}
        self._members: dict[tuple[int, int], ProfileState] = {}
        # the selected members of each group, and of each entry with an action set
        self._groups: dict[tuple[int, int], set[int]] = {}
        self._one_shots: dict[tuple[int, int], set[int]] = {}
        self._registers: dict[tuple[str, int], p4r.Entity | None] = {}
        self._other_entities: dict[tuple[str, object], p4r.Entity] = {}
        self._last_hit: tuple[int, int] = 0, 0
        """Table id and handle of the last entry that was hit: the next member event belongs to this entry."""
        self._choices: list[Callable[[], int | None]] = []
        self._choice: events.ChoiceEvent | None = None
        """The last choice, if the next event has its outcome."""
        for _, step in trace_steps:
            handler = self._HANDLERS.get(type(step))
            if handler is not None:
                handler(self, step)

    @property
    def choices(self) -> list[int]:
        """Outcomes of the trace's choices, as the input of `switch.trace.dry_run`."""
        outcomes = (choice() for choice in self._choices)
        return [taken for taken in outcomes if taken is not None]

    @property
    def entities(self) -> list[p4r.Entity]:
        """The entities, in an order in which they can be written.

        Raises:
            TraceError: something cannot be saved.
        """
        # the data plane orders a group's members by their creation
        entities = [self._member(self._members[key], key[1]) for key in sorted(self._members)]
        entities += [self._group(*key, self._groups[key]) for key in sorted(self._groups)]
        entities += self._other_entities.values()
        entities += filter(None, self._registers.values())
        for key, (table, entry) in self._entries.items():
            if not entry.is_const:
                entities.append(self._entry(table, entry, self._one_shots.get(key)))
            elif entry.meter is not None:
                raise TraceError(f"table '{table.plan.name}': the meter of a constant entry cannot be saved")
        return entities + [e for table in self._defaults.values() for e in self._default(table)]

    # ---- steps ----

    def _add_table(self, step: events.TableEvent) -> None:
        table = self._tables.get(step.name)
        if table is None:  # a table that p4c has added; it is not in P4Info
            return
        if step.entry is None:
            self._defaults[table.plan.id] = table
            return
        entry = table.by_handle.get(step.entry)
        if entry is None:
            raise TraceError(_CHANGED)
        self._last_hit = table.plan.id, step.entry
        self._entries[self._last_hit] = table, entry

    def _add_choice(self, step: events.ChoiceEvent) -> None:
        if step.what == "colour":
            self._choices.append(lambda: step.taken)
        else:  # the next event has the outcome
            self._choice = step

    def _add_random(self, step: events.RandomEvent) -> None:
        choice, self._choice = self._choice, None
        if choice is not None:
            # of a wide range, choices below FIRST_VALUE have another meaning (trace/dry_run.py)
            taken = step.value - step.low + (FIRST_VALUE if choice.of == FIRST_VALUE else 0)
            self._choices.append(lambda: taken)

    def _add_member(self, step: events.MemberEvent) -> None:
        self._choice = None
        profile = self._profiles[step.profile]
        one_shot = profile.one_shots.get(-1 if step.group is None else step.group)
        if one_shot is not None:
            self._add_one_shot(step, one_shot)
            return
        member = None if step.member is None else self._id_of("member", profile, step.member)
        if member is not None:
            self._members[profile.plan.id, member] = profile
        if step.group is None:
            return
        group = self._id_of("group", profile, step.group)
        chosen = self._groups.setdefault((profile.plan.id, group), set())
        if member is not None:
            chosen.add(member)
            self._choose(chosen, member)

    def _id_of(self, what: Literal["member", "group"], profile: ProfileState, handle: int) -> int:
        """The P4Runtime id of a member or group with this handle in the switch core."""
        key = what, profile.plan.id, handle
        entity_id = self._ids.get(key)
        if entity_id is None:
            entity_id = profile.member_id(handle) if what == "member" else profile.group_id(handle)
            if entity_id is None:
                raise TraceError(_CHANGED)
            self._ids[key] = entity_id
        return entity_id

    def _add_one_shot(self, step: events.MemberEvent, one_shot: OneShotSpec) -> None:
        chosen = self._one_shots.setdefault(self._last_hit, set())
        if step.member is None:
            return
        positions = (position for position, handles in enumerate(one_shot.handles) if step.member in handles)
        position = next(positions, None)
        if position is None:
            raise TraceError(_CHANGED)
        chosen.add(position)
        self._choose(chosen, position)

    def _choose(self, chosen: set[int], member: int) -> None:
        """Records the member's index in `chosen` as a choice, unless the trace selects no other member."""
        self._choices.append(lambda: sorted(chosen).index(member) if len(chosen) > 1 else None)

    def _add_register(self, step: events.RegisterEvent) -> None:
        cell = step.name, step.index
        if not step.inside or cell in self._registers:
            return
        self._registers[cell] = None  # only the first access counts, and a write needs no old value
        plan = self._register_plans.get(step.name)
        if step.access == "write" or not step.value or plan is None:  # cells of a new switch are 0
            return
        message = p4r.Entity()
        message.register_entry.register_id = plan.id
        message.register_entry.index.index = step.index
        if len(plan.type.widths) > 1:
            raise TraceError(f"register '{plan.name}': cells of several fields cannot be saved")
        unsigned = step.value & (1 << step.bits) - 1
        plan.type.encode(iter((unsigned,)), message.register_entry.data)
        self._registers[cell] = message

    def _add_meter(self, step: events.MeterEvent) -> None:
        plan = self._meter_plans.get(step.name)
        if step.index is None or plan is None or step.index >= plan.size:
            return
        if ("meter", (plan.id, step.index)) in self._other_entities:
            return
        request = p4r.Entity()
        request.meter_entry.meter_id = plan.id
        request.meter_entry.index.index = step.index
        entity = next(self._state.entities(request))
        if entity.meter_entry.HasField("config"):
            self._other_entities["meter", (plan.id, step.index)] = entity

    def _add_value_set(self, step: events.SelectEvent) -> None:
        if not step.case.startswith(IN_VALUE_SET):
            return
        name = step.case.removeprefix(IN_VALUE_SET)
        for plan in self._state.schema.value_sets.values():
            if plan.name == name:
                request = p4r.Entity(value_set_entry=p4r.ValueSetEntry(value_set_id=plan.id))
                self._other_entities["value set", plan.id] = next(self._state.entities(request))

    def _add_multicast(self, step: events.MulticastEvent) -> None:
        self._add_replicas(
            p4r.PacketReplicationEngineEntry(
                multicast_group_entry=p4r.MulticastGroupEntry(multicast_group_id=step.group)
            )
        )

    def _add_clone(self, step: events.CloneEvent) -> None:
        if step.known:
            self._add_replicas(
                p4r.PacketReplicationEngineEntry(
                    clone_session_entry=p4r.CloneSessionEntry(session_id=step.session)
                )
            )

    def _add_replicas(self, request: p4r.PacketReplicationEngineEntry) -> None:
        effective = self._state.replication.in_force(request)
        if effective is not None:
            self._other_entities["replicas", request.SerializeToString()] = p4r.Entity(
                packet_replication_engine_entry=effective
            )

    _HANDLERS: ClassVar[dict[type, Callable[..., None]]] = {
        events.TableEvent: _add_table,
        events.ChoiceEvent: _add_choice,
        events.RandomEvent: _add_random,
        events.MemberEvent: _add_member,
        events.RegisterEvent: _add_register,
        events.MeterEvent: _add_meter,
        events.SelectEvent: _add_value_set,
        events.MulticastEvent: _add_multicast,
        events.CloneEvent: _add_clone,
    }

    # ---- entities ----

    @staticmethod
    def _member(profile: ProfileState, member_id: int) -> p4r.Entity:
        message = p4r.Entity()
        profile.fill_member(member_id, message.action_profile_member)
        return message

    def _group(self, profile_id: int, group_id: int, chosen: set[int]) -> p4r.Entity:
        message = p4r.Entity()
        group = message.action_profile_group
        self._state.profiles[profile_id].fill_group(group_id, group)
        kept = [member for member in group.members if member.member_id in chosen]
        del group.members[:]
        group.members.extend(_without_weight_and_watch(member) for member in kept)
        return message

    def _entry(self, table: TableState, entry: StoredEntry, chosen: set[int] | None) -> p4r.Entity:
        message = p4r.Entity()
        table.fill(entry, _WITH_METER, message)
        for field in ("metadata", "controller_metadata", "idle_timeout_ns"):
            message.table_entry.ClearField(field)
        if chosen is not None:
            actions = message.table_entry.action.action_profile_action_set.action_profile_actions
            kept = [actions[position] for position in sorted(chosen)]
            message.table_entry.action.action_profile_action_set.ClearField("action_profile_actions")
            actions = message.table_entry.action.action_profile_action_set.action_profile_actions
            actions.extend(_without_weight_and_watch(action) for action in kept)
        return message

    def _default(self, table: TableState) -> list[p4r.Entity]:
        """The default entry, as a list; empty if it is the program's initial one."""
        if table.plan.const_default or table.plan.profile is not None:
            return []
        message, initial = (
            self._entry(table, entry, None) for entry in (table.default, table.initial_default())
        )
        return [] if message == initial else [message]


def _without_weight_and_watch(member: _M) -> _M:
    """Sets a member's weight to 1 and removes its watch port."""
    member.weight = min(member.weight, 1)  # it is 0 if the program allows no weights
    member.ClearField("watch_kind")
    return member
