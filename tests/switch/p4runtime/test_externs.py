# SPDX-License-Identifier: Apache-2.0
"""Indirect counters and meters, registers, value sets, replication (SEMANTICS §2 rows 24-26, 29, 30)."""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4i, p4r
from hypothesis import given
from hypothesis import strategies as st

from tailrace.p4rt.status import Code
from tailrace.switch.p4runtime.device import DeviceSettings
from tailrace.switch.p4runtime.entities import match
from tailrace.switch.p4runtime.entities.bytestring import encode
from tests.switch.p4runtime.conftest import details_of, wildcard

INSERT, MODIFY, DELETE = 1, 2, 3
OK = Code.OK
INVALID = Code.INVALID_ARGUMENT


def modify(entity: p4r.Entity, kind: int = MODIFY) -> p4r.Update:
    return p4r.Update(type=kind, entity=entity)


def counter(rig, index: int | None, packets: int | None = None) -> p4r.Entity:
    entity = p4r.Entity()
    entity.counter_entry.counter_id = rig.names.id("counters", "by_port")
    if index is not None:
        entity.counter_entry.index.index = index
    if packets is not None:
        entity.counter_entry.data.packet_count = packets
    return entity


def test_indirect_counters(rig):
    """Row 24: MODIFY only, by index or all, negative index, index behind the end, wildcard reads."""
    assert rig.write(
        modify(counter(rig, 3, 5)), modify(counter(rig, -1, 5)), modify(counter(rig, 8, 5)),
        modify(counter(rig, 3, 5), INSERT), modify(counter(rig, 3, 5), DELETE), modify(counter(rig, 3, -5)),
    ) == [OK, INVALID, Code.OUT_OF_RANGE, INVALID, INVALID, INVALID]  # fmt: skip
    rig.receive(3, bytes(60))
    (got,) = rig.read(counter(rig, 3))
    assert (got.counter_entry.data.packet_count, got.counter_entry.data.byte_count) == (6, 60)
    assert len(rig.read(counter(rig, None))) == 8
    assert rig.write(modify(counter(rig, None, 9)), modify(counter(rig, 2))) == [OK, OK]
    everything = wildcard("counter_entry")
    assert [e.counter_entry.data.packet_count for e in rig.read(everything)] == [9] * 8


def test_indirect_meters(rig):
    """Row 24: configure one or all, default configuration has no config."""
    cell = p4r.Entity()
    cell.meter_entry.meter_id = rig.names.id("meters", "by_class")
    cell.meter_entry.index.index = 2
    cell.meter_entry.config.pir = 8
    everything = wildcard("meter_entry")
    assert rig.write(modify(cell)) == [OK]
    assert [e.meter_entry.HasField("config") for e in rig.read(everything)] == [False, False, True, False]
    assert rig.read(cell) == [cell]
    reset = p4r.Entity()
    reset.meter_entry.meter_id = cell.meter_entry.meter_id
    assert rig.write(modify(reset), modify(cell, INSERT)) == [OK, INVALID]
    assert not any(e.meter_entry.HasField("config") for e in rig.read(everything))


def register(rig, name: str, index: int | None, value: bytes | None = None) -> p4r.Entity:
    entity = p4r.Entity()
    entity.register_entry.register_id = rig.names.id("registers", name)
    if index is not None:
        entity.register_entry.index.index = index
    if value is not None:
        entity.register_entry.data.bitstring = value
    return entity


def test_registers(rig):
    """Row 25: one cell and all, wide cells, what the data plane wrote, range checks."""
    assert rig.write(
        modify(register(rig, "words", 4, b"\0\xff\xff\xff\xff")), modify(register(rig, "words", 4, b"\x01" + bytes(4))),
        modify(register(rig, "words", 16, b"\x01")), modify(register(rig, "words", -1, b"\x01")),
        modify(register(rig, "words", 4)), modify(register(rig, "words", 4, b"")),
        modify(register(rig, "words", 4, b"\x01"), INSERT), modify(register(rig, "wide", 1, b"\x0f" + bytes(12))),
    ) == [OK, Code.OUT_OF_RANGE, Code.OUT_OF_RANGE, INVALID, INVALID, Code.OUT_OF_RANGE, INVALID, OK]  # fmt: skip
    (got,) = rig.read(register(rig, "words", 4))
    assert got.register_entry.data.bitstring == b"\xff" * 4
    assert rig.write(modify(register(rig, "words", None, b"\x09"))) == [OK]
    assert [e.register_entry.data.bitstring for e in rig.read(register(rig, "words", None))] == [b"\x09"] * 16
    assert rig.write(modify(register(rig, "words", None, b"\0"))) == [OK]
    everything = wildcard("register_entry")
    assert len(rig.read(everything)) == 18
    rig.receive(1, bytes.fromhex("00000000000500000a0000019999") + bytes(46))
    (got,) = rig.read(register(rig, "wide", 0))
    assert got.register_entry.data.bitstring == bytes.fromhex("0a000001")
    wrong = register(rig, "words", 1)
    wrong.register_entry.data.bool = True
    assert rig.write(modify(wrong)) == [INVALID]


def value_set(rig, *values: bytes) -> p4r.Entity:
    entity = p4r.Entity()
    entity.value_set_entry.value_set_id = rig.names.id("value_sets", "special_types")
    for value in values:
        entity.value_set_entry.members.add().match.add(field_id=1).exact.value = value
    return entity


def test_value_sets(rig):
    """Row 26: members are replaced, duplicates and too many refused, and the parser follows."""
    assert rig.write(
        modify(value_set(rig, b"\x88\xb5", b"\x12")), modify(value_set(rig, b"\x01", b"\0\x01")),
        modify(value_set(rig, *(bytes([n]) for n in range(1, 6)))), modify(value_set(rig), INSERT),
        modify(value_set(rig, b"\x01\0\0")),
    ) == [OK, Code.ALREADY_EXISTS, Code.RESOURCE_EXHAUSTED, INVALID, Code.OUT_OF_RANGE]  # fmt: skip
    assert rig.read(value_set(rig)) == [value_set(rig, b"\x88\xb5", b"\x12")]
    assert rig.write(modify(value_set(rig))) == [OK]
    assert rig.read(value_set(rig)) == [value_set(rig)]


def tunnels(rig, *members: tuple[int, int, int, int]) -> p4r.Entity:
    """The marked tunnels: ports from, to and kinds from, to."""
    entity = p4r.Entity()
    entity.value_set_entry.value_set_id = rig.names.id("value_sets", "marked_tunnels")
    for port, last_port, kind, last_kind in members:
        member = entity.value_set_entry.members.add()
        for field, low, high in ((1, port, last_port), (2, kind, last_kind)):
            part = member.match.add(field_id=field).range
            part.low, part.high = encode(low), encode(high)
    return entity


def test_ranges_in_value_sets(make_rig):
    """Row 26: the parser takes exactly what lies in one of the members, which read as they were written."""
    rig = make_rig()
    rig.primary()
    request = rig.config_request("value_sets")
    for key in request.config.p4info.value_sets[1].match:
        key.match_type = p4i.MatchField.RANGE
    rig.set_pipeline(request)
    ranges = [(0x1001, 0x2FFE, 3, 9), (0x8000, 0x8000, 1, 254), (0xFFFF, 0xFFFF, 255, 255)]
    assert rig.write(modify(tunnels(rig, *ranges))) == [OK]
    assert rig.read(tunnels(rig)) == [tunnels(rig, *ranges)]
    ports = [0x1000, 0x1001, 0x1002, 0x17FF, 0x2000, 0x2FFE, 0x2FFF, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF]
    for port in ports:
        for kind in (0, 2, 3, 8, 9, 10, 254, 255):
            head = bytes.fromhex("00000000000500000a00000188b5") + port.to_bytes(2, "big") + bytes([kind, 0])
            ((_, sent),) = rig.receive(1, head + bytes(46))
            inside = any(low <= port <= high and first <= kind <= last for low, high, first, last in ranges)
            assert bool(sent[6] & 2) == inside, (port, kind)
    assert rig.write(modify(tunnels(rig, (9, 8, 1, 1)))) == [INVALID]


@given(st.data(), st.integers(1, 12))
def test_a_range_is_its_prefixes(data, bits):
    """Every number once, and at most two prefixes a bit."""
    low, high = sorted(data.draw(st.tuples(*[st.integers(0, (1 << bits) - 1)] * 2)))
    field = match.MatchField(1, "f", bits, 0, match.MatchKind.RANGE)
    plan = match.key_plan("t", [field])
    packed = match.PackedKey(low.to_bytes(field.nbytes, "big"), high.to_bytes(field.nbytes, "big"), 0)
    masked = [tuple(int.from_bytes(part, "big") for part in parts) for parts in plan.masked(packed)]
    matched = [n for n in range(1 << bits) for key, mask in masked if n & mask == key]
    assert matched == list(range(low, high + 1))
    assert len(masked) <= max(1, 2 * bits - 2)


def group(number: int, *replicas: tuple[int, int], backups=()) -> p4r.Entity:
    entity = p4r.Entity()
    entry = entity.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = number
    for port, instance in replicas:
        replica = entry.replicas.add(instance=instance, port=port.to_bytes(2, "big").lstrip(b"\0") or b"\0")
        for backup, backup_instance in backups:
            replica.backup_replicas.add(instance=backup_instance, port=bytes([backup]))
    return entity


def flood(rig, number: int) -> list[int]:
    """Ports that get a copy of a frame sent to a group."""
    update = p4r.Update(type=MODIFY)
    update.entity.table_entry.table_id = rig.names.id("tables", "mac")
    update.entity.table_entry.is_default_action = True
    update.entity.table_entry.action.action.CopyFrom(rig.names.action("flood", number))
    assert rig.write(update) == [OK]
    return sorted(port for port, _ in rig.receive(1, bytes(60)))


def test_multicast_groups(make_rig):
    """Row 29: ids, unique (port, instance), port 0, both encodings, limits; copies are made."""
    rig = make_rig(settings=DeviceSettings(device_id=1, multicast_groups=2), pushed="p4rt_all")
    first = group(1, (0, 1), (3, 1), (3, 2))
    assert rig.write(
        modify(first, INSERT), modify(first, INSERT), modify(group(0), INSERT), modify(group(1 << 16), INSERT),
        modify(group(2, (3, 1), (3, 1)), INSERT), modify(group(2, (512, 1)), INSERT), modify(group(7)),
        modify(group(7), DELETE), modify(group(2, (4, 0)), INSERT), modify(group(3), INSERT),
    ) == [
        OK, Code.ALREADY_EXISTS, INVALID, INVALID, INVALID, INVALID, Code.NOT_FOUND, Code.NOT_FOUND, OK,
        Code.RESOURCE_EXHAUSTED,
    ]  # fmt: skip
    assert rig.read(group(1)) == [first]
    everything = wildcard("packet_replication_engine_entry.multicast_group_entry")
    assert len(rig.read(everything)) == 2
    assert flood(rig, 1) == [0, 3, 3]
    old = p4r.Entity()
    old.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 1
    old.packet_replication_engine_entry.multicast_group_entry.replicas.add(egress_port=5, instance=1)
    assert rig.write(modify(old)) == [OK]
    assert rig.read(group(1)) == [old]
    assert flood(rig, 1) == [5]
    assert rig.write(modify(group(1), DELETE)) == [OK]
    assert flood(rig, 1) == []
    with pytest.raises(grpc.RpcError):
        rig.read(group(1))


def test_backup_replicas_follow_port_status(rig):
    """Row 29: the first replica whose port is up gets the copy."""
    backed = group(4, (2, 1), backups=((3, 2), (5, 3)))
    assert rig.write(modify(backed, INSERT)) == [OK]
    assert rig.read(group(4)) == [backed]
    assert flood(rig, 4) == [2]
    rig.in_server(lambda: rig.device.port_changed(2, up=False))
    assert flood(rig, 4) == [3]
    rig.in_server(lambda: rig.device.port_changed(3, up=False))
    assert flood(rig, 4) == [5]
    rig.in_server(lambda: rig.device.port_changed(2, up=True))
    assert flood(rig, 4) == [2]
    assert rig.write(modify(group(5, (2, 1), backups=((2, 3),)), INSERT)) == [INVALID]


def session(number: int, *ports: int, length: int = 0, cos: int = 0) -> p4r.Entity:
    entity = p4r.Entity()
    entry = entity.packet_replication_engine_entry.clone_session_entry
    entry.session_id, entry.packet_length_bytes, entry.class_of_service = number, length, cos
    for port in ports:
        entry.replicas.add(port=bytes([port]), instance=1)
    return entity


def test_clone_sessions(rig):
    """Row 30: ids, class of service, truncation of the copy."""
    assert rig.write(
        modify(session(5, 6, length=20, cos=3), INSERT), modify(session(5, 6), INSERT), modify(session(0, 6), INSERT),
        modify(session(32768, 6), INSERT), modify(session(6, 6, cos=8), INSERT),
        modify(session(6, 6, length=-1), INSERT), modify(session(9, 6)),
    ) == [OK, Code.ALREADY_EXISTS, INVALID, INVALID, INVALID, INVALID, Code.NOT_FOUND]  # fmt: skip
    everything = wildcard("packet_replication_engine_entry.clone_session_entry")
    assert rig.read(everything) == [session(5, 6, length=20, cos=3)]
    assert rig.write(modify(session(5, 6, length=20))) == [OK]
    update = p4r.Update(type=INSERT)
    entry = update.entity.table_entry
    entry.table_id, entry.priority = rig.names.id("tables", "acl"), 1
    entry.match.add(field_id=4).exact.value = b"\x01"
    entry.action.action.CopyFrom(rig.names.action("mirror", 2))
    assert rig.write(update) == [OK]
    ip = bytes.fromhex("4500001c00000000401100000102030405060708")
    frame = bytes(12) + b"\x08\x00" + ip + bytes.fromhex("0035005000080000")
    copies = [data for port, data in rig.receive(1, frame) if port == 6]
    assert copies == [frame[:20]]
    assert rig.write(modify(session(5), DELETE)) == [OK]
    assert [port for port, _ in rig.receive(1, frame)] == [0]


def test_externs_that_are_not_there(make_rig):
    """Specification 9.9: a read of all finds none; an id is not found, or unimplemented where P4Info has it."""
    rig = make_rig()
    rig.primary()
    request = rig.config_request("packet_io")
    request.config.p4info.externs.add(extern_type_id=0x81, extern_type_name="Other")
    rig.stub.SetForwardingPipelineConfig(request, timeout=60)
    everything = wildcard("extern_entry")
    assert rig.read(everything) == []
    for type_id, code in ((0x80, Code.NOT_FOUND), (0x81, Code.UNIMPLEMENTED)):
        update = p4r.Update(type=p4r.Update.MODIFY)
        update.entity.extern_entry.extern_type_id = type_id
        assert rig.write(update) == [code]
        with pytest.raises(grpc.RpcError) as caught:
            rig.read(update.entity)
        assert [error.canonical_code for error in details_of(caught.value)] == [code]
