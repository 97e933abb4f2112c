# SPDX-License-Identifier: Apache-2.0
"""A network that stands still serves P4Runtime for all of its switches at one address."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest
from finsy.proto import p4r, p4r_grpc
from msgspec.json import decode, encode
from msgspec.structs import replace

from tailrace.p4rt.requests import TRACE, TraceRequest
from tailrace.sim.network import Network
from tailrace.sim.network.serve import serving
from tailrace.switch.p4runtime import calls as server_calls
from tailrace.switch.p4runtime.server import MAX_CALLS
from tailrace.switch.trace import Trace, events
from tests.sim.network.l3 import Frame, attach_all, network, packet, topology
from tests.sim.network.test_endpoint import packet_out, pipeline


@asynccontextmanager
async def client(net: Network) -> AsyncIterator[Any]:
    async with (
        serving(net, "127.0.0.1:0") as port,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        yield p4r_grpc.P4RuntimeStub(channel)


def talk(net: Network, dialogue: Callable[[Any], Awaitable[None]]) -> None:
    async def run() -> None:
        async with client(net) as stub:
            await dialogue(stub)

    asyncio.run(run())


def arbitration(device_id: int, election_id: int) -> p4r.StreamMessageRequest:
    message = p4r.StreamMessageRequest()
    message.arbitration.device_id = device_id
    message.arbitration.election_id.low = election_id
    return message


def test_the_device_id_says_which_switch_is_meant() -> None:
    with Network(topology()) as net:
        net.p4rt("leaf1").set_pipeline(pipeline("packet_io"))
        net.p4rt("spine1").set_pipeline(pipeline("basic_l3"))
        wanted = {name: net.p4rt(name).pipeline().config.p4info for name in ("leaf1", "spine1")}

        async def dialogue(stub: Any) -> None:
            for name, p4info in wanted.items():
                request = p4r.GetForwardingPipelineConfigRequest(device_id=net.p4rt(name).device_id)
                answer = await stub.GetForwardingPipelineConfig(request)
                assert p4info == answer.config.p4info

        talk(net, dialogue)


def test_an_unknown_device_is_refused_with_the_ids_there_are() -> None:
    with Network(topology()) as net:
        ids = sorted(net.p4rt(switch.name).device_id for switch in net.topology.switches)

        async def dialogue(stub: Any) -> None:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.Write(p4r.WriteRequest(device_id=4711))
            assert refused.value.code() is grpc.StatusCode.NOT_FOUND
            assert f"{ids[0]}..{ids[-1]}" in str(refused.value.details())

        talk(net, dialogue)


def test_one_connection_has_room_for_a_controller_of_every_switch() -> None:
    """All channels of a process to one address share a connection: 60 streams to each of four switches."""
    with Network(topology()) as net:
        ids = [net.p4rt(switch.name).device_id for switch in net.topology.switches]

        async def dialogue(stub: Any) -> None:
            streams = []
            try:
                for device_id, election_id in itertools.product(ids, range(1, 61)):
                    streams.append(stub.StreamChannel())
                    await streams[-1].write(arbitration(device_id, election_id))
                    answer = await asyncio.wait_for(streams[-1].read(), 60)
                    assert answer.arbitration.election_id.low == election_id
                assert len(streams) > MAX_CALLS
            finally:
                for stream in streams:
                    stream.cancel()

        talk(net, dialogue)


def test_a_client_becomes_primary_with_a_low_election_id_and_the_network_takes_over_again() -> None:
    """A packet-out of the client leaves the switch when time goes on; the network's controller can write after."""
    frame = packet(topology(), "h2", "h1", b"out")
    with Network(topology()) as net:
        endpoint = net.p4rt("leaf1")
        endpoint.set_pipeline(pipeline("packet_io"))
        nics = attach_all(net)
        net.advance_to(1000)

        async def dialogue(stub: Any) -> None:
            stream = stub.StreamChannel()
            await stream.write(arbitration(endpoint.device_id, 1))
            answer = await stream.read()
            assert answer.arbitration.status.code == 0
            out = p4r.StreamMessageRequest(packet=packet_out(1, 0, frame))
            await stream.write(out)
            # the answer to a second arbitration shows that the packet-out has been handled
            await stream.write(arbitration(endpoint.device_id, 9))
            assert (await stream.read()).arbitration.election_id.low == 9
            await stream.done_writing()

        talk(net, dialogue)
        assert nics["h1"].arrived == []
        net.run()
        assert [data for _, data, _ in nics["h1"].arrived] == [frame]
        endpoint.write(p4r.WriteRequest())


def test_packet_ins_reach_the_client_of_the_switch_that_sent_them() -> None:
    frame = bytes(12) + b"\x88\xb5" + bytes(50)
    with Network(topology()) as net:
        endpoint = net.p4rt("leaf1")
        endpoint.set_pipeline(pipeline("packet_io"))
        attach_all(net)["h1"].script = [(0, Frame(frame))]
        net.run()

        async def dialogue(stub: Any) -> None:
            stream = stub.StreamChannel()
            await stream.write(arbitration(endpoint.device_id, 5))
            await stream.read()
            # any packet-out makes the service look for what waits
            await stream.write(p4r.StreamMessageRequest(packet=packet_out(1, 0, frame)))
            assert (await stream.read()).packet.payload == frame
            await stream.done_writing()

        talk(net, dialogue)


def test_a_stream_must_begin_with_an_arbitration() -> None:
    with Network(topology()) as net:

        async def dialogue(stub: Any) -> None:
            stream = stub.StreamChannel()
            await stream.write(p4r.StreamMessageRequest(packet=p4r.PacketOut()))
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stream.read()
                await stream.read()
            assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION

        talk(net, dialogue)


def _traced(net: Network, frame: bytes) -> list[Trace]:
    """What the leaves would do with a frame by port 1, asked over gRPC while the network stands still."""
    traces: list[Trace] = []

    async def run() -> None:
        async with (
            serving(net, "127.0.0.1:0") as port,
            grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
        ):
            call = channel.unary_stream(f"/{'/'.join(TRACE)}", bytes, bytes)
            for name in ("leaf1", "leaf2"):
                request = TraceRequest(net.p4rt(name).device_id, 1, frame.hex())
                traces.extend([decode(answer, type=Trace) async for answer in call(encode(request))])
                with pytest.raises(grpc.aio.AioRpcError, match="virtual time"):
                    [_ async for _ in call(encode(replace(request, send=True)))]

    asyncio.run(run())
    return traces


@pytest.mark.parametrize(
    ("name", "value", "code", "message"),
    [
        (
            "MAX_PENDING",
            2,
            "RESOURCE_EXHAUSTED",
            "too many calls wait for their request (limit 2); this one was the oldest",
        ),
        ("ARRIVAL_S", 0.2, "DEADLINE_EXCEEDED", "the request has not arrived within 0.2 s"),
    ],
)
def test_streams_that_say_nothing_are_bounded(
    monkeypatch: pytest.MonkeyPatch, name: str, value: float, code: str, message: str
) -> None:
    """In number and time, for they are of no switch yet."""
    monkeypatch.setattr(server_calls, name, value)
    with Network(topology()) as net:

        async def dialogue(stub: Any) -> None:
            streams = [stub.StreamChannel() for _ in range(3)]
            ends = [asyncio.ensure_future(stream.code()) for stream in streams]
            try:
                await asyncio.wait(ends, timeout=60, return_when=asyncio.FIRST_COMPLETED)
                ended = [stream for stream, end in zip(streams, ends, strict=True) if end.done()]
                assert (await ended[0].code()).name == code
                assert await ended[0].details() == message
            finally:
                for stream in streams:
                    stream.cancel()

        talk(net, dialogue)


def test_what_switches_would_do_is_told_while_the_network_stands_still() -> None:
    """Queues as long as they are then; and the network goes on as one that nobody has asked."""
    topo = topology()
    frame = packet(topo, "h1", "h3", bytes(1000))
    hashes = []
    for asked in (True, False):
        with network(topo) as net:
            nics = attach_all(net)
            for name in ("h1", "h2"):
                nics[name].script = [(0, Frame(packet(topo, name, "h3", bytes(1000)))) for _ in range(20)]
            net.advance_to(12_000)
            if asked:
                first, _ = _traced(net, frame)
                (queue,) = (step for step in first.steps if isinstance(step, events.QueueEvent))
                assert queue.packets > 0  # two hosts send by one uplink as fast as it is
                (sent,) = (step for step in first.steps if isinstance(step, events.SentEvent))
                assert sent.port == queue.port
            net.run()
            assert len(nics["h3"].arrived) == 40
            hashes.append(net.trace_sha256)
    assert hashes[0] == hashes[1]
