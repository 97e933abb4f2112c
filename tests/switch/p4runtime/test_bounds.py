# SPDX-License-Identifier: Apache-2.0
"""What clients can make the server remember, queue and say is bounded."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from finsy.proto import p4r

from tailrace.p4rt.status import MAX_MESSAGE, Code, P4RtError
from tailrace.switch.core import DigestRecord
from tailrace.switch.p4runtime import requests, service, streams
from tailrace.switch.p4runtime.arbitration import MAX_ROLE_BYTES, Arbiter, ArbitrationClient
from tailrace.switch.p4runtime.context import INSERT
from tailrace.switch.p4runtime.device import DeviceSettings
from tailrace.switch.p4runtime.entities.digests import MAX_LIST, MAX_UNACKNOWLEDGED
from tailrace.switch.p4runtime.streams import QUEUED_BYTES, QUEUED_MESSAGES, ClientStream
from tests.switch.p4runtime.conftest import TIMEOUT_S, Rig, RigMaker
from tests.switch.p4runtime.states import new_state
from tests.switch.p4runtime.test_stateful_batches import program

MS = 1_000_000


def arbitration(role: str, election_id: int = 1) -> p4r.MasterArbitrationUpdate:
    message = p4r.MasterArbitrationUpdate(device_id=1)
    message.role.name = role
    message.election_id.low = election_id
    return message


def test_roles_are_forgotten_with_their_last_stream() -> None:
    """A hundred thousand names later there is the default role alone; its highest id is remembered."""
    arbiter = Arbiter(1)
    client = ArbitrationClient()
    arbiter.update(client, p4r.MasterArbitrationUpdate(device_id=1, election_id=p4r.Uint128(low=9)))
    arbiter.disconnect(client)
    for number in range(100_000):
        client = ArbitrationClient()
        arbiter.update(client, arbitration(f"role {number}"))
        arbiter.disconnect(client)
    assert len(arbiter._roles) == 1
    assert arbiter.highest() == 9
    with pytest.raises(P4RtError) as refused:
        arbiter.authorize("role 5", 1)
    assert refused.value.code == Code.NOT_FOUND


def test_a_role_is_kept_while_it_has_a_stream() -> None:
    """With the highest id that it has seen."""
    arbiter = Arbiter(1)
    first, second = ArbitrationClient(), ArbitrationClient()
    arbiter.update(first, arbitration("r", 7))
    arbiter.update(second, arbitration("r", 3))
    arbiter.disconnect(first)
    ((_, response),) = arbiter.update(second, arbitration("r", 4))
    assert (response.election_id.low, response.status.code) == (7, Code.NOT_FOUND)


def test_a_long_role_ends_the_stream(make_rig: RigMaker) -> None:
    """With both lengths, in one short line; one of the greatest length is fine."""
    rig = make_rig()
    session = rig.session()
    session.arbitrate(1, role="é" * (MAX_ROLE_BYTES // 2))
    assert session.status() == Code.OK
    for role in ("x" * (MAX_ROLE_BYTES + 1), "x" * 300_000):
        session = rig.session()
        session.arbitrate(1, role=role)
        code, message = session.ended()
        assert code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED)
        assert len(message) <= MAX_MESSAGE and "\n" not in message
    assert rig.in_server(lambda: len(rig.device.arbiter._roles)) == 2


def test_a_stream_message_has_at_most_256_kib(rig: Rig) -> None:
    """As docs/switch/limits.md says; a longer one ends its stream."""
    session = rig.primary(2)
    packet = p4r.StreamMessageRequest()
    packet.packet.payload = b"x" * ((1 << 18) - 8)
    packet.packet.payload += b"x" * ((1 << 18) + 1 - packet.ByteSize())
    session.send(packet)
    code, message = session.ended()
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "262145" in message and "262144" in message


def test_digests_that_nobody_acknowledges() -> None:
    """They are remembered up to a number, and counted beyond; those remembered are not sent again."""
    digests = new_state(*program()).digests
    entry = p4r.DigestEntry(digest_id=next(iter(program()[1].digests)))
    entry.config.ack_timeout_ns = 1 << 60
    entry.config.max_list_size = 100_000
    entry.config.max_timeout_ns = 10 * MS
    digests.write(INSERT, entry, None)
    (enabled,) = digests._enabled.values()
    count = len(enabled.plan.type.widths)
    most = 0
    for number in range(4 * MAX_UNACKNOWLEDGED):
        message = digests.record(DigestRecord(enabled.plan.index, 0, (number,) * count), number)
        assert message is None or len(message.data) <= MAX_LIST
        most = max(most, len(enabled.cache) + len(enabled.buffer))
        assert sum(len(records) for _, records in enabled.sent.values()) == len(enabled.cache)
    assert MAX_UNACKNOWLEDGED <= most <= MAX_UNACKNOWLEDGED + MAX_LIST
    assert digests.forgotten() >= 2 * MAX_UNACKNOWLEDGED
    again = next(iter(enabled.cache))
    assert digests.record(DigestRecord(enabled.plan.index, 0, again), 0) is None
    assert again not in enabled.buffer


def test_acknowledgements_of_what_is_forgotten_do_no_harm() -> None:
    """Nor do those of lists that never were."""
    digests = new_state(*program()).digests
    digest_id = next(iter(program()[1].digests))
    entry = p4r.DigestEntry(digest_id=digest_id)
    entry.config.ack_timeout_ns = 5
    digests.write(INSERT, entry, None)
    (enabled,) = digests._enabled.values()
    values = (1,) * len(enabled.plan.type.widths)
    message = digests.record(DigestRecord(enabled.plan.index, 0, values), 0)
    assert message is not None
    assert digests.record(DigestRecord(enabled.plan.index, 0, values), 1) is None
    digests.due(5)
    assert not enabled.cache and not enabled.sent
    for list_id in (message.list_id, 12345):
        digests.acknowledge(p4r.DigestListAck(digest_id=digest_id, list_id=list_id))


def test_a_slow_client_loses_packets_and_is_cut_off() -> None:
    """Packets beyond a number or size are dropped and counted; of what must arrive too much ends the stream."""

    async def slow() -> None:
        stream = ClientStream()
        packet = p4r.StreamMessageResponse(packet=p4r.PacketIn(payload=bytes(1000)))
        kept = sum(stream.offer(packet.SerializeToString()) for _ in range(2 * QUEUED_MESSAGES))
        assert kept == QUEUED_MESSAGES and stream.dropped == QUEUED_MESSAGES
        stream = ClientStream()
        packet.packet.payload = bytes(60_000)
        kept = sum(stream.offer(packet.SerializeToString()) for _ in range(1000))
        assert kept == QUEUED_BYTES // packet.ByteSize() and stream.dropped == 1000 - kept
        for _ in range(streams.MAX_QUEUED_RESPONSES):
            stream.send(p4r.StreamMessageResponse())
        assert stream.error is None
        stream.send(p4r.StreamMessageResponse())
        assert stream.error is not None and stream.error.code == Code.RESOURCE_EXHAUSTED
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(TIMEOUT_S)

    asyncio.run(asyncio.wait_for(slow(), TIMEOUT_S))


def test_a_client_that_never_reads_cannot_fill_the_server(make_rig: RigMaker) -> None:
    """It floods arbitrations and takes no answer: nothing more is read from it, and others go on."""
    rig = make_rig()
    rig.primary(5)
    silent = grpc.insecure_channel(f"127.0.0.1:{rig.port}")
    call = silent.stream_stream(
        "/p4.v1.P4Runtime/StreamChannel",
        request_serializer=p4r.StreamMessageRequest.SerializeToString,
        response_deserializer=p4r.StreamMessageResponse.FromString,
    )
    request = p4r.StreamMessageRequest()
    request.arbitration.device_id = 1
    request.arbitration.election_id.low = 3
    stream = call(request for _ in range(200_000))
    for _ in range(50):
        rig.push("p4rt_all", 1)
        waiting = rig.in_server(
            lambda: max(len(stream._queue) for stream in rig.server.service.streams.values())
        )
        assert waiting <= streams.MAX_QUEUED_RESPONSES
    stream.cancel()
    silent.close()


def test_streams_and_reads_are_counted(make_rig: RigMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is one too many is refused with the number."""
    rig = make_rig("p4rt_all")
    monkeypatch.setattr(service, "MAX_STREAMS", 3)
    rig.primary()
    rig.push("p4rt_all")
    for election_id in (2, 3):
        rig.session().arbitrate(election_id)
        assert rig.sessions[-1].status() == Code.OK
    code, message = rig.session().ended()
    assert (code, message) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "3 streams are open; the limit is 3")
    monkeypatch.setattr(service, "MAX_READS", 0)
    with pytest.raises(grpc.RpcError) as refused:
        rig.read(p4r.Entity())
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_large_requests_are_few_at_a_time() -> None:
    """Others wait until one has ended, or has left its place early; small ones do not."""
    large, entered = bytes(requests.LARGE_OCTETS + 1), list[int]()

    async def hold(admission: requests.Admission, number: int, end: asyncio.Event, *, early: bool) -> None:
        async with admission.admit(large) as leave:
            entered.append(number)
            if early:
                leave()
                leave()
            await end.wait()

    async def run() -> None:
        admission, end = requests.Admission(), asyncio.Event()
        tasks = [
            asyncio.create_task(hold(admission, number, end, early=number == 1))
            for number in range(requests.MAX_LARGE + 3)
        ]
        await asyncio.sleep(0.01)
        assert entered == list(range(requests.MAX_LARGE + 1))
        tasks[0].cancel()
        await asyncio.sleep(0.01)
        assert entered == list(range(requests.MAX_LARGE + 2))
        async with admission.admit(bytes(requests.LARGE_OCTETS)):
            end.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert len(entered) == len(tasks)

    asyncio.run(run())


def test_pushes_are_counted(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_PUSHES", 0)
    with pytest.raises(grpc.RpcError, match="0 pushes are under way; the limit is 0"):
        rig.push("p4rt_all")


def test_a_read_that_nobody_takes_ends(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while its place is free again."""
    monkeypatch.setattr(service, "STALLED_S", 0.2)
    entries = []
    for number in range(3000):
        update = p4r.Update(type=p4r.Update.INSERT)
        entry = update.entity.table_entry
        entry.table_id = rig.names.id("tables", "mac")
        entry.match.add(field_id=1).exact.value = (number + 1).to_bytes(2, "big").lstrip(b"\0")
        entry.action.action.CopyFrom(rig.names.action("forward", 3))
        entry.metadata = bytes(4000)
        entries.append(update)
    assert set(rig.write(*entries)) == {Code.OK}
    request = p4r.ReadRequest(device_id=1)
    request.entities.add().table_entry.SetInParent()
    call = rig.stub.Read(request)  # 12 MB, which no buffer on the way holds
    while rig.in_server(lambda: rig.server.service._reads) != 1:
        pass
    while rig.in_server(lambda: rig.server.service._reads) != 0:
        pass
    call.cancel()
    assert len(rig.read(request.entities[0])) >= 3000


def test_memory_is_counted_and_given_back(make_rig: RigMaker) -> None:
    """Entries beyond the limit are refused with the figures; what is deleted makes room."""
    rig = make_rig(settings=DeviceSettings(device_id=1, memory_limit=1 << 20))
    rig.primary()
    rig.push("p4rt_all")
    start = rig.in_server(lambda: rig.device.memory.used)
    batch = []
    for number in range(1000):
        update = p4r.Update(type=p4r.Update.INSERT)
        entry = update.entity.table_entry
        entry.table_id = rig.names.id("tables", "mac")
        entry.match.add(field_id=1).exact.value = (number + 1).to_bytes(2, "big").lstrip(b"\0")
        entry.action.action.CopyFrom(rig.names.action("forward", 3))
        entry.metadata = b"m" * (number % 100)
        batch.append(update)
    codes = rig.write(*batch)
    assert 300 < codes.count(Code.OK) < 1000 and codes[-1] == Code.RESOURCE_EXHAUSTED
    assert rig.in_server(lambda: rig.device.memory.used) <= 1 << 20
    for update in batch:
        update.type = p4r.Update.DELETE
    rig.write(*batch)
    assert rig.in_server(lambda: rig.device.memory.used) == start
    for action in (2, 3, 2, 4, 5):
        request = rig.config_request("p4rt_all", action)
        if action == 4:
            request.ClearField("config")
        rig.stub.SetForwardingPipelineConfig(request)
    rig.advance(0)
    while rig.in_server(lambda: len(rig.server.service._free_tasks)):
        pass
    assert rig.in_server(lambda: rig.device.memory.used) == start


@pytest.mark.parametrize("name", ["x" * 5000, "a\nb\rc\x1b[31m", "\u202e\u2028"])
def test_messages_are_one_short_line(rig: Rig, name: str) -> None:
    """Whatever a name holds."""
    request = rig.config_request("p4rt_all")
    request.config.p4info.tables[0].preamble.name = name
    with pytest.raises(grpc.RpcError) as refused:
        rig.stub.SetForwardingPipelineConfig(request)
    details = refused.value.details() or ""
    assert 0 < len(details) <= MAX_MESSAGE and details.isprintable()


def test_a_fault_of_ours_is_one_line_too(rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    """INTERNAL, and one line in the log."""

    def broken(*_: object) -> None:
        raise KeyError("secret\nthing")

    monkeypatch.setattr(rig.device, "read_steps", broken)
    with pytest.raises(grpc.RpcError) as failed:
        rig.read(p4r.Entity())
    assert failed.value.code() == grpc.StatusCode.INTERNAL
    assert failed.value.details() == "internal error; see the switch's log"
    (record,) = [r for r in caplog.records if r.levelname == "ERROR"]
    assert "KeyError" in record.getMessage() and "\n" not in record.getMessage()
