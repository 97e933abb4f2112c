# SPDX-License-Identifier: Apache-2.0
"""A controller in a process of its own, for as long as it lives: python -m soak.realtime.serve JOB SWITCHES.

Unlike mininet/serve_controller.py it may be a backup for ever. It says in lines of JSON what happens, and how
far it is whenever that changes: {"at_s": 12.3, "states": {"leaf1": "ready"}, "down": 0}, by the monotonic
clock of the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import msgspec

from tailrace.controller.controller import Controller
from tailrace.experiments.backends.job import Job, read_job
from tailrace.p4rt.channel import Address
from tailrace.p4rt.events import Event, structured
from tailrace.words import heap

LOOK_S = 0.01


def _say(**words: object) -> None:
    print(json.dumps({"at_s": time.monotonic(), **words}), flush=True)


async def _tell(controller: Controller) -> None:
    """Says how far the controller is."""
    said: tuple[object, int] | None = None
    while True:
        states = {name: session.state.value for name, session in controller.sessions.items()}
        if (states, len(controller.down)) != said:
            said = states, len(controller.down)
            _say(states=states, down=len(controller.down))
        await asyncio.sleep(LOOK_S)


async def _serve(job: Job, switches: dict[str, Address]) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)

    def report(event: Event) -> None:
        _say(**structured(event))

    controller = Controller(job.topology, job.scheme, switches, job.switches, on_event=report)
    works = (controller.run(), _tell(controller), heap.keep_trimmed(), ended.wait())
    tasks = [asyncio.create_task(work) for work in works]
    done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    for task in [*done, *left]:
        with contextlib.suppress(asyncio.CancelledError):
            await task


if __name__ == "__main__":
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    heap.one_heap()
    job_file, addresses = map(Path, sys.argv[1:])
    asyncio.run(
        _serve(read_job(job_file), msgspec.json.decode(addresses.read_bytes(), type=dict[str, Address]))
    )
