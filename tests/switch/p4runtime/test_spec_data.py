# SPDX-License-Identifier: Apache-2.0
"""Requirements on P4Info, P4Data and stream messages (specification 6 to 8, 16 to 20) that no other test shows.

requirements.toml says which test shows what.
"""

from __future__ import annotations

import time

import grpc
import pytest
from finsy.proto import p4i, p4r, p4t
from google.protobuf import text_format

from tailrace.p4rt.status import Code
from tailrace.switch.p4runtime.device import DeviceSettings
from tests.switch.p4runtime.conftest import Rig, RigMaker, code_of, details_of
from tests.switch.p4runtime.test_externs import flood, group, modify, register
from tests.switch.p4runtime.test_profiles import group as members_of
from tests.switch.p4runtime.test_profiles import member
from tests.switch.p4runtime.test_streams import barrier, idle_entry, packet_out
from tests.switch.p4runtime.test_tables import mac
from tests.switch.p4runtime.test_translation import translate

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
OK, INVALID = Code.OK, Code.INVALID_ARGUMENT


# ---- 6, 7: P4Info and its identifiers ----


def test_ids_begin_with_the_prefix_of_their_kind(rig: Rig) -> None:
    """Of every object of the P4Info that the server gives back."""
    request = p4r.GetForwardingPipelineConfigRequest(device_id=1)
    info = rig.stub.GetForwardingPipelineConfig(request).config.p4info
    prefixes = {
        "tables": p4i.P4Ids.TABLE, "actions": p4i.P4Ids.ACTION, "action_profiles": p4i.P4Ids.ACTION_PROFILE,
        "counters": p4i.P4Ids.COUNTER, "direct_counters": p4i.P4Ids.DIRECT_COUNTER, "meters": p4i.P4Ids.METER,
        "direct_meters": p4i.P4Ids.DIRECT_METER, "registers": p4i.P4Ids.REGISTER, "digests": p4i.P4Ids.DIGEST,
        "value_sets": p4i.P4Ids.VALUE_SET, "controller_packet_metadata": p4i.P4Ids.CONTROLLER_HEADER,
    }  # fmt: skip
    for kind, prefix in prefixes.items():
        ids = [entity.preamble.id for entity in getattr(info, kind)]
        assert ids and {number >> 24 for number in ids} == {prefix}, kind


def test_an_object_of_p4info_without_an_id_is_refused(rig: Rig) -> None:
    request = rig.config_request("p4rt_all")
    request.config.p4info.registers[0].preamble.id = 0
    code, said = code_of(rig.stub.SetForwardingPipelineConfig, request)
    assert (
        code == INVALID and "has no id" in said and request.config.p4info.registers[0].preamble.name in said
    )


ID_FIELDS = [
    ("table_entry", "table_id"), ("action_profile_member", "action_profile_id"),
    ("action_profile_group", "action_profile_id"), ("counter_entry", "counter_id"), ("meter_entry", "meter_id"),
    ("register_entry", "register_id"), ("value_set_entry", "value_set_id"), ("digest_entry", "digest_id"),
    ("extern_entry", "extern_type_id"),
]  # fmt: skip


@pytest.mark.parametrize(("entity", "field"), ID_FIELDS)
def test_ids_that_are_not_in_p4info(rig: Rig, entity: str, field: str) -> None:
    """NOT_FOUND, with the id, in writes and reads of every kind of entity; id 0 is none in a write."""
    update = p4r.Update(type=MODIFY)
    getattr(update.entity, entity).SetInParent()
    assert rig.write(update) == [Code.NOT_FOUND], "id 0"
    setattr(getattr(update.entity, entity), field, 0x7F0002)
    with pytest.raises(grpc.RpcError) as caught:
        rig.stub.Write(rig.write_request(update))
    (detail,) = details_of(caught.value)
    assert (detail.canonical_code, str(0x7F0002) in detail.message) == (Code.NOT_FOUND, True), detail
    with pytest.raises(grpc.RpcError) as caught:
        rig.read(update.entity)
    (detail,) = details_of(caught.value)
    assert (detail.canonical_code, str(0x7F0002) in detail.message) == (Code.NOT_FOUND, True), detail


def test_the_cookie_is_optional(make_rig: RigMaker) -> None:
    """One that is not given is not there; 0 is a cookie."""
    rig = make_rig()
    rig.primary()
    request = p4r.GetForwardingPipelineConfigRequest(device_id=1)
    for cookie in (None, 0, 77):
        rig.push("p4rt_all", cookie=cookie)
        config = rig.stub.GetForwardingPipelineConfig(request).config
        assert config.HasField("cookie") == (cookie is not None)
        assert config.cookie.cookie == (cookie or 0)


# ---- 8.4: P4Data ----


def typed(kind: str) -> tuple[p4t.P4DataTypeSpec, p4t.P4TypeInfo, str]:
    """A type of 129, 7 and 1 bits, as P4Info says it, and how the values 5, 0x7D and 1 look."""
    spec, info = p4t.P4DataTypeSpec(), p4t.P4TypeInfo()
    bits = [p4t.P4DataTypeSpec(), p4t.P4DataTypeSpec(), p4t.P4DataTypeSpec()]
    for part, width in zip(bits, (129, 7, 1), strict=True):
        part.bitstring.bit.bitwidth = width
    values = ["bitstring: '\\005'", "bitstring: '}'", "bitstring: '\\001'"]
    if kind == "header":
        spec.header.name = "t"
        for part in bits:
            info.headers["t"].members.add(name="x", type_spec=part.bitstring)
        return spec, info, "header { is_valid: true bitstrings: '\\005' bitstrings: '}' bitstrings: '\\001' }"
    if kind == "signed":
        bits[1].bitstring.int.bitwidth = 7
        values[1] = "bitstring: '\\375'"
    elif kind == "bool":
        bits[2].bool.SetInParent()
        values[2] = "bool: true"
    elif kind == "enum":
        bits[1].serializable_enum.name = "e"
        info.serializable_enums["e"].underlying_type.bitwidth = 7
        values[1] = "enum_value: '}'"
    elif kind == "new type":
        bits[1].new_type.name = "n"
        info.new_types["n"].original_type.bitstring.bit.bitwidth = 7
    members = " ".join(f"members {{ {value} }}" for value in values)
    if kind == "tuple":
        spec.tuple.members.extend(p4t.P4DataTypeSpec(bitstring=part.bitstring) for part in bits)
        return spec, info, f"tuple {{ {members} }}"
    spec.struct.name = "t"
    for part in bits:
        info.structs["t"].members.add(name="x", type_spec=part)
    return spec, info, f"struct {{ {members} }}"


@pytest.mark.parametrize("kind", ["struct", "tuple", "header", "signed", "bool", "enum", "new type"])
def test_data_of_every_type(make_rig: RigMaker, kind: str) -> None:
    """What the data plane sends arrives as P4Info types it."""
    rig = make_rig()
    stream = rig.primary()
    request = rig.config_request("digests")
    spec, info, expected = typed(kind)
    wide = next(digest for digest in request.config.p4info.digests if digest.preamble.alias == "wide_learn_t")
    wide.type_spec.CopyFrom(spec)
    request.config.p4info.type_info.MergeFrom(info)
    rig.stub.SetForwardingPipelineConfig(request, timeout=60)
    update = p4r.Update(type=INSERT)
    update.entity.digest_entry.digest_id = wide.preamble.id
    assert rig.write(update) == [OK]
    header = (5 << 7 | 0x7D).to_bytes(17, "big")
    rig.receive(1, bytes(5) + b"\x01" + bytes(6) + b"\x88\xb5" + header + bytes(40))
    (data,) = stream.next().digest.data
    parsed = text_format.Parse(expected, type(data)())
    assert data == parsed


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("signed", "bitstring: '\\377'", "bitstring: '\\000\\200\\000\\000\\000'"),
        ("enum", "enum_value: '\\005'", "enum_value: '\\001\\000\\000\\000\\000'"),
        ("struct", "struct { members { bitstring: '\\001' } members { bitstring: '\\002' } }", None),
        ("header", "header { is_valid: true bitstrings: '\\001' bitstrings: '\\002' }", None),
    ],
)
def test_registers_of_every_type(make_rig: RigMaker, kind: str, good: str, bad: str | None) -> None:
    """They read as they were written; another form is INVALID_ARGUMENT, too large a value OUT_OF_RANGE."""
    rig = make_rig()
    rig.primary()
    request = rig.config_request("p4rt_all")
    info = request.config.p4info
    words = next(declared for declared in info.registers if declared.preamble.alias == "words")
    half = p4t.P4DataTypeSpec()
    half.bitstring.bit.bitwidth = 16
    words.type_spec.Clear()
    if kind == "signed":
        words.type_spec.bitstring.int.bitwidth = 32
    elif kind == "enum":
        words.type_spec.serializable_enum.name = "e"
        info.type_info.serializable_enums["e"].underlying_type.bitwidth = 32
    elif kind == "struct":
        words.type_spec.struct.name = "t"
        for name in ("a", "b"):
            info.type_info.structs["t"].members.add(name=name, type_spec=half)
    else:
        words.type_spec.header.name = "t"
        for name in ("a", "b"):
            info.type_info.headers["t"].members.add(name=name, type_spec=half.bitstring)
    rig.set_pipeline(request)
    entity = register(rig, "words", 3)
    text_format.Parse(good, entity.register_entry.data)
    assert rig.write(modify(entity)) == [OK]
    assert rig.read(register(rig, "words", 3)) == [entity]
    if bad is not None:
        entity.register_entry.data.Clear()
        text_format.Parse(bad, entity.register_entry.data)
        assert rig.write(modify(entity)) == [Code.OUT_OF_RANGE]
    entity.register_entry.data.bool = True
    assert rig.write(modify(entity)) == [INVALID]


@pytest.mark.parametrize("kind", ["varbit", "error", "enum", "header_union", "header_stack"])
def test_types_that_no_array_or_digest_has_here(rig: Rig, kind: str) -> None:
    """The pipeline is refused, with the name of the type's kind."""
    request = rig.config_request("p4rt_all")
    words = next(
        declared for declared in request.config.p4info.registers if declared.preamble.alias == "words"
    )
    words.type_spec.Clear()
    if kind == "varbit":
        words.type_spec.bitstring.varbit.max_bitwidth = 32
    else:
        getattr(words.type_spec, kind).SetInParent()
    code, said = code_of(rig.stub.SetForwardingPipelineConfig, request)
    assert code == INVALID and kind in said and "AllIngress.words" in said


# ---- 16: what streams carry ----


def test_packets_keep_their_order(rig: Rig) -> None:
    """Out and in."""
    stream = rig.sessions[0]
    frames = [bytes(12) + b"\x99\x99" + bytes([number]) * 46 for number in range(50)]
    for frame in frames:
        stream.send(packet_out(b"\x03", b"\0", frame))
    barrier(stream)
    assert rig.in_server(rig.plane.take) == [(3, frame) for frame in frames]
    assert rig.write(mac(rig, 0, ("forward", 510))) == [OK]
    for frame in frames:
        rig.receive(1, frame)
    assert [stream.next().packet.payload for _ in frames] == frames


def test_a_packet_out_through_the_tables(rig: Rig) -> None:
    """One that goes into the pipeline is forwarded by the entries."""
    frame = bytes.fromhex("0000000000050000000000019999") + bytes(46)
    assert rig.write(mac(rig, 5, ("forward", 6))) == [OK]
    rig.sessions[0].send(packet_out(b"\0", b"\x01", frame))
    barrier(rig.sessions[0])
    assert rig.in_server(rig.plane.take) == [(6, frame)]


def test_backups_get_no_packets_nor_notifications(rig: Rig) -> None:
    """The primary alone does."""
    backup = rig.announced(0, Code.ALREADY_EXISTS)
    assert rig.write(mac(rig, 5, ("forward", 510)), idle_entry(rig, 10, 6)) == [OK, OK]
    rig.receive(1, bytes.fromhex("0000000000050000000000019999") + bytes(46))
    rig.advance(10**9)
    assert rig.sessions[0].next().HasField("packet")
    assert rig.sessions[0].next().HasField("idle_timeout_notification")
    backup.arbitrate(0)
    assert backup.status() == Code.ALREADY_EXISTS  # and nothing before


@pytest.mark.parametrize("twice", [False, True])
def test_metadata_that_is_missing_or_given_twice(rig: Rig, twice: bool) -> None:
    """The packet is dropped, with a StreamError that holds it."""
    message = packet_out(b"\x01" if twice else None, b"\0", bytes(60))
    if twice:
        message.packet.metadata.add(metadata_id=1, value=b"\x02")
    rig.sessions[0].send(message)
    error = rig.sessions[0].next().error
    assert (error.canonical_code, error.packet_out.packet_out) == (INVALID, message.packet)
    assert "metadata" in error.message
    assert rig.in_server(rig.plane.take) == []


def test_metadata_that_is_given_twice_when_compatible(make_rig: RigMaker) -> None:
    """The last value counts."""
    rig = make_rig(settings=DeviceSettings(device_id=1, bmv2_compat=True), pushed="p4rt_all")
    stream = rig.sessions[0]
    message = packet_out(b"\x01", b"\0", bytes(60))
    message.packet.metadata.add(metadata_id=1, value=b"\x02")
    stream.send(message)
    barrier(stream)
    assert rig.in_server(rig.plane.take) == [(2, bytes(60))]


def test_idle_timeouts_that_come_together(rig: Rig) -> None:
    """One message, with the time since the epoch; none when nothing is idle."""
    stream = rig.sessions[0]
    assert rig.write(*(idle_entry(rig, 10, number) for number in (1, 2, 3))) == [OK] * 3
    before = time.time_ns()
    rig.advance(10)
    notification = stream.next().idle_timeout_notification
    assert before <= notification.timestamp <= time.time_ns()
    assert sorted(entry.match[0].exact.value for entry in notification.table_entry) == [b"\1", b"\2", b"\3"]
    rig.advance(9)
    barrier(stream)


# ---- 17, 18, 20 ----


def test_the_version_is_semantic(rig: Rig) -> None:
    version = rig.stub.Capabilities(p4r.CapabilitiesRequest()).p4runtime_api_version
    assert [part.isdecimal() for part in version.split(".")] == [True] * 3


def test_an_index_of_a_translated_type(rig: Rig) -> None:
    """A type of more bits than the program's: the numbers are the same."""
    request = rig.config_request("p4rt_all")
    translate(request.config.p4info, "PortId_t", 32)
    info = request.config.p4info
    for array in (*info.counters, *info.meters, *info.registers):
        array.index_type_name.name = "PortId_t"
    rig.stub.SetForwardingPipelineConfig(request, timeout=60)
    rig.receive(3, bytes(60))
    entity = p4r.Entity()
    entity.counter_entry.counter_id, entity.counter_entry.index.index = info.counters[0].preamble.id, 3
    (counted,) = rig.read(entity)
    assert counted.counter_entry.data.packet_count == 1
    meter = p4r.Entity()
    meter.meter_entry.meter_id, meter.meter_entry.index.index = info.meters[0].preamble.id, 3
    meter.meter_entry.config.pir = 5
    cell = register(rig, "words", 3, b"\5")
    assert rig.write(modify(meter), modify(cell)) == [OK, OK]
    assert rig.read(meter, cell) == [meter, cell]


RECONCILE = p4r.SetForwardingPipelineConfigRequest.RECONCILE_AND_COMMIT


def with_ports(rig: Rig, bits: int | None, action: int = 3) -> None:
    """p4rt_all, in whose packets controllers have ports of so many bits; None: strings."""
    request = rig.config_request("p4rt_all", action)
    info = request.config.p4info
    translate(info, "PortId_t", bits)
    for header in info.controller_packet_metadata:
        for item in header.metadata:
            if item.name in ("ingress_port", "egress_port"):
                item.type_name.name, item.bitwidth = "PortId_t", bits or 0
    rig.stub.SetForwardingPipelineConfig(request, timeout=60)


def test_ports_of_replicas_are_the_switchs_numbers(rig: Rig) -> None:
    """No port is reserved, in whatever width controllers write them."""
    with_ports(rig, 32)
    numbered = group(1)
    replicas = numbered.packet_replication_engine_entry.multicast_group_entry.replicas
    replicas.add(port=b"\0\0\0\x07")
    assert rig.write(modify(numbered, INSERT)) == [OK]
    assert flood(rig, 1) == [7]
    for number in (0xFFFFFFFD, 0xFFFFFFFA):  # SDN_PORT_CPU, SDN_PORT_RECIRCULATE
        replicas[0].port = number.to_bytes(4, "big")
        assert rig.write(modify(numbered)) == [INVALID]


def test_ports_of_replicas_are_strings_where_those_of_packets_are(rig: Rig) -> None:
    """Replicas, those that stand in, clone sessions, and ports to watch; they read back as they were written."""
    with_ports(rig, None)
    named = group(1)
    replicas = named.packet_replication_engine_entry.multicast_group_entry.replicas
    replicas.add(port=b"7").backup_replicas.add(port=b"8")
    replicas.add(port=b"uplink")
    session = p4r.Entity()
    copies = session.packet_replication_engine_entry.clone_session_entry
    copies.session_id = 5
    copies.replicas.add(port=b"uplink")
    members = members_of(rig, 1, (1, 1))
    members.entity.action_profile_group.members[0].watch_port = b"7"
    batch = [modify(named, INSERT), modify(session, INSERT), member(rig, 1, 1), members]
    assert rig.write(*batch) == [OK] * len(batch)
    assert rig.read(named, session) == [named, session]
    (answer,) = rig.read(p4r.Entity(action_profile_group=p4r.ActionProfileGroup(
        action_profile_id=members.entity.action_profile_group.action_profile_id)))  # fmt: skip
    assert answer.action_profile_group.members[0].watch_port == b"7"
    assert flood(rig, 1) == [1, 7]  # a string that is no number has the lowest that is free
    with_ports(rig, None, RECONCILE)
    assert rig.read(named, session) == [named, session]
    assert flood(rig, 1) == [1, 7]
    replicas[1].port = b"\xff"
    assert rig.write(modify(named)) == [INVALID]  # no UTF-8
    replicas[1].port = b"900"
    assert rig.write(modify(named)) == [OK]  # a string as any other: ports have nine bits


def test_match_kinds_of_other_architectures(rig: Rig) -> None:
    """A FieldMatch with `other` fits no field."""
    update = mac(rig, 1)
    update.entity.table_entry.match[0].other.Pack(p4r.TableEntry())
    assert rig.write(update) == [INVALID]


def test_a_program_of_another_package_is_another_service(rig: Rig) -> None:
    """The major version is the package's: there is p4.v1, and no other."""
    call = rig.channel.unary_unary("/p4.v2.P4Runtime/Capabilities", None, None)
    assert code_of(call, b"")[0] == Code.UNIMPLEMENTED
