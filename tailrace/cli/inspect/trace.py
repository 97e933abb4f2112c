# SPDX-License-Identifier: Apache-2.0
"""`tailrace trace`: what a running switch would do with a packet, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tailrace.cli.complete import complete_switch
from tailrace.cli.options import SourceOptions, with_source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tailrace.cli.inspect.network import Network
    from tailrace.native.trace.events import Trace
    from tailrace.native.trace.text import Line

_STYLES = {
    "packet": "bold", "stage": "bold cyan", "table": "bold", "hit": "green", "miss": "yellow",
    "action": "magenta", "change": "blue", "extern": "cyan", "sent": "bold green", "drop": "bold red",
    "bad": "bold red", "choice": "yellow",
}  # fmt: skip


@with_source
def trace(
    *,
    start: Annotated[
        str,
        typer.Argument(metavar="SWITCH|SRC", help="A switch, or a host.", autocompletion=complete_switch),
    ],
    then: Annotated[
        str, typer.Argument(metavar="PACKET|DST", help="For a switch the packet, for a host another host.")
    ],
    packet: Annotated[
        str | None,
        typer.Argument(metavar="[PACKET]", help="From host to host; none: one of UDP.", show_default=False),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=0, help="By which it comes to the switch.", show_default=False
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Every way it could take: members, colours, random numbers."),
    ] = False,
    full: Annotated[
        bool,
        typer.Option("--full", help="Also statements that change nothing; from host to host, all steps."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="A list of traces as JSON.")] = False,
    source: SourceOptions,
) -> None:
    """Show what a switch would do with a packet, step by step, or all switches between two hosts.

    Nothing of a switch changes. PACKET is in base 16, a .pcap file, or Scapy's words. A switch tells of
    parser states, tables with keys and entries, actions, changed fields with the lines of the P4 program,
    externs, queues, copies, and the packets that leave.

    tailrace trace leaf1 --port 1 'Ether()/IP(dst="10.0.1.2")/UDP()'

    tailrace trace h1 h9

    tailrace trace s1 --address s1=127.0.0.1:50051@0 --port 1 packet.pcap --all
    """
    from tailrace.cli.inspect.network import find
    from tailrace.cli.inspect.show import source_of
    from tailrace.words import SpecError

    network = find(source_of(source))
    if port is not None:
        if packet is not None:
            raise SpecError("--port: of a switch, which takes one PACKET")
        _at_switch(network, start, then, port, every=every, full=full, json=json)
    elif every:
        raise SpecError(
            "--all: of a switch, by --port; from host to host there is the way that it would take"
        )
    else:
        _through_network(network, start, then, packet, full=full, json=json)


def _ask(network: Network, switch: str, port: int, frame: bytes, *, every: bool = False) -> list[Trace]:
    """What a switch would do with a frame, each way that is asked for."""
    import msgspec

    from tailrace.native.trace.events import Trace
    from tailrace.p4rt.connection import GrpcConnection
    from tailrace.p4rt.requests import TraceRequest
    from tailrace.words import SpecError

    nodes = network.select((switch,))
    if len(nodes) != 1:
        raise SpecError(f"{switch} means {len(nodes)} switches; name one")
    connection = nodes[0].connection
    assert isinstance(connection, GrpcConnection), "nodes of the command line are reached by gRPC"
    answers = connection.traces(TraceRequest(connection.device_id, port, frame.hex(), every))
    if answers is None:
        raise SpecError(f"{switch} cannot trace packets: it is no switch of Tailrace")
    return [msgspec.json.decode(answer, type=Trace) for answer in answers]


def _at_switch(
    network: Network, switch: str, packet: str, port: int, *, every: bool, full: bool, json: bool
) -> None:
    from tailrace.cli.inspect.packet_words import read_packets
    from tailrace.native.trace.text import lines, tree

    found = [_ask(network, switch, port, frame, every=every) for frame in read_packets(packet)]
    if json:
        _print_json([one for traces in found for one in traces])
        return
    for traces in found:
        _print(tree(traces, full=full) if every else lines(traces[0], full=full))


def _through_network(
    network: Network, src: str, dst: str, packet: str | None, *, full: bool, json: bool
) -> None:
    from tailrace.cli.inspect.packet_walk import Arrival, host_frame, walk
    from tailrace.cli.inspect.packet_words import read_packets
    from tailrace.native.trace.text import lines, summary
    from tailrace.words import SpecError

    if network.topology is None:
        raise SpecError("from host to host: give --topology, or --port N of a switch")
    frames = [host_frame(network.topology, src, dst)] if packet is None else read_packets(packet)
    steps = (
        step
        for frame in frames
        for step in walk(network.topology, src, frame, lambda *asked: _ask(network, *asked)[0])
    )
    if json:
        _print_json(list(steps))
        return
    for step in steps:
        if isinstance(step, Arrival):
            to = step.host or f"nobody: port {step.port} of {step.switch} has no link"
            _print([(0, "sent" if step.host == dst else "drop", f"arrives at {to}")])
        else:
            _print([(0, "packet", f"{step.switch}: from {step.from_}, by port {step.port}")])
            shown = lines(step.trace) if full else summary(step.trace)
            _print((depth + 1, style, line) for depth, style, line in shown)


def _print(lines: Iterable[Line]) -> None:
    from rich.text import Text

    from tailrace.cli.output import console
    from tailrace.native.trace.text import INDENT

    out = console()
    for depth, style, line in lines:
        out.print(Text(f"{INDENT * depth}{line}", _STYLES.get(style, "")), soft_wrap=True)


def _print_json(found: object) -> None:
    import msgspec

    typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("trace", rich_help_panel="Look")(trace)
