# SPDX-License-Identifier: Apache-2.0
"""Action profiles and selectors (SEMANTICS §2 rows 27, 28), and the order in which a hash chooses."""

from __future__ import annotations

import random

import pytest
from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tailrace.switch.p4runtime.context import DevicePorts
from tailrace.switch.p4runtime.device import DeviceSettings
from tailrace.switch.p4runtime.entities.profiles import MAX_GROUP_WEIGHT
from tests.switch.p4runtime.test_tables import read

INSERT, MODIFY, DELETE = 1, 2, 3
OK = Code.OK
INVALID = Code.INVALID_ARGUMENT


def member(rig, number: int, port: int = 1, kind: int = INSERT, profile: str = "hops") -> p4r.Update:
    update = p4r.Update(type=kind)
    entry = update.entity.action_profile_member
    entry.action_profile_id, entry.member_id = rig.names.id("action_profiles", profile), number
    action = ("send", port) if profile == "hops" else ("set_tos", port)
    entry.action.CopyFrom(rig.names.action(*action))
    return update


def group(
    rig, number: int, *members: tuple[int, int], kind: int = INSERT, watch: dict[int, int] | None = None
):
    update = p4r.Update(type=kind)
    entry = update.entity.action_profile_group
    entry.action_profile_id, entry.group_id = rig.names.id("action_profiles", "hops"), number
    for member_id, weight in members:
        item = entry.members.add(member_id=member_id, weight=weight)
        if watch and member_id in watch:
            item.watch_port = bytes([watch[member_id]])
    return update


def hop(rig, *, group_id: int = 0, member_id: int = 0, one_shot=None, prefix: int = 8, kind: int = INSERT):
    update = p4r.Update(type=kind)
    entry = update.entity.table_entry
    entry.table_id = rig.names.id("tables", "hop")
    match = entry.match.add(field_id=1)
    match.lpm.value, match.lpm.prefix_len = b"\x0a\0\0\0", prefix
    if group_id:
        entry.action.action_profile_group_id = group_id
    if member_id:
        entry.action.action_profile_member_id = member_id
    for port, weight, watch in one_shot or ():
        item = entry.action.action_profile_action_set.action_profile_actions.add(weight=weight)
        item.action.CopyFrom(rig.names.action("send", port))
        if watch:
            item.watch_port = bytes([watch])
    return update


def ports_used(rig, flows: int = 200, packets: int = 1) -> list[int]:
    """The port that each packet of many flows takes, in the order of the flows."""
    used = []
    # random, not consecutive: CRC-16 is linear, and neighbours differ little in its lowest bits
    rng = random.Random(1)
    for _ in range(flows):
        ip = bytes.fromhex("4500001c0000000040110000") + rng.randbytes(4) + b"\x0a\x01\x02\x03"
        frame = bytes(12) + b"\x08\x00" + ip + rng.randbytes(2) + bytes.fromhex("123400080000")
        for _ in range(packets):
            used += [port for port, _ in rig.receive(1, frame)]
    return used


def state(rig, number: int = 1):
    """(member handles, the group's order) inside the server."""
    profile = rig.device._live.state.profiles[rig.names.id("action_profiles", "hops")]
    order = tuple(sorted(profile._live_copies(profile.groups[number])))
    return {m: v.handles for m, v in profile.members.items()}, order


def test_members_and_groups_life_cycle(rig):
    """Row 27: codes of every operation; what is in use cannot be deleted."""
    assert rig.write(member(rig, 1), member(rig, 1), member(rig, 0), member(rig, 2, 2), member(rig, 9, kind=MODIFY)) == [
        OK, Code.ALREADY_EXISTS, INVALID, OK, Code.NOT_FOUND,
    ]  # fmt: skip
    assert rig.write(
        group(rig, 1, (1, 1), (2, 1)), group(rig, 1), group(rig, 0), group(rig, 2, (9, 1)), group(rig, 2, (1, 0)),
        group(rig, 2, (1, 1), (1, 1)), group(rig, 9, kind=MODIFY), group(rig, 2, (1, -1)),
    ) == [OK, Code.ALREADY_EXISTS, INVALID, Code.NOT_FOUND, INVALID, INVALID, Code.NOT_FOUND, INVALID]  # fmt: skip
    assert rig.write(hop(rig, group_id=1), hop(rig, member_id=9, prefix=9), hop(rig, group_id=9, prefix=9)) == [
        OK, Code.NOT_FOUND, Code.NOT_FOUND,
    ]  # fmt: skip
    assert (
        rig.write(group(rig, 1, kind=DELETE), member(rig, 1, kind=DELETE)) == [Code.FAILED_PRECONDITION] * 2
    )
    assert set(ports_used(rig)) == {1, 2}
    assert rig.write(member(rig, 2, 5, MODIFY)) == [OK]
    assert set(ports_used(rig)) == {1, 5}
    assert (
        rig.write(hop(rig, kind=DELETE), group(rig, 1, kind=DELETE), member(rig, 1, kind=DELETE)) == [OK] * 3
    )
    assert rig.write(member(rig, 3), hop(rig, member_id=3), member(rig, 3, kind=DELETE)) == [
        OK, OK, Code.FAILED_PRECONDITION,
    ]  # fmt: skip
    no_action = member(rig, 4)
    no_action.entity.action_profile_member.ClearField("action")
    assert rig.write(no_action) == [INVALID]


def test_reads(rig):
    """Row 27: what was written comes back, by id, by profile and for all."""
    first, second, both = member(rig, 1, 3), member(rig, 2, 4), group(rig, 7, (1, 2), (2, 1), watch={2: 3})
    both.entity.action_profile_group.max_size = 5
    mark = member(rig, 1, 9, profile="marks")
    assert rig.write(first, second, both, mark) == [OK] * 4
    for request, expected in (
        (p4r.Entity(action_profile_member=p4r.ActionProfileMember()), [first, second, mark]),
        (p4r.Entity(action_profile_group=p4r.ActionProfileGroup()), [both]),
        (p4r.Entity(action_profile_member=p4r.ActionProfileMember(member_id=2)), [second]),
    ):
        got = {entity.SerializeToString() for entity in rig.read(request)}
        assert got == {update.entity.SerializeToString() for update in expected}
    both.type = MODIFY
    both.entity.action_profile_group.max_size = 6
    assert rig.write(both) == [INVALID]
    both.entity.action_profile_group.max_size = 5
    both.entity.action_profile_group.members[0].weight = 5
    assert rig.write(both) == [Code.RESOURCE_EXHAUSTED]


def test_copies_of_weighted_members_are_made_as_in_simple_switch(rig):
    """Row 27: a weight is copies with the smallest free handles, shared between groups, gone when unused."""
    rig.write(member(rig, 5), member(rig, 3, 2))
    rig.write(group(rig, 1, (5, 1), (3, 3)))
    assert state(rig) == ({5: [0], 3: [1, 2, 3]}, (0, 1, 2, 3))
    rig.write(group(rig, 2, (5, 2), (3, 1)))
    assert state(rig, 2) == ({5: [0, 4], 3: [1, 2, 3]}, (0, 1, 4))
    rig.write(group(rig, 1, (3, 2), kind=MODIFY))
    assert state(rig) == ({5: [0, 4], 3: [1, 2]}, (1, 2))
    rig.write(group(rig, 2, kind=DELETE), member(rig, 6))
    assert state(rig) == ({5: [0], 3: [1, 2], 6: [3]}, (1, 2))


def test_weights_share_the_flows(rig):
    """Row 27: with weights 1 and 3, one quarter and three quarters of flows, give or take."""
    rig.write(member(rig, 1, 1), member(rig, 2, 2), group(rig, 1, (1, 1), (2, 3)), hop(rig, group_id=1))
    used = ports_used(rig, 400)
    assert 50 < used.count(1) < 150


def crc16(data: bytes) -> int:
    """CRC-16/ARC, bit by bit."""
    rest = 0
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ 0xA001 if rest & 1 else rest >> 1
    return rest


def test_hash_chooses_among_weighted_members_in_handle_order(rig):
    """Row 27: flow by flow, number hash % 4 of the copies sorted by handle: one of member 1, three of 2."""
    rig.write(member(rig, 1, 1), member(rig, 2, 2), group(rig, 1, (1, 1), (2, 3)), hop(rig, group_id=1))
    # the random numbers of ports_used: source address, then source port, which are the selector's inputs
    rng = random.Random(1)
    keys = [rng.randbytes(4) + rng.randbytes(2) for _ in range(200)]
    assert ports_used(rig) == [(1, 2, 2, 2)[crc16(key) % 4] for key in keys]


def test_watch_port(make_rig):
    """Row 27: a member whose port is down is not chosen; both encodings; the port must exist."""
    rig = make_rig(ports=DevicePorts(frozenset({1, 2, 3})), pushed="p4rt_all")
    rig.write(member(rig, 1, 1), member(rig, 2, 2))
    update = group(rig, 1, (1, 1), (2, 1), watch={2: 2})
    update.entity.action_profile_group.members[0].watch = 1
    assert rig.write(update, hop(rig, group_id=1)) == [OK, OK]
    assert rig.read(p4r.Entity(action_profile_group=p4r.ActionProfileGroup())) == [update.entity]
    assert set(ports_used(rig)) == {1, 2}
    rig.in_server(lambda: rig.device.port_changed(2, up=False))
    assert set(ports_used(rig)) == {1}
    rig.in_server(lambda: rig.device.port_changed(1, up=False))
    rig.in_server(lambda: rig.device.port_changed(2, up=True))
    assert set(ports_used(rig)) == {2}
    assert rig.write(group(rig, 2, (1, 1), watch={1: 7})) == [INVALID]


def test_one_shot(rig):
    """Row 28: insert, read back unmerged, modify, delete; nothing is left over."""
    update = hop(rig, one_shot=[(1, 2, 0), (1, 1, 0), (3, 1, 4)])
    assert rig.write(update) == [OK]
    assert read(rig, "hop") == [update.entity.table_entry]
    assert set(ports_used(rig)) == {1, 3}
    rig.in_server(lambda: rig.device.port_changed(4, up=False))
    assert set(ports_used(rig)) == {1}
    changed = hop(rig, one_shot=[(6, 1, 0)], kind=MODIFY)
    assert rig.write(changed) == [OK]
    assert set(ports_used(rig)) == {6}
    assert rig.write(
        hop(rig, one_shot=[(6, 0, 0)], prefix=9), hop(rig, one_shot=[(6, 70000, 0)], prefix=9),
    ) == [INVALID, Code.RESOURCE_EXHAUSTED]  # fmt: skip
    assert rig.write(hop(rig, one_shot=[(5, 1, 0)], kind=MODIFY), hop(rig, kind=INSERT), atomicity=1) == [
        Code.ABORTED, Code.ALREADY_EXISTS,
    ]  # fmt: skip
    assert set(ports_used(rig)) == {6}
    assert rig.write(hop(rig, kind=DELETE), member(rig, 1)) == [OK, OK]
    profile = rig.device._live.state.profiles[rig.names.id("action_profiles", "hops")]
    assert (profile.one_shots, profile.members[1].handles) == ({}, [0])


def test_styles_do_not_mix(rig):
    """Row 28: members and one-shots on one selector are INVALID_ARGUMENT, either way round."""
    assert rig.write(hop(rig, one_shot=[(1, 1, 0)]), member(rig, 1)) == [OK, INVALID]
    assert rig.write(hop(rig, kind=DELETE), member(rig, 1), hop(rig, one_shot=[(1, 1, 0)])) == [
        OK,
        OK,
        INVALID,
    ]


@pytest.mark.parametrize(("mode", "several"), [(0, False), (1, False), (2, True)])
def test_members_that_are_drawn(rig, mode, several):
    """Specification 9.2.3: with RANDOM each packet of a flow takes a member of its own, by the weights."""
    update = hop(rig, one_shot=[(1, 3, 0), (2, 1, 0)])
    action_set = update.entity.table_entry.action.action_profile_action_set
    action_set.action_selection_mode = p4r.ActionProfileActionSet.ActionSelectionMode.ValueType(mode)
    assert rig.write(update) == [OK]
    assert read(rig, "hop") == [update.entity.table_entry]
    ports = ports_used(rig, flows=1, packets=400)
    assert (len(set(ports)) == 2) == several
    if several:
        assert 240 < ports.count(1) < 360  # 300 on average, with a standard deviation of 8.7


@pytest.mark.parametrize("field", ["action_selection_mode", "size_semantics"])
def test_modes_that_nobody_knows(rig, field):
    update = hop(rig, one_shot=[(1, 1, 0)])
    setattr(update.entity.table_entry.action.action_profile_action_set, field, 3)
    assert rig.write(update) == [INVALID]


def test_plain_profile_has_no_groups(rig):
    """Row 27: an action profile without selector takes members only; an indirect table no action."""
    update = p4r.Update(type=INSERT)
    entry = update.entity.table_entry
    entry.table_id = rig.names.id("tables", "mark")
    entry.match.add(field_id=1).exact.value = b"\0"
    for field, value in (("action_profile_group_id", 1), ("action_profile_member_id", 1)):
        setattr(entry.action, field, value)
        assert rig.write(update) == [INVALID if "group" in field else Code.NOT_FOUND]
    entry.action.action.CopyFrom(rig.names.action("set_tos", 1))
    assert rig.write(update) == [INVALID]
    of_marks = group(rig, 1)
    of_marks.entity.action_profile_group.action_profile_id = rig.names.id("action_profiles", "marks")
    assert rig.write(of_marks) == [INVALID]


def test_profile_size(rig):
    """Row 27: more members than the profile's size are RESOURCE_EXHAUSTED."""
    codes = rig.write(*(member(rig, number, profile="marks") for number in range(1, 34)))
    assert codes == [OK] * 32 + [Code.RESOURCE_EXHAUSTED]


@pytest.mark.parametrize(
    ("max_size", "code"),
    [
        (-1, INVALID),
        (MAX_GROUP_WEIGHT, Code.OK),
        (MAX_GROUP_WEIGHT + 1, Code.RESOURCE_EXHAUSTED),
        ((1 << 31) - 1, Code.RESOURCE_EXHAUSTED),
    ],
)
def test_bad_max_size(rig, max_size, code):
    """Row 27: a negative max_size is INVALID_ARGUMENT; one that no group can have is refused when it is made."""
    update = group(rig, 1)
    update.entity.action_profile_group.max_size = max_size
    assert rig.write(update) == [code]


def test_the_size_of_a_selector_bounds_all_its_groups(rig):
    """One-shots are groups as others (9.2.3): together they have 64, and what goes makes room."""
    full, more = hop(rig, one_shot=[(1, 60, 0), (2, 4, 0)]), hop(rig, one_shot=[(1, 1, 0)], prefix=16)
    large = hop(rig, one_shot=[(1, 16384, 0)])
    assert rig.write(large, full, more) == [Code.RESOURCE_EXHAUSTED, OK, Code.RESOURCE_EXHAUSTED]
    full.type = MODIFY
    assert rig.write(full) == [OK]
    assert rig.write(hop(rig, one_shot=[(1, 63, 0)], kind=MODIFY), more) == [OK, OK]
    assert rig.write(full) == [Code.RESOURCE_EXHAUSTED]
    assert rig.write(hop(rig, kind=DELETE), hop(rig, prefix=16, kind=DELETE)) == [OK, OK]
    two = [member(rig, 1), group(rig, 1, (1, 40)), group(rig, 2, (1, 25)), group(rig, 2, (1, 24))]
    assert rig.write(*two) == [OK, OK, Code.RESOURCE_EXHAUSTED, OK]
    grown, shrunk = group(rig, 2, (1, 25), kind=MODIFY), group(rig, 1, (1, 39), kind=MODIFY)
    assert rig.write(grown, shrunk, grown) == [Code.RESOURCE_EXHAUSTED, OK, OK]
    assert rig.write(group(rig, 1, kind=DELETE), group(rig, 3, (1, 39))) == [OK, OK]


def test_simple_switch_grpc_bounds_no_groups(make_rig):
    rig = make_rig(settings=DeviceSettings(device_id=1, bmv2_compat=True), pushed="p4rt_all")
    assert rig.write(hop(rig, one_shot=[(1, 16384, 0)])) == [OK]
