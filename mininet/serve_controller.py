# SPDX-License-Identifier: Apache-2.0
"""The controller of a fabric, in a process of its own. A script.

It reads its settings from the file named, and says in lines of JSON what happens: {"event": "ready"} once
every switch holds what it should, {"event": "failed", "text": ...}, and what happens in the network, as
p4rt.events.structured has it.
It ends on SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from tailrace.controller import runfile
from tailrace.controller.controller import Controller
from tailrace.controller.linkwatch import Settings as LinkSettings
from tailrace.p4rt.channel import Address
from tailrace.p4rt.errors import ControllerError
from tailrace.p4rt.events import Event, structured
from tailrace.p4rt.target import EmulatedPfc, target
from tailrace.schemes.registry import resolved_of
from tailrace.topology import Topology
from tailrace.words import SpecError

READY_S = 60.0
"""A switch must hold its entries by then; each further switch has two seconds more."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to control: topology and scheme as in the job, and each switch's gRPC target and device id.

    run_file: where other terminals find the network; None: the usual place.
    pfc: where switches do it in their program.
    """

    topology: Topology
    scheme: dict[str, Any]
    target: str
    tick_ns: int
    time_scale: float
    switches: dict[str, Address]
    run_file: str | None = None
    pfc: EmulatedPfc | None = None


def _say(event: str, text: str) -> None:
    print(json.dumps({"event": event, "text": text}), flush=True)


def _write_run_file(settings: Settings, controller: Controller, relay: Path) -> None:
    programs = {name: intent.program for name, intent in controller.intents.items()}
    content = runfile.RunFile(
        topology=settings.topology.words,
        scheme=settings.scheme,
        target=settings.target,
        tick_ns=settings.tick_ns,
        time_scale=settings.time_scale,
        pfc=settings.pfc,
        relay=str(relay),
        switches={
            name: runfile.RunSwitch(where.address, where.device_id, programs[name])
            for name, where in settings.switches.items()
        },
    )
    runfile.write(Path(settings.run_file) if settings.run_file else None, content)


async def _serve(settings: Settings, relay: Path) -> None:
    """Runs until SIGTERM."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    controller = Controller(
        settings.topology,
        resolved_of(settings.scheme),
        settings.switches,
        target(settings.target, settings.tick_ns, settings.pfc),
        links=LinkSettings(),
        relay=relay,
        on_event=lambda event: _report(event),
    )
    await controller.start()
    try:
        await controller.wait_ready(READY_S + 2 * len(settings.switches))
        _write_run_file(settings, controller, relay)
        _say("ready", f"{len(settings.switches)} switches")
        await ended.wait()
    finally:
        await controller.stop()


def _report(event: Event) -> None:
    print(json.dumps(structured(event)), flush=True)


def main() -> int:
    """Controls the network that the settings file named describes; 1 when that fails."""
    path = Path(sys.argv[1])
    settings = msgspec.json.decode(path.read_bytes(), type=Settings)
    try:
        asyncio.run(_serve(settings, path.with_name("relay.sock")))
    except (ControllerError, SpecError) as error:
        _say("failed", str(error))
        return 1
    return 0


if __name__ == "__main__":
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    sys.exit(main())
