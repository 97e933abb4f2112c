# SPDX-License-Identifier: Apache-2.0
"""Pipeline configuration (SEMANTICS §2 rows 9-11) and P4Info that does not match."""

from __future__ import annotations

import json

import grpc
import pytest
from finsy.proto import p4r

from tailrace.p4rt.status import Code, P4RtError
from tailrace.switch.p4runtime.pipeline import program_json
from tests.switch.p4runtime.conftest import code_of, wildcard
from tests.switch.p4runtime.test_tables import default, mac, read

VERIFY, SAVE, COMMIT_NEW, COMMIT, RECONCILE = 1, 2, 3, 4, 5


def wrapped(data: bytes) -> bytes:
    """p4.tmp.P4DeviceConfig with `reassign` true, an extra and `data`."""
    size = len(data)
    varint = b""
    while size >= 0x80:
        varint += bytes([size & 0x7F | 0x80])
        size >>= 7
    return b"\x08\x01" + b"\x12\x06\x0a\x04\x0a\x00\x12\x00" + b"\x1a" + varint + bytes([size]) + data


def push_code(rig, request) -> Code:
    """How a push is refused."""
    return code_of(rig.stub.SetForwardingPipelineConfig, request)[0]


def first_initial(rig, kind: int) -> p4r.Update:
    """An update of the first entry that the program has of its own."""
    return p4r.Update(type=kind, entity=p4r.Entity(table_entry=read(rig, "initial")[0]))


def test_verify_changes_nothing(make_rig):
    """Row 9: VERIFY compiles the program, and neither state nor pipeline changes."""
    rig = make_rig()
    rig.primary()
    rig.push("p4rt_all", VERIFY)
    with pytest.raises(grpc.RpcError) as error:
        rig.read(p4r.Entity(table_entry=p4r.TableEntry()))
    assert error.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    request = rig.config_request("p4rt_all", VERIFY)
    request.config.p4_device_config = request.config.p4_device_config.replace(
        b'"mark_to_drop"', b'"no_such_thing"'
    )
    assert push_code(rig, request) == Code.INVALID_ARGUMENT


def test_commit_clears_and_reloads_initial_entries(rig):
    """Row 10: entries, registers and groups are gone; the program's own entries are back."""
    assert rig.write(
        mac(rig, 5, ("forward", 3)),
        first_initial(rig, 3),
    ) == [Code.OK, Code.OK]
    assert len(read(rig, "initial")) == 1
    rig.push("p4rt_all", COMMIT_NEW)
    assert read(rig, "mac") == []
    assert len(read(rig, "initial")) == 2
    assert len(read(rig, "fixed")) == 2


def test_save_then_commit_replays_writes(rig):
    """Row 9: after VERIFY_AND_SAVE writes and reads mean the saved config, packets the old one until COMMIT."""
    frame = bytes.fromhex("0000000000050000000000019999") + bytes(46)
    assert rig.write(mac(rig, 5, ("forward", 3))) == [Code.OK]
    rig.push("p4rt_all", SAVE)
    assert read(rig, "mac") == []
    assert rig.write(mac(rig, 5, ("forward", 4))) == [Code.OK]
    assert [port for port, _ in rig.receive(1, frame)] == [3]
    commit = rig.config_request("p4rt_all", COMMIT)
    assert push_code(rig, commit) == Code.INVALID_ARGUMENT
    commit.ClearField("config")
    rig.stub.SetForwardingPipelineConfig(commit)
    assert [port for port, _ in rig.receive(1, frame)] == [4]
    assert len(read(rig, "mac")) == 1
    assert push_code(rig, commit) == Code.NOT_FOUND


def test_reconcile_keeps_state(rig):
    """Row 9: RECONCILE_AND_COMMIT keeps entries, their counters, registers and the absence of initial entries."""
    insert = mac(rig, 5, ("forward", 3))
    insert.entity.table_entry.counter_data.packet_count = 7
    register = p4r.Update(type=2)
    register.entity.register_entry.register_id = rig.names.id("registers", "words")
    register.entity.register_entry.index.index = 3
    register.entity.register_entry.data.bitstring = b"\x2a"
    changed = default(rig, "config", ("set_tos", 9))
    assert rig.write(insert, register, changed, first_initial(rig, 3)) == [Code.OK] * 4
    rig.push("p4rt_all", RECONCILE, cookie=77)
    assert read(rig, "mac", counter_data=True) == [insert.entity.table_entry]
    assert len(read(rig, "initial")) == 1
    assert rig.read(register.entity) == [register.entity]
    assert read(rig, "config", is_default_action=True) == [changed.entity.table_entry]


def test_reconcile_refuses_what_it_cannot_keep(rig):
    """Row 9: INVALID_ARGUMENT, and nothing has changed."""
    update = mac(rig, 5, ("forward", 3))
    assert rig.write(update) == [Code.OK]
    assert push_code(rig, rig.config_request("basic_l3", RECONCILE)) == Code.INVALID_ARGUMENT
    assert read(rig, "mac") == [update.entity.table_entry]


def test_get_pipeline(make_rig):
    """Row 11: four response types, and the cookie."""
    rig = make_rig("p4rt_all")
    rig.primary()
    request = p4r.GetForwardingPipelineConfigRequest(device_id=1)
    sent = rig.config_request("p4rt_all", cookie=(1 << 64) - 1)
    rig.stub.SetForwardingPipelineConfig(sent)
    for kind, info, program in ((0, True, True), (1, False, False), (2, True, False), (3, False, True)):
        request.response_type = p4r.GetForwardingPipelineConfigRequest.ResponseType.ValueType(kind)
        config = rig.stub.GetForwardingPipelineConfig(request).config
        assert config.cookie.cookie == (1 << 64) - 1
        assert (config.p4info == sent.config.p4info) == info
        assert (config.p4_device_config == sent.config.p4_device_config) == program


def test_both_encodings_of_the_program(make_rig):
    """Row 9 and §3: raw JSON and p4.tmp.P4DeviceConfig; the same program may be pushed again and again."""
    rig = make_rig("p4rt_all")
    rig.primary()
    request = rig.config_request("p4rt_all")
    rig.stub.SetForwardingPipelineConfig(request)
    request.config.p4_device_config = wrapped(request.config.p4_device_config)
    rig.stub.SetForwardingPipelineConfig(request)
    rig.stub.SetForwardingPipelineConfig(request)


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"garbage", b"\x1a\x05ab", b"\x1a\x00", b"\xff" * 20, wrapped(b"")]
)
def test_bad_device_config(data):
    """Neither encoding: INVALID_ARGUMENT in one line."""
    with pytest.raises(P4RtError) as error:
        program_json(data)
    assert error.value.code == Code.INVALID_ARGUMENT


@pytest.mark.parametrize("data", [b"{}", b"{", b"[1]", b'{"program": 3}', wrapped(b"{]"), b"{\xff}"])
def test_bad_program(rig, data):
    """A program that is no BMv2 JSON is INVALID_ARGUMENT in one line, and the old pipeline stays."""
    asked = p4r.GetForwardingPipelineConfigRequest(device_id=1)
    before = rig.stub.GetForwardingPipelineConfig(asked)
    request = rig.config_request("p4rt_all")
    request.config.p4_device_config = data
    assert push_code(rig, request) == Code.INVALID_ARGUMENT
    assert rig.stub.GetForwardingPipelineConfig(asked) == before


def test_missing_pieces(make_rig):
    """Row 9: no action, an unknown one, no config."""
    rig = make_rig()
    rig.primary()
    assert push_code(rig, rig.config_request("p4rt_all", 0)) == Code.INVALID_ARGUMENT
    assert push_code(rig, rig.config_request("p4rt_all", 9)) == Code.INVALID_ARGUMENT
    request = rig.config_request("p4rt_all")
    request.ClearField("config")
    assert push_code(rig, request) == Code.INVALID_ARGUMENT


def _widen_field(info):
    info.tables[0].match_fields[0].bitwidth = 47
    return "width"


def _drop_field(info):
    del info.tables[0].match_fields[0]
    return "key fields"


def _widen_parameter(info):
    action = next(a for a in info.actions if a.preamble.alias == "forward")
    action.params[0].bitwidth = 10
    return "parameter 'port'"


def _resize(info):
    info.tables[0].size = 17
    return "size"


def _resize_register(info):
    info.registers[0].size = 17
    return "size"


def _retype_register(info):
    info.registers[0].type_spec.bitstring.bit.bitwidth = 33
    return "width"


def _other_kind(info):
    info.tables[0].match_fields[0].match_type = 3
    return "exact"


def _same_id(info):
    info.tables[1].preamble.id = info.tables[0].preamble.id
    return "same id"


def _lost_action(info):
    info.tables[0].action_refs[0].id = 12345
    return "12345"


def _counter_size(info):
    info.counters[0].size += 1
    return "by_port"


@pytest.mark.parametrize(
    "damage",
    [
        _widen_field, _drop_field, _widen_parameter, _resize, _resize_register, _retype_register,
        _other_kind, _same_id, _lost_action, _counter_size,
    ],
)  # fmt: skip
def test_p4info_that_does_not_match_is_named(make_rig, damage):
    """A P4Info of another program is INVALID_ARGUMENT and names what differs."""
    rig = make_rig()
    rig.primary()
    request = rig.config_request("p4rt_all")
    named = damage(request.config.p4info)
    with pytest.raises(grpc.RpcError) as error:
        rig.stub.SetForwardingPipelineConfig(request)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert named in error.value.details()


def test_another_program_can_follow(rig):
    """Row 10: a push of another program replaces everything."""
    rig.push("basic_l3")
    request = wildcard("table_entry")
    assert json.loads(rig.config_request("basic_l3").config.p4_device_config)
    assert all(
        e.table_entry.table_id in {t.preamble.id for t in rig.names.info.tables} for e in rig.read(request)
    )
