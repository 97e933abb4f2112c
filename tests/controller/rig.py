# SPDX-License-Identifier: Apache-2.0
"""What tests of the controller share: patience, what switches hold, and a network that is served over gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tailrace.controller.controller import Controller
from tailrace.controller.reconcile import differences
from tailrace.controller.session import SessionState
from tailrace.controller.timing import Timing
from tailrace.p4rt import programs
from tailrace.p4rt.channel import SwitchAddress
from tailrace.p4rt.client import connect
from tailrace.schemes.base import SchemeConfig, resolve
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.resolved import Resolved
from tailrace.sim.network import Network
from tailrace.switch.p4runtime.server import Server, ServerTls
from tailrace.topology import Topology, parse_topology

READY_S = 120.0
"""Far longer than anything takes: only a hang runs into it."""

PAIR = parse_topology("leaf-spine:leaves=1,spines=1,hosts=2,rate=10Mbps,delay=1ms")
FLOWCUT = parse_scheme("flowcut")


def on(topology: Topology, scheme: SchemeConfig = FLOWCUT) -> Resolved:
    return resolve(scheme, topology)


def patient(**values: Any) -> Timing:
    """A busy machine may take longer to answer than a user would wait."""
    return Timing(ask_s=READY_S, **values)


QUIET = patient(interval_s=3600.0)
"""No link carries anything between processes without ports, so nobody should miss it."""


async def until(condition: Callable[[], bool]) -> None:
    """Waits for something that must come."""

    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.005)

    await asyncio.wait_for(wait(), READY_S)


async def held_as_intended(controller: Controller) -> bool:
    """Reads every switch with a client of its own, which needs no election, and compares."""
    for name, session in controller.sessions.items():
        intended = controller.intents[name]
        async with connect(name, session.address) as client:
            if await differences(client, programs.load(intended.program), intended.entities):
                return False
    return True


async def until_held(controller: Controller) -> None:
    """Waits until every switch holds what it should: where links are watched, that may change meanwhile."""

    async def wait() -> None:
        while not await held_as_intended(controller):
            await asyncio.sleep(0.005)

    await asyncio.wait_for(wait(), READY_S)


def all_ready(controller: Controller) -> bool:
    return all(session.state is SessionState.READY for session in controller.sessions.values())


class Served:
    """A virtual network whose switches are served over gRPC, and whose time a task moves on."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.network = Network(topology)
        self.servers: dict[str, Server] = {}
        self.addresses: dict[str, SwitchAddress] = {}
        self.stopped: set[str] = set()

    async def start(self, tls: ServerTls | None) -> None:
        for switch in self.topology.switches:
            endpoint = self.network.p4rt(switch.name)
            server = Server(endpoint.device, endpoint.cpu)
            port = await server.start("127.0.0.1:0", tls)
            self.servers[switch.name] = server
            self.addresses[switch.name] = SwitchAddress(f"127.0.0.1:{port}", endpoint.device_id)

    async def pump(self) -> None:
        while True:
            self.network.advance_to(self.network.now_ns + 100_000)
            for name, server in self.servers.items():
                if name not in self.stopped:
                    server.service.deliver_events()
            await asyncio.sleep(0.001)


@asynccontextmanager
async def served(topology: Topology, tls: ServerTls | None = None) -> AsyncIterator[Served]:
    network = Served(topology)
    await network.start(tls)
    pump = asyncio.create_task(network.pump())
    try:
        yield network
    finally:
        pump.cancel()
        await asyncio.gather(pump, return_exceptions=True)
        for server in network.servers.values():
            await server.stop()
