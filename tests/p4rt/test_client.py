# SPDX-License-Identifier: Apache-2.0
"""One client, with an event loop and without, and over memory: the same answers and the same errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from typing import Any, Protocol

import pytest
from finsy.proto import p4r

from tailrace.p4rt import programs
from tailrace.p4rt.channel import SwitchAddress
from tailrace.p4rt.client import Client, connect
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.errors import (
    ElectionError,
    NoResponseError,
    ReadError,
    UnreachableError,
    UnsupportedError,
    WriteError,
)
from tailrace.p4rt.grpc_in_memory import InMemoryGrpc
from tailrace.switch.p4runtime.service import P4RuntimeService, rpc_handler
from tailrace.switch.p4runtime.statistics_service import statistics_handler
from tests.controller.inspect.served import ServedSwitch, served

NOWHERE = SwitchAddress("127.0.0.1:1", 1)


class Open(Protocol):
    """Opens a client of the switch at an address, until the test ends."""

    async def __call__(self, address: SwitchAddress) -> Client: ...


Body = Callable[[Open], Coroutine[Any, Any, None]]


def in_a_loop(body: Body) -> None:
    async def run() -> None:
        async with AsyncExitStack() as stack:
            await body(lambda address: stack.enter_async_context(connect("s1", address)))

    asyncio.run(run())


def without_one(body: Body) -> None:
    opened: list[GrpcConnection] = []

    async def open_client(address: SwitchAddress) -> Client:
        opened.append(GrpcConnection("s1", address.address, address.device_id))
        return opened[-1].client

    try:
        run_at_once(body(open_client))
    finally:
        for connection in opened:
            connection.close()


def in_memory(body: Body) -> None:
    async def run() -> None:
        memory = InMemoryGrpc()
        async with AsyncExitStack() as stack:

            async def open_client(address: SwitchAddress) -> Client:
                switch = SWITCHES.get(address)
                if switch is not None and address.address not in memory.servers:
                    service = P4RuntimeService(switch.device, switch.plane, None)
                    statistics = statistics_handler({switch.device_id: switch.device.statistics})
                    memory.serve(address.address, [rpc_handler(service), statistics])
                return await stack.enter_async_context(connect("s1", address, calls=memory))

            await body(open_client)

    asyncio.run(run())


SWITCHES: dict[SwitchAddress, ServedSwitch] = {}
"""Those of which a test has asked the address."""

both = pytest.mark.parametrize("run", [in_a_loop, without_one])
each = pytest.mark.parametrize("run", [in_a_loop, without_one, in_memory])


@pytest.fixture
def switch() -> Iterator[ServedSwitch]:
    with served() as (place,):
        yield place
    SWITCHES.clear()


def address_of(switch: ServedSwitch) -> SwitchAddress:
    address = SwitchAddress(switch.address, switch.device_id)
    SWITCHES[address] = switch
    return address


@each
def test_one_is_primary(run: Callable[[Body], None], switch: ServedSwitch) -> None:
    """Nobody else while it is; afterwards with the id that the switch remembers, however low it begins."""

    async def body(open_client: Open) -> None:
        first, second = await open_client(address_of(switch)), await open_client(address_of(switch))
        await first.become_primary(1 << 100)
        with pytest.raises(ElectionError, match="another client has the election id"):
            await second.become_primary(1 << 100)
        await second.close()
        with pytest.raises(ElectionError, match=f"another controller is primary .election id {1 << 100}"):
            await second.become_primary(5)
        with pytest.raises(NoResponseError, match=r"s1: no message in 0\.01 s"):
            while True:
                await first.receive(0.01)  # of the elections
        await second.close()
        await first.close()
        await second.become_primary(5)
        await second.push(programs.load("ecmp"))

    run(body)


@each
def test_what_is_refused(run: Callable[[Body], None], switch: ServedSwitch) -> None:
    """Each refusal has the switch's code and reason; of a batch, by index."""

    async def body(open_client: Open) -> None:
        client, program = await open_client(address_of(switch)), programs.load("ecmp")
        assert await client.cookie() is None
        with pytest.raises(UnsupportedError, match="no program is loaded"):
            await client.p4info()
        await client.become_primary(7)
        await client.push(program)
        assert (await client.cookie(), await client.p4info()) == (program.cookie, program.p4info)
        unknown = p4r.Entity(table_entry=p4r.TableEntry(table_id=77))
        with pytest.raises(ReadError, match="s1: read was refused: NOT_FOUND: ") as read:
            await client.read([unknown])
        assert read.value.code == "NOT_FOUND"
        group = p4r.Entity()
        group.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 3
        updates = [p4r.Update(type=p4r.Update.INSERT, entity=entity) for entity in (unknown, group, unknown)]
        with pytest.raises(WriteError, match=r"write was refused: NOT_FOUND: .*\(and 1 more\)") as write:
            await client.write(updates)
        assert (set(write.value.failures), write.value.code) == ({0, 2}, "NOT_FOUND")
        statistics = await client.statistics()
        assert statistics is not None
        assert "ports" in statistics

    run(body)


@each
def test_nobody_there(run: Callable[[Body], None]) -> None:
    async def body(open_client: Open) -> None:
        client = await open_client(NOWHERE)
        for call in (client.cookie, client.p4info, client.statistics, lambda: client.become_primary(1)):
            with pytest.raises(
                UnreachableError, match=r"^s1: no P4Runtime server answers at 127\.0\.0\.1:1$"
            ):
                await call()

    run(body)


@both
def test_a_server_that_goes_away(run: Callable[[Body], None]) -> None:
    """Who waits for a message, or sends one, learns of it."""

    async def body(open_client: Open) -> None:
        with served() as (switch,):
            client = await open_client(address_of(switch))
            await client.become_primary(1)
        with pytest.raises(UnreachableError):
            await client.receive()
        with pytest.raises(UnreachableError):
            await client.receive(0.1)

    run(body)
