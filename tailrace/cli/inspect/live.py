# SPDX-License-Identifier: Apache-2.0
"""`tailrace ls`, `link`, `capture` and `events`: running networks, their links, packets and events."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from tailrace.cli.arguments import argument, command, flag, number
from tailrace.cli.explain.commands import PARTS
from tailrace.cli.options import RUN, view_of, view_options

if TYPE_CHECKING:
    from tailrace.controller.runfile import RunFile

_LINK = argument("link", metavar="LINK", help="Link such as leaf1-spine2.")
_RANKS = {"network": 1, "address": 1, "switches": 2, "hosts": 2, "links": 2}
"""Ranks of the columns that a narrow terminal may leave out, the highest rank first."""


def _call(run: RunFile, op: str, **fields: object) -> Iterator[dict[str, Any]]:
    """Sends a request to a network. Raises RelayError if it does not answer, SpecError if it is invalid."""
    from tailrace.controller.control import ControlClient
    from tailrace.controller.inband.relay import RelayError

    if run.control is None:
        raise RelayError("this network cannot be controlled from another terminal")
    with ControlClient(Path(run.control)) as client:
        yield from client.call(op, **fields)


@command(
    argument("--show", choices=("networks", *PARTS), default="networks", help="What to list."),
    RUN,
    view_options(None),
)
def ls(args: Namespace) -> None:
    """List the running networks of this user: those in Mininet, and stopped runs in virtual time.

    tailrace ls --show links --columns link,state,rate
    """
    from tailrace.cli.output import show
    from tailrace.controller import runfile
    from tailrace.spec import plugins
    from tailrace.tables.listing import Column, Listing, Row
    from tailrace.topology import parse_topology

    rows: list[Row] = []
    for path, run in (runfile.running() if args.run is None else {args.run: runfile.read(args.run)}).items():
        with plugins.expected(run.plugins):
            topology = parse_topology(run.topology)
        state, *links = _call(run, "state") if run.control else ({"status": "running"},)
        network = {
            "target": run.target,
            "state": state["status"],
            "program": tuple(dict.fromkeys(switch.program for switch in run.switches.values())),
            "topology": run.topology,
            "switches": len(topology.switches),
            "hosts": len(topology.hosts),
            "links": len(topology.hosts) + len(topology.links),
            "down": tuple(link["link"] for link in links if link["state"] == "down"),
        }
        part: dict[str, Sequence[Row]] = {
            "networks": [network],
            "switches": [{"switch": name, **asdict(switch)} for name, switch in run.switches.items()],
            "hosts": [{"host": each.name, "ip": each.ip, "switch": each.switch} for each in topology.hosts],
            "links": links,
        }
        rows += ({"network": path.stem, **row} for row in part[args.show])
    columns = tuple(Column(name, rank=_RANKS.get(name, 0)) for name in (rows[0] if rows else ()))
    show(Listing(args.show, columns, tuple(rows)), view_of(args))


@command(
    argument("action", choices=("down", "up", "rate"), help="What to do with the link, in both directions."),
    _LINK,
    argument("rate", nargs="?", metavar="RATE", help="With rate: such as 1Gbps, as in the experiment."),
    RUN,
)
def link(args: Namespace) -> None:
    """Take a link of a running network down or up, or change its rate.

    tailrace link down leaf1-spine2
    tailrace link rate leaf1-spine2 1Gbps
    """
    from tailrace.cli.inspect.network import named_run
    from tailrace.spec import SpecError
    from tailrace.spec.units import parse_rate_bps

    if (args.action == "rate") != (args.rate is not None):
        raise SpecError("link: expected down LINK, up LINK or rate LINK RATE")
    if args.rate is not None:
        parse_rate_bps(args.rate)  # so that it is not `down`
    to = args.rate or args.action
    list(_call(named_run(args)[1], "set", link=args.link, to=to))
    sys.stdout.write(f"{args.link}: {to}\n")


@command(
    _LINK,
    argument("--count", metavar="N", type=number(int, 1), help="Stop after N packets."),
    argument("--out", metavar="FILE.pcap", default="-", help="File to write; -: standard output."),
    RUN,
)
def capture(args: Namespace) -> None:
    """Capture the packets that arrive at either end of a link, in pcap format, until Ctrl-C or the network's
    end. A stopped run sends packets when it goes on.

        tailrace capture leaf1-spine2 --count 100 --out link.pcap
        tailrace capture leaf1-spine2 | wireshark -k -i -
    """
    from contextlib import nullcontext, suppress
    from itertools import count, islice

    from tailrace.cli.inspect.network import named_run
    from tailrace.codec.captures import write_frames
    from tailrace.spec import SpecError
    from tailrace.spec.text import printable

    if args.out == "-" and sys.stdout.isatty():
        raise SpecError("--out: a terminal shows no packets; give --out FILE.pcap, or a pipe")
    messages = _call(named_run(args)[1], "capture", link=args.link)
    next(messages)
    written = count()
    counted = (each for each, _ in zip(islice(messages, args.count), written, strict=False))
    frames = ((each["time_ns"], bytes.fromhex(each["frame"]), each["length"]) for each in counted)
    with (
        nullcontext(sys.stdout.buffer) if args.out == "-" else Path(args.out).open("wb") as file,
        suppress(KeyboardInterrupt),
    ):
        sys.stderr.write(f"capturing {args.link}; Ctrl-C ends\n")
        write_frames(file, frames)
    sys.stderr.write(f"{next(written)} frames written to {printable(args.out)}\n")


@command(
    flag("--follow", help="Go on with new events until Ctrl-C or the network's end."), RUN, view_options(None)
)
def events(args: Namespace) -> None:
    """Show what the controller and the network have reported: links, digests, paths that RLB withdraws, PFC
    storms, switches that are lost, commands. In virtual time `time` counts from the start of the run.

        tailrace events --follow
    """
    from contextlib import suppress

    from tailrace.cli.inspect.network import named_run
    from tailrace.cli.options import OutputFormat
    from tailrace.cli.output import TABLES, arranged, render, show
    from tailrace.tables.listing import Column, Listing

    columns = tuple(Column(name) for name in ("time", "event", "subject", "text"))
    rows = _call(named_run(args)[1], "events", follow=args.follow)
    view = view_of(args)
    if not args.follow:
        show(Listing("events", columns, tuple(rows)), view)
        return
    output = OutputFormat.JSONL if view.format is OutputFormat.JSON else view.format
    with suppress(KeyboardInterrupt):
        for count, row in enumerate(rows):
            listing = arranged(Listing("events", columns, (row,)), view)
            text = f"{row['time']}  {row['event']}  {row['text']}\n"
            sys.stdout.write(text if output in TABLES else render(listing, output, header=count == 0))
            sys.stdout.flush()
