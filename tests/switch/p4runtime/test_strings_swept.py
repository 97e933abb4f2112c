# SPDX-License-Identifier: Apache-2.0
"""Strings that no entity has any more make room for others; those that one has keep their numbers."""

from __future__ import annotations

from typing import Any

import pytest
from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tailrace.switch.p4runtime import state as state_module
from tailrace.switch.p4runtime.context import DevicePorts, finish
from tests.switch.p4runtime.conftest import Rig, RigMaker, everything_of
from tests.switch.p4runtime.test_profiles import group, member
from tests.switch.p4runtime.test_translation import ports_as, string_entry, string_keys

INSERT, MODIFY, DELETE = 1, 2, 3
CONTINUE, ROLLBACK, ATOMIC = 0, 1, 2
ROOM = 12


def types(rig: Rig) -> Any:
    return state_of(rig).schema.types


def state_of(rig: Rig) -> Any:
    assert rig.device._live is not None
    return rig.device._live.state


@pytest.fixture
def strings(make_rig: RigMaker) -> Rig:
    """A pipeline with room for a dozen strings."""
    rig = make_rig()
    rig.primary()
    string_keys(rig)
    rig.in_server(lambda: setattr(types(rig)._quota, "remaining", ROOM))
    return rig


def entries(rig: Rig, kind: int, first: str, count: int = ROOM - 1) -> list[p4r.Update]:
    return [string_entry(rig, kind, f"{first}{number}".encode(), b"red") for number in range(count)]


@pytest.mark.parametrize("atomicity", [CONTINUE, ROLLBACK, ATOMIC])
def test_a_successor_has_room(strings: Rig, atomicity: int) -> None:
    """As often as it likes; what is there all the time is what it was."""
    rig = strings
    kept = entries(rig, INSERT, "kept", 1)
    assert rig.write(*kept) == [Code.OK]
    before = rig.read(*everything_of("table_entry"))
    number = rig.in_server(lambda: next(iter(types(rig)._names.values())).look_up(b"kept0"))
    for first in "abc":
        batch = entries(rig, INSERT, first, ROOM - 2)
        assert set(rig.write(*batch, atomicity=atomicity)) == {Code.OK}
        refused = string_entry(rig, INSERT, b"more", b"red")
        assert rig.write(refused) == [Code.RESOURCE_EXHAUSTED]
        for update in batch:
            update.type = p4r.Update.DELETE
        assert set(rig.write(*batch, atomicity=atomicity)) == {Code.OK}
    assert rig.read(*everything_of("table_entry")) == before
    assert rig.in_server(lambda: next(iter(types(rig)._names.values())).look_up(b"kept0")) == number


def test_room_is_made_within_a_write(strings: Rig) -> None:
    """Which deletes before it inserts."""
    rig = strings
    assert set(rig.write(*entries(rig, INSERT, "a"))) == {Code.OK}
    assert set(rig.write(*entries(rig, DELETE, "a"), *entries(rig, INSERT, "b"))) == {Code.OK}


def test_nothing_is_swept_while_a_batch_may_be_taken_back(
    strings: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has deleted comes back with its strings, whatever others write meanwhile."""
    rig = strings
    monkeypatch.setattr(state_module, "QUANTUM", 1)
    assert set(rig.write(*entries(rig, INSERT, "a"))) == {Code.OK}
    before = sorted(map(str, rig.read(*everything_of("table_entry"))))

    def within() -> bool:
        state = state_of(rig)
        steps = state.write_all_or_none([*entries(rig, DELETE, "a"), p4r.Update()], [])
        next(steps)
        assert (
            finish(state.apply(string_entry(rig, INSERT, b"b", b"blue"), None)).code
            == Code.RESOURCE_EXHAUSTED
        )
        for _ in steps:
            pass
        return bool(types(rig).may_sweep())

    assert rig.in_server(within)
    assert sorted(map(str, rig.read(*everything_of("table_entry")))) == before


def test_every_kind_of_entity_keeps_its_strings(make_rig: RigMaker) -> None:
    """Ports of replicas, and those to watch by groups and one-shots, all named by strings."""
    rig = make_rig(ports=DevicePorts())
    rig.primary()
    ports_as(rig, None, "p4rt_all")
    multicast, clone = p4r.Update(type=INSERT), p4r.Update(type=INSERT)
    entry = multicast.entity.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = 1
    entry.replicas.add(port=b"replica", instance=1).backup_replicas.add(port=b"backup", instance=2)
    session = clone.entity.packet_replication_engine_entry.clone_session_entry
    session.session_id = 1
    session.replicas.add(port=b"mirror", instance=1)
    watched = group(rig, 1, (1, 1))
    watched.entity.action_profile_group.members[0].watch_port = b"watched"
    assert rig.write(multicast, clone, member(rig, 1), watched) == [Code.OK] * 4
    names = (b"replica", b"backup", b"mirror", b"watched")
    numbers = rig.in_server(lambda: [state_of(rig).context.port_names.look_up(name) for name in names])
    assert None not in numbers
    other = p4r.Update(type=MODIFY)
    other.CopyFrom(watched)
    other.entity.action_profile_group.group_id = 2
    for number in range(600):
        other.type = p4r.Update.INSERT
        other.entity.action_profile_group.members[0].watch_port = b"other %d" % number
        assert rig.write(other) == [Code.OK]
        other.type = p4r.Update.DELETE
        assert rig.write(other) == [Code.OK]
    assert numbers == rig.in_server(
        lambda: [state_of(rig).context.port_names.look_up(name) for name in names]
    )
