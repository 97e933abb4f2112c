# SPDX-License-Identifier: Apache-2.0
"""Digests, idle timeouts, packet I/O, Capabilities and limits (SEMANTICS §2 rows 31-35)."""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tailrace.switch.core import lib as runtime
from tailrace.switch.core.lib import C
from tailrace.switch.daemon.ports import IoLoop
from tailrace.switch.p4runtime.device import DeviceSettings
from tests.switch.p4runtime.conftest import CPU_PORT, code_of, wildcard
from tests.switch.p4runtime.test_tables import mac

INSERT, MODIFY, DELETE = 1, 2, 3
OK = Code.OK
MS = 1_000_000


def digest(rig, kind: int, *, timeout_ms: int = 0, size: int = 0, ack_ms: int = 0) -> p4r.Update:
    update = p4r.Update(type=kind)
    update.entity.digest_entry.digest_id = rig.names.info.digests[0].preamble.id
    config = update.entity.digest_entry.config
    config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns = timeout_ms * MS, size, ack_ms * MS
    return update


def learn(rig, source: int) -> None:
    """A frame with an unknown destination makes a digest of its source."""
    rig.receive(7, b"\xff" * 6 + source.to_bytes(6, "big") + b"\x99\x99" + bytes(46))


def sources(message: p4r.StreamMessageResponse) -> list[int]:
    assert message.HasField("digest"), message
    return [int.from_bytes(data.struct.members[0].bitstring, "big") for data in message.digest.data]


def test_digest_configuration(rig):
    """Row 31: INSERT, MODIFY, DELETE, read by id and wildcard."""
    assert rig.write(
        digest(rig, MODIFY), digest(rig, INSERT, size=2), digest(rig, INSERT), digest(rig, MODIFY, size=-1),
    ) == [Code.NOT_FOUND, OK, Code.ALREADY_EXISTS, Code.INVALID_ARGUMENT]  # fmt: skip
    everything = wildcard("digest_entry")
    assert rig.read(everything) == [digest(rig, INSERT, size=2).entity]
    assert rig.write(digest(rig, DELETE), digest(rig, DELETE)) == [OK, Code.NOT_FOUND]
    assert rig.read(everything) == []


def test_digest_lists(rig):
    """Row 31: full lists, timeouts, no duplicates before the acknowledgement or its timeout."""
    stream = rig.sessions[0]
    learn(rig, 1)
    assert rig.write(digest(rig, INSERT, timeout_ms=50, size=3, ack_ms=100)) == [OK]
    for source in (1, 2, 2, 3):
        learn(rig, source)
    first = stream.next()
    assert sources(first) == [1, 2, 3]
    assert first.digest.data[0].struct.members[1].bitstring == b"\x07"
    learn(rig, 1)
    learn(rig, 4)
    rig.advance(49 * MS)
    assert stream.nothing_waits()
    rig.advance(1 * MS)
    assert sources(stream.next()) == [4]
    ack = p4r.StreamMessageRequest()
    ack.digest_ack.digest_id, ack.digest_ack.list_id = first.digest.digest_id, first.digest.list_id
    stream.send(ack)
    stream.arbitrate(1)
    assert stream.status() == OK
    learn(rig, 1)
    learn(rig, 4)
    rig.advance(50 * MS)
    assert sources(stream.next()) == [1]


def test_a_digest_list_that_nobody_acknowledges(rig):
    """Row 31: its messages are held back until it is ack_timeout_ns old."""
    stream = rig.sessions[0]
    assert rig.write(digest(rig, INSERT, size=1, ack_ms=100)) == [OK]
    learn(rig, 4)
    assert sources(stream.next()) == [4]
    rig.advance(99 * MS)
    learn(rig, 4)
    stream.arbitrate(1)
    assert stream.status() == OK  # and nothing before
    rig.advance(1 * MS)
    learn(rig, 4)
    assert sources(stream.next()) == [4]


def test_a_digest_that_is_modified(rig):
    """Row 31: what waits for a list or an acknowledgement stays, and the new times and sizes count for it."""
    stream = rig.sessions[0]
    assert rig.write(digest(rig, INSERT, timeout_ms=50, size=9, ack_ms=1000)) == [OK]
    learn(rig, 1)
    rig.advance(50 * MS)
    assert sources(stream.next()) == [1]  # never acknowledged
    for source in (2, 3, 4):
        learn(rig, source)
    same = digest(rig, MODIFY, timeout_ms=50, size=9, ack_ms=1000)
    assert rig.write(same, digest(rig, MODIFY, timeout_ms=90, size=2, ack_ms=1000)) == [OK, OK]
    learn(rig, 1)
    learn(rig, 2)
    assert sources(stream.next()) == [2, 3]  # two is full now
    rig.advance(89 * MS)
    barrier(stream)
    rig.advance(1 * MS)
    assert sources(stream.next()) == [4]
    learn(rig, 4)
    # the shorter time ends that of what was sent before, too; a batch that fails changes nothing
    assert rig.write(digest(rig, MODIFY), digest(rig, INSERT), atomicity=1) == [
        Code.ABORTED,
        Code.ALREADY_EXISTS,
    ]
    learn(rig, 4)
    barrier(stream)
    assert rig.write(digest(rig, MODIFY, size=1, ack_ms=1)) == [OK]
    rig.advance(300 * MS)
    learn(rig, 4)
    assert sources(stream.next()) == [4]


def test_digest_without_buffering(rig):
    """Row 31: max_timeout_ns 0 sends every message by itself."""
    rig.write(digest(rig, INSERT))
    learn(rig, 1)
    learn(rig, 1)
    assert [sources(rig.sessions[0].next()) for _ in range(2)] == [[1], [1]]


def idle_entry(rig, timeout_ns: int, dst: int = 5, kind: int = INSERT) -> p4r.Update:
    update = mac(rig, dst, ("forward", 3), kind)
    entry = update.entity.table_entry
    entry.idle_timeout_ns = timeout_ns
    entry.metadata, entry.controller_metadata = b"m", 4
    return update


def test_idle_timeout(rig):
    """Row 32: a notification after the timeout, again after another one, none while the entry is hit."""
    stream = rig.sessions[0]
    update = idle_entry(rig, 100 * MS)
    assert rig.write(update, idle_entry(rig, 0, 6)) == [OK, OK]
    rig.advance(99 * MS)
    assert stream.nothing_waits()
    rig.advance(1 * MS)
    notification = stream.next().idle_timeout_notification
    expected = p4r.TableEntry()
    expected.CopyFrom(update.entity.table_entry)
    expected.ClearField("action")
    assert list(notification.table_entry) == [expected]
    assert notification.timestamp > 0
    rig.advance(99 * MS)
    assert stream.nothing_waits()
    rig.advance(1 * MS)
    assert len(stream.next().idle_timeout_notification.table_entry) == 1
    rig.receive(1, bytes.fromhex("0000000000050000000000019999") + bytes(46))
    rig.advance(99 * MS)
    assert stream.nothing_waits()
    request = p4r.Entity()
    request.table_entry.table_id = update.entity.table_entry.table_id
    request.table_entry.match.extend(update.entity.table_entry.match)
    request.table_entry.time_since_last_hit.SetInParent()
    (got,) = rig.read(request)
    assert got.table_entry.time_since_last_hit.elapsed_ns == 99 * MS
    assert got.table_entry.idle_timeout_ns == 100 * MS
    assert rig.write(idle_entry(rig, 0, kind=MODIFY)) == [OK]
    rig.advance(1000 * MS)
    assert stream.nothing_waits()


def test_idle_timeout_where_there_is_none(rig):
    """Row 32: INVALID_ARGUMENT for a table without idle timeout, a negative one, and for the default entry."""
    other = p4r.Update(type=INSERT)
    other.entity.table_entry.table_id = rig.names.id("tables", "route")
    other.entity.table_entry.idle_timeout_ns = 1
    other.entity.table_entry.action.action.CopyFrom(rig.names.action("send", 1))
    assert rig.write(other, idle_entry(rig, -1)) == [Code.INVALID_ARGUMENT] * 2
    request = p4r.Entity()
    request.table_entry.table_id = other.entity.table_entry.table_id
    request.table_entry.time_since_last_hit.SetInParent()
    with pytest.raises(grpc.RpcError):
        rig.read(request)


def packet_out(port: bytes | None, to_pipeline: bytes | None, payload: bytes) -> p4r.StreamMessageRequest:
    message = p4r.StreamMessageRequest()
    message.packet.payload = payload
    for number, value in ((1, port), (2, to_pipeline), (3, b"\0")):
        if value is not None:
            message.packet.metadata.add(metadata_id=number, value=value)
    return message


def barrier(stream) -> None:
    """Waits until the server has handled what was sent before."""
    stream.arbitrate(1)
    assert stream.status() == OK


def test_packet_out_and_packet_in(rig):
    """Row 33: metadata becomes the header of 16 bits and the header metadata, at odd bit positions."""
    stream = rig.sessions[0]
    payload = bytes.fromhex("0000000000050000000000019999") + b"data"
    stream.send(packet_out(b"\x01\x2c", b"\0", payload))
    barrier(stream)
    assert rig.in_server(rig.plane.take) == [(300, payload)]
    update = idle_entry(rig, 0)
    update.entity.table_entry.action.action.CopyFrom(rig.names.action("forward", 510))
    assert rig.write(update) == [OK]
    rig.receive(257, payload)
    packet = stream.next().packet
    assert packet.payload == payload
    assert {m.metadata_id: m.value for m in packet.metadata} == {1: b"\x01\x01", 2: b"\0", 3: b"\0"}


@pytest.mark.parametrize(("port", "extra", "code"), [(b"\x02\0", None, 11), (b"", None, 11), (b"\x01", 9, 3)])
def test_bad_packet_out_is_reported(rig, port, extra, code):
    """Row 33: too large, empty and unknown metadata drop the packet with a StreamError."""
    stream = rig.sessions[0]
    message = packet_out(port, b"\0", bytes(60))
    if extra is not None:
        message.packet.metadata.add(metadata_id=extra, value=b"\0")
    stream.send(message)
    error = stream.next().error
    assert error.canonical_code == code
    assert error.packet_out.packet_out == message.packet
    assert rig.in_server(rig.plane.take) == []


def test_packet_out_of_a_backup_and_other_messages(rig):
    """Row 33: PERMISSION_DENIED for a backup; unknown stream messages are reported too."""
    backup = rig.announced(0, Code.ALREADY_EXISTS)
    backup.send(packet_out(b"\x01", b"\0", bytes(60)))
    assert backup.next().error.canonical_code == Code.PERMISSION_DENIED
    other = p4r.StreamMessageRequest()
    other.other.Pack(p4r.TableEntry())
    for message, code in ((other, Code.UNIMPLEMENTED), (p4r.StreamMessageRequest(), Code.INVALID_ARGUMENT)):
        backup.send(message)
        assert backup.next().error.canonical_code == code
    ack = p4r.StreamMessageRequest()
    ack.digest_ack.digest_id = 12
    rig.sessions[0].send(ack)
    error = rig.sessions[0].next().error
    assert (error.canonical_code, error.digest_list_ack.digest_list_ack.digest_id) == (
        Code.INVALID_ARGUMENT,
        12,
    )


def test_packet_out_that_is_too_long(rig):
    """Row 33: one that the switch would lose is reported, and the stream goes on; the longest is sent."""
    stream = rig.sessions[0]
    longest = C.TR_MAX_FRAME - 2  # behind the header
    for payload in (bytes(longest + 1), bytes(200_000)):
        stream.send(packet_out(b"\x01", b"\0", payload))
        error = stream.next().error
        assert error.canonical_code == Code.INVALID_ARGUMENT
        assert f"has {len(payload) + 2} bytes" in error.message and f"{C.TR_MAX_FRAME}" in error.message
        assert error.packet_out.packet_out.payload == payload
    stream.send(packet_out(b"\x01", b"\0", bytes(longest)))
    barrier(stream)
    assert rig.in_server(rig.plane.take) == [(1, bytes(longest))]


def test_packet_out_without_memory(rig, monkeypatch):
    """Row 33: what the ports cannot take is reported, and the stream goes on."""
    stream, lib = rig.sessions[0], runtime.load()
    with IoLoop(rig.switch, {}, CPU_PORT, without_interfaces=True) as ports:
        monkeypatch.setattr(rig.plane, "send_packet_out", ports.send_packet_out)
        rig.in_server(lambda: lib.tr_mem_limit(0))
        try:
            stream.send(packet_out(b"\x01", b"\0", bytes(60)))
            error = stream.next().error
        finally:
            rig.in_server(lambda: lib.tr_mem_limit(-1))
        assert (error.canonical_code, error.message) == (
            Code.INVALID_ARGUMENT,
            f"port {CPU_PORT} takes no frame of 62 bytes",
        )
        barrier(stream)


def test_missing_packet_out_metadata_is_zero_when_compatible(make_rig):
    """Row 33, B: with the flag, left-out metadata is zero."""
    rig = make_rig(settings=DeviceSettings(device_id=1, bmv2_compat=True), pushed="p4rt_all")
    stream = rig.sessions[0]
    stream.send(packet_out(b"\x04", None, bytes(60)))
    barrier(stream)
    assert rig.in_server(rig.plane.take) == [(4, bytes(60))]


def test_capabilities(make_rig):
    """Row 34: what is implemented is 1.5."""
    stub = make_rig().stub
    for device_id in (0, 1):  # of the server, and of its device
        asked = p4r.CapabilitiesRequest(device_id=device_id)
        assert stub.Capabilities(asked).p4runtime_api_version == "1.5.0"


def test_capabilities_of_an_unknown_device(make_rig):
    """Specification 17: NOT_FOUND."""
    assert code_of(make_rig().stub.Capabilities, p4r.CapabilitiesRequest(device_id=2))[0] == Code.NOT_FOUND


def test_large_messages(rig):
    """Row 35: a message far above gRPC's usual 4 MB is taken."""
    updates = [idle_entry(rig, 0, dst=number) for number in range(3000)]
    for update in updates:
        update.entity.table_entry.metadata = bytes(4096)
    assert rig.write(*updates) == [OK] * 3000
    request = p4r.Entity()
    request.table_entry.table_id = updates[0].entity.table_entry.table_id
    read = rig.read(request)
    assert len(read) == 3000
    assert {len(entity.table_entry.metadata) for entity in read} == {4096}
