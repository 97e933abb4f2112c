# SPDX-License-Identifier: Apache-2.0
"""Registers, counters, hash, random, digests, clones and replication by the Python API."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tailrace.switch.compiler import load_program
from tailrace.switch.core import ActionCall, GroupRef, MemberRef, Replica, StateError, V1ModelSwitch
from tests.long import some
from tests.switch.bmv2_builder import Builder, assign, call, const, field, pack, unpack

WIDTHS = (1, 8, 9, 16, 31, 32, 33, 64, 65, 128, 129, 200)


def named(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "value": name}


def outputs_of(switch: V1ModelSwitch, frame: bytes, at_ns: int = 0, port: int = 1) -> list[tuple[int, bytes]]:
    switch.inject(port, frame, at_ns)
    switch.run(at_ns)
    return [(o.port, o.data) for o in switch.outputs()]


@pytest.mark.parametrize("bits", some(WIDTHS, 3))
def test_registers_of_any_width(bits: int) -> None:
    """A packet reads the cell and writes its own value; an index out of range touches nothing."""
    inputs, results = [("index", 32), ("value", bits)], [("old", bits)]
    b = Builder(inputs, results)
    b.extra["register_arrays"] = [{"name": "r", "id": 0, "size": 5, "bitwidth": bits}]
    index, value, old = field("in", "index"), field("in", "value"), field("out", "old")
    b.run(
        [
            call("register_read", old, named("register_array", "r"), index),
            call("register_write", named("register_array", "r"), index, value),
        ]
    )
    rng = random.Random(bits)
    with V1ModelSwitch(load_program(b.text())) as switch:
        cells = [rng.getrandbits(bits) for _ in range(5)]
        for i, cell in enumerate(cells):
            switch.register_write(0, i, cell)
        for _ in range(60):
            i = rng.choice([0, 1, 2, 3, 4, 5, 6, 2**31, 2**32 - 1])
            v, seen = rng.getrandbits(bits), rng.getrandbits(bits)
            frame = pack(inputs, [i, v])
            ((_, data),) = outputs_of(switch, frame + pack(results, [seen]))
            assert [cells[i] if i < 5 else seen] == unpack(results, data[len(frame) :])
            if i < 5:
                cells[i] = v
            assert cells == switch.register_read_all(0)
        with pytest.raises(StateError) as caught:
            switch.register_write(0, 0, 1 << bits)
        assert "range" == caught.value.code
        switch.register_reset(0)
        assert [0] * 5 == switch.register_read_all(0)


def test_counters_count_packets_and_bytes_of_the_frame_that_came_in() -> None:
    inputs = [("index", 32)]
    b = Builder(inputs)
    b.extra["counter_arrays"] = [{"name": "c", "id": 0, "size": 3, "is_direct": False}]
    b.run([call("count", named("counter_array", "c"), field("in", "index"))])
    with V1ModelSwitch(load_program(b.text())) as switch:
        switch.counter_write(0, 2, 1000, 10)
        for index, size in ((0, 20), (2, 30), (2, 40), (3, 50), (2**32 - 1, 60)):
            outputs_of(switch, pack(inputs, [index]) + bytes(size - 4))
        assert [(20, 1), (0, 0), (1070, 12)] == switch.counter_cells(0, 0, 3)


@pytest.mark.parametrize(("base", "size"), [(0, 1), (10, 7), (65530, 100), (3, 0)])
def test_hash_lies_between_base_and_base_plus_max(base: int, size: int) -> None:
    """A maximum of 0 counts as 1 (SEMANTICS §1 row 11)."""
    inputs, results = [("a", 32)], [("h", 32)]
    b = Builder(inputs, results)
    source = {"type": "field", "value": ["in", "a"]}
    b.extra["calculations"] = [{"name": "c", "id": 0, "algo": "crc32", "input": [source]}]
    hashed = call(
        "modify_field_with_hash_based_offset",
        field("out", "h"),
        const(base),
        named("calculation", "c"),
        const(size),
    )
    b.run([hashed])
    rng = random.Random(5)
    with V1ModelSwitch(load_program(b.text())) as switch:
        values = set()
        for _ in range(100):
            frame = rng.randbytes(4)
            ((_, data),) = outputs_of(switch, frame + bytes(4))
            values.add(int.from_bytes(data[4:], "big") - base)
        assert values <= set(range(max(size, 1)))
        assert len(values) > size // 2


def test_random_is_uniform_in_its_range_and_repeats_with_the_seed() -> None:
    """A low bound above the high one leaves the field alone (SEMANTICS §1 row 11)."""
    inputs, results = [("lo", 16), ("hi", 16)], [("r", 16)]
    b = Builder(inputs, results)
    b.run([call("modify_field_rng_uniform", field("out", "r"), field("in", "lo"), field("in", "hi"))])
    program = load_program(b.text())
    runs = []
    for _ in range(2):
        with V1ModelSwitch(program) as switch:
            seen = [
                unpack(results, outputs_of(switch, pack(inputs, [10, 13]) + bytes(2))[0][1][4:])[0]
                for _ in range(200)
            ]
            assert {10, 11, 12, 13} == set(seen)
            ((_, data),) = outputs_of(switch, pack(inputs, [13, 10]) + b"\x12\x34")
            assert b"\x12\x34" == data[4:]
        runs.append(seen)
    assert runs[0] == runs[1]


def test_digests_carry_the_fields_as_they_are_after_ingress() -> None:
    inputs = [("a", 8), ("b", 130)]
    b = Builder(inputs)
    elements = [{"type": "field", "value": ["in", "a"]}, {"type": "field", "value": ["in", "b"]}]
    b.extra["learn_lists"] = [{"id": 1, "name": "d", "elements": elements}]
    b.run([call("generate_digest", const(1), const(1)), assign(field("in", "a"), const(0x77))])
    with V1ModelSwitch(load_program(b.text())) as switch:
        value = random.Random(1).getrandbits(130)
        outputs_of(switch, pack(inputs, [1, value]) + b"\0", 42)
        assert [(0, 42, (0x77, value))] == switch.digests()
        assert [] == switch.digests()


def test_a_full_digest_ring_loses_the_newest() -> None:
    """1024 records wait at most; the switch never blocks on its control plane, and says what it loses."""
    inputs = [("a", 16)]
    b = Builder(inputs)
    b.extra["learn_lists"] = [{"id": 1, "name": "d", "elements": [{"type": "field", "value": ["in", "a"]}]}]
    b.run([call("generate_digest", const(1), const(1))])
    with V1ModelSwitch(load_program(b.text())) as switch:
        lost: list[str] = []
        switch.set_log(lambda level, text: lost.append(f"{level}: {text}"))
        for i in range(1100):
            outputs_of(switch, pack(inputs, [i]) + b"\0")
        assert ["warning: digest message lost: 1024 wait already"] * 76 == lost
        assert list(range(1024)) == [d.values[0] for d in switch.digests()]


def replicating(body: list[dict[str, Any]]) -> V1ModelSwitch:
    b = Builder([("a", 8)], [("rid", 16), ("kind", 8)])
    b.extra["field_lists"] = [{"id": 1, "name": "none", "elements": []}]
    b.run(body)
    std = "standard_metadata"
    stamp = b.action(
        "stamp",
        [
            call("assign", field("out", "rid"), field(std, "egress_rid")),
            call("assign", field("out", "kind"), field(std, "instance_type")),
        ],
    )
    b.table("e", [], "exact", [stamp], default=(stamp, []), const_default=True, egress=True)
    return V1ModelSwitch(load_program(b.text()))


def seen(outputs: list[tuple[int, bytes]]) -> list[tuple[int, int, int]]:
    return [(port, int.from_bytes(data[1:3], "big"), data[3]) for port, data in outputs]


def test_multicast_makes_a_copy_for_every_replica() -> None:
    """Instance type 5; the original is not sent; an unknown group drops (SEMANTICS §1 row 15)."""
    with replicating([call("assign", field("standard_metadata", "mcast_grp"), field("in", "a"))]) as switch:
        switch.mcast_set(7, [Replica(2, 20), Replica(1, 10), Replica(2, 30), Replica(1, 20)])
        assert [(1, 10, 5), (1, 20, 5), (2, 20, 5), (2, 30, 5)] == sorted(
            seen(outputs_of(switch, b"\x07\0\0\0"))
        )
        assert [] == outputs_of(switch, b"\x08\0\0\0")
        switch.mcast_delete(7)
        assert [] == outputs_of(switch, b"\x07\0\0\0")
        assert {"multicast_unknown": 2, "multicast_original": 1} == switch.drops()


def test_clones_go_to_their_session_and_the_packet_goes_on() -> None:
    """Instance type 1; an unknown session makes no clone (SEMANTICS §1 rows 3, 4)."""
    with replicating([call("clone_ingress_pkt_to_egress", field("in", "a"), const(1))]) as switch:
        switch.clone_set(0, [Replica(4, 1)])
        switch.clone_set(9, [Replica(5, 2), Replica(6, 3)], truncate_bytes=3)
        assert [(0, 0, 0), (4, 1, 1)] == sorted(seen(outputs_of(switch, b"\0\0\0\0")))
        frame_by_port = dict(outputs_of(switch, b"\x09\0\0\0payload"))
        assert b"\x09\0\0\0payload" == frame_by_port[0]
        assert (b"\x09\0\x02", b"\x09\0\x03") == (frame_by_port[5], frame_by_port[6])
        assert [(0, 0, 0)] == seen(outputs_of(switch, b"\x0a\0\0\0"))


def selecting() -> tuple[V1ModelSwitch, int]:
    """A table whose entries name members or groups of a selector over field a."""
    b = Builder([("key", 8), ("a", 8)], [("id", 8)])
    param = {"type": "runtime_data", "value": 0}
    action = b.action("found", [call("assign", field("out", "id"), param)], [("id", 8)])
    b.table("t", [("exact", "in", "key")], "exact", [action], type="indirect_ws", action_profile="p")
    program = b.json()
    selector = {"algo": "identity", "input": [{"type": "field", "value": ["in", "a"]}]}
    program["pipelines"][0]["action_profiles"] = [
        {"name": "p", "id": 0, "max_size": 16, "selector": selector}
    ]
    return V1ModelSwitch(load_program(json.dumps(program).encode())), action


def test_a_selector_chooses_by_hash_and_a_member_is_shared() -> None:
    switch, action = selecting()
    with switch:
        members = [switch.members_add(0, ActionCall(action, (v,)), 1)[0] for v in (11, 22, 33)]
        group = switch.group_add(0)
        switch.group_set(0, group, [members[2], members[0], members[0]])
        switch.table_insert(0, b"\x01", b"", target=GroupRef(group))
        switch.table_insert(0, b"\x02", b"", target=MemberRef(members[1]))
        for a in range(12):
            assert [(0, bytes([1, a, (33, 11, 11)[a % 3]]))] == outputs_of(switch, bytes([1, a, 0]))
        assert [(0, b"\x02\x05\x16")] == outputs_of(switch, b"\x02\x05\0")
        switch.members_modify(0, [members[1]], ActionCall(action, (99,)))
        assert [(0, b"\x02\x05\x63")] == outputs_of(switch, b"\x02\x05\0")


def test_an_empty_group_and_a_deleted_member_do_nothing() -> None:
    switch, action = selecting()
    with switch:
        (member,) = switch.members_add(0, ActionCall(action, (1,)), 1)
        group = switch.group_add(0)
        switch.table_insert(0, b"\x01", b"", target=GroupRef(group))
        switch.table_insert(0, b"\x02", b"", target=MemberRef(member))
        switch.member_delete(0, member)
        for key in (1, 2, 3):
            assert [(0, bytes([key, 7, 9]))] == outputs_of(switch, bytes([key, 7, 9]))
