# SPDX-License-Identifier: Apache-2.0
"""The controller over gRPC against the switches of a virtual network: links that die and come back, switches
that are late, TLS.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest

from tailrace.controller.controller import Controller, Event
from tailrace.p4rt.errors import UnreachableError
from tailrace.p4rt.target import target
from tailrace.p4rt.tls import Tls
from tailrace.switch.p4runtime.server import ServerTls
from tailrace.topology import parse_topology
from tests.controller.rig import QUIET, READY_S, all_ready, on, patient, served, until, until_held

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
