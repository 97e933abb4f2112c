# SPDX-License-Identifier: Apache-2.0
"""Pauses a run in virtual time at a breakpoint, so that its switches can be inspected.

During the pause one P4Runtime server for all switches listens on the loopback interface, and the run file
(controller/runfile.py) gives its address to the inspection commands. A line on standard input, or end of
file, resumes the run. Inspecting does not change results.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Iterator

import msgspec

from tailrace.controller import runfile
from tailrace.controller.runfile import RunFile, RunSwitch
from tailrace.sim.network.ranks import RankLostError
from tailrace.sim.network.serve import serving
from tailrace.sim.run import PausedRun
from tailrace.spec.units import format_time

LOOPBACK = "127.0.0.1"
STANDARD_INPUT = 0
_READ_BYTES = 4096


class Lines:
    """Waits for the lines of a file, one by one.

    The descriptor is read without Python's buffered files: a thread that still waits in such a file when the
    program ends would hold the file's lock.
    """

    def __init__(self, descriptor: int) -> None:
        """Takes the descriptor of an open file, for example a terminal."""
        self._descriptor = descriptor
        self._unread = b""

    def wait(self) -> None:
        """Returns when another line has been read, or at once at the end of the file."""
        while b"\n" not in self._unread:
            try:
                received = os.read(self._descriptor, _READ_BYTES)
            except OSError:  # the descriptor is not open: there is no input
                return
            if not received:
                return
            self._unread += received
        self._unread = self._unread.partition(b"\n")[2]


async def _in_thread(wait: Callable[[], None]) -> None:
    """Calls `wait` in a daemon thread; an interrupt leaves the thread behind."""
    loop, finished = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            wait()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                loop.call_soon_threadsafe(finished.set)

    threading.Thread(target=run, daemon=True).start()
    await finished.wait()


@contextlib.contextmanager
def _announced(paused: PausedRun, port: int) -> Iterator[None]:
    """Writes the run file, which contains the switches' addresses, and removes it after the block."""
    job, switches, remote = paused.job, paused.network.topology.switches, paused.remote_addresses
    programs = job.scheme.programs(job.topology)
    content = RunFile(
        topology=job.topology.spec,
        scheme=msgspec.to_builtins(job.scheme),
        target=job.target,
        tick_ns=job.switches.tick_ns,
        relay=None,
        switches={
            item.name: RunSwitch(
                remote.get(item.name, f"{LOOPBACK}:{port}"), item.id, programs[item.name].name
            )
            for item in switches
        },
        time_scale=job.time_scale,
        down=tuple(sorted(paused.down)),
        # ports that the controller does not use for now (RFC 2439), and the ns until it may use them again
        suppressed=tuple(
            (*path.end, max(0, path.until_ns - paused.network.now_ns)) for path in paused.suppressed
        ),
    )
    runfile.write(None, content)
    try:
        yield
    finally:
        runfile.remove()


def _instructions(paused: PausedRun, port: int) -> str:
    switches = paused.network.topology.switches
    first = switches[0]
    addresses = ", ".join(dict.fromkeys([f"{LOOPBACK}:{port}", *paused.remote_addresses.values()]))
    return (
        f"stopped at {format_time(paused.network.now_ns)}{paused.reason and ': ' + paused.reason}; "
        f"{len(switches)} switches serve P4Runtime "
        f"at {addresses}, device ids {first.id} to {switches[-1].id}\n"
        "inspect from another terminal: tailrace tables, flows, queues, registers, counters, paths, diff, "
        f"trace, shell {first.name}\n"
        "press Enter here to resume, Ctrl-C to end the run"
    )


def let_inspect(say: Callable[[str], None], wait: Callable[[], None]) -> Callable[[PausedRun], None]:
    """Makes the callback of `Breakpoints` that serves the switches during a pause.

    Args:
        say: prints instructions for the user.
        wait: blocks until the run is to resume.

    Returns:
        the callback; it raises RunFileError if the run file cannot be written.
    """

    async def serve_paused(paused: PausedRun) -> None:
        async with serving(paused.network, f"{LOOPBACK}:0") as port:
            with _announced(paused, port):
                say(_instructions(paused, port))
                await _in_thread(wait)
        say("resuming the run")

    return lambda paused: asyncio.run(serve_paused(paused))


def serve_part(paused: PausedRun) -> None:
    """Serves the switches of this rank (a process that simulates a part of the network), which is not the
    first rank, at a breakpoint until the first rank resumes.
    """
    network = paused.network

    def wait() -> None:
        with contextlib.suppress(RankLostError):  # the run reports the lost rank later
            network.all_gather(None)

    async def serve_switches() -> None:
        async with serving(network, f"{LOOPBACK}:0") as port:
            network.all_gather({item.name: f"{LOOPBACK}:{port}" for item in network.switches})
            await _in_thread(wait)

    asyncio.run(serve_switches())
