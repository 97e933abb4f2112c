# SPDX-License-Identifier: Apache-2.0
"""Requirements on entities (specification 8.1 to 8.3, 9) that no other test shows.

requirements.toml says which test shows what.
"""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest
from finsy.proto import p4i, p4r

from tailrace.p4rt.status import Code
from tailrace.switch.p4runtime.context import DevicePorts
from tests.switch.p4runtime.conftest import Rig, RigMaker, details_of, refusal, wildcard
from tests.switch.p4runtime.test_externs import (
    counter,
    flood,
    modify,
    register,
    session,
    value_set,
)
from tests.switch.p4runtime.test_externs import group as multicast
from tests.switch.p4runtime.test_profiles import group, hop, member, ports_used
from tests.switch.p4runtime.test_streams import digest, idle_entry, learn, sources
from tests.switch.p4runtime.test_tables import acl, default, mac, read, route

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
OK, INVALID, DENIED = Code.OK, Code.INVALID_ARGUMENT, Code.PERMISSION_DENIED
MS = 1_000_000
FRAME = bytes.fromhex("0000000000050000000000019999") + bytes(46)


def read_code(rig: Rig, request: p4r.Entity) -> Code:
    """How a request of a Read ends."""
    try:
        rig.read(request)
    except grpc.RpcError as error:
        (detail,) = details_of(error)
        return Code(detail.canonical_code)
    return OK


def changed(rig: Rig, change: Callable[[p4i.P4Info], object]) -> None:
    """Sets the pipeline with another P4Info."""
    request = rig.config_request("p4rt_all")
    change(request.config.p4info)
    rig.stub.SetForwardingPipelineConfig(request, timeout=60)


def selector(info: p4i.P4Info) -> p4i.ActionProfile:
    return next(profile for profile in info.action_profiles if profile.preamble.alias == "hops")


# ---- 8: values ----


def test_zero_is_a_value(rig: Rig) -> None:
    """Of an exact field and of a parameter; it reads back."""
    update = mac(rig, 0, ("forward", 0))
    assert update.entity.table_entry.match[0].exact.value == b"\0"
    assert rig.write(update) == [OK]
    assert read(rig, "mac") == [update.entity.table_entry]
    assert [port for port, _ in rig.receive(1, bytes(60))] == [0]


def test_an_index_of_zero_is_not_an_unset_one(rig: Rig) -> None:
    """One cell, or all of them."""
    assert [len(rig.read(counter(rig, index))) for index in (0, None)] == [1, 8]
    assert [len(rig.read(register(rig, "wide", index))) for index in (0, None)] == [1, 2]


def test_widths_that_do_not_fill_their_bytes(make_rig: RigMaker) -> None:
    """A field of 3 bits: 7 is in it, 8 is not, however many zeros come before."""
    rig = make_rig(pushed="match_kinds")

    def entry(value: bytes) -> p4r.Update:
        update = p4r.Update(type=INSERT)
        update.entity.table_entry.table_id = rig.names.id("tables", "exact_match")
        for number, given in enumerate((b"\1", value, b"\1"), 1):
            update.entity.table_entry.match.add(field_id=number).exact.value = given
        update.entity.table_entry.action.action.CopyFrom(rig.names.action("set_exact", 9))
        return update

    codes = rig.write(
        entry(b"\x07"), entry(b"\0\0\x07"), entry(b"\x08"), entry(b"\0\x08"), entry(b"\x01\x07")
    )
    assert codes == [OK, Code.ALREADY_EXISTS] + [Code.OUT_OF_RANGE] * 3


# ---- 9.1: tables ----


def test_a_deletion_looks_at_the_key_alone(rig: Rig) -> None:
    """Whatever else it says makes no sense, but for is_const, which clients must never set."""
    nonsense = mac(rig, 1, kind=DELETE)
    entry = nonsense.entity.table_entry
    entry.action.action.action_id, entry.idle_timeout_ns, entry.controller_metadata = 77, -5, 9
    entry.meter_config.eburst, entry.counter_data.packet_count = 3, -1
    entry.time_since_last_hit.SetInParent()
    entry.metadata = bytes(5000)
    assert rig.write(mac(rig, 1), nonsense) == [OK, OK]
    assert read(rig, "mac") == []
    shot, bare = hop(rig, one_shot=[(1, 1, 0)]), hop(rig, kind=DELETE)
    bare.entity.table_entry.action.action_profile_group_id = 99
    assert rig.write(shot, bare) == [OK, OK]


@pytest.mark.parametrize("kind", [INSERT, MODIFY, DELETE])
def test_clients_do_not_make_entries_constant(rig: Rig, kind: int) -> None:
    """is_const in a write is INVALID_ARGUMENT, and nothing has changed."""
    assert rig.write(mac(rig, 2)) == [OK]
    update = mac(rig, 1 if kind == INSERT else 2, ("forward", 5), kind)
    update.entity.table_entry.is_const = True
    code, said = refusal(rig, update)
    assert code == INVALID and "is_const" in said
    assert read(rig, "mac") == [mac(rig, 2).entity.table_entry]


def test_a_modification_keeps_an_action_that_it_does_not_name(rig: Rig) -> None:
    """And the count of its counter, and takes all else as its new state."""
    first = mac(rig, 5, ("forward", 3))
    first.entity.table_entry.metadata, first.entity.table_entry.counter_data.packet_count = b"m", 7
    assert rig.write(first, mac(rig, 5, None, MODIFY)) == [OK, OK]
    (counted,) = read(rig, "mac", counter_data=True)
    assert counted.counter_data.packet_count == 7
    assert read(rig, "mac") == [mac(rig, 5, ("forward", 3)).entity.table_entry]
    assert [port for port, _ in rig.receive(1, FRAME)] == [3]
    assert rig.write(mac(rig, 5, ("forward", 4), MODIFY)) == [OK]
    assert [port for port, _ in rig.receive(1, FRAME)] == [4]


def test_actions_that_there_are_not(rig: Rig) -> None:
    """In an entry, a default entry, a member and a one-shot."""
    updates = [
        mac(rig, 1),
        default(rig, "mac", ("forward", 1)),
        member(rig, 1),
        hop(rig, one_shot=[(1, 1, 0)]),
    ]
    shots = updates[3].entity.table_entry.action.action_profile_action_set.action_profile_actions
    for action in (
        updates[0].entity.table_entry.action.action, updates[1].entity.table_entry.action.action,
        updates[2].entity.action_profile_member.action, shots[0].action,
    ):  # fmt: skip
        action.action_id = 77
    for update in updates:
        code, said = refusal(rig, update)
        assert code == INVALID and "no action with id 77" in said


def test_the_default_action_of_a_constant_table_can_change(rig: Rig) -> None:
    """Where it is not constant itself."""
    assert rig.write(default(rig, "fixed", ("set_tos", 1)), default(rig, "acl", ("send", 1))) == [OK, DENIED]
    (entry,) = read(rig, "fixed", is_default_action=True)
    assert entry.action.action == rig.names.action("set_tos", 1)


def test_initial_entries_are_as_any_other(rig: Rig) -> None:
    """They can be changed and deleted, and others inserted; the server does not call them constant."""
    entries = read(rig, "initial")
    assert [entry.is_const for entry in entries] == [False, False]
    updates = [p4r.Update(type=kind) for kind in (MODIFY, DELETE, INSERT)]
    for update, entry in zip(updates, (*entries, entries[1]), strict=True):
        update.entity.table_entry.CopyFrom(entry)
        update.entity.table_entry.action.action.CopyFrom(rig.names.action("set_tos", 7))
    assert rig.write(*updates) == [OK] * 3
    assert [entry.action.action for entry in read(rig, "initial")] == [rig.names.action("set_tos", 7)] * 2


def test_what_the_programs_json_does_not_tell(make_rig: RigMaker) -> None:
    """Of entries that are not all constant: which are, and what priorities are stated; their order it tells."""
    rig = make_rig(pushed="const_entries")
    entries = read(rig, "prioritised")
    assert [entry.is_const for entry in entries] == [False] * 4
    assert [entry.action.action.params[0].value for entry in entries] == [b"\4", b"\2", b"\1", b"\3"]
    priorities = [entry.priority for entry in entries]
    assert priorities == sorted(priorities, reverse=True) != [100, 20, 10, 5]


def test_what_a_read_of_tables_selects(rig: Rig) -> None:
    """Default entries alone when asked for; one entry by its key, none where there is none."""
    assert rig.write(mac(rig, 1), mac(rig, 2)) == [OK, OK]
    assert {entry.is_default_action for entry in read(rig, None)} == {False}
    assert {entry.is_default_action for entry in read(rig, None, is_default_action=True)} == {True}
    for number, count in ((2, 1), (3, 0)):
        request = mac(rig, number, None).entity
        assert [e.table_entry for e in rig.read(request)] == [mac(rig, 2).entity.table_entry] * count
    request = mac(rig, 1, None).entity
    request.table_entry.match[0].field_id = 7
    assert read_code(rig, request) == INVALID


def test_limits_of_idle_timeouts(rig: Rig) -> None:
    """As short as a client likes; time_since_last_hit is for reads, also without a timeout, not of defaults."""
    assert rig.write(idle_entry(rig, 1), idle_entry(rig, 0, 6)) == [OK, OK]
    written = idle_entry(rig, 0, 7)
    written.entity.table_entry.time_since_last_hit.SetInParent()
    assert rig.write(written) == [INVALID]
    rig.advance(5 * MS)
    entries = read(rig, "mac", time_since_last_hit=True)
    assert [entry.time_since_last_hit.elapsed_ns for entry in entries] == [5 * MS] * 2
    assert sorted(entry.idle_timeout_ns for entry in entries) == [0, 1]
    assert not any(entry.HasField("time_since_last_hit") for entry in read(rig, "mac"))
    for request in (default(rig, "mac").entity, default(rig, "route").entity):
        request.table_entry.time_since_last_hit.SetInParent()
        assert read_code(rig, request) == INVALID


def test_a_direct_resource_with_any_action(rig: Rig) -> None:
    """v1model runs the direct meter of a table with every action, so a configuration fits all of them."""
    update = mac(rig, 5, ("drop",))
    update.entity.table_entry.meter_config.pir = 9
    assert rig.write(update) == [OK]


def test_a_direct_resource_goes_with_its_entry(rig: Rig) -> None:
    """Of an entry that is not there, or not any more: NOT_FOUND in writes and reads."""
    assert rig.write(mac(rig, 1)) == [OK]
    requests = [p4r.Entity(), p4r.Entity()]
    for request, kind in zip(requests, ("direct_counter_entry", "direct_meter_entry"), strict=True):
        getattr(request, kind).table_entry.CopyFrom(mac(rig, 1, None).entity.table_entry)
    assert [read_code(rig, request) for request in requests] == [OK, OK]
    assert rig.write(*map(modify, requests)) == [OK, OK]
    assert rig.write(mac(rig, 1, kind=DELETE)) == [OK]
    assert [read_code(rig, request) for request in requests] == [Code.NOT_FOUND] * 2
    assert rig.write(*map(modify, requests)) == [Code.NOT_FOUND] * 2


# ---- 9.2: action profiles ----


def test_members_and_groups_have_ids_of_their_own(rig: Rig) -> None:
    """One number names a member and a group; a member may be in several groups, and changes in all of them."""
    assert rig.write(member(rig, 5, 1), group(rig, 5, (5, 1)), group(rig, 6, (5, 1))) == [OK] * 3
    for number in (5, 6):
        assert rig.write(hop(rig, group_id=number)) == [OK]
        assert set(ports_used(rig, 5)) == {1}
        assert rig.write(member(rig, 5, 4, MODIFY)) == [OK]
        assert set(ports_used(rig, 5)) == {4}
        assert rig.write(hop(rig, kind=DELETE), member(rig, 5, 1, MODIFY)) == [OK, OK]


def test_parameters_of_members(rig: Rig) -> None:
    """One too few or too many, an unknown one, one that does not fit."""
    wrong = [member(rig, 1) for _ in range(4)]
    params = [update.entity.action_profile_member.action.params for update in wrong]
    del params[0][:]
    params[1].add(param_id=2, value=b"\1")
    params[2][0].param_id = 9
    params[3][0].value = b"\2\0"
    assert rig.write(*wrong) == [INVALID] * 3 + [Code.OUT_OF_RANGE]


def test_a_group_of_several_actions(rig: Rig) -> None:
    """Its members need not have the same one."""
    other = member(rig, 2)
    other.entity.action_profile_member.action.CopyFrom(rig.names.action("rewrite", 2, 9))
    assert (
        rig.write(member(rig, 1, 1), other, group(rig, 1, (1, 1), (2, 1)), hop(rig, group_id=1)) == [OK] * 4
    )
    assert set(ports_used(rig)) == {1, 2}


def test_an_empty_group_does_nothing(rig: Rig) -> None:
    """It can be made, and be hit; no action is run. A group is just what the last MODIFY says."""
    assert rig.write(group(rig, 1), hop(rig, group_id=1), member(rig, 1, 3), member(rig, 2, 4)) == [OK] * 4
    assert set(ports_used(rig, 5)) == {0}
    for members, ports in (((1, 2), {3, 4}), ((2,), {4}), ((), {0})):
        assert rig.write(group(rig, 1, *((member_id, 1) for member_id in members), kind=MODIFY)) == [OK]
        assert set(ports_used(rig, 40)) == ports


def test_a_group_whose_ports_are_all_down_is_empty(make_rig: RigMaker) -> None:
    """Members that watch nothing stay; of one-shots likewise."""
    rig = make_rig(ports=DevicePorts(frozenset({1, 2, 3})), pushed="p4rt_all")
    assert rig.write(hop(rig, one_shot=[(1, 1, 1), (2, 1, 2)])) == [OK]
    for port in (1, 2):
        rig.in_server(lambda: rig.device.port_changed(port, up=False))  # noqa: B023 - it is called at once
    assert set(ports_used(rig, 5)) == {0}
    assert rig.write(hop(rig, one_shot=[(1, 1, 1), (3, 1, 0)], kind=MODIFY)) == [OK]
    assert set(ports_used(rig, 5)) == {3}


def test_a_deletion_of_members_and_groups_looks_at_ids_alone(rig: Rig) -> None:
    """Whatever else it says; what is not there is NOT_FOUND."""
    assert rig.write(member(rig, 1), group(rig, 1, (1, 1))) == [OK, OK]
    no_group, no_member = group(rig, 1, (77, 0), kind=DELETE), member(rig, 1, kind=DELETE)
    no_group.entity.action_profile_group.max_size = -3
    no_member.entity.action_profile_member.action.action_id = 77
    assert rig.write(no_group, no_member) == [OK, OK]
    assert rig.write(no_group, no_member) == [Code.NOT_FOUND] * 2


def test_sizes_of_groups(rig: Rig) -> None:
    """max_size up to P4Info's limit; what exceeds the one that was given is RESOURCE_EXHAUSTED."""
    changed(rig, lambda info: setattr(selector(info), "max_group_size", 4))
    sized = [group(rig, number, (1, 1), (2, 2)) for number in (1, 2, 3)]
    for update, max_size in zip(sized, (5, 2, 4), strict=True):
        update.entity.action_profile_group.max_size = max_size
    assert rig.write(member(rig, 1), member(rig, 2), *sized) == [OK, OK, INVALID, Code.RESOURCE_EXHAUSTED, OK]
    code, said = refusal(rig, sized[0])
    assert code == INVALID and "max_size 5" in said and "..4" in said
    shots = [hop(rig, one_shot=[(1, weight, 0), (2, 2, 0)]) for weight in (3, 2)]
    changed(rig, lambda info: setattr(selector(info), "max_group_size", 4))
    assert rig.write(*shots) == [INVALID, OK]


def test_sizes_by_members(rig: Rig) -> None:
    """With sum_of_members a weight counts as one, and has a limit of its own, which two equal actions pass."""

    def change(info: p4i.P4Info) -> None:
        hops = selector(info)
        hops.max_group_size, hops.sum_of_members.max_member_weight = 2, 100

    changed(rig, change)
    members = [member(rig, number, number) for number in (1, 2, 3)]
    assert rig.write(*members) == [OK] * 3
    groups = [
        group(rig, 1, (1, 100), (2, 50)),
        group(rig, 2, (1, 101)),
        group(rig, 3, (1, 1), (2, 1), (3, 1)),
    ]
    for update in groups:
        update.entity.action_profile_group.max_size = 2
    assert rig.write(*groups) == [OK, INVALID, Code.RESOURCE_EXHAUSTED]
    changed(rig, change)
    shots = [
        hop(rig, one_shot=[(1, 100, 0), (1, 100, 0)]), hop(rig, one_shot=[(1, 101, 0)], prefix=9),
        hop(rig, one_shot=[(1, 1, 0), (1, 1, 0), (1, 1, 0)], prefix=9),
    ]  # fmt: skip
    assert rig.write(*shots) == [OK, INVALID, INVALID]
    request = p4r.Entity(table_entry=p4r.TableEntry(table_id=rig.names.id("tables", "hop")))
    assert rig.read(request) == [shots[0].entity]
    # an action set may say itself what its size is
    sized = hop(rig, one_shot=[(1, 2, 0)], prefix=10)
    action_set = sized.entity.table_entry.action.action_profile_action_set
    action_set.size_semantics = p4r.ActionProfileActionSet.SUM_OF_WEIGHTS
    action_set.action_profile_actions[0].weight = 3
    assert rig.write(sized) == [INVALID]


def test_weights_that_are_disallowed(rig: Rig) -> None:
    """0 is then the only one, in groups and one-shots; without that it is none."""
    assert rig.write(member(rig, 1), group(rig, 1, (1, 0))) == [OK, INVALID]
    changed(rig, lambda info: setattr(selector(info), "weights_disallowed", True))
    assert rig.write(member(rig, 1), group(rig, 1, (1, 1)), group(rig, 1, (1, 0))) == [OK, INVALID, OK]
    changed(rig, lambda info: setattr(selector(info), "weights_disallowed", True))
    assert rig.write(hop(rig, one_shot=[(1, 1, 0)]), hop(rig, one_shot=[(1, 0, 0)])) == [INVALID, OK]


# ---- 9.3 to 9.8: arrays, replication, value sets, digests ----


@pytest.mark.parametrize("kind", [INSERT, DELETE])
def test_what_can_only_be_modified(rig: Rig, kind: int) -> None:
    """INVALID_ARGUMENT for the rest: cells, direct resources and value sets are always there."""
    assert rig.write(mac(rig, 1)) == [OK]
    meter, direct, direct_meter = p4r.Entity(), p4r.Entity(), p4r.Entity()
    meter.meter_entry.meter_id = rig.names.id("meters", "by_class")
    direct.direct_counter_entry.table_entry.CopyFrom(mac(rig, 1, None).entity.table_entry)
    direct_meter.direct_meter_entry.table_entry.CopyFrom(mac(rig, 1, None).entity.table_entry)
    entities = [
        counter(rig, 1, 5),
        register(rig, "words", 1, b"\1"),
        value_set(rig),
        meter,
        direct,
        direct_meter,
    ]
    for entity in entities:
        code, said = refusal(rig, modify(entity, kind))
        assert code == INVALID and "only be modified" in said
    assert rig.write(*map(modify, entities)) == [OK] * len(entities)


def test_indexes_of_meters(rig: Rig) -> None:
    """Negative is INVALID_ARGUMENT, behind the end OUT_OF_RANGE, in writes and reads, as of all arrays."""
    for make in (lambda index: counter(rig, index, 1), lambda index: register(rig, "words", index, b"\1")):
        assert [read_code(rig, make(index)) for index in (-1, 99)] == [INVALID, Code.OUT_OF_RANGE]
    cell = p4r.Entity()
    cell.meter_entry.meter_id = rig.names.id("meters", "by_class")
    for index, code in ((-1, INVALID), (4, Code.OUT_OF_RANGE), (3, OK)):
        cell.meter_entry.index.index = index
        assert (rig.write(modify(cell)), read_code(rig, cell)) == ([code], code)


def test_registers_begin_with_zero(rig: Rig) -> None:
    """All cells of all of them."""
    everything = wildcard("register_entry")
    assert [entity.register_entry.data.bitstring for entity in rig.read(everything)] == [b"\0"] * 18


def test_what_multicast_groups_hold(rig: Rig) -> None:
    """Metadata reads back and is replaced; reads and deletions look at the id alone; instances have a limit."""
    first = multicast(4, (1, 65535))
    entry = first.packet_replication_engine_entry.multicast_group_entry
    entry.metadata = b"\0m"
    assert rig.write(modify(first, INSERT), modify(multicast(5, (1, 65536)), INSERT)) == [OK, INVALID]
    asked = multicast(4, (9, 9))
    asked.packet_replication_engine_entry.multicast_group_entry.metadata = b"other"
    assert rig.read(asked) == [first]
    assert rig.write(modify(multicast(4, (2, 1)))) == [OK]
    assert rig.read(multicast(4)) == [multicast(4, (2, 1))]
    assert rig.write(modify(asked, DELETE), modify(asked, DELETE)) == [OK, Code.NOT_FOUND]
    assert flood(rig, 4) == []


def test_backups_that_are_all_down(rig: Rig) -> None:
    """The copy goes to the port of the replica itself; two backups must differ."""
    backed = multicast(4, (2, 1), backups=((3, 2), (5, 3)))
    assert rig.write(modify(backed, INSERT)) == [OK]
    for port in (2, 3, 5):
        rig.in_server(lambda: rig.device.port_changed(port, up=False))  # noqa: B023 - it is called at once
    assert flood(rig, 4) == [2]
    assert rig.write(modify(multicast(6, (2, 1), backups=((3, 2), (3, 2))), INSERT)) == [INVALID]


def test_what_clone_sessions_hold(rig: Rig) -> None:
    """Instances have a limit; reads and deletions look at the id alone."""
    wrong = session(7, 6)
    wrong.packet_replication_engine_entry.clone_session_entry.replicas[0].instance = 1 << 16
    assert rig.write(modify(wrong, INSERT), modify(session(7, 6, length=9), INSERT)) == [INVALID, OK]
    assert rig.read(session(7, 1, 2, 3, cos=5)) == [session(7, 6, length=9)]
    assert rig.write(modify(session(7, cos=9), DELETE), modify(session(7), DELETE)) == [OK, Code.NOT_FOUND]


def test_a_value_set_decides_where_the_parser_goes(make_rig: RigMaker) -> None:
    """Packets of its members alone take the transition; an emptied set takes none."""
    rig = make_rig(pushed="value_sets")
    vset = rig.names.info.value_sets[0]
    kinds = p4i.MatchField.MatchType
    assert [kinds.Name(field.match_type) for field in vset.match] == ["EXACT"]
    entity = p4r.Entity()
    entity.value_set_entry.value_set_id = vset.preamble.id
    frame = bytes(12) + b"\x12\x34" + bytes(60)
    before = rig.receive(1, frame)
    entity.value_set_entry.members.add().match.add(field_id=1).exact.value = b"\x12\x34"
    assert rig.write(modify(entity)) == [OK]
    assert rig.receive(1, frame) != before
    entity.value_set_entry.ClearField("members")
    assert rig.write(modify(entity)) == [OK]
    assert rig.receive(1, frame) == before


def test_sizes_of_digest_lists(rig: Rig) -> None:
    """1: every message by itself, whatever the timeout; 0: as many as come within it; DELETE ends it."""
    stream = rig.sessions[0]
    assert rig.write(digest(rig, INSERT, timeout_ms=1000, size=1)) == [OK]
    learn(rig, 1)
    learn(rig, 2)
    assert [sources(stream.next()) for _ in range(2)] == [[1], [2]]
    assert rig.write(digest(rig, MODIFY, timeout_ms=50, size=0)) == [OK]
    for source in range(100):
        learn(rig, source)
    rig.advance(50 * MS)
    assert sources(stream.next()) == list(range(100))
    assert rig.write(digest(rig, DELETE)) == [OK]
    learn(rig, 7)
    rig.advance(1000 * MS)
    stream.arbitrate(1)
    assert stream.status() == OK  # and nothing before


# ---- errors say what was sent and what is allowed ----


def test_errors_name_what_was_sent_and_what_is_allowed(rig: Rig) -> None:
    """One of every kind of entity."""
    long_prefix, no_priority = route(rig, b"\x0a\0\0\0", 33), acl(rig, 0)
    wrong_action, foreign = mac(rig, 1), member(rig, 1)
    wrong_action.entity.table_entry.action.action.action_id = 77
    foreign.entity.action_profile_member.action.action_id = 78
    meter = p4r.Entity()
    meter.meter_entry.meter_id, meter.meter_entry.index.index = rig.names.id("meters", "by_class"), 4
    too_many = value_set(rig, *(bytes([n]) for n in range(1, 6)))
    direct = p4r.Entity()
    direct.direct_counter_entry.table_entry.table_id = rig.names.id("tables", "route")
    slow = mac(rig, 6)
    slow.entity.table_entry.meter_config.cir = 3
    heavy = group(rig, 1, (1, -4))
    for update, parts in (
        (long_prefix, ("'dst'", "33", "1..32")),
        (no_priority, ("AllIngress.acl", "priority is 0", "above 0")),
        (wrong_action, ("AllIngress.mac", "77")),
        (foreign, ("AllIngress.hops", "78")),
        (modify(counter(rig, 8, 5)), ("AllIngress.by_port", "index 8", "size 8")),
        (modify(counter(rig, 1, -5)), ("AllIngress.by_port", "packet_count is -5", "negative")),
        (modify(register(rig, "words", 4, b"\x01\0\0\0\0")), ("AllIngress.words", "32 bits")),
        (modify(meter), ("AllIngress.by_class", "index 4", "size 4")),
        (slow, ("AllIngress.mac_rate", "pir 0", "cir 3")),
        (modify(too_many), ("AllParser.special_types", "5 members", "is 4")),
        (modify(direct), ("AllIngress.route", "no direct counter")),
        (digest(rig, INSERT, size=-1), ("learn_t", "max_list_size is -1", "negative")),
        (modify(multicast(4, (512, 1)), INSERT), ("multicast group 4", "512", "511")),
        (modify(session(6, 6, cos=8), INSERT), ("clone session 6", "class_of_service 8", "7")),
    ):
        code, said = refusal(rig, update)
        assert code in (INVALID, Code.OUT_OF_RANGE, Code.RESOURCE_EXHAUSTED)
        assert all(part in said for part in parts), said
    assert rig.write(member(rig, 1)) == [OK]
    assert all(part in refusal(rig, heavy)[1] for part in ("AllIngress.hops", "weight -4", "positive"))
