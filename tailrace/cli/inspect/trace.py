# SPDX-License-Identifier: Apache-2.0
"""`tailrace trace`: a dry run of a packet on a running switch, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailrace.cli.complete import complete_switch
from tailrace.cli.inspect.replay import ReplayTarget, repeat
from tailrace.cli.inspect.trace_text import print_json, print_lines
from tailrace.cli.options import MOST_ELECTION_ID, SourceOptions, with_source

if TYPE_CHECKING:
    from tailrace.cli.inspect.dry_runs import DryRuns
    from tailrace.cli.inspect.network import InspectedNetwork
    from tailrace.switch.trace.events import Trace


@with_source
def trace(
    *,
    start: Annotated[
        str | None,
        typer.Argument(
            metavar="[SWITCH|SRC]",
            help="A switch, or a host.",
            autocompletion=complete_switch,
            show_default=False,
        ),
    ] = None,
    then: Annotated[
        str | None,
        typer.Argument(
            metavar="[PACKET|DST]",
            help="For a switch the packet, for a host another host.",
            show_default=False,
        ),
    ] = None,
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
    flow: Annotated[
        int | None,
        typer.Option(
            "--flow", metavar="N", min=1, help="Of a finished run: a flow by its number.", show_default=False
        ),
    ] = None,
    psn: Annotated[
        int | None,
        typer.Option(
            "--psn", metavar="N", min=0, help="Of that flow: a packet, from 0 on.", show_default=False
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Every way it could take: members, colours, random numbers."),
    ] = False,
    full: Annotated[
        bool,
        typer.Option("--full", help="Also statements that change nothing; over a network, all steps."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="A list of traces as JSON.")] = False,
    proto: Annotated[
        bool,
        typer.Option(
            "--proto", help="Traces of a switch as text of protobuf, which has BMv2's packet_trace."
        ),
    ] = False,
    send: Annotated[
        bool, typer.Option("--send", help="Send the packet into the switch for real, and follow it.")
    ] = False,
    election_id: Annotated[
        int | None,
        typer.Option(
            "--election-id",
            metavar="N",
            min=1,
            max=MOST_ELECTION_ID,
            help="With --send: the primary controller's; none: that of `tailrace run`.",
            show_default=False,
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            metavar="FILE",
            help="Write the trace of a switch with all that the packet has touched.",
            show_default=False,
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay", metavar="FILE", help="Repeat a saved trace on a fresh switch.", show_default=False
        ),
    ] = None,
    target: Annotated[
        ReplayTarget, typer.Option("--target", help="With --replay: the switch, ours or BMv2's.")
    ] = ReplayTarget.NATIVE,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            metavar="FILE.stf|FILE.py",
            help="With --replay, instead of running it: write it as a test in p4c's STF, or for PTF.",
            show_default=False,
        ),
    ] = None,
    source: SourceOptions,
) -> None:
    """Show what a switch would do with a packet, step by step, or all switches between two hosts.

    Nothing of a switch changes, but with --send. PACKET is in base 16, a .pcap file, or a Scapy expression. A
    switch tells of parser states, tables with keys and entries, actions, changed fields with the lines of
    the P4 program, externs, queues, copies, and the packets that leave.

    tailrace trace leaf1 --port 1 'Ether()/IP(dst="10.0.1.2")/UDP()'

    tailrace trace h1 h9

    tailrace trace s1 --address s1=127.0.0.1:50051@0 --port 1 packet.pcap --all

    tailrace trace leaf1 --port 1 packet.pcap --send

    tailrace trace leaf1 --port 1 packet.pcap --save trace.json

    tailrace trace --replay trace.json --target bmv2

    Of a finished run in virtual time, whose folder --run names, it tells all that happened to one packet:

    tailrace trace --run out --flow 7 --psn 1042
    """
    from tailrace.cli.inspect.network import find
    from tailrace.cli.inspect.show import source_of
    from tailrace.spec import SpecError

    if proto and (port is None or json):
        raise SpecError("--proto: of a switch, with --port N, and without --json")
    if send and (port is None or every or save is not None):
        raise SpecError("--send: into a switch, by --port N, and without --all or --save")
    if replay is not None:
        if any(option is not None for option in (start, port, flow, psn, save)) or every:
            raise SpecError(
                "--replay: the file has switch, port and packet; give no others, nor --save or --all"
            )
        repeat(replay, target, export, full=full, json=json)
        return
    if export is not None or target is not ReplayTarget.NATIVE:
        raise SpecError("--export and --target: of a saved trace, with --replay FILE")
    if save is not None and (port is None or every):
        raise SpecError("--save: one way of a packet at a switch: with --port N, and without --all")
    if flow is not None or psn is not None:
        if flow is None or psn is None or source.run is None:
            raise SpecError("a packet of a finished run: give all of --run FOLDER, --flow N and --psn N")
        if start is not None or port is not None or every:
            raise SpecError("a packet of a finished run: no SWITCH, SRC, --port or --all beside it")
        _in_the_past(source.run, flow, psn, full=full, json=json)
        return
    if start is None or then is None:
        raise SpecError(
            "expected SWITCH --port N PACKET, SRC DST, --replay FILE, or --run FOLDER --flow N --psn N"
        )
    network = find(source_of(source))
    if port is not None:
        if packet is not None:
            raise SpecError("--port: of a switch, which takes one PACKET")
        under = (election_id or _controllers_id()) if send else None
        _at_switch(network, start, then, port, save, under, every=every, full=full, json=json, proto=proto)
    elif every:
        raise SpecError(
            "--all: of a switch, by --port; from host to host there is the way that it would take"
        )
    else:
        _through_network(network, start, then, packet, full=full, json=json)


def _controllers_id() -> int:
    from tailrace.controller.session import DEFAULT_ELECTION_ID

    return DEFAULT_ELECTION_ID


def _send(network: InspectedNetwork, switch: str, port: int, frame: bytes, under: int) -> list[Trace]:
    """What a switch does with a frame that is sent into it, under an election id."""
    from tailrace.cli.inspect.dry_runs import decoded
    from tailrace.p4rt.requests import TraceRequest
    from tailrace.spec import SpecError
    from tailrace.switch.trace.events import Trace

    connection = network.one(switch)
    request = TraceRequest(connection.device_id, port, frame.hex(), send=True, election_id=under)
    responses = connection.traces(request)
    if responses is None:
        raise SpecError(
            f"--send: {connection.name} cannot tell what it does with a packet: it is no switch of Tailrace;"
            " without --send a copy of it can"
        )
    return [decoded(response, Trace) for response in responses]


def _and_save(
    dry_runs: DryRuns, network: InspectedNetwork, switch: str, port: int, frames: list[bytes], file: Path
) -> Trace:
    """What a switch would do with a frame, which is saved with what it needs."""
    from tailrace.cli.inspect.replay import write
    from tailrace.spec import SpecError

    if len(frames) != 1:
        raise SpecError(f"--save: one packet, not {len(frames)}")
    trace, needs = dry_runs.needs(switch, port, frames[0])
    write(file, trace, needs, network.one(switch))
    return trace


def _at_switch(
    network: InspectedNetwork,
    switch: str,
    packet: str,
    port: int,
    save: Path | None,
    under: int | None,
    *,
    every: bool,
    full: bool,
    json: bool,
    proto: bool,
) -> None:
    from tailrace.cli.inspect.dry_runs import DryRuns
    from tailrace.cli.inspect.packet_argument import read_packets
    from tailrace.switch.trace.text import lines, tree

    frames = read_packets(packet)
    with DryRuns(network) as dry_runs:
        if save is not None:
            traces_of = [[_and_save(dry_runs, network, switch, port, frames, save)]]
        elif under is not None:
            traces_of = [_send(network, switch, port, frame, under) for frame in frames]
        else:
            traces_of = [dry_runs.traces(switch, port, frame, every=every) for frame in frames]
    if json:
        print_json([trace for traces in traces_of for trace in traces])
        return
    if proto:
        from tailrace.switch.trace.proto import text_of

        for trace in (trace for traces in traces_of for trace in traces):
            typer.echo(text_of(trace), nl=False)
        return
    for traces in traces_of:
        print_lines(tree(traces, full=full) if every else lines(traces[0], full=full))


def _through_network(
    network: InspectedNetwork, src: str, dst: str, packet: str | None, *, full: bool, json: bool
) -> None:
    from tailrace.cli.inspect.dry_runs import DryRuns
    from tailrace.cli.inspect.packet_argument import read_packets
    from tailrace.cli.inspect.packet_walk import Arrival, host_frame, walk
    from tailrace.spec import SpecError
    from tailrace.switch.trace.text import lines, summary

    if network.topology is None:
        raise SpecError("from host to host: give --topology, or --port N of a switch")
    if packet is None:
        frames = [host_frame(network.topology, src, dst, nic=network.run is not None)]
    else:
        frames = read_packets(packet)
    with DryRuns(network) as dry_runs:

        def ask(switch: str, port: int, frame: bytes) -> Trace:
            return dry_runs.traces(switch, port, frame)[0]

        steps = (step for frame in frames for step in walk(network.topology, src, frame, ask))
        if json:
            print_json(list(steps))
            return
        for step in steps:
            if isinstance(step, Arrival):
                no_link = f"nobody: port {step.port} of {step.switch} has no link"
                to = step.host or network.nodes[step.switch].peers.get(step.port) or no_link
                print_lines([(0, "sent" if step.host == dst else "drop", f"arrives at {to}")])
            else:
                print_lines([(0, "packet", f"{step.switch}: from {step.from_}, by port {step.port}")])
                shown = lines(step.trace) if full else summary(step.trace)
                print_lines((depth + 1, style, line) for depth, style, line in shown)


def _in_the_past(folder: Path, flow: int, psn: int, *, full: bool, json: bool) -> None:
    from tailrace.cli.inspect.packet_history import history_lines, of_folder

    history = of_folder(folder, flow, psn)
    if json:
        print_json(history)
    else:
        print_lines(history_lines(history, full=full))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("trace", rich_help_panel="Look")(trace)
