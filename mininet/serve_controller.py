# SPDX-License-Identifier: Apache-2.0
"""A script that runs the controller of a fabric in a separate process.

    serve_controller.py JOB.json SWITCHES.json RUN_FILE.json

It controls the switches of a job at the addresses in the second file, writes the run file, and prints events
as lines of JSON:
{"event": "ready"} once every switch has its entries, {"event": "failed", "text": ...}, and the events of the
network, in the form of p4rt.events.structured.
It ends on SIGTERM.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
from fabric_plan import BMV2, thrift_port, tutorial_order
from fabric_sandbox import TUTORIAL_PORTS

from tailrace.bmv2.thrift import ThriftClient
from tailrace.controller import runfile
from tailrace.controller.controller import Controller
from tailrace.controller.inband.relay import Registers
from tailrace.controller.reconcile import install_files
from tailrace.controller.timing import Timing
from tailrace.p4rt.channel import SwitchAddress
from tailrace.p4rt.client import connect
from tailrace.p4rt.errors import ControllerError
from tailrace.p4rt.events import Event, structured
from tailrace.schemes.intent import intent as intents_of
from tailrace.sim.job import Job, read_job
from tailrace.spec import SpecError, heap

Switches = dict[str, SwitchAddress]
WriteRunFile = Callable[[Path | None], None]
"""Writes the run file; the argument is the controller's relay."""

_ELECTION_ID = 1
_CHUNK_BYTES = 1 << 16
READY_S = 60.0
"""Timeout until all switches have their entries, plus two seconds per switch."""


def _print_event(event: str, text: str) -> None:
    print(json.dumps({"event": event, "text": text}), flush=True)


def _write_run_file(job: Job, switches: Switches, place: Path, control: Path, relay: Path | None) -> None:
    programs = job.scheme.programs(job.topology)
    content = runfile.RunFile(
        topology=job.topology.spec,
        scheme=msgspec.to_builtins(job.scheme),
        target=job.target,
        tick_ns=job.switches.tick_ns,
        time_scale=job.time_scale,
        pfc=job.switches.pfc,
        channels=job.switches.channels,
        relay=None if relay is None else str(relay),
        switches={
            name: runfile.RunSwitch(where.address, where.device_id, programs[name].name)
            for name, where in switches.items()
        },
        control=str(control),
    )
    runfile.write(place, content)


async def _install(job: Job, switches: Switches, write_run_file: WriteRunFile) -> None:
    """Writes the programs and entries of a user to the switches, then waits for SIGTERM. Afterwards the
    switches have no primary controller, so that a controller of the user's may become it. It finds the
    switches, as with the p4lang tutorials' tool, at TUTORIAL_PORTS of this network namespace, with device ids
    from 0.
    """
    ended, programs = _on_sigterm(), job.scheme.programs(job.topology)
    for name, intent in intents_of(job.topology, job.scheme, job.switches).items():
        assert intent.updates is not None
        async with connect(name, switches[name]) as client:
            await client.become_primary(_ELECTION_ID)
            await install_files(client, programs[name], intent.updates)
    async with contextlib.AsyncExitStack() as stack:
        for port, name in enumerate(tutorial_order(job.topology), TUTORIAL_PORTS.start):
            await stack.enter_async_context(await _forward(port, switches[name].address))
        write_run_file(None)
        _print_event("ready", f"{len(switches)} switches")
        await ended.wait()


async def _forward(port: int, address: str) -> asyncio.Server:
    """Forwards connections to a port of this namespace to the Unix socket of a switch."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_switch, to_switch = await asyncio.open_unix_connection(address.partition(":")[2])
        await asyncio.gather(_copy(reader, to_switch), _copy(from_switch, writer))

    return await asyncio.start_server(connected, "127.0.0.1", port)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(_CHUNK_BYTES):
            target.write(data)
            await target.drain()
    target.close()


def _on_sigterm() -> asyncio.Event:
    """An event that SIGTERM sets."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    return ended


async def _serve(job: Job, switches: Switches, relay: Path, write_run_file: WriteRunFile) -> None:
    """Runs until SIGTERM."""
    ended = _on_sigterm()
    controller = Controller(
        job.topology,
        job.scheme,
        switches,
        job.switches,  # properties of the target (p4rt.target.Target)
        timing=Timing(),
        relay=relay,
        registers=_registers(job),
        on_event=_report,
    )
    await controller.start()
    trimming = asyncio.create_task(heap.keep_trimmed())  # returns freed memory to the system
    try:
        await controller.wait_ready(READY_S + 2 * len(switches))
        write_run_file(relay)
        _print_event("ready", f"{len(switches)} switches")
        await ended.wait()
    finally:
        trimming.cancel()
        await controller.stop()


def _registers(job: Job) -> Registers | None:
    """Reads BMv2's registers over Thrift: P4Runtime serves those of the native switch, but not of BMv2."""
    if job.target != BMV2:
        return None
    ports = {switch.name: thrift_port(switch) for switch in job.topology.switches}

    def read(switch: str, register: str) -> list[int]:
        with ThriftClient(ports[switch]) as client:
            return client.register_read_all(register)

    return read


def _report(event: Event) -> None:
    print(json.dumps(structured(event)), flush=True)


def main() -> int:
    """Controls the network until SIGTERM; returns the exit code, 1 on failure."""
    job_file, addresses, run_file = map(Path, sys.argv[1:])
    heap.share_one_heap()  # for all threads; it is smaller than one for each thread
    try:
        switches = msgspec.json.decode(addresses.read_bytes(), type=Switches)
        job = read_job(job_file)
        control = addresses.with_name("control.sock")  # of the harness
        write = partial(_write_run_file, job, switches, run_file, control)
        if job.scheme.is_foreign:
            asyncio.run(_install(job, switches, write))
        else:
            asyncio.run(_serve(job, switches, addresses.with_name("relay.sock"), write))
    except (ControllerError, SpecError) as error:
        _print_event("failed", str(error))
        return 1
    return 0


if __name__ == "__main__":
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    sys.exit(main())
