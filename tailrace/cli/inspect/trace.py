# SPDX-License-Identifier: Apache-2.0
"""`tailrace trace`: what a running switch would do with a packet, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tailrace.cli.complete import complete_switch
from tailrace.cli.options import SourceOptions, with_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailrace.native.trace.text import Line

_STYLES = {
    "packet": "bold", "stage": "bold cyan", "table": "bold", "hit": "green", "miss": "yellow",
    "action": "magenta", "change": "blue", "extern": "cyan", "sent": "bold green", "drop": "bold red",
    "bad": "bold red", "choice": "yellow",
}  # fmt: skip


@with_source
def trace(
    *,
    switch: Annotated[
        str, typer.Argument(metavar="SWITCH", help="Its name.", autocompletion=complete_switch)
    ],
    packet: Annotated[
        str, typer.Argument(metavar="PACKET", help="In base 16, a .pcap file, or Scapy's words.")
    ],
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, help="By which it comes in.")],
    every: Annotated[
        bool,
        typer.Option("--all", help="Every way it could take: members, colours, random numbers."),
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Also statements that change nothing.")] = False,
    json: Annotated[bool, typer.Option("--json", help="A list of traces as JSON.")] = False,
    source: SourceOptions,
) -> None:
    """Show what a switch would do with a packet, step by step; nothing of the switch changes.

    Parser states, tables with keys and entries, actions, changed fields with the lines of the P4 program,
    externs, queues, copies, and the packets that leave.

    tailrace trace leaf1 --port 1 'Ether()/IP(dst="10.0.1.2")/UDP()'

    tailrace trace s1 --address s1=127.0.0.1:50051@0 --port 1 packet.pcap --all
    """
    from tailrace.cli.inspect.network import find
    from tailrace.cli.inspect.packet_words import read_packets
    from tailrace.cli.inspect.show import source_of
    from tailrace.cli.output import console
    from tailrace.native.trace.events import Trace
    from tailrace.native.trace.text import INDENT, lines, tree
    from tailrace.p4rt.connection import GrpcConnection
    from tailrace.p4rt.requests import TraceRequest
    from tailrace.words import SpecError

    frames = read_packets(packet)
    nodes = find(source_of(source)).select((switch,))
    if len(nodes) != 1:
        raise SpecError(f"{switch} means {len(nodes)} switches; name one")
    connection = nodes[0].connection
    assert isinstance(connection, GrpcConnection), "nodes of the command line are reached by gRPC"

    import msgspec

    found: list[list[Trace]] = []
    for frame in frames:
        answers = connection.traces(TraceRequest(connection.device_id, port, frame.hex(), every))
        if answers is None:
            raise SpecError(f"{switch} cannot trace packets: it is no switch of Tailrace")
        found.append([msgspec.json.decode(answer, type=Trace) for answer in answers])
    if json:
        typer.echo(
            msgspec.json.format(
                msgspec.json.encode([one for some in found for one in some]), indent=2
            ).decode()
        )
        return
    from rich.text import Text

    def shown() -> Iterator[Line]:
        for traces in found:
            yield from tree(traces, full=full) if every else lines(traces[0], full=full)

    out = console()
    for depth, style, line in shown():
        out.print(Text(f"{INDENT * depth}{line}", _STYLES.get(style, "")), soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("trace", rich_help_panel="Look")(trace)
