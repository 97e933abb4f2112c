# SPDX-License-Identifier: Apache-2.0
"""TableEntry writes and reads (SEMANTICS §2 rows 12-23)."""

from __future__ import annotations

import itertools
import threading
import time

import grpc
import pytest
from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tests.switch.p4runtime.conftest import wildcard

INSERT, MODIFY, DELETE = 1, 2, 3
OK = Code.OK
INVALID = Code.INVALID_ARGUMENT


def mac(rig, dst: int, action=("forward", 1), kind: int = INSERT) -> p4r.Update:
    """An update of the exact table."""
    update = p4r.Update(type=kind)
    entry = update.entity.table_entry
    entry.table_id = rig.names.id("tables", "mac")
    entry.match.add(field_id=1).exact.value = dst.to_bytes(max(1, (dst.bit_length() + 7) // 8), "big")
    if action is not None:
        entry.action.action.CopyFrom(rig.names.action(*action))
    return update


def route(rig, value: bytes, prefix: int, action=("send", 1), kind: int = INSERT) -> p4r.Update:
    update = p4r.Update(type=kind)
    entry = update.entity.table_entry
    entry.table_id = rig.names.id("tables", "route")
    if prefix >= 0:
        match = entry.match.add(field_id=1)
        match.lpm.value, match.lpm.prefix_len = value, prefix
    entry.action.action.CopyFrom(rig.names.action(*action))
    return update


def acl(rig, priority: int = 10, *, src=None, protocol=None, ports=None, port=b"\x01", kind: int = INSERT):
    """An update of the table with ternary, optional, range and exact fields."""
    update = p4r.Update(type=kind)
    entry = update.entity.table_entry
    entry.table_id = rig.names.id("tables", "acl")
    entry.priority = priority
    if src is not None:
        match = entry.match.add(field_id=1)
        match.ternary.value, match.ternary.mask = src
    if protocol is not None:
        entry.match.add(field_id=2).optional.value = protocol
    if ports is not None:
        match = entry.match.add(field_id=3)
        match.range.low, match.range.high = ports
    if port is not None:
        entry.match.add(field_id=4).exact.value = port
    entry.action.action.CopyFrom(rig.names.action("send", 2))
    return update


def default(rig, table: str, action=None, kind: int = MODIFY) -> p4r.Update:
    update = p4r.Update(type=kind)
    update.entity.table_entry.table_id = rig.names.id("tables", table)
    update.entity.table_entry.is_default_action = True
    if action is not None:
        update.entity.table_entry.action.action.CopyFrom(rig.names.action(*action))
    return update


def read(rig, table: str | None, **fields) -> list[p4r.TableEntry]:
    request = wildcard("table_entry")
    if table is not None:
        request.table_entry.table_id = rig.names.id("tables", table)
    for name, value in fields.items():
        if value is True and name in ("counter_data", "meter_config", "time_since_last_hit"):
            getattr(request.table_entry, name).SetInParent()
        else:
            setattr(request.table_entry, name, value)
    return [entity.table_entry for entity in rig.read(request)]


def test_continue_on_error_and_details(rig):
    """Rows 12, 13: every update is tried; one p4.v1.Error for each, in order, under UNKNOWN."""
    codes = rig.write(mac(rig, 1), mac(rig, 1), mac(rig, 2, kind=MODIFY), mac(rig, 3))
    assert codes == [OK, Code.ALREADY_EXISTS, Code.NOT_FOUND, OK]
    assert len(read(rig, "mac")) == 2


def test_rollback_restores_everything(rig):
    """Row 12: ROLLBACK_ON_ERROR leaves entries, counters, defaults, groups and registers as before."""
    first = mac(rig, 1)
    first.entity.table_entry.counter_data.byte_count = 99
    register = p4r.Update(type=MODIFY)
    register.entity.register_entry.register_id = rig.names.id("registers", "words")
    register.entity.register_entry.data.bitstring = b"\x07"
    group = p4r.Update(type=INSERT)
    group.entity.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 3
    assert rig.write(first, group) == [OK, OK]

    def state():
        entities = []
        for name in ("table_entry", "register_entry", "packet_replication_engine_entry"):
            request = p4r.Entity()
            getattr(request, name).SetInParent()
            if name == "table_entry":
                request.table_entry.counter_data.SetInParent()
            entities += rig.read(request)
        return sorted(entity.SerializeToString() for entity in entities)

    before = state()
    group_gone = p4r.Update(type=DELETE)
    group_gone.entity.CopyFrom(group.entity)
    codes = rig.write(
        mac(rig, 2), mac(rig, 1, kind=DELETE), mac(rig, 1, ("forward", 5)), mac(rig, 2, ("forward", 6), MODIFY),
        default(rig, "mac", ("forward", 9)), register, group_gone, mac(rig, 2, kind=INSERT), atomicity=1,
    )  # fmt: skip
    assert codes == [Code.ABORTED] * 7 + [Code.ALREADY_EXISTS]
    assert state() == before
    assert rig.write(mac(rig, 2), mac(rig, 3), atomicity=1) == [OK, OK]


def defaults(rig, value: int) -> list[p4r.Update]:
    """The default actions of six tables, one behind the other, write a value each: the same."""
    updates = []
    for name in ("exact", "lpm_mix", "ternary", "range", "optional", "mixed"):
        update = p4r.Update(type=p4r.Update.MODIFY)
        entry = update.entity.table_entry
        table = {"lpm_mix": "lpm_with_exact"}.get(name, f"{name}_match")
        entry.table_id = rig.names.id("tables", table)
        entry.is_default_action = True
        entry.action.action.CopyFrom(rig.names.action(f"set_{name}", value))
        updates.append(update)
    return updates


def test_no_packet_sees_a_part_of_an_atomic_batch(make_rig):
    """Row 12, DATAPLANE_ATOMIC: while batches come, every packet meets all of one batch, and nothing of others."""
    rig = make_rig(pushed="match_kinds")
    assert rig.write(*defaults(rig, 255), atomicity=2) == [OK] * 6
    switch, stop, seen = rig.plane.switch, threading.Event(), []
    frame = bytes(12) + b"\x88\xb5" + bytes(29)

    def send() -> None:
        while not stop.is_set():
            switch.inject(1, frame, rig.plane.clock_ns)
            switch.run(rig.plane.clock_ns)
            seen.extend(output.data[14:21] for output in switch.outputs())

    thread = threading.Thread(target=send)
    thread.start()
    try:
        deadline = time.monotonic() + 60  # the sending thread may get little of a busy machine
        for count in itertools.count():
            assert rig.write(*defaults(rig, 1 + count % 254), atomicity=2) == [OK] * 6
            if count > 120 and (len({octets[:1] for octets in seen}) > 10 or time.monotonic() > deadline):
                break
    finally:
        stop.set()
        thread.join()
    values = [frame_octets[:1] for frame_octets in seen]
    assert seen == [v + b"\xee" + 5 * v for v in values]
    assert len(set(values)) > 10


def test_an_atomic_batch_that_fails_changes_nothing(rig):
    """Row 12: it is taken back as a whole, before the next packet."""
    assert rig.write(mac(rig, 1)) == [OK]
    assert rig.write(mac(rig, 2), mac(rig, 1), atomicity=2) == [Code.ABORTED, Code.ALREADY_EXISTS]
    assert rig.write(mac(rig, 2), atomicity=2) == [OK]


def test_large_reads_are_streamed(rig):
    """Row 14: many entities come in several messages."""
    rig.write(*(mac(rig, number) for number in range(1, 1201)))
    request = p4r.Entity()
    request.table_entry.table_id = rig.names.id("tables", "mac")
    responses = list(rig.stub.Read(p4r.ReadRequest(device_id=1, entities=[request])))
    assert len(responses) > 1
    assert sum(len(response.entities) for response in responses) == 1200


def test_read_needs_no_stream(rig):
    """Row 15: a client without session and election id reads."""
    rig.sessions[0].close()
    assert read(rig, "mac") == []


def test_bytestrings_any_length_in_shortest_out(rig):
    """Row 16: leading zeros are accepted, the shortest string is returned."""
    update = mac(rig, 1)
    update.entity.table_entry.match[0].exact.value = bytes(9) + b"\x01\x02"
    update.entity.table_entry.action.action.params[0].value = bytes(5) + b"\x07"
    assert rig.write(update) == [OK]
    (entry,) = read(rig, "mac")
    assert entry.match[0].exact.value == b"\x01\x02"
    assert entry.action.action.params[0].value == b"\x07"


@pytest.mark.parametrize("value", [b"", b"\x01" + bytes(6), b"\xff" * 7])
def test_bytestrings_out_of_range(rig, value):
    """Row 16: empty and too large match values and parameters are OUT_OF_RANGE."""
    update = mac(rig, 1)
    update.entity.table_entry.match[0].exact.value = value
    parameter = mac(rig, 1)
    parameter.entity.table_entry.action.action.params[0].value = value and b"\x02\x00"
    assert rig.write(update, parameter) == [Code.OUT_OF_RANGE] * 2


def test_exact_and_lpm_rules(rig):
    """Row 17: what the match rules of 9.1.1 refuse, and the don't-care entry."""
    wrong_kind = mac(rig, 1)
    wrong_kind.entity.table_entry.match[0].lpm.prefix_len = 3
    twice = mac(rig, 1)
    twice.entity.table_entry.match.add().CopyFrom(twice.entity.table_entry.match[0])
    missing = mac(rig, 1)
    del missing.entity.table_entry.match[:]
    unknown = mac(rig, 1)
    unknown.entity.table_entry.match[0].field_id = 2
    prioritised = mac(rig, 1)
    prioritised.entity.table_entry.priority = 1
    assert rig.write(wrong_kind, twice, missing, unknown, prioritised) == [INVALID] * 5
    assert rig.write(
        route(rig, b"\x0a\0\0\0", 0), route(rig, b"\x0a\0\0\0", 33), route(rig, b"\x0a\0\0\x01", 8),
        route(rig, b"\x0a\0\0\0", -1), route(rig, b"\x0a\0\0\0", 8),
    ) == [INVALID, INVALID, INVALID, OK, OK]  # fmt: skip
    entries = read(rig, "route")
    assert [len(entry.match) for entry in entries] == [0, 1]
    assert entries[1].match[0].lpm.prefix_len == 8


def test_ternary_range_optional_rules(rig):
    """Row 17: masks, bounds, omitted fields and the priority."""
    good = [
        acl(rig),
        acl(rig, src=(b"\x0a\0\0\0", b"\xff\0\0\0"), protocol=b"\x11", ports=(b"\x50", b"\x51")),
        acl(rig, 11),
        acl(rig, ports=(b"\0", b"\0")),
    ]
    bad = [
        acl(rig, 0), acl(rig, -1), acl(rig, port=None), acl(rig, src=(b"\x0a", b"\xf0")), acl(rig, src=(b"\0", b"\0")),
        acl(rig, ports=(b"\x02", b"\x01")), acl(rig, ports=(b"\0", b"\xff\xff")),
    ]  # fmt: skip
    assert rig.write(*good) == [OK] * 4
    assert rig.write(*bad) == [INVALID] * 7
    assert rig.write(acl(rig, protocol=b"")) == [Code.OUT_OF_RANGE]
    written = sorted(update.entity.table_entry.SerializeToString() for update in good)
    assert sorted(entry.SerializeToString() for entry in read(rig, "acl")) == written


def test_priority_larger_wins_in_the_data_plane(rig):
    """Row 17: of two matching entries the larger priority acts."""
    rig.write(acl(rig, 1), acl(rig, 2, ports=(b"\x50", b"\x50")))
    update = acl(rig, 2, ports=(b"\x50", b"\x50"), kind=MODIFY)
    update.entity.table_entry.action.action.CopyFrom(rig.names.action("send", 6))
    assert rig.write(update) == [OK]
    ip = bytes.fromhex("4500001c00000000401100000102030405060708")
    frame = bytes(12) + b"\x08\x00" + ip + bytes.fromhex("0035005000080000")
    assert [port for port, _ in rig.receive(1, frame)] == [6]
    other = bytes(12) + b"\x08\x00" + ip + bytes.fromhex("0035005100080000")
    assert [port for port, _ in rig.receive(1, other)] == [2]


def test_action_scope_and_parameters(rig):
    """Row 18: scope is PERMISSION_DENIED; foreign actions and wrong parameters INVALID_ARGUMENT."""
    missing = mac(rig, 4)
    del missing.entity.table_entry.action.action.params[:]
    extra = mac(rig, 4)
    extra.entity.table_entry.action.action.params.add(param_id=2, value=b"\x01")
    wrong = mac(rig, 4)
    wrong.entity.table_entry.action.action.params[0].param_id = 2
    none = mac(rig, 4, None)
    assert rig.write(
        mac(rig, 1, ("learn",)), default(rig, "mac", ("drop",)), mac(rig, 2, ("drop",)), mac(rig, 3, ("set_tos", 1)),
        missing, extra, wrong, none,
    ) == [Code.PERMISSION_DENIED, Code.PERMISSION_DENIED, OK] + [INVALID] * 5  # fmt: skip
    member = mac(rig, 5)
    member.entity.table_entry.action.action_profile_member_id = 1
    assert rig.write(member) == [INVALID]


def test_default_entry(rig):
    """Row 19: MODIFY only; unset action resets; const is PERMISSION_DENIED; neither match nor priority."""
    assert rig.write(
        default(rig, "mac", ("forward", 3), INSERT), default(rig, "mac", ("forward", 3), DELETE),
        default(rig, "acl", ("drop",)), default(rig, "mac", ("forward", 3)),
    ) == [INVALID, INVALID, Code.PERMISSION_DENIED, OK]  # fmt: skip
    with_key = mac(rig, 1, kind=MODIFY)
    with_key.entity.table_entry.is_default_action = True
    prioritised = default(rig, "acl")
    prioritised.entity.table_entry.priority = 1
    idle = default(rig, "mac")
    idle.entity.table_entry.idle_timeout_ns = 1
    assert rig.write(with_key, prioritised, idle) == [INVALID] * 3
    (entry,) = read(rig, "mac", is_default_action=True)
    assert entry == default(rig, "mac", ("forward", 3)).entity.table_entry
    assert rig.write(default(rig, "mac")) == [OK]
    (entry,) = read(rig, "mac", is_default_action=True)
    assert entry.action.action.action_id == rig.names.id("actions", "learn")
    assert len(read(rig, None, is_default_action=True)) == len(rig.names.info.tables)


def test_codes_of_containers(rig):
    """Row 20: ALREADY_EXISTS, NOT_FOUND, RESOURCE_EXHAUSTED."""
    assert rig.write(mac(rig, 1), mac(rig, 1), mac(rig, 9, kind=DELETE), mac(rig, 9, kind=MODIFY)) == [
        OK, Code.ALREADY_EXISTS, Code.NOT_FOUND, Code.NOT_FOUND,
    ]  # fmt: skip
    updates = [acl(rig, number) for number in range(1, 66)]
    assert rig.write(*updates) == [OK] * 64 + [Code.RESOURCE_EXHAUSTED]
    unknown = p4r.Update(type=INSERT)
    unknown.entity.table_entry.table_id = 77
    assert rig.write(unknown, p4r.Update(type=INSERT), p4r.Update()) == [Code.NOT_FOUND, INVALID, INVALID]


def test_constant_tables(rig):
    """Rows 20, 22: constant entries are is_const and cannot change, but their counters can."""
    entries = read(rig, "fixed", counter_data=True)
    assert [entry.is_const for entry in entries] == [True, True]
    assert [len(entry.match) for entry in entries] == [2, 1]
    assert [entry.action.action for entry in entries] == [rig.names.action("set_tos", n) for n in (4, 8)]
    assert entries[0].priority > entries[1].priority > 0
    update = p4r.Update(type=MODIFY)
    update.entity.table_entry.CopyFrom(entries[0])
    update.entity.table_entry.is_const = False
    delete, insert = p4r.Update(type=DELETE), p4r.Update(type=INSERT)
    delete.entity.CopyFrom(update.entity)
    insert.entity.CopyFrom(update.entity)
    assert rig.write(update, delete, insert) == [Code.PERMISSION_DENIED] * 3
    update.entity.table_entry.ClearField("action")
    update.entity.table_entry.counter_data.packet_count = 12
    assert rig.write(update) == [OK]
    assert read(rig, "fixed", counter_data=True)[0].counter_data.packet_count == 12
    update.entity.table_entry.is_const = True
    assert rig.write(update) == [INVALID]


def test_read_filters(rig):
    """Row 21: table, match, action, priority, metadata, cookie; id 0 is all tables, constant ones too."""
    first, second, third = mac(rig, 1), mac(rig, 2, ("drop",)), mac(rig, 3)
    first.entity.table_entry.metadata = b"abc"
    third.entity.table_entry.controller_metadata = 5
    rig.write(first, second, third, acl(rig, 3), acl(rig, 4))
    action = p4r.TableAction(action=p4r.Action(action_id=rig.names.id("actions", "drop")))
    request = p4r.Entity(table_entry=p4r.TableEntry(table_id=rig.names.id("tables", "mac"), action=action))
    assert [e.table_entry for e in rig.read(request)] == [second.entity.table_entry]
    assert read(rig, "mac", metadata=b"abc") == [first.entity.table_entry]
    assert read(rig, "mac", controller_metadata=5) == [third.entity.table_entry]
    assert [entry.priority for entry in read(rig, "acl", priority=4)] == [4]
    request = p4r.Entity(table_entry=p4r.TableEntry(table_id=rig.names.id("tables", "mac")))
    request.table_entry.match.extend(second.entity.table_entry.match)
    assert [e.table_entry for e in rig.read(request)] == [second.entity.table_entry]
    everything = {entry.table_id for entry in read(rig, None)}
    assert everything == {rig.names.id("tables", name) for name in ("mac", "acl", "fixed", "initial")}


def test_metadata_round_trip(rig):
    """Row 22: metadata and cookie come back, and MODIFY replaces them."""
    update = mac(rig, 1)
    update.entity.table_entry.metadata = b"\0\xffx"
    update.entity.table_entry.controller_metadata = (1 << 64) - 1
    assert rig.write(update) == [OK]
    assert read(rig, "mac") == [update.entity.table_entry]
    assert rig.write(mac(rig, 1, None, MODIFY)) == [OK]
    assert read(rig, "mac") == [mac(rig, 1).entity.table_entry]


def test_direct_counters(rig):
    """Row 23: initial value, counting, DirectCounterEntry by key and by wildcard, default entry."""
    update = mac(rig, 5, ("forward", 3))
    update.entity.table_entry.counter_data.packet_count = 100
    rig.write(update, mac(rig, 6))
    rig.receive(1, bytes.fromhex("0000000000050000000000019999") + bytes(46))
    (entry,) = [e for e in read(rig, "mac", counter_data=True) if e.match[0].exact.value == b"\x05"]
    assert (entry.counter_data.packet_count, entry.counter_data.byte_count) == (101, 60)
    assert not read(rig, "mac")[0].HasField("counter_data")
    request = wildcard("direct_counter_entry")
    assert len(rig.read(request)) == 4  # two of mac, two of fixed
    request.direct_counter_entry.table_entry.table_id = rig.names.id("tables", "mac")
    request.direct_counter_entry.table_entry.match.add(field_id=1).exact.value = b"\x05"
    (got,) = rig.read(request)
    assert got.direct_counter_entry.data.packet_count == 101
    write = p4r.Update(type=MODIFY, entity=got)
    write.entity.direct_counter_entry.data.packet_count = 3
    insert = p4r.Update(type=INSERT, entity=got)
    assert rig.write(write, insert) == [OK, INVALID]
    assert rig.read(request)[0].direct_counter_entry.data.packet_count == 3
    on_default = p4r.Update(type=MODIFY)
    on_default.entity.direct_counter_entry.table_entry.table_id = rig.names.id("tables", "mac")
    on_default.entity.direct_counter_entry.table_entry.is_default_action = True
    on_default.entity.direct_counter_entry.data.packet_count = 8
    assert rig.write(on_default) == [OK]
    assert read(rig, "mac", is_default_action=True, counter_data=True)[0].counter_data.packet_count == 8
    request.direct_counter_entry.table_entry.match[0].exact.value = b"\x77"
    with pytest.raises(grpc.RpcError):
        rig.read(request)
    foreign = route(rig, b"\x0a\0\0\0", 8)
    foreign.entity.table_entry.counter_data.packet_count = 1
    negative = mac(rig, 7)
    negative.entity.table_entry.counter_data.packet_count = -1
    assert rig.write(foreign, negative) == [INVALID, INVALID]


def test_direct_meters(rig):
    """Row 23: configuration with the entry, by DirectMeterEntry, reset by MODIFY without it."""
    update = mac(rig, 5)
    config = update.entity.table_entry.meter_config
    config.cir, config.cburst, config.pir, config.pburst = 1, 2, 3, 4
    assert rig.write(update) == [OK]
    assert read(rig, "mac", meter_config=True) == [update.entity.table_entry]
    request = p4r.Entity()
    request.direct_meter_entry.table_entry.table_id = rig.names.id("tables", "mac")
    (got,) = rig.read(request)
    assert got.direct_meter_entry.config == config
    got.direct_meter_entry.config.pir = 9
    assert rig.write(p4r.Update(type=MODIFY, entity=got)) == [OK]
    assert read(rig, "mac", meter_config=True)[0].meter_config.pir == 9
    assert rig.write(mac(rig, 5, kind=MODIFY)) == [OK]
    assert not read(rig, "mac", meter_config=True)[0].HasField("meter_config")
    bad = mac(rig, 6)
    bad.entity.table_entry.meter_config.eburst = 3
    slow = mac(rig, 6)
    slow.entity.table_entry.meter_config.cir = 3
    assert rig.write(bad, slow) == [INVALID, INVALID]


def test_a_table_with_initial_entries_has_the_size_of_p4info(rig):
    """Row 20: 32 places, two of them taken by the program, though p4c's JSON counts two in all."""
    codes = []
    for number in range(31):
        update = p4r.Update(type=INSERT)
        entry = update.entity.table_entry
        entry.table_id = rig.names.id("tables", "initial")
        entry.match.add(field_id=1).exact.value = bytes([200 + number])
        entry.action.action.CopyFrom(rig.names.action("set_tos", 1))
        codes += rig.write(update)
    assert codes == [OK] * 30 + [Code.RESOURCE_EXHAUSTED]
