# SPDX-License-Identifier: Apache-2.0
"""The controller over gRPC against native switches: restarts on either side, take-over, faults, bad
addresses.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4r

from tailrace.controller.controller import Controller, Event
from tailrace.controller.inband.relay import RelayServer
from tailrace.controller.session import SessionState
from tailrace.p4rt import programs
from tailrace.p4rt.channel import SwitchAddress
from tailrace.p4rt.client import connect
from tailrace.p4rt.errors import ControllerError, SwitchError, TlsError, UnreachableError, WriteError
from tailrace.p4rt.target import target
from tailrace.p4rt.tls import Tls
from tailrace.schemes.base import SchemeConfig
from tailrace.schemes.registry import parse_scheme
from tests.controller.conftest import SwitchProcess, SwitchStarter
from tests.controller.rig import (
    FLOWCUT,
    PAIR,
    QUIET,
    READY_S,
    all_ready,
    held_as_intended,
    on,
    patient,
    until,
)


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
        await until(lambda: session.state is SessionState.LOST)
        assert isinstance(session.error, UnreachableError)
        assert controller.sessions["spine1"].state is SessionState.READY
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
        second.links_discovered()
        await second.wait_ready(READY_S)
        assert [(False, 0)] * 2 == [(s.pushed, s.report.writes) for s in second.sessions.values()]
        await second.stop()
        other, _ = controller_of(switches, parse_scheme("flowcut:variant=ingress,rtt=5"))
        await other.start()
        other.links_discovered()
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
        await until(lambda: all(session.state is SessionState.BACKUP for session in sessions))
        assert {"backup"} == {event.kind for event in events}
        with pytest.raises(UnreachableError, match="leaf1: another controller is primary"):
            await second.ask("leaf1", "READ_PORT", 1)
        assert len(await first.ask("leaf1", "READ_PORT", 1)) == 8
        second.links_discovered()
        await first.stop()
        await second.wait_ready(READY_S)
        assert [(False, 0)] * 2 == [(session.pushed, session.report.writes) for session in sessions]
        assert len(await second.ask("leaf1", "READ_PORT", 1)) == 8
        again, _ = controller_of(switches)
        await again.start()
        await until(lambda: all(session.state is SessionState.BACKUP for session in again.sessions.values()))
        assert all(session.state is SessionState.READY for session in sessions)
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
                await client.push(programs.P4Program("broken", program.path, program.p4info, b"{", "", 1))
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
        nowhere = {name: SwitchAddress("127.0.0.1:1", 1) for name in ("leaf1", "spine1")}
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
    some = {"leaf1": SwitchAddress("127.0.0.1:1", 1)}
    with pytest.raises(ControllerError, match="spine1: its address is missing"):
        Controller(PAIR, on(PAIR), some, target("native"))
    more = dict.fromkeys(("leaf1", "spine1", "leaf7"), some["leaf1"])
    with pytest.raises(ControllerError, match="leaf7: the topology has no such switch"):
        Controller(PAIR, on(PAIR), more, target("native"))


def test_bad_tls_files(tmp_path: Path) -> None:
    """TLS files that cannot be read end the controller with one line; retrying would not help."""

    async def run() -> None:
        nowhere = {name: SwitchAddress("127.0.0.1:1", 1) for name in ("leaf1", "spine1")}
        tls = Tls(ca=tmp_path / "none.pem")
        controller = Controller(PAIR, on(PAIR), nowhere, target("native"), tls=tls)
        with pytest.raises(TlsError, match=r"none.pem: No such file"):
            await controller.run()
        await controller.start()
        with pytest.raises(TlsError, match=r"none.pem: No such file"):
            await controller.wait_ready(READY_S)
        await controller.stop()

    asyncio.run(run())
