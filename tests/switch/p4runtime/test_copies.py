# SPDX-License-Identifier: Apache-2.0
"""A member of weight N is N copies, so a few octets of a message may be much work: it is counted, not timed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from tailrace.p4rt.status import Code
from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.p4runtime.context import COPIES_PER_WORK, QUANTUM, Undo
from tailrace.switch.p4runtime.entities.schema import Schema, build_schema
from tailrace.switch.p4runtime.reconcile import transfer
from tailrace.switch.p4runtime.state import ForwardingState, Result
from tests.switch.p4runtime import states
from tests.switch.p4runtime.conftest import BUILD, wildcard

INSERT, MODIFY, DELETE = 1, 2, 3
WEIGHT = 16384
"""The most that a group may have."""
TOUCHED = {INSERT: 2 * WEIGHT, MODIFY: 3 * WEIGHT, DELETE: WEIGHT}
"""Copies of a one-shot action are made, put into the group, and those before dropped."""


@cache
def program() -> tuple[SwitchProgram, Schema, p4i.P4Info]:
    info = text_format.Parse((BUILD / "action_profiles.p4info.txtpb").read_text(), p4i.P4Info())
    loaded = load_program((BUILD / "action_profiles.json").read_bytes())
    return loaded, build_schema(info, loaded.model), info


def id_of(kind: str, alias: str) -> int:
    object_id: int = next(
        item.preamble.id for item in getattr(program()[2], kind) if item.preamble.alias == alias
    )
    return object_id


@pytest.fixture
def state() -> Iterator[ForwardingState]:
    # lenient: P4Info's size of a selector does not limit the copies
    made = states.new_state(*program()[:2], lenient=True)
    yield made
    made.context.switch.close()


def one_shot(kind: int, number: int, weight: int = WEIGHT) -> p4r.Update:
    update = p4r.Update(type=p4r.Update.Type.ValueType(kind))
    entry = update.entity.table_entry
    entry.table_id = id_of("tables", "route")
    entry.match.add(field_id=1).lpm.CopyFrom(
        p4r.FieldMatch.LPM(value=bytes([10, 0, number, 0]), prefix_len=24)
    )
    item = entry.action.action_profile_action_set.action_profile_actions.add(weight=weight)
    item.action.action_id = id_of("actions", "set_port")
    item.action.params.add(param_id=1, value=b"\1")
    return update


def member(kind: int, value: int) -> p4r.Update:
    update = p4r.Update(type=p4r.Update.Type.ValueType(kind))
    entity = update.entity.action_profile_member
    entity.action_profile_id, entity.member_id = id_of("action_profiles", "next_hops"), 1
    entity.action.action_id = id_of("actions", "set_port")
    entity.action.params.add(param_id=1, value=bytes([value]))
    return update


def group(kind: int, number: int, weight: int = WEIGHT) -> p4r.Update:
    update = p4r.Update(type=p4r.Update.Type.ValueType(kind))
    entity = update.entity.action_profile_group
    entity.action_profile_id, entity.group_id = id_of("action_profiles", "next_hops"), number
    if kind != DELETE:
        entity.members.add(member_id=1, weight=weight)
    return update


def test_copies_are_work(state: ForwardingState) -> None:
    """Of one-shot actions: each update is a step that counts what it has made, changed and dropped."""
    for kind in (INSERT, MODIFY, DELETE):
        results: list[Result] = []
        works = list(state.write([one_shot(kind, number) for number in range(3)], results))
        assert not any(results) and len(works) == 3
        assert min(works) >= TOUCHED[kind] // COPIES_PER_WORK >= 4 * QUANTUM


def test_copies_of_members_are_work(state: ForwardingState) -> None:
    """Of groups, and of a member whose copies all get another action."""
    updates = [member(INSERT, 1), group(INSERT, 1), group(INSERT, 2), member(MODIFY, 2), group(MODIFY, 1)]
    results: list[Result] = []
    works = [sum(state.write([update], results)) for update in (*updates, group(DELETE, 2), group(DELETE, 1))]
    assert not any(results)
    few = WEIGHT // COPIES_PER_WORK
    assert [work // few for work in works] == [0, 2, 1, 1, 1, 0, 1]


def test_to_carry_them_over_is_work(state: ForwardingState) -> None:
    """RECONCILE_AND_COMMIT makes them all anew."""
    assert not any(states.written(state, [one_shot(INSERT, number) for number in range(3)]))
    new = states.new_state(*program()[:2], lenient=True)
    try:
        works = list(transfer(state, new))
    finally:
        new.context.switch.close()
    assert sum(work >= TOUCHED[INSERT] // COPIES_PER_WORK for work in works) == 3


@pytest.mark.parametrize("way", ["many", "again", "members", "order"])
def test_a_batch_of_all_or_none_has_a_budget(state: ForwardingState, way: str) -> None:
    """Beyond it the update is refused with both figures, and nothing has changed; within it all is well."""
    before = [member(INSERT, 1)] if way in ("members", "order") else [one_shot(INSERT, 0, 1)]
    if way == "order":
        before.append(group(INSERT, 1))
    assert not any(states.written(state, before))
    batch = {
        "many": [one_shot(INSERT, number) for number in range(1, 20)],
        "again": [one_shot(MODIFY, 0, WEIGHT - number % 2) for number in range(20)],
        "members": [group(INSERT, 1), *(member(MODIFY, number) for number in range(2, 20))],
        "order": [group(MODIFY, 1)] * 20,
    }[way]
    asked = wildcard("table_entry")
    members = wildcard("action_profile_member")
    entities = states.answered(state, [asked, members])[0]
    memory = state.context.memory._used
    results = states.written(state, batch, whole=True)
    failed = next(result for result in results if result is not None and result.code != Code.ABORTED)
    assert failed.code == Code.RESOURCE_EXHAUSTED
    assert f"{Undo.MOST_COPIES} copies" in failed.message
    assert states.answered(state, [asked, members])[0] == entities
    assert state.context.memory._used == memory
    assert states.written(state, batch[:2], whole=True) == [None] * 2
