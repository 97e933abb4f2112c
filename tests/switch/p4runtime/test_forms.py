# SPDX-License-Identifier: Apache-2.0
"""A switch behaves the same whatever was written before to others that share its pipeline."""

from __future__ import annotations

from typing import Any

import pytest
from finsy.proto import p4r
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tailrace.switch.p4runtime.entities import tables
from tailrace.switch.p4runtime.entities.schema import Schema
from tailrace.switch.p4runtime.state import ForwardingState
from tests.switch.p4runtime import states
from tests.switch.p4runtime.test_stateful_batches import id_of, program

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE

Codes = list[tuple[int, str] | None]
"""What became of updates: code and message, or None."""


def state_of(schema: Schema) -> ForwardingState:
    return states.new_state(program()[0], schema, now_ns=7)


@st.composite
def actions(draw: st.DrawFn) -> p4r.Action:
    """An action that a table may have, or not, now and then with a value that does not fit."""
    name, params = draw(
        st.sampled_from(
            [("forward", 1), ("send", 1), ("rewrite", 2), ("drop", 0), ("set_tos", 1), ("learn", 0)]
        )
    )
    action = p4r.Action(action_id=id_of("actions", name))
    for number in range(1, params + 1):
        action.params.add(
            param_id=number, value=draw(st.sampled_from([b"\1", b"\0\1", b"\2", b"", b"\xff\xff"]))
        )
    return action


@st.composite
def entries(draw: st.DrawFn) -> p4r.TableEntry:
    """An entry of one of five tables, all of few keys; attributes that only some tables take are rare."""
    table = draw(st.sampled_from(["mac", "mac", "route", "route", "acl", "initial", "mark", "fixed"]))
    entry = p4r.TableEntry(table_id=id_of("tables", table))
    value = draw(st.sampled_from([b"\1", b"\0\1", b"\2"]))
    if table == "route":
        match = entry.match.add(field_id=1).lpm
        match.value, match.prefix_len = value, draw(st.sampled_from([31, 32]))
    elif table == "acl":
        entry.match.add(field_id=4).exact.value = value
        entry.priority = draw(st.integers(0, 2))
    else:
        entry.match.add(field_id=1).exact.value = value
    kind = draw(st.sampled_from(["action"] * 8 + ["none", "profile"]))
    if kind == "action":
        entry.action.action.CopyFrom(draw(actions()))
    elif kind == "profile":
        entry.action.action_profile_member_id = 1
    attribute = draw(st.sampled_from([""] * 8 + ["metadata", "cookie", "timeout", "count", "rate", "const"]))
    if attribute == "metadata":
        entry.metadata = b"m"
    elif attribute == "cookie":
        entry.controller_metadata = 4
    elif attribute == "timeout":
        entry.idle_timeout_ns = draw(st.sampled_from([-1, 1000]))
    elif attribute == "count":
        entry.counter_data.packet_count = draw(st.integers(-1, 3))
    elif attribute == "rate":
        entry.meter_config.cir, entry.meter_config.cburst = 10, 20
        entry.meter_config.pir, entry.meter_config.pburst = 30, 40
    elif attribute == "const":
        entry.is_const = True
    return entry


updates = st.builds(
    lambda kind, entry: p4r.Update(type=kind, entity=p4r.Entity(table_entry=entry)),
    st.sampled_from([INSERT, INSERT, INSERT, MODIFY, DELETE]),
    entries(),
)


def written(state: ForwardingState, batch: list[p4r.Update], *, whole: bool) -> Codes:
    results = states.written(state, batch, whole=whole)
    return [None if result is None else (result.code, result.message) for result in results]


def shown(state: ForwardingState, *, whole: bool) -> list[bytes]:
    """All that the tables hold, in the order of a Read, perhaps with counters, meters and times."""
    entry = p4r.TableEntry()
    if whole:
        entry.counter_data.SetInParent()
        entry.meter_config.SetInParent()
        entry.time_since_last_hit.SetInParent()
    entities, results = states.answered(state, [p4r.Entity(table_entry=entry)])
    assert results == [None]
    return [entity.SerializeToString() for entity in entities]


def check(batches: list[tuple[bool, list[p4r.Update]]], shared: Schema) -> None:
    """A switch whose pipeline has been used before does as one that remembers nothing."""
    used, fresh = state_of(shared), state_of(replace(shared, interned={}))
    try:
        for whole, batch in batches:
            assert written(fresh, batch, whole=whole) == written(used, batch, whole=whole)
            for table in fresh.tables.values():
                for entry in table.entries.values():
                    entry.interned = None
            for everything in (False, True):
                assert shown(fresh, whole=everything) == shown(used, whole=everything)
    finally:
        for state in (used, fresh):
            state.context.switch.close()


@settings(max_examples=150)
@given(batches=st.lists(st.tuples(st.booleans(), st.lists(updates, max_size=12)), max_size=4))
def test_as_on_a_switch_alone(batches: list[tuple[bool, list[p4r.Update]]]) -> None:
    """Same answers, errors and entries; the shared pipeline has seen all examples before this one."""
    check(batches, program()[1])


def mac(number: int, **more: Any) -> p4r.Update:
    """An insert into the table whose entries take all attributes."""
    update = p4r.Update(type=INSERT)
    update.entity.table_entry.CopyFrom(p4r.TableEntry(table_id=id_of("tables", "mac"), **more))
    update.entity.table_entry.match.add(field_id=1).exact.value = bytes([number])
    update.entity.table_entry.action.action.action_id = id_of("actions", "drop")
    return update


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"metadata": b"m"},
        {"controller_metadata": 4},
        {"idle_timeout_ns": 1000},
        {"counter_data": p4r.CounterData(packet_count=3)},
        {"meter_config": p4r.MeterConfig(cir=10, cburst=20, pir=30, pburst=40)},
    ],
)
@pytest.mark.parametrize("keeps_action", [True, False])
def test_attributes(more: dict[str, Any], keeps_action: bool) -> None:
    """What hangs on an entry goes with it, and goes when a change of the entry takes it away or brings it."""
    schema = replace(program()[1], interned={})
    plain, decked = mac(1), mac(1, **more)
    for first, then in ((plain, decked), (decked, plain)):
        change = p4r.Update()
        change.CopyFrom(then)
        change.type = MODIFY
        if keeps_action:
            change.entity.table_entry.ClearField("action")
        for _ in range(2):
            check([(False, [first]), (False, [change])], schema)


@pytest.mark.parametrize("most", [1, 3])
def test_more_than_is_kept(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Entries stay right where there are more than are kept."""
    monkeypatch.setattr(tables, "MOST_INTERNED", most)
    schema = replace(program()[1], interned={})
    batch = [mac(number % 7 + 1) for number in range(20)]
    for _ in range(2):
        check([(False, batch)], schema)
