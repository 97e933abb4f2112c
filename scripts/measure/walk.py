#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The walk of a command through the rooms (components): its functions in the order of their first calls.

    .venv/bin/python -m scripts.measure.walk paper|compare|sweep|write

A *stay* is a run of consecutive functions of one room (rooms.toml), a *change* leads from one stay to
the next, and a *return* is a stay in a room that was visited before. The list leaves out the standard
library, installed packages, calls during the import of a module or by a timer (`_tick`), and other processes.
`write` is one Write of one table entry in `tailrace_switch_grpc`. Prints every function, then the sums.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import CodeType, FrameType

from scripts.measure.rooms import ROOT, room_of

NETWORK = "--topology leaf-spine:leaves=2,spines=2,hosts=2 --workload permutation:size=64KiB --target virtual"
COMMANDS = {
    "paper": "paper flowcut_table4 --scale small --out {folder}/out",
    "compare": f"compare --scheme ecmp,flowcut {NETWORK} --out {{folder}}/out",
    "sweep": "sweep basic --target virtual --set seed=1,2 --out {folder}/out",
}
PAUSE_S = 1.0
"""The client's pause before it writes; the recording begins in this pause."""
START_S = 60.0
"""Timeout for the switch to listen."""

PROGRAM = "tests/programs/build/basic_l3"


def _left_out(frame: FrameType | None) -> bool:
    """Whether a call is part of the import of a module, or of a timer."""
    while frame is not None:
        name = frame.f_code.co_name
        if name == "_tick" or (name == "<module>" and frame.f_globals.get("__name__") != "__main__"):
            return True
        frame = frame.f_back
    return False


class Walk:
    """Records each function of the product when it is called for the first time, in all threads."""

    def __init__(self, recording: bool = True) -> None:
        self.functions: list[tuple[str, str]] = []
        self.recording = recording
        self._seen: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """The profile function: see sys.setprofile."""
        code = frame.f_code
        if not self.recording or event != "call" or code in self._seen or code.co_name.startswith("<"):
            return
        path = os.path.relpath(os.path.realpath(code.co_filename), ROOT)
        if path.startswith((".", "scripts/")) or not path.endswith(".py"):
            return
        if _left_out(frame):
            return
        self._seen.add(code)
        self.functions.append((path, getattr(code, "co_qualname", code.co_name)))

    def start(self) -> None:
        """Records from now on, in this thread and in those that begin later."""
        threading.setprofile(self)
        sys.setprofile(self)

    def print(self) -> None:
        """Prints a line per function, then for files and rooms their number, stays, changes and returns."""
        functions = list(self.functions)
        for path, name in functions:
            print(f"{room_of(path):18}{path}  {name}")
        for what, places in (
            ("files", [path for path, _ in functions]),
            ("rooms", [room_of(path) for path, _ in functions]),
        ):
            stays = [place for place, _ in itertools.groupby(places)]
            count, distinct = len(stays), len(set(stays))
            print(f"{what}: {distinct}, stays {count}, changes {count - 1}, returns {count - distinct}")
        print(f"functions: {len(functions)}")


def walk_command(words: str) -> Walk:
    """The walk of a `tailrace` command, whose output is discarded."""
    from tailrace.cli.main import main

    walk = Walk()
    with tempfile.TemporaryDirectory() as folder:
        walk.start()
        status = main(words.format(folder=folder).split())
        sys.setprofile(None)
    if status:
        raise SystemExit(status)
    return walk


def client(address: str) -> None:
    """Pushes a program to the switch at an address, and writes one entry."""
    import asyncio

    from finsy.proto import p4r
    from google.protobuf import text_format

    from tailrace.p4rt import programs
    from tailrace.p4rt.channel import SwitchAddress
    from tailrace.p4rt.client import connect

    program = programs.read(ROOT / f"{PROGRAM}.json", ROOT / f"{PROGRAM}.p4info.txtpb")
    entry = text_format.Parse((Path(__file__).parent / "entry.txtpb").read_text(), p4r.TableEntry())

    async def write() -> None:
        async with connect("s1", SwitchAddress(address, 0)) as switch:
            await switch.become_primary(1)
            await switch.push(program)
            print("begin", flush=True)
            await asyncio.sleep(PAUSE_S)
            await switch.write([p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry))])
            print("end", flush=True)

    host, port = address.split(":")
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection((host, int(port))):
            break
        time.sleep(0.1)
    asyncio.run(write())


def walk_write() -> None:
    """Prints the walk of one Write in `tailrace_switch_grpc`, and ends the process."""
    from tailrace.switch.daemon.cli import main

    walk = Walk(recording=False)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"

    def observe() -> None:
        command = [sys.executable, "-m", "scripts.measure.walk", "client", address]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                walk.recording = line == "begin\n"
        walk.print()
        sys.stdout.flush()
        os._exit(0)

    threading.Thread(target=observe, daemon=True).start()
    walk.start()
    raise SystemExit(main(["--no-p4", "--device-id", "0", "--", "--grpc-server-addr", address]))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["client", address]:
            client(address)
        case ["write"]:
            walk_write()
        case [name] if name in COMMANDS:
            walk_command(COMMANDS[name]).print()
        case _:
            raise SystemExit(__doc__)
