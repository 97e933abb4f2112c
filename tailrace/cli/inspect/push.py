# SPDX-License-Identifier: Apache-2.0
"""`tailrace push`: installs a program and its entries in a running switch."""

from __future__ import annotations

import contextlib
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from tailrace.cli.arguments import argument, command
from tailrace.cli.options import ELECTION_ID, SOURCE, SWITCH

_STARTS_S = 10.0
"""How long to wait for a switch that has just been started."""


@command(
    SWITCH,
    argument(
        "program",
        metavar="NAME.json",
        type=Path,
        help="BMv2 JSON; P4Info is NAME[.p4].p4info.txtpb in the same folder, or --p4info.",
    ),
    argument(
        "--entries",
        metavar="FILE",
        type=Path,
        help="Entries: JSON like the tutorials' runtime.json, commands of simple_switch_CLI, or a "
        "p4.v1.WriteRequest in text format.",
    ),
    ELECTION_ID,
    SOURCE,
)
def push(args: Namespace) -> None:
    """Load a compiled program into a running switch, and write entries into it.

    All earlier entries of the switch are deleted. The command waits for a switch that is starting, also while
    it compiles the switch core at its first start. The command becomes the primary controller for a moment;
    it fails if the switch already has a primary controller.

        tailrace push s1 build/basic.json --entries s1-runtime.json --address s1=127.0.0.1:50051
        tailrace push s1 build/basic.json --entries s1-commands.txt --address s1=127.0.0.1:50051
    """
    from contextlib import closing

    from tailrace.cli.inspect.network import find
    from tailrace.p4rt import programs
    from tailrace.p4rt.endpoint import run_at_once
    from tailrace.p4rt.entry_files import read_files, refusal
    from tailrace.p4rt.errors import P4ProgramError, WriteError
    from tailrace.spec import SpecError
    from tailrace.spec.text import printable

    try:
        program = programs.read(args.program, args.p4info)
    except P4ProgramError as error:
        raise SpecError(str(error)) from error
    entries = read_files([] if args.entries is None else [args.entries], program)
    for note in entries.notes:
        sys.stderr.write(f"tailrace: {printable(note)}\n")
    connection = find(args).connection_to(args.switch)
    with closing(connection):
        _wait(connection.wait)
        run_at_once(connection.client.become_primary(args.election_id))
        run_at_once(connection.client.push(program))
        try:
            connection.write(entries)
        except WriteError as error:
            if not error.failures:
                raise
            problem = refusal(entries, program.p4info, error.failures)
            raise WriteError(connection.name, problem) from error
    sys.stdout.write(f"{connection.name}: {program.name}, {len(entries)} entries\n")


_CORE = ("libtailrace", "libtailrace_io")
"""The libraries of the switch core, which a switch compiles when it starts for the first time."""


def _wait(wait: Callable[[float], bool]) -> None:
    """Waits for a switch that is starting, for as long as a switch compiles its core on this machine.

    Args:
        wait: waits for a server for at most this many seconds; returns whether it is reachable.
    """
    from tailrace.cbuild import cache
    from tailrace.cbuild.errors import BuildError

    deadline_s, is_compiling = time.monotonic() + cache.WAIT_S, False
    with contextlib.suppress(BuildError):
        while not wait(_STARTS_S) and time.monotonic() < deadline_s:
            was_compiling = is_compiling
            is_compiling = any(cache.open_folder().is_being_built(name) for name in _CORE)
            # a switch that has just compiled still needs time to start
            if not (was_compiling or is_compiling):
                return
            if not was_compiling:
                sys.stderr.write("tailrace: waiting for a switch that compiles its core; this happens once\n")
