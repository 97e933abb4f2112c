# SPDX-License-Identifier: Apache-2.0
"""@refers_to and @referenced_by: nothing refers to what is not there, after any write, batch or push."""

from __future__ import annotations

import random

import grpc
import pytest
from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tailrace.switch.p4runtime.device import DeviceSettings
from tailrace.switch.p4runtime.pins.references import MAX_OPTIONAL, MAX_REFERENCES, Reference
from tests.switch.p4runtime.pins import annotate, find, message_of, push, refused
from tests.switch.p4runtime.test_profiles import group, hop
from tests.switch.p4runtime.test_tables import default, mac, read, route
from tests.switch.p4runtime.test_translation import translate

INSERT, MODIFY, DELETE = 1, 2, 3
OK, INVALID, ABORTED = Code.OK, Code.INVALID_ARGUMENT, Code.ABORTED

TO_MAC = {"actions/rewrite/dst": "@refers_to(mac , dst)"}
TO_GROUP = {"actions/flood/group": "@refers_to(builtin : : multicast_group_table , multicast_group_id)"}
NET = b"\x0a\0\0\0"


def rewrite(rig, dst: int, prefix: int = 8, kind: int = INSERT) -> p4r.Update:
    """A route whose action refers to an entry of mac."""
    return route(rig, NET, prefix, ("rewrite", 1, dst), kind)


def member(rig, number: int, dst: int, kind: int = INSERT) -> p4r.Update:
    update = p4r.Update(type=p4r.Update.Type.ValueType(kind))
    entry = update.entity.action_profile_member
    entry.action_profile_id, entry.member_id = rig.names.id("action_profiles", "hops"), number
    entry.action.CopyFrom(rig.names.action("rewrite", 1, dst))
    return update


def multicast(group_id: int, *replicas: tuple[bytes | int, int], kind: int = INSERT) -> p4r.Update:
    update = p4r.Update(type=p4r.Update.Type.ValueType(kind))
    entry = update.entity.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = group_id
    for port, instance in replicas:
        replica = entry.replicas.add(instance=instance)
        if isinstance(port, bytes):
            replica.port = port
        else:
            replica.egress_port = port
    return update


def counts(rig) -> dict[Reference, list[int]]:
    """The index of the live pipeline."""
    index: dict[Reference, list[int]] = rig.device._live.state.context.references._counts
    return {reference: list(each) for reference, each in index.items()}


def test_what_is_referred_to_has_to_be_there(rig):
    push(rig, TO_MAC)
    assert rig.write(rewrite(rig, 5), mac(rig, 5), rewrite(rig, 5)) == [INVALID, OK, OK]
    assert message_of(rig, rewrite(rig, 0x42, 9)) == (
        "table 'AllIngress.route': @refers_to: there is no entry in 'AllIngress.mac' with dst 0x42"
    )
    assert rig.write(rewrite(rig, 6, kind=MODIFY)) == [INVALID]
    assert rig.write(mac(rig, 6), rewrite(rig, 6, kind=MODIFY), mac(rig, 5, kind=DELETE)) == [OK] * 3


def test_what_is_referred_to_cannot_be_deleted(rig):
    push(rig, TO_MAC)
    assert rig.write(mac(rig, 5), rewrite(rig, 5), rewrite(rig, 5, 9)) == [OK] * 3
    assert rig.write(mac(rig, 5, kind=DELETE)) == [INVALID]
    assert message_of(rig, mac(rig, 5, kind=DELETE)) == (
        "table 'AllIngress.mac': 2 entries refer (@refers_to) to the entry in 'AllIngress.mac' with dst 0x05"
    )
    assert rig.write(mac(rig, 5, ("drop",), MODIFY)) == [OK]
    assert rig.write(rewrite(rig, 5, kind=DELETE), mac(rig, 5, kind=DELETE)) == [OK, INVALID]
    assert rig.write(route(rig, NET, 9, kind=MODIFY), mac(rig, 5, kind=DELETE)) == [OK, OK]
    assert counts(rig) == {}


def test_batches_in_their_order_and_taken_back(rig):
    push(rig, TO_MAC)
    assert rig.write(rewrite(rig, 5), mac(rig, 5), atomicity=1) == [INVALID, ABORTED]
    assert rig.write(mac(rig, 5), rewrite(rig, 5), rewrite(rig, 9, 9), atomicity=1) == [ABORTED] * 2 + [
        INVALID
    ]
    assert counts(rig) == {}
    assert rig.write(mac(rig, 5), mac(rig, 6), rewrite(rig, 5), atomicity=1) == [OK] * 3
    before = counts(rig)
    for fails in (0, 1):
        bad = mac(rig, 6, kind=INSERT) if fails else rewrite(rig, 9, kind=INSERT)
        updates = [rewrite(rig, 6, kind=MODIFY), mac(rig, 5, kind=DELETE), rewrite(rig, 6, kind=DELETE), bad]
        assert rig.write(*updates, atomicity=1 + fails).count(ABORTED) == 3
        assert counts(rig) == before
        assert rig.write(mac(rig, 5, kind=DELETE)) == [INVALID]


def test_default_entries_members_and_one_shots(rig):
    push(rig, TO_MAC)
    assert rig.write(default(rig, "route", ("rewrite", 1, 5)), member(rig, 1, 5)) == [INVALID] * 2
    assert rig.write(mac(rig, 5), default(rig, "route", ("rewrite", 1, 5)), mac(rig, 5, kind=DELETE)) == [
        OK,
        OK,
        INVALID,
    ]
    assert rig.write(default(rig, "route"), mac(rig, 5, kind=DELETE)) == [OK, OK]
    assert rig.write(mac(rig, 5), mac(rig, 6), member(rig, 1, 5), member(rig, 1, 7, MODIFY)) == [OK] * 3 + [
        INVALID
    ]
    assert rig.write(mac(rig, 5, kind=DELETE), member(rig, 1, 6, MODIFY), mac(rig, 5, kind=DELETE)) == [
        INVALID,
        OK,
        OK,
    ]
    assert rig.write(group(rig, 1, (1, 1)), hop(rig, group_id=1), mac(rig, 6, kind=DELETE)) == [
        OK,
        OK,
        INVALID,
    ]
    assert rig.write(hop(rig, kind=DELETE), group(rig, 1, kind=DELETE), member(rig, 1, 6, DELETE)) == [OK] * 3
    shot = hop(rig, one_shot=[(1, 1, 0), (2, 1, 0)])
    actions = shot.entity.table_entry.action.action_profile_action_set.action_profile_actions
    actions[1].action.CopyFrom(rig.names.action("rewrite", 1, 5))
    assert rig.write(shot, mac(rig, 5), shot, mac(rig, 5, kind=DELETE)) == [INVALID, OK, OK, INVALID]
    assert rig.write(hop(rig, kind=DELETE), mac(rig, 5, kind=DELETE), mac(rig, 6, kind=DELETE)) == [OK] * 3
    assert counts(rig) == {}


def test_multicast_groups(rig):
    push(rig, TO_GROUP)
    assert rig.write(mac(rig, 1, ("flood", 7)), multicast(7), mac(rig, 1, ("flood", 7))) == [INVALID, OK, OK]
    assert message_of(rig, mac(rig, 2, ("flood", 8))).endswith(
        "no entry in 'builtin::multicast_group_table' with multicast_group_id 0x08"
    )
    assert rig.write(multicast(7, kind=DELETE), multicast(7, (1, 1), kind=MODIFY)) == [INVALID, OK]
    assert rig.write(mac(rig, 1, kind=DELETE), multicast(7, kind=DELETE)) == [OK, OK]
    assert counts(rig) == {}


def test_replicas_refer_to_tables(make_rig):
    """As SAI's multicast_router_interface_table: port and instance together are one entry of it."""
    rig = make_rig()
    rig.primary()
    to_table = "@referenced_by(builtin::multicast_group_table, replica."
    where = {
        "tables/exact_match/exact8": f"{to_table}port)",
        "tables/exact_match/exact3": f"{to_table}instance)",
    }
    push(rig, where, program="match_kinds")
    assert rig.write(exact(rig, 1, 2), exact(rig, 2, 1)) == [OK, OK]
    assert rig.write(multicast(1, (b"\x01", 1)), multicast(1, (b"\0\x01", 2), (2, 1))) == [INVALID, OK]
    assert message_of(rig, multicast(2, (2, 1), (2, 2))).endswith("with exact8 0x02, exact3 0x02")
    assert rig.write(exact(rig, 1, 2, kind=DELETE)) == [INVALID]
    backup = multicast(1, (b"\x01", 2), kind=MODIFY)
    entry = backup.entity.packet_replication_engine_entry.multicast_group_entry
    entry.replicas[0].backup_replicas.add(port=b"\x05", instance=5)
    assert rig.write(backup) == [INVALID]
    assert rig.write(multicast(1, (2, 1), kind=MODIFY), exact(rig, 1, 2, kind=DELETE)) == [OK, OK]
    assert rig.write(
        exact(rig, 2, 1, kind=DELETE), multicast(1, kind=DELETE), exact(rig, 2, 1, kind=DELETE)
    ) == [
        INVALID,
        OK,
        OK,
    ]
    assert counts(rig) == {}


def exact(rig, first: int, other: int, kind: int = INSERT) -> p4r.Update:
    """An entry of a table with three exact fields, of which one is always 1."""
    update = p4r.Update(type=p4r.Update.Type.ValueType(kind))
    entry = update.entity.table_entry
    entry.table_id = rig.names.id("tables", "exact_match")
    for number, value in enumerate((first, other, 1), 1):
        entry.match.add(field_id=number).exact.value = bytes([value])
    entry.action.action.CopyFrom(rig.names.action("set_exact", 9))
    return update


def referring(rig, key: int | None, value: int, kind: int = INSERT, priority: int = 1) -> p4r.Update:
    """An entry whose optional field and whose parameter refer to such an entry."""
    update = p4r.Update(type=p4r.Update.Type.ValueType(kind))
    entry = update.entity.table_entry
    entry.table_id, entry.priority = rig.names.id("tables", "optional_match"), priority
    if key is not None:
        entry.match.add(field_id=2).optional.value = bytes([key])
    entry.action.action.CopyFrom(rig.names.action("set_optional", value))
    return update


TOGETHER: dict[str, str | list[str]] = {
    "tables/optional_match/exact8": "@refers_to(exact_match, exact8)",
    "actions/set_optional/value": "@refers_to(exact_match, exact3)",
}


def test_key_and_action_together_are_one_entry(rig):
    """Fields and parameters that refer to one table are found in one of its entries, not in several."""
    push(rig, TOGETHER, program="match_kinds")
    assert rig.write(exact(rig, 1, 2), exact(rig, 3, 4)) == [OK, OK]
    assert rig.write(referring(rig, 1, 4), referring(rig, 3, 2), referring(rig, 1, 2)) == [
        INVALID,
        INVALID,
        OK,
    ]
    assert message_of(rig, referring(rig, 1, 4, priority=2)).endswith("with exact8 0x01, exact3 0x04")
    # the optional field left out, the parameter alone refers
    assert rig.write(referring(rig, None, 5), referring(rig, None, 4)) == [INVALID, OK]
    assert rig.write(exact(rig, 1, 4), exact(rig, 3, 4, DELETE), exact(rig, 1, 2, DELETE)) == [
        OK,
        OK,
        INVALID,
    ]
    assert rig.write(referring(rig, 1, 4, MODIFY), exact(rig, 1, 2, DELETE), exact(rig, 1, 4, DELETE)) == [
        OK,
        OK,
        INVALID,
    ]


def test_a_field_that_is_referred_to_twice(rig):
    """SAI's set_ip_nexthop: one parameter refers to two tables; and two may refer to one field of one."""
    push(
        rig,
        {
            "actions/rewrite/dst": ["@refers_to(mac, dst)", "@refers_to(initial, src_port)"],
            "actions/rewrite/port": "@refers_to(mac, dst)",
        },
    )
    initial = {entry.match[0].exact.value for entry in read(rig, "initial")}
    port = int.from_bytes(min(initial), "big")
    assert rig.write(mac(rig, port), rewrite(rig, port), mac(rig, 1), rewrite(rig, port)) == [
        OK,
        INVALID,
        OK,
        OK,
    ]
    assert rig.write(mac(rig, port, kind=DELETE), mac(rig, 1, kind=DELETE)) == [INVALID, INVALID]


def test_an_entry_may_come_to_refer_to_itself(rig):
    push(rig, {"actions/forward/port": "@refers_to(mac, dst)"})
    assert rig.write(mac(rig, 1), mac(rig, 1, ("drop",)), mac(rig, 1, kind=MODIFY)) == [INVALID, OK, OK]
    assert rig.write(mac(rig, 1, kind=DELETE)) == [OK]
    assert counts(rig) == {}


def test_strings(rig):
    """What strings say is compared, not the numbers that they stand for, which differ by type."""
    request = rig.config_request("match_kinds")
    info = request.config.p4info
    for path, name in (("tables/exact_match/exact8", "vrf_t"), ("actions/set_lpm/value", "name_t")):
        translate(info, name, None)
        find(info, path).type_name.name = name
        find(info, path).bitwidth = 0
    annotate(info, {"actions/set_lpm/value": '@refers_to("exact_match" , "exact8")'})
    rig.set_pipeline(request)
    entry = p4r.Update(type=p4r.Update.INSERT)
    entry.entity.table_entry.table_id = rig.names.id("tables", "lpm_match")
    action = entry.entity.table_entry.action.action
    action.action_id = rig.names.id("actions", "set_lpm")
    action.params.add(param_id=1, value=b"blue")
    target = exact(rig, 1, 1)
    assert rig.write(entry) == [INVALID]
    for value in (b"red", b"blue"):
        target.entity.table_entry.match[0].exact.value = value
        assert rig.write(target) == [OK]
    assert rig.write(entry) == [OK]
    target.type = p4r.Update.DELETE
    assert message_of(rig, target).endswith("with exact8 'blue'")


def test_reconciling_checks_in_the_end(rig):
    """What refers may come before what it refers to; and new annotations are asked of what is kept."""
    push(rig, {})
    assert rig.write(rewrite(rig, 5), member(rig, 1, 6), mac(rig, 1, ("flood", 7)), mac(rig, 6)) == [OK] * 4
    assert "cannot be kept: @refers_to: there is no entry in 'AllIngress.mac' with dst 0x05" in refused(
        rig, TO_MAC, 5
    )
    assert rig.write(mac(rig, 5), multicast(7)) == [OK, OK]
    for _ in range(2):
        push(rig, {**TO_MAC, **TO_GROUP}, 5)
        assert (
            rig.write(mac(rig, 6, kind=DELETE), mac(rig, 5, kind=DELETE), multicast(7, kind=DELETE))
            == [INVALID] * 3
        )
        assert rig.write(rewrite(rig, 9, 9)) == [INVALID]


def test_the_index_is_a_part_of_the_memory(make_rig):
    """All of it is given back, and the limit holds."""
    rig = make_rig(settings=DeviceSettings(device_id=1, memory_limit=1 << 20))
    rig.primary()
    push(rig, TO_MAC)
    used = rig.device.memory.used
    codes = rig.write(*(mac(rig, n) for n in range(600)))
    assert codes.count(Code.RESOURCE_EXHAUSTED) == 600 - codes.count(OK)
    plain = make_rig(settings=DeviceSettings(device_id=1, memory_limit=1 << 20))
    plain.primary()
    push(plain, {})
    assert codes.count(OK) < plain.write(*(mac(plain, n) for n in range(600))).count(OK)
    rig.write(*(mac(rig, n, kind=DELETE) for n in range(600)))
    assert (
        rig.write(mac(rig, 5), mac(rig, 6), member(rig, 1, 5), member(rig, 1, 6, MODIFY), rewrite(rig, 6))
        == [OK] * 5
    )
    assert rig.write(member(rig, 1, 6, DELETE), rewrite(rig, 6, kind=DELETE)) == [OK] * 2
    assert rig.write(mac(rig, 5, kind=DELETE), mac(rig, 6, kind=DELETE)) == [OK] * 2
    assert rig.device.memory.used == used


def test_any_updates_leave_nothing_dangling(rig):
    """Random batches against a model: what the server takes is what refers to something that is there."""
    push(rig, TOGETHER, program="match_kinds")
    rng = random.Random(7)
    targets: set[tuple[int, int]] = set()
    entries: dict[tuple[int | None, int], int] = {}  # key and priority: parameter
    small = range(1, 4)

    def fits(key: int | None, value: int) -> bool:
        return any(other == value and key in (None, target_key) for target_key, other in targets)

    for _ in range(400):
        kind = rng.choice((INSERT, MODIFY, DELETE))
        if rng.randrange(2):
            pair = rng.choice(small), rng.choice(small)
            expected = (kind == INSERT) != (pair in targets)
            if expected and kind == DELETE:
                targets.discard(pair)
                expected = all(fits(key, value) for (key, _), value in entries.items())
                if not expected:
                    targets.add(pair)
            elif expected:
                targets.add(pair)
            assert (rig.write(exact(rig, *pair, kind)) == [OK]) == expected
        else:
            key, value, priority = rng.choice((None, *small)), rng.choice(small), rng.choice((1, 2))
            expected = (kind == INSERT) != ((key, priority) in entries) and (
                kind == DELETE or fits(key, value)
            )
            if expected and kind == DELETE:
                del entries[key, priority]
            elif expected:
                entries[key, priority] = value
            assert (rig.write(referring(rig, key, value, kind, priority)) == [OK]) == expected
    assert targets
    assert entries


@pytest.mark.parametrize(
    ("where", "annotation", "said"),
    [
        ("actions/rewrite/dst", "@refers_to(nothing, dst)", "@refers_to: there is no table 'nothing'"),
        ("actions/rewrite/dst", "@refers_to(mac, src)", "table 'mac' has no field 'src'"),
        ("actions/rewrite/dst", "@refers_to(mac)", "takes a table and a field, not 'mac'"),
        ("actions/rewrite/dst", "@refers_to", "takes a table and a field, not ''"),
        ("actions/rewrite/dst", "@refers_to(route, dst)", "can only name exact fields"),
        (
            "actions/rewrite/dst",
            "@refers_to(builtin::multicast_group_table, id)",
            "takes the field multicast_group_id",
        ),
        (
            "actions/rewrite/dst",
            "@refers_to(builtin::clone_session_table, id)",
            "there is no table 'builtin::clone",
        ),
        ("tables/route/dst", "@refers_to(mac, dst)", "is for exact and optional fields"),
        (
            "tables/mac/dst",
            "@referenced_by(route, dst)",
            "@referenced_by takes builtin::multicast_group_table",
        ),
        (
            "tables/route/dst",
            "@referenced_by(builtin::multicast_group_table, replica.port)",
            "only name exact fields",
        ),
    ],
)
def test_bad_annotations_are_refused_with_the_pipeline(rig, where, annotation, said):
    assert said in refused(rig, {where: annotation})


def test_too_many_references(rig):
    many = ["@refers_to(mac, dst)"] * (MAX_REFERENCES + 1)
    assert f"the limit is {MAX_REFERENCES}" in refused(rig, {"actions/rewrite/dst": many})
    assert f"the limit is {MAX_OPTIONAL}" in refused(rig, {"tables/acl/protocol": many[: MAX_OPTIONAL + 1]})


def test_a_structured_annotation(rig):
    request = rig.config_request("p4rt_all")
    annotation = find(request.config.p4info, "actions/rewrite/dst").structured_annotations.add(
        name="refers_to"
    )
    for key, value in (("field", "dst"), ("table", "AllIngress.mac")):
        annotation.kv_pair_list.kv_pairs.add(key=key).value.string_value = value
    rig.set_pipeline(request)
    assert rig.write(rewrite(rig, 5), mac(rig, 5), rewrite(rig, 5)) == [INVALID, OK, OK]


@pytest.mark.parametrize(
    "keys",
    [("table",), ("table", "field", "more"), ("table", "column"), ("a", "b"), ("table", "field", "field")],
)
def test_structured_annotations_with_other_keys_are_refused(rig, keys):
    request = rig.config_request("p4rt_all")
    annotation = find(request.config.p4info, "actions/rewrite/dst").structured_annotations.add(
        name="refers_to"
    )
    for key, value in zip(keys, ("mac", "dst", "dst"), strict=False):
        annotation.kv_pair_list.kv_pairs.add(key=key).value.string_value = value
    with pytest.raises(grpc.RpcError) as caught:
        rig.stub.SetForwardingPipelineConfig(request, timeout=60)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert f"@refers_to takes a table and a field, not '{', '.join(keys)}'" in caught.value.details()


@pytest.mark.parametrize(
    "annotation",
    [
        *("@refers_to(mac, dst", "@refers_to(mac, dst))", "@refers_to mac, dst)", "@refers_to(mac, dst) x"),
        *('@refers_to("mac, dst)', "@refers_to(mac dst)", "@refers_to(m ac, dst)", "@refers_to((mac, dst)"),
        *("@refers_to(mac;dst)", "@refers_to(mac,, dst)", "@refers_to(", "@refers_to)", "@refers_to()"),
    ],
)
def test_malformed_annotations_are_refused(rig, annotation):
    """With what stands there."""
    said = refused(rig, {"actions/rewrite/dst": annotation})
    assert said.endswith(f"takes a table and a field, not '{annotation.removeprefix('@refers_to').strip()}'")
