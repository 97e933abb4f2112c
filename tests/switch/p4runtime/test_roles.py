# SPDX-License-Identifier: Apache-2.0
"""@p4runtime_role: what controllers of a role may write and read, and what they are told."""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tailrace.switch.p4runtime.device import DeviceSettings
from tests.switch.p4runtime.conftest import wildcard
from tests.switch.p4runtime.pins import message_of, push, refused
from tests.switch.p4runtime.test_profiles import hop, member
from tests.switch.p4runtime.test_streams import idle_entry
from tests.switch.p4runtime.test_tables import mac, route

OK, DENIED = Code.OK, Code.PERMISSION_DENIED
MS = 1_000_000
SDN, OTHER = '@p4runtime_role("sdn")', '@p4runtime_role("other")'
PROGRAM: dict[str, str | list[str]] = {"tables/mac": SDN, "tables/hop": SDN, "tables/route": OTHER}


@pytest.fixture
def rig(make_rig):
    """A pipeline in which mac and hop are sdn's and route is other's; with the primary of sdn."""
    rig = make_rig()
    rig.primary()
    push(rig, PROGRAM)
    rig.announced(1, role="sdn")
    return rig


def read(rig, request: p4r.Entity, role: str) -> list[p4r.Entity]:
    call = rig.stub.Read(p4r.ReadRequest(device_id=1, entities=[request], role=role), timeout=60)
    return [entity for response in call for entity in response.entities]


def default_counter(rig) -> p4r.Update:
    update = p4r.Update(type=p4r.Update.MODIFY)
    update.entity.direct_counter_entry.table_entry.table_id = rig.names.id("tables", "mac")
    update.entity.direct_counter_entry.table_entry.is_default_action = True
    return update


def test_a_role_writes_what_it_has(rig):
    """Action profiles and direct resources go with their tables; what names no role is the default role's."""
    updates = [mac(rig, 1), default_counter(rig), member(rig, 1), hop(rig, member_id=1)]
    assert rig.write(*updates, role="sdn") == [OK] * 4
    denied = [route(rig, b"\x0a\0\0\0", 8), member(rig, 1, profile="marks")]
    assert rig.write(*denied, role="sdn") == [DENIED] * 2
    assert rig.write(*denied) == [OK] * 2
    rig.announced(1, role="other")
    assert rig.write(route(rig, b"\x0b\0\0\0", 8), mac(rig, 2), role="other") == [OK, DENIED]
    assert rig.write(route(rig, b"\x0c\0\0\0", 8), mac(rig, 2), role="other", atomicity=1) == [
        Code.ABORTED,
        DENIED,
    ]
    assert (
        message_of(rig, mac(rig, 2), role="other")
        == "role 'other' has no access to 'AllIngress.mac', which belongs to 'sdn'"
    )
    assert message_of(rig, member(rig, 9, profile="marks"), role="sdn").endswith(
        "'AllIngress.marks', which belongs to the default role"
    )


def test_what_p4info_cannot_annotate_is_everyones(rig):
    group = p4r.Update(type=p4r.Update.INSERT)
    group.entity.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 1
    cell = p4r.Update(type=p4r.Update.MODIFY)
    cell.entity.counter_entry.counter_id = rig.names.id("counters", "by_port")
    cell.entity.counter_entry.index.index = 0
    cell.entity.counter_entry.data.packet_count = 5
    assert rig.write(group, cell, role="sdn") == [OK, OK]
    assert len(read(rig, wildcard("packet_replication_engine_entry"), "sdn")) == 1
    assert len(read(rig, wildcard("counter_entry"), "sdn")) == 8


def test_a_role_reads_what_it_has(rig):
    """A request for one object of another is refused; of what is asked for in general it gets its own."""
    assert rig.write(mac(rig, 1), route(rig, b"\x0a\0\0\0", 8), member(rig, 1)) == [OK] * 3
    ids = {name: rig.names.id("tables", name) for name in ("mac", "route")}
    for role, table_ids in (("sdn", {ids["mac"]}), ("other", {ids["route"]}), ("nobody", set())):
        entities = read(rig, wildcard("table_entry"), role)
        assert {entity.table_entry.table_id for entity in entities} == table_ids
        assert len(read(rig, wildcard("action_profile_member"), role)) == (role == "sdn")
        counters = read(rig, wildcard("direct_counter_entry"), role)
        counted = {entity.direct_counter_entry.table_entry.table_id for entity in counters}
        assert counted == table_ids & {ids["mac"]}
    assert len({entity.table_entry.table_id for entity in read(rig, wildcard("table_entry"), "")}) > 2
    pattern = p4r.Entity(table_entry=p4r.TableEntry(table_id=ids["mac"]))
    assert len(read(rig, pattern, "sdn")) == 1
    with pytest.raises(grpc.RpcError) as caught:
        read(rig, pattern, "other")
    assert caught.value.code() == grpc.StatusCode.UNKNOWN


def test_without_annotations_every_role_has_everything(make_rig):
    rig = make_rig()
    rig.primary()
    push(rig, {})
    rig.announced(1, role="sdn")
    assert rig.write(mac(rig, 1), route(rig, b"\x0a\0\0\0", 8), role="sdn") == [OK, OK]
    assert len(read(rig, wildcard("table_entry"), "anybody")) >= 2


def test_simple_switch_knows_no_roles(make_rig):
    rig = make_rig(settings=DeviceSettings(device_id=1, bmv2_compat=True))
    rig.primary()
    push(rig, PROGRAM)
    sdn, other = rig.announced(1, role="sdn"), rig.announced(1, role="other")
    assert rig.write(mac(rig, 1), route(rig, b"\x0a\0\0\0", 8), role="sdn") == [OK, OK]
    table_ids = {entity.table_entry.table_id for entity in read(rig, wildcard("table_entry"), "other")}
    assert {rig.names.id("tables", name) for name in ("mac", "route")} <= table_ids
    assert rig.write(idle_entry(rig, 100 * MS)) == [OK]
    rig.advance(200 * MS)
    for session in (rig.sessions[0], sdn, other):
        assert len(session.next().idle_timeout_notification.table_entry) == 1


def test_idle_timeouts_are_told_to_whom_the_table_belongs(make_rig):
    rig = make_rig()
    root = rig.primary()
    push(rig, PROGRAM)
    sdn, other = rig.announced(1, role="sdn"), rig.announced(1, role="other")
    assert rig.write(idle_entry(rig, 100 * MS)) == [OK]
    rig.advance(200 * MS)
    for session in (root, sdn):
        assert len(session.next().idle_timeout_notification.table_entry) == 1
    other.arbitrate(1, role="other")
    assert other.status() == OK  # and nothing before


def test_packets_go_to_the_role_of_their_header(make_rig):
    rig = make_rig()
    root = rig.primary()
    push(
        rig,
        {
            "controller_packet_metadata/packet_in": SDN,
            "controller_packet_metadata/packet_out": SDN,
        },
        program="packet_io",
    )
    sdn, other = rig.announced(1, role="sdn"), rig.announced(1, role="other")
    rig.receive(3, bytes.fromhex("00000000000500000000000188B5") + b"data")
    for session in (root, sdn):
        assert session.next().HasField("packet")
    message = p4r.StreamMessageRequest()
    message.packet.payload = bytes.fromhex("0000000000050000000000019999") + b"data"
    for number, value in ((1, b"\x01"), (2, b"\0"), (3, b"\0")):
        message.packet.metadata.add(metadata_id=number, value=value)
    other.send(message)
    assert other.next().error.canonical_code == DENIED  # no packet-in before it
    sdn.send(message)
    sdn.arbitrate(1, role="sdn")
    assert sdn.status() == OK
    assert len(rig.in_server(rig.plane.take)) == 1


def test_digests_go_to_the_role_of_the_digest(make_rig):
    rig = make_rig()
    rig.primary()
    push(rig, {"digests/learn_t": SDN})
    rig.announced(1, role="sdn")
    other = rig.announced(1, role="other")
    update = p4r.Update(type=p4r.Update.INSERT)
    update.entity.digest_entry.digest_id = rig.names.id("digests", "learn_t")
    assert rig.write(update, role="other") == [DENIED]
    assert rig.write(update, role="sdn") == [OK]
    assert len(read(rig, wildcard("digest_entry"), "other")) == 0
    message = p4r.StreamMessageRequest()
    message.digest_ack.digest_id = update.entity.digest_entry.digest_id
    other.send(message)
    assert other.next().error.canonical_code == DENIED


@pytest.mark.parametrize("annotation", ["@p4runtime_role", "@p4runtime_role(sdn)", "@p4runtime_role()"])
def test_bad_annotations(rig, annotation):
    assert "AllIngress.acl', @p4runtime_role: expected a role's name" in refused(
        rig, {"tables/acl": annotation}
    )
