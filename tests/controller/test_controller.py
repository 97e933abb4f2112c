# SPDX-License-Identifier: Apache-2.0
"""The controller over gRPC against native switches: restarts on either side, take-over, faults, bad
addresses.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4r

from tailrace.controller.asking.relay import RelayServer
from tailrace.controller.controller import Controller, Event
from tailrace.controller.reconcile import differences
from tailrace.controller.session import State
from tailrace.controller.timing import Timing
from tailrace.native.server.server import Server
from tailrace.native.server.server import Tls as ServerTls
from tailrace.native.virtual import Network
from tailrace.p4rt import programs
from tailrace.p4rt.channel import Address
from tailrace.p4rt.client import connect
from tailrace.p4rt.errors import ControllerError, SwitchError, TlsError, UnreachableError, WriteError
from tailrace.p4rt.target import target
from tailrace.p4rt.tls import Tls
from tailrace.schemes.base import SchemeConfig, resolve
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.resolved import Resolved
from tailrace.topology import Topology, parse_topology
from tests.controller.conftest import SwitchProcess, SwitchStarter

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


def controller_of(
    switches: dict[str, SwitchProcess], scheme: SchemeConfig = FLOWCUT, **options: Any
) -> tuple[Controller, list[Event]]:
    events: list[Event] = []
    addresses = {name: process.address for name, process in switches.items()}
    made = Controller(
        PAIR,
        on(PAIR, scheme),
        addresses,
        target("native"),
        timing=QUIET,
        on_event=events.append,
        **options,
    )
    return made, events


async def held_as_intended(controller: Controller) -> bool:
    """Reads every switch with a client of its own, which needs no election, and compares."""
    for name, session in controller.sessions.items():
        found = controller.intents[name]
        async with connect(name, session.address) as client:
            if await differences(client, programs.load(found.program), found.entities):
                return False
    return True


async def until_held(controller: Controller) -> None:
    """Waits until every switch holds what it should: where links are watched, that may change meanwhile."""

    async def wait() -> None:
        while not await held_as_intended(controller):
            await asyncio.sleep(0.005)

    await asyncio.wait_for(wait(), READY_S)


def pair(start_switch: SwitchStarter) -> dict[str, SwitchProcess]:
    return {"leaf1": start_switch(1), "spine1": start_switch(2)}


def test_switch_restart(start_switch: SwitchStarter) -> None:
    """A switch that starts anew gets program and entries again; one that only lost entries gets those."""

    async def run() -> None:
        switches = pair(start_switch)
        controller, events = controller_of(switches)
        await controller.start()
        await controller.wait_ready(READY_S)
        assert await held_as_intended(controller)
        session = controller.sessions["leaf1"]
        written = session.report
        switches["leaf1"].kill()
        await until(lambda: session.state is State.LOST)
        assert isinstance(session.error, UnreachableError)
        assert controller.sessions["spine1"].state is State.READY
        switches["leaf1"].start()
        await controller.wait_ready(READY_S)
        assert (True, written) == (session.pushed, session.report)
        assert await held_as_intended(controller)
        await controller.stop()
        kinds = [event.kind for event in events if event.subject == "leaf1"]
        assert ["switch-ready", "switch-lost", "switch-ready"] == kinds

    asyncio.run(run())


def test_controller_restart(start_switch: SwitchStarter) -> None:
    """A controller that starts anew pushes nothing and writes only what somebody changed meanwhile."""

    async def run() -> None:
        switches = pair(start_switch)
        first, _ = controller_of(switches)
        await first.start()
        await first.wait_ready(READY_S)
        await first.stop()
        second, _ = controller_of(switches)
        await second.start()
        # nothing ever came in over the link, so all there is to know of it is known after some rounds
        second.links_settled()
        await second.wait_ready(READY_S)
        assert [(False, 0)] * 2 == [(s.pushed, s.report.writes) for s in second.sessions.values()]
        await second.stop()
        other, _ = controller_of(switches, parse_scheme("flowcut:variant=ingress,rtt=5"))
        await other.start()
        other.links_settled()
        await other.wait_ready(READY_S)
        assert not any(s.pushed for s in other.sessions.values())
        # the mode on both; drain thresholds only where hosts are
        assert {"leaf1": 2, "spine1": 1} == {s.name: s.report.modified for s in other.sessions.values()}
        assert await held_as_intended(other)
        await other.stop()
        ecmp, _ = controller_of(switches, parse_scheme("ecmp"))
        await ecmp.start()
        await ecmp.wait_ready(READY_S)
        assert [True] * 2 == [session.pushed for session in ecmp.sessions.values()]
        assert await held_as_intended(ecmp)
        await ecmp.stop()

    asyncio.run(run())


def test_backup_takes_over(start_switch: SwitchStarter) -> None:
    """A second controller waits, cannot write, and takes over when the first goes; the first comes back as
    backup.
    """

    async def run() -> None:
        switches = pair(start_switch)
        first, _ = controller_of(switches)
        await first.start()
        await first.wait_ready(READY_S)
        second, events = controller_of(switches)
        await second.start()
        sessions = second.sessions.values()
        await until(lambda: all(session.state is State.BACKUP for session in sessions))
        assert {"backup"} == {event.kind for event in events}
        with pytest.raises(UnreachableError, match="leaf1: another controller is primary"):
            await second.ask("leaf1", "READ_PORT", 1)
        assert len(await first.ask("leaf1", "READ_PORT", 1)) == 8
        second.links_settled()
        await first.stop()
        await second.wait_ready(READY_S)
        assert [(False, 0)] * 2 == [(session.pushed, session.report.writes) for session in sessions]
        assert len(await second.ask("leaf1", "READ_PORT", 1)) == 8
        again, _ = controller_of(switches)
        await again.start()
        await until(lambda: all(session.state is State.BACKUP for session in again.sessions.values()))
        assert all(session.state is State.READY for session in sessions)
        await again.stop()
        await second.stop()

    asyncio.run(run())


def test_many_questions(start_switch: SwitchStarter) -> None:
    """Questions may be asked all at once, and be given up at any time, without harm to the session."""

    async def run() -> None:
        controller, _ = controller_of(pair(start_switch))
        await controller.start()
        await controller.wait_ready(READY_S)
        for _ in range(5):
            asked = [asyncio.create_task(controller.ask("leaf1", "READ_FLOWS", i)) for i in range(60)]
            await asyncio.sleep(0)
            for task in asked[::2]:
                task.cancel()
            answers = await asyncio.gather(*asked, return_exceptions=True)
            assert all(isinstance(answer, asyncio.CancelledError) for answer in answers[::2])
            assert {bytes} == {type(answer) for answer in answers[1::2]}
        assert all_ready(controller)
        await controller.stop()

    asyncio.run(run())


def test_refused_writes_name_the_entry(start_switch: SwitchStarter) -> None:
    """Refused updates are told apart from those that were carried out, with the switch's reasons."""

    async def run() -> None:
        leaf = start_switch(1)
        program = programs.load("ecmp")
        async with connect("leaf1", leaf.address) as client:
            client.announce(7)
            await client.receive()
            assert await client.cookie() is None
            await client.push(program)
            entry = p4r.TableEntry(table_id=program.table("port_role").preamble.id)
            entry.match.add(field_id=1).exact.value = b"\x01"
            for action in program.p4info.actions:
                if action.preamble.alias == "fabric_port":
                    entry.action.action.action_id = action.preamble.id
            insert = p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry))
            await client.write([insert])
            fresh = p4r.Update()
            fresh.CopyFrom(insert)
            fresh.entity.table_entry.match[0].exact.value = b"\x02"
            with pytest.raises(WriteError, match="leaf1: write was refused: ALREADY_EXISTS") as caught:
                await client.write([insert, fresh, insert])
            assert {0, 2} == set(caught.value.failures)
            with pytest.raises(SwitchError, match="leaf1: program broken was refused"):
                await client.push(
                    programs.Program("broken", program.path, program.p4info, program.schema, b"{", "", 1)
                )
        async with connect("leaf1", leaf.address) as stranger:
            with pytest.raises(SwitchError, match="leaf1: write was refused"):
                await stranger.write([insert])

    asyncio.run(run())


def test_relay_that_is_taken(start_switch: SwitchStarter, tmp_path: Path) -> None:
    """Where another controller holds the socket for questions, forwarding is looked after all the same."""

    async def run() -> None:
        path = tmp_path / "relay.sock"
        switches = pair(start_switch)
        first, _ = controller_of(switches)
        other = RelayServer(path, first.ask)
        await other.start()
        events: list[Event] = []
        addresses = {name: process.address for name, process in switches.items()}
        often = patient(interval_s=0.01, missed=1 << 20)
        second = Controller(
            PAIR, on(PAIR), addresses, target("native"), timing=often, relay=path, on_event=events.append
        )
        await second.start()
        await second.wait_ready(READY_S)
        await until(lambda: any(event.kind == "relay" for event in events))
        assert [str(path)] == [event.subject for event in events if event.kind == "relay"]
        await other.stop()
        await until(path.exists)
        await second.stop()
        assert not path.exists()

    asyncio.run(run())


def test_nobody_there() -> None:
    """A switch that does not answer is named, with its address, when the time is over."""

    async def run() -> None:
        nowhere = {name: Address("127.0.0.1:1", 1) for name in ("leaf1", "spine1")}
        controller = Controller(PAIR, on(PAIR), nowhere, target("native"), timing=QUIET)
        await controller.start()
        await until(lambda: all(session.error is not None for session in controller.sessions.values()))
        with pytest.raises(UnreachableError, match=r"leaf1: no P4Runtime server answers at 127\.0\.0\.1:1"):
            await controller.wait_ready(0.0)
        with pytest.raises(UnreachableError, match="leaf1: there is no connection"):
            await controller.ask("leaf1", "READ_PORT", 1)
        with pytest.raises(SwitchError, match="leaf9: the topology has no such switch"):
            await controller.ask("leaf9", "READ_PORT", 1)
        await controller.stop()

    asyncio.run(run())


def test_addresses_must_match_the_topology() -> None:
    """Missing and foreign switches are refused before anything is sent."""
    some = {"leaf1": Address("127.0.0.1:1", 1)}
    with pytest.raises(ControllerError, match="spine1: its address is missing"):
        Controller(PAIR, on(PAIR), some, target("native"))
    more = dict.fromkeys(("leaf1", "spine1", "leaf7"), some["leaf1"])
    with pytest.raises(ControllerError, match="leaf7: the topology has no such switch"):
        Controller(PAIR, on(PAIR), more, target("native"))


def test_bad_tls_files(tmp_path: Path) -> None:
    """TLS files that cannot be read end the controller with one line; retrying would not help."""

    async def run() -> None:
        nowhere = {name: Address("127.0.0.1:1", 1) for name in ("leaf1", "spine1")}
        tls = Tls(ca=tmp_path / "none.pem")
        controller = Controller(PAIR, on(PAIR), nowhere, target("native"), tls=tls)
        with pytest.raises(TlsError, match=r"none.pem: No such file"):
            await controller.run()
        await controller.start()
        with pytest.raises(TlsError, match=r"none.pem: No such file"):
            await controller.wait_ready(READY_S)
        await controller.stop()

    asyncio.run(run())


class Served:
    """A virtual network whose switches are served over gRPC, and whose time a task moves on."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.network = Network(topology)
        self.servers: dict[str, Server] = {}
        self.addresses: dict[str, Address] = {}
        self.stopped: set[str] = set()

    async def start(self, tls: ServerTls | None) -> None:
        for switch in self.topology.switches:
            endpoint = self.network.p4rt(switch.name)
            server = Server(endpoint.device, endpoint.cpu)
            port = await server.start("127.0.0.1:0", tls)
            self.servers[switch.name] = server
            self.addresses[switch.name] = Address(f"127.0.0.1:{port}", endpoint.device_id)

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


SQUARE = parse_topology("leaf-spine:leaves=2,spines=2,hosts=1,rate=10Gbps,delay=1us")


def test_link_down_and_up(tmp_path: Path) -> None:
    """A dead link leaves the routes of all switches, also those of a controller that starts while it is dead,
    and comes back.
    """

    async def run() -> None:
        async with served(SQUARE) as network:
            relay = tmp_path / "relay.sock"
            links = patient(interval_s=0.1, missed=8)
            first = Controller(
                SQUARE, on(SQUARE), network.addresses, target("virtual"), relay=relay, timing=links
            )
            await first.start()
            await first.wait_ready(READY_S)
            await until(lambda: first.down == frozenset() and relay.exists())
            network.network.link_down("leaf1", "spine2")
            dead = {("leaf1", 3), ("spine2", 1)}
            await until(lambda: first.down == dead and all_ready(first))
            await until_held(first)
            await first.stop()
            assert not relay.exists()
            second = Controller(SQUARE, on(SQUARE), network.addresses, target("virtual"), timing=links)
            await second.start()
            await second.wait_ready(READY_S)
            # it looked at the links before it touched switches that had their entries, so nothing was to do
            assert dead == second.down
            assert [(False, 0)] * 4 == [(s.pushed, s.report.writes) for s in second.sessions.values()]
            network.network.link_up("leaf1", "spine2")
            await until(lambda: second.down == frozenset() and all_ready(second))
            await until_held(second)
            await second.stop()

    asyncio.run(run())


def test_a_controller_that_starts_anew_waits_for_no_round() -> None:
    """It probes the links of each switch that it finds running at once, whenever its next round is, and so
    knows all of them soon.
    """

    async def run() -> None:
        async with served(SQUARE) as network:
            for writes in (True, False):
                controller = Controller(
                    SQUARE, on(SQUARE), network.addresses, target("virtual"), timing=QUIET
                )
                await controller.start()
                await controller.wait_ready(READY_S)
                assert [bool(session.report.writes) for session in controller.sessions.values()] == [
                    writes
                ] * 4
                assert controller.down == frozenset()
                await controller.stop()

    asyncio.run(run())


def test_late_switches_lose_no_link() -> None:
    """A switch that tells nothing for many rounds keeps its links, and it is said that it was late; a link
    that dies then is found all the same, and a switch that stays silent is given up.
    """

    async def run() -> None:
        async with served(SQUARE) as network:
            events: list[Event] = []
            links = patient(interval_s=0.05, missed=3, silent=1 << 20)
            controller = Controller(
                SQUARE,
                on(SQUARE),
                network.addresses,
                target("virtual"),
                timing=links,
                on_event=events.append,
            )
            await controller.start()
            await controller.wait_ready(READY_S)
            await until(lambda: controller.down == frozenset())
            events.clear()
            network.stopped.add("spine2")
            await asyncio.sleep(1.0)
            network.stopped.clear()
            await until(lambda: any(e.kind == "late" and e.subject == "spine2" for e in events))
            assert [event for event in events if event.kind == "link-down"] == []
            network.network.link_down("leaf1", "spine1")
            await until(lambda: controller.down == {("leaf1", 2), ("spine1", 1)})
            await controller.stop()
            hasty = patient(interval_s=0.05, missed=3, silent=4)
            second = Controller(SQUARE, on(SQUARE), network.addresses, target("virtual"), timing=hasty)
            await second.start()
            await second.wait_ready(READY_S)
            network.stopped.add("spine2")
            await until(lambda: ("spine2", 1) in second.down and ("spine2", 2) in second.down)
            await second.stop()

    asyncio.run(run())


def all_ready(controller: Controller) -> bool:
    return all(session.state is State.READY for session in controller.sessions.values())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make certificates")
def test_tls(tmp_path: Path) -> None:
    """Over TLS with certificates on both sides everything is as without; a client without one is turned away."""
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    server = ServerTls(key.read_bytes(), cert.read_bytes(), cert.read_bytes(), client_auth=True)

    async def run() -> None:
        async with served(SQUARE, server) as network:
            virtual = target("virtual")
            known = Tls(ca=cert, cert=cert, key=key)
            controller = Controller(SQUARE, on(SQUARE), network.addresses, virtual, tls=known)
            await controller.start()
            await controller.wait_ready(READY_S)
            stranger = Controller(SQUARE, on(SQUARE), network.addresses, virtual, tls=Tls(ca=cert))
            await stranger.start()
            sessions = stranger.sessions.values()
            await until(lambda: all(session.error is not None for session in sessions))
            assert all(isinstance(session.error, UnreachableError) for session in sessions)
            await stranger.stop()
            await controller.stop()

    asyncio.run(run())
