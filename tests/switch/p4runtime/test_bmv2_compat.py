# SPDX-License-Identifier: Apache-2.0
"""What --bmv2-compat lets pass because simple_switch_grpc does, and that nothing of it passes without."""

from __future__ import annotations

import json

import grpc
import pytest
from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tailrace.switch.p4runtime.device import DeviceSettings
from tests.switch.p4runtime.conftest import code_of, wildcard
from tests.switch.p4runtime.test_profiles import member
from tests.switch.p4runtime.test_tables import read

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
OK, INVALID = Code.OK, Code.INVALID_ARGUMENT

STRICT = DeviceSettings(device_id=1)
COMPAT = DeviceSettings(device_id=1, bmv2_compat=True)


def pushed(make_rig, settings, program="p4rt_all"):
    rig = make_rig(settings=settings)
    rig.primary()
    rig.push(program)
    return rig


# ---- groups ----


def group(rig, kind, max_size, *members):
    update = p4r.Update(type=kind)
    item = update.entity.action_profile_group
    item.action_profile_id, item.group_id = rig.names.id("action_profiles", "hops"), 1
    item.max_size = max_size
    for number in members:
        item.members.add(member_id=number, weight=1)
    return update


LIMIT = 5


def with_limit(make_rig, settings):
    """A rig whose P4Info limits the groups of `hops`."""
    rig = pushed(make_rig, settings)
    request = rig.config_request("p4rt_all")
    next(
        p for p in request.config.p4info.action_profiles if p.preamble.alias == "hops"
    ).max_group_size = LIMIT
    rig.stub.SetForwardingPipelineConfig(request)
    return rig


def test_a_group_of_max_size_0_takes_p4infos_limit(make_rig):
    rig = with_limit(make_rig, COMPAT)
    numbers = range(1, LIMIT + 2)
    assert rig.write(*(member(rig, n) for n in numbers)) == [OK] * len(numbers)
    assert rig.write(group(rig, INSERT, 0, *numbers)) == [Code.RESOURCE_EXHAUSTED]
    assert rig.write(group(rig, INSERT, 0, *numbers[:-1])) == [OK]
    request = p4r.Entity()
    request.action_profile_group.action_profile_id = rig.names.id("action_profiles", "hops")
    (read,) = rig.read(request)
    # as it was written, as simple_switch_grpc gives it back
    assert read.action_profile_group.max_size == 0
    assert len(read.action_profile_group.members) == LIMIT
    assert rig.write(group(rig, MODIFY, 0, *numbers)) == [Code.RESOURCE_EXHAUSTED]
    assert rig.write(group(rig, MODIFY, LIMIT, 1)) == [INVALID]
    assert rig.write(group(rig, INSERT, LIMIT + 1)) == [Code.ALREADY_EXISTS]
    assert rig.write(group(rig, DELETE, 0), group(rig, INSERT, LIMIT + 1)) == [OK, INVALID]
    assert rig.write(group(rig, INSERT, 2, 1), group(rig, MODIFY, 0, 1, 2)) == [OK, OK]
    assert rig.write(group(rig, MODIFY, 0, 1, 2, 3)) == [Code.RESOURCE_EXHAUSTED]


def test_strictly_a_group_of_max_size_0_is_refused(make_rig):
    rig = with_limit(make_rig, STRICT)
    assert rig.write(member(rig, 1), group(rig, INSERT, 0, 1)) == [OK, INVALID]


# ---- tables without a key ----


def keyless(rig, kind, *values, is_default=False):
    update = p4r.Update(type=kind)
    entry = update.entity.table_entry
    entry.table_id = rig.names.id("tables", "keyless")
    entry.is_default_action = is_default
    if values:
        entry.action.action.CopyFrom(rig.names.action("set_keyless", *values))
    return update


# what the parser of match_kinds takes: its header of the fields to match, then the results
FRAME = bytes(200)


def shown(rig):
    """The frame that comes out, in which the action of the keyless table left its value."""
    ((_, data),) = rig.receive(1, FRAME)
    return data


def test_one_entry_of_a_table_without_a_key(make_rig):
    """It is hit before the default, read back as an entry, and goes again."""
    rig = pushed(make_rig, COMPAT, "match_kinds")
    by_default = shown(rig)
    assert read(rig, "keyless") == []
    assert rig.write(keyless(rig, INSERT, 0x5A)) == [OK]
    (entry,) = read(rig, "keyless")
    assert not entry.is_default_action and not entry.match and entry.priority == 0
    assert entry.action.action == rig.names.action("set_keyless", 0x5A)
    hit = shown(rig)
    differing = [(a, b) for a, b in zip(by_default, hit, strict=True) if a != b]
    assert differing == [(0xF7, 0x5A)]
    assert rig.write(keyless(rig, INSERT, 0x11)) == [Code.ALREADY_EXISTS]
    # the default is another thing, and still has the lower rank
    assert rig.write(keyless(rig, MODIFY, 0x22, is_default=True)) == [OK]
    assert shown(rig) == hit
    assert rig.write(keyless(rig, MODIFY, 0x33)) == [OK]
    assert [(a, b) for a, b in zip(by_default, shown(rig), strict=True) if a != b] == [(0xF7, 0x33)]
    assert rig.write(keyless(rig, DELETE)) == [OK]
    assert read(rig, "keyless") == []
    assert [(a, b) for a, b in zip(by_default, shown(rig), strict=True) if a != b] == [(0xF7, 0x22)]
    assert rig.write(keyless(rig, DELETE)) == [Code.NOT_FOUND]


def test_strictly_a_table_without_a_key_has_no_entries(make_rig):
    rig = pushed(make_rig, STRICT, "match_kinds")
    assert rig.write(keyless(rig, INSERT, 0x5A)) == [INVALID]


# ---- roles ----


def test_role_config(make_rig):
    """finsy sends one with every role; nothing comes of it."""
    rig = make_rig(settings=COMPAT)
    stream = rig.session()
    message = p4r.StreamMessageRequest()
    message.arbitration.device_id = 1
    message.arbitration.election_id.low = 7
    message.arbitration.role.name = "r"
    message.arbitration.role.config.type_url = "type.googleapis.com/google.protobuf.StringValue"
    message.arbitration.role.config.value = b"\x0a\x01x"
    stream.send(message)
    update = stream.next().arbitration
    assert update.status.code == OK and not update.role.HasField("config")


# ---- packet-outs ----


def test_a_packet_out_without_any_metadata(make_rig):
    rig = pushed(make_rig, COMPAT)
    stream = rig.sessions[-1]
    message = p4r.StreamMessageRequest()
    message.packet.payload = bytes(60)
    stream.send(message)
    message.Clear()
    message.other.type_url = "x"
    stream.send(message)
    # the answer to the second message is the first one: nothing was said about the packet
    assert stream.next().error.canonical_code == Code.UNIMPLEMENTED


# ---- P4Info that names what the program has not ----


def removed_request(rig):
    """The program without what p4c's midend might have taken out; P4Info as it was."""
    request = rig.config_request("p4rt_all")
    program = json.loads(request.config.p4_device_config)
    program["counter_arrays"] = [c for c in program["counter_arrays"] if c["is_direct"]]
    ingress = program["pipelines"][0]
    lost = next(t for t in ingress["tables"] if t["name"].endswith(".config"))
    ingress["tables"].remove(lost)
    text = json.dumps(program).replace(f'"{lost["name"]}"', json.dumps(lost["base_default_next"]))
    program = json.loads(text)
    for action in program["actions"]:
        action["primitives"] = [p for p in action["primitives"] if p["op"] != "count"]
    request.config.p4_device_config = json.dumps(program).encode()
    return request, lost["name"]


@pytest.mark.parametrize("settings", [STRICT, COMPAT], ids=["strict", "compat"])
def test_p4info_may_name_what_the_program_has_not(make_rig, settings):
    rig = pushed(make_rig, settings)
    request, name = removed_request(rig)
    rig.stub.SetForwardingPipelineConfig(request)
    stored = rig.stub.GetForwardingPipelineConfig(p4r.GetForwardingPipelineConfigRequest(device_id=1))
    assert stored.config.p4info == request.config.p4info

    table = rig.names.id("tables", name)
    update = p4r.Update(type=MODIFY)
    update.entity.table_entry.table_id = table
    update.entity.table_entry.is_default_action = True
    update.entity.table_entry.action.action.CopyFrom(rig.names.action("set_tos", 1))
    counter = p4r.Update(type=MODIFY)
    counter.entity.counter_entry.counter_id = rig.names.id("counters", "by_port")
    assert rig.write(update, counter) == [Code.UNIMPLEMENTED] * 2

    with pytest.raises(grpc.RpcError):
        rig.read(update.entity)
    everything = wildcard("table_entry")
    assert table not in {entity.table_entry.table_id for entity in rig.read(everything)}
    all_counters = wildcard("counter_entry")
    assert rig.read(all_counters) == []


@pytest.mark.parametrize("settings", [STRICT, COMPAT], ids=["strict", "compat"])
def test_p4info_of_another_program(make_rig, settings):
    """Strictly it is refused where tables are missing on both sides; simple_switch_grpc looks at nothing."""
    rig = pushed(make_rig, settings)
    request = rig.config_request("p4rt_all")
    request.config.p4info.tables[0].preamble.name = "AllIngress.nothing"
    if settings.bmv2_compat:
        rig.stub.SetForwardingPipelineConfig(request)
        return
    with pytest.raises(grpc.RpcError) as error:
        rig.stub.SetForwardingPipelineConfig(request)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "the program has no table 'AllIngress.nothing'" in error.value.details()


# ---- arbitration ----


def arbitration_of(session):
    update = session.next().arbitration
    return update.status.code, update.election_id.low


def test_the_next_backup_is_promoted(make_rig):
    """simple_switch_grpc knows the ids of live clients only; all are told of the primary, itself last."""
    rig = pushed(make_rig, COMPAT)
    (high,), low = list(rig.sessions), rig.session()
    high.arbitrate(9)
    assert arbitration_of(high) == (OK, 9)
    low.arbitrate(1)
    assert arbitration_of(low) == (Code.ALREADY_EXISTS, 9)
    middle = rig.session()
    middle.arbitrate(4)
    assert arbitration_of(middle) == (Code.ALREADY_EXISTS, 9)
    high.close()
    assert (arbitration_of(low), arbitration_of(middle)) == ((Code.ALREADY_EXISTS, 4), (OK, 4))
    rig.election_id = 4
    assert rig.write(member(rig, 1)) == [OK]
    middle.close()
    assert arbitration_of(low) == (OK, 1)
    low.close()
    rig.primary(1)
    assert rig.write(member(rig, 2)) == [OK]


def test_a_primary_that_lowers_its_id_below_a_backups_is_followed_by_it(make_rig):
    rig = make_rig(settings=COMPAT)
    first, second = rig.primary(9), rig.session()
    second.arbitrate(4)
    assert arbitration_of(second) == (Code.ALREADY_EXISTS, 9)
    first.arbitrate(5)
    assert arbitration_of(first) == (OK, 5)
    assert arbitration_of(second) == (Code.ALREADY_EXISTS, 5)
    first.arbitrate(3)
    assert (arbitration_of(first), arbitration_of(second)) == ((Code.ALREADY_EXISTS, 4), (OK, 4))


def test_no_election_id_is_0(make_rig):
    """So such a client is primary as long as nobody has a higher one, and writes without an id."""
    rig = make_rig(settings=COMPAT)
    first, second = rig.session(), rig.session()
    first.arbitrate(None)
    assert first.status() == OK
    rig.election_id = None
    rig.push("p4rt_all")
    second.arbitrate(1)
    assert (first.status(), second.status()) == (Code.ALREADY_EXISTS, OK)
    assert code_of(rig.stub.Write, rig.write_request(member(rig, 1)))[0] == Code.PERMISSION_DENIED
    second.close()
    assert first.status() == OK
    assert rig.write(member(rig, 1)) == [OK]


# ---- no pipeline ----


@pytest.mark.parametrize(("settings", "code"), [(STRICT, None), (COMPAT, Code.FAILED_PRECONDITION)])
def test_a_config_that_is_not_there(make_rig, settings, code):
    rig = make_rig(settings=settings)
    request = p4r.GetForwardingPipelineConfigRequest(device_id=1)
    if code is None:
        assert not rig.stub.GetForwardingPipelineConfig(request).HasField("config")
        return
    with pytest.raises(grpc.RpcError) as error:
        rig.stub.GetForwardingPipelineConfig(request)
    assert error.value.code().value[0] == code
