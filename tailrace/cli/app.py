# SPDX-License-Identifier: Apache-2.0
"""The command `tailrace` and its subcommands; tailrace/cli/main.py runs it.

The module that declares a subcommand is imported when the subcommand is called or completed. At its
top it imports nothing that takes long to load; a test checks this.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from tailrace.cli.arguments import Command, CommandParser, flag
from tailrace.cli.errors import DEBUG, PROGRAM
from tailrace.spec import SpecError
from tailrace.spec.version import VERSION

COMMANDS = {
    "Run": {
        "run": ("runs", "Run one experiment, from specs or from a file."),
        "compare": ("runs", "Compare schemes on the same traffic, also with faults."),
        "sweep": ("runs", "Run an experiment with every combination of values of some keys."),
        "paper": ("paper", "Reproduce the papers' figures and tables, and grade their claims."),
        "results": ("paper", "Show stored results of finished runs, chosen by spec."),
        "plot": ("figures", "Draw a figure of a folder of results, for print."),
        "report": ("figures", "Make one HTML page of a folder of results."),
        "view": ("view", "Make one HTML page that replays a run."),
    },
    "Look": {
        "ls": ("inspect.live", "List running networks, with their switches, hosts and links."),
        "link": ("inspect.live", "Take a link down or up, or change its rate."),
        "capture": ("inspect.live", "Capture the packets of a link."),
        "events": ("inspect.live", "Show what controller and network report, also as it happens."),
        "tables": ("inspect.listings", "Show table entries and default actions."),
        "groups": ("inspect.listings", "Show groups: ECMP, selectors, multicast, clone sessions."),
        "paths": ("inspect.paths", "Walk the installed entries from host to host."),
        "flows": ("inspect.listings", "Show the flows that switches track."),
        "queues": ("inspect.listings", "Show the bytes that are queued at every port."),
        "counters": ("inspect.listings", "Show counters and their rates."),
        "registers": ("inspect.listings", "Show register cells."),
        "diff": ("inspect.listings", "Compare the state of switches with the intended state."),
        "shell": ("inspect.shell", "Open p4runtime-shell on a switch."),
        "push": ("inspect.push", "Load a program and its entries into a running switch."),
        "write": ("inspect.write", "Write entries into a running switch, by name."),
        "delete": ("inspect.write", "Delete entries from a running switch, by name."),
        "trace": ("inspect.trace", "Show what a switch does with a packet, step by step."),
    },
    "Explain": {
        "topology": ("explain.commands", "Show switches, hosts and links of a topology."),
        "schemes": ("explain.commands", "List schemes with their keys and defaults."),
        "topologies": ("explain.commands", "List families of topologies with their keys."),
        "workloads": ("explain.commands", "List workloads with their keys."),
        "faults": ("explain.commands", "List faults with their keys."),
        "transports": ("explain.commands", "List transports with their keys."),
        "resources": ("explain.commands", "Count the resources that compiled programs use in a switch."),
        "convert": (
            "explain.commands",
            "Write a topology, a workload or sizes in the format of another tool.",
        ),
        "dissector": ("explain.commands", "Print a Wireshark dissector of this project's headers."),
        "coverage": ("explain.commands", "Show which parts of P4 programs packets have executed."),
        "lab": ("lab", "List labs for courses, start one, or check its answers."),
    },
}
"""By heading and command, in the order of the help: the module in this package, and what the command does."""

_MODULES = {name: module for commands in COMMANDS.values() for name, (module, _) in commands.items()}

_EPILOG = """
Examples:
  tailrace compare --scheme ecmp,letflow,flowcut
  tailrace tables leaf1 ipv4_routes
  tailrace paths h1 h9
  tailrace counters drops --watch 1
  tailrace tables --address s1=127.0.0.1:50051 --topology topology.json

Exit status: 0 done, 1 failed (or a difference was found), 2 bad input, 130 interrupted, 143 ended by SIGTERM,
129 by SIGHUP.
"""

_SHELLS = ("bash", "zsh", "fish")


def run(arguments: Sequence[str]) -> None:
    """Runs a command line.

    Raises:
        SpecError: bad input.
        SystemExit: the arguments are invalid (status 2), or the help was printed (status 0).
    """
    parser = _program_parser()
    command_indexes = (index for index, argument in enumerate(arguments) if not argument.startswith("-"))
    command_index = next(command_indexes, len(arguments))
    options = parser.read(arguments[:command_index])
    if options.debug:
        os.environ[DEBUG] = "1"
    if options.version:
        sys.stdout.write(f"{PROGRAM} {VERSION}\n")
    elif options.show_completion:
        sys.stdout.write(_completion_code())
    elif command_index == len(arguments):
        parser.print_help()
    else:
        name = arguments[command_index]
        command = _load(name)
        command.run(_parser(name, command).read(arguments[command_index + 1 :]))


def complete(line: str) -> None:
    """Prints the completions of a command line for the shell, and ends the process."""
    import argcomplete
    from argcomplete.completers import SuppressCompleter

    parser = _program_parser()
    subparsers = parser.add_subparsers(parser_class=CommandParser)
    arguments = line.split()
    for name in _MODULES:
        subparsers.add_parser(name, arguments=_load(name).arguments if name in arguments else ())
    argcomplete.autocomplete(
        parser, always_complete_options=False, exit_method=sys.exit, default_completer=SuppressCompleter()
    )


def _program_parser() -> CommandParser:
    lists = (
        f"{heading}:\n" + "\n".join(f"  {name:<11} {text}" for name, (_, text) in commands.items())
        for heading, commands in COMMANDS.items()
    )
    return CommandParser(
        (
            flag("--version", help="Show the version and exit."),
            flag("--debug", help=f"Show the traceback of an internal error, as {DEBUG}=1 does."),
            flag("--show-completion", help='Print code for eval "$(…)" in the start-up file of your shell.'),
        ),
        prog=PROGRAM,
        usage="%(prog)s [OPTIONS] COMMAND ...",
        description="Load balancing without reordering, in P4: run experiments, and look into switches.",
        epilog="\n\n".join([*lists, _EPILOG.strip()]),
    )


def _parser(name: str, command: Command) -> CommandParser:
    return CommandParser(command.arguments, prog=f"{PROGRAM} {name}", description=command.help)


def _load(name: str) -> Command:
    """The command with this name. Raises SpecError if there is none."""
    if name not in _MODULES:
        from tailrace.spec.suggest import unknown

        raise SpecError(f"command {unknown(name, _MODULES)}")
    command: Command = getattr(importlib.import_module(f"tailrace.cli.{_MODULES[name]}"), name)
    return command


def _completion_code() -> str:
    """The code that the user's shell evaluates to enable completion."""
    from argcomplete.shell_integration import shellcode

    shell = os.path.basename(os.environ.get("SHELL", ""))  # noqa: PTH119
    return shellcode([PROGRAM], shell=shell if shell in _SHELLS else _SHELLS[0])
