# SPDX-License-Identifier: Apache-2.0
"""`tailrace trace`: a dry run of a packet on a running switch, step by step."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.cli.arguments import argument, command, flag, number
from tailrace.cli.complete import complete_switch
from tailrace.cli.inspect.replay import ReplayTarget, repeat
from tailrace.cli.inspect.trace_text import print_json, print_lines
from tailrace.cli.options import MOST_ELECTION_ID, SOURCE

if TYPE_CHECKING:
    from tailrace.cli.inspect.dry_runs import DryRuns
    from tailrace.cli.inspect.network import InspectedNetwork
    from tailrace.switch.trace.events import Trace


@command(
    argument("start", nargs="?", metavar="SWITCH|SRC", help="A switch, or a host.", complete=complete_switch),
    argument(
        "then", nargs="?", metavar="PACKET|DST", help="For a switch the packet, for a host another host."
    ),
    argument("packet", nargs="?", metavar="PACKET", help="From host to host; none: one of UDP."),
    argument("--port", metavar="N", type=number(int, 0), help="By which it comes to the switch."),
    argument("--flow", metavar="N", type=number(int, 1), help="Of a finished run: a flow by its number."),
    argument("--psn", metavar="N", type=number(int, 0), help="Of that flow: a packet, from 0 on."),
    flag("--all", help="Every way it could take: members, colours, random numbers."),
    flag("--full", help="Also statements that change nothing; over a network, all steps."),
    flag("--json", help="A list of traces as JSON."),
    flag("--proto", help="Traces of a switch as text of protobuf, which has BMv2's packet_trace."),
    flag("--send", help="Send the packet into the switch for real, and follow it."),
    argument(
        "--election-id",
        metavar="N",
        type=number(int, 1, MOST_ELECTION_ID),
        help="With --send: the primary controller's; none: that of `tailrace run`.",
    ),
    argument(
        "--save",
        metavar="FILE",
        type=Path,
        help="Write the trace of a switch with its read set for the packet.",
    ),
    argument("--replay", metavar="FILE", type=Path, help="Repeat a saved trace on a fresh switch."),
    argument(
        "--target",
        choices=[target.value for target in ReplayTarget],
        default=ReplayTarget.NATIVE.value,
        help="With --replay: the switch, ours or BMv2's.",
    ),
    argument(
        "--export",
        metavar="FILE.stf|FILE.py",
        type=Path,
        help="With --replay, instead of running it: write it as a test in p4c's STF, or for PTF.",
    ),
    SOURCE,
)
def trace(args: Namespace) -> None:
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
    from tailrace.spec import SpecError

    port, save = args.port, args.save
    if args.proto and (port is None or args.json):
        raise SpecError("--proto: of a switch, with --port N, and without --json")
    if args.send and (port is None or args.all or save is not None):
        raise SpecError("--send: into a switch, by --port N, and without --all or --save")
    if args.replay is not None:
        if any(each is not None for each in (args.start, port, args.flow, args.psn, save)) or args.all:
            raise SpecError(
                "--replay: the file has switch, port and packet; give no others, nor --save or --all"
            )
        repeat(args.replay, ReplayTarget(args.target), args.export, full=args.full, json=args.json)
        return
    if args.export is not None or args.target != ReplayTarget.NATIVE.value:
        raise SpecError("--export and --target: of a saved trace, with --replay FILE")
    if save is not None and (port is None or args.all):
        raise SpecError("--save: one way of a packet at a switch: with --port N, and without --all")
    if args.flow is not None or args.psn is not None:
        if args.flow is None or args.psn is None or args.run is None:
            raise SpecError("a packet of a finished run: give all of --run FOLDER, --flow N and --psn N")
        if args.start is not None or port is not None or args.all:
            raise SpecError("a packet of a finished run: no SWITCH, SRC, --port or --all beside it")
        _in_the_past(args)
        return
    if args.start is None or args.then is None:
        raise SpecError(
            "expected SWITCH --port N PACKET, SRC DST, --replay FILE, or --run FOLDER --flow N --psn N"
        )
    network = find(args, args.p4info)
    if port is not None:
        if args.packet is not None:
            raise SpecError("--port: of a switch, which takes one PACKET")
        _at_switch(network, args)
    elif args.all:
        raise SpecError(
            "--all: of a switch, by --port; from host to host there is the way that it would take"
        )
    else:
        _through_network(network, args)


def _controllers_id() -> int:
    from tailrace.controller.session import DEFAULT_ELECTION_ID

    return DEFAULT_ELECTION_ID


def _send(network: InspectedNetwork, switch: str, port: int, frame: bytes, under: int) -> list[Trace]:
    """What a switch does with a frame that is sent into it, under an election id."""
    from tailrace.cli.inspect.dry_runs import decoded
    from tailrace.p4rt.requests import TraceRequest
    from tailrace.spec import SpecError
    from tailrace.switch.trace.events import Trace

    connection = network.connection_to(switch)
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
    write(file, trace, needs, network.connection_to(switch))
    return trace


def _at_switch(network: InspectedNetwork, args: Namespace) -> None:
    """What a switch does, or would do, with packets that come in by a port."""
    from tailrace.cli.inspect.dry_runs import DryRuns
    from tailrace.cli.inspect.packet_argument import read_packets
    from tailrace.switch.trace.text import lines, tree

    switch, port, frames = args.start, args.port, read_packets(args.then)
    with DryRuns(network) as dry_runs:
        if args.save is not None:
            traces_of = [[_and_save(dry_runs, network, switch, port, frames, args.save)]]
        elif args.send:
            under = args.election_id or _controllers_id()
            traces_of = [_send(network, switch, port, frame, under) for frame in frames]
        else:
            traces_of = [dry_runs.traces(switch, port, frame, every=args.all) for frame in frames]
    if args.json:
        print_json([trace for traces in traces_of for trace in traces])
        return
    if args.proto:
        from tailrace.switch.trace.proto import text_of

        for trace in (trace for traces in traces_of for trace in traces):
            sys.stdout.write(text_of(trace))
        return
    for traces in traces_of:
        print_lines(tree(traces, full=args.full) if args.all else lines(traces[0], full=args.full))


def _through_network(network: InspectedNetwork, args: Namespace) -> None:
    """What all switches between two hosts would do with packets."""
    from tailrace.cli.inspect.dry_runs import DryRuns
    from tailrace.cli.inspect.packet_argument import read_packets
    from tailrace.cli.inspect.packet_walk import Arrival, host_frame, walk
    from tailrace.spec import SpecError
    from tailrace.switch.trace.text import lines, summary

    if network.topology is None:
        raise SpecError("from host to host: give --topology, or --port N of a switch")
    src, dst = args.start, args.then
    if args.packet is None:
        frames = [host_frame(network.topology, src, dst, nic=network.run is not None)]
    else:
        frames = read_packets(args.packet)
    with DryRuns(network) as dry_runs:

        def ask(switch: str, port: int, frame: bytes) -> Trace:
            return dry_runs.traces(switch, port, frame)[0]

        steps = (step for frame in frames for step in walk(network.topology, src, frame, ask))
        if args.json:
            print_json(list(steps))
            return
        for step in steps:
            if isinstance(step, Arrival):
                no_link = f"nobody: port {step.port} of {step.switch} has no link"
                to = step.host or network.nodes[step.switch].peers.get(step.port) or no_link
                print_lines([(0, "sent" if step.host == dst else "drop", f"arrives at {to}")])
            else:
                print_lines([(0, "packet", f"{step.switch}: from {step.from_}, by port {step.port}")])
                shown = lines(step.trace) if args.full else summary(step.trace)
                print_lines((depth + 1, style, line) for depth, style, line in shown)


def _in_the_past(args: Namespace) -> None:
    from tailrace.cli.inspect.packet_history import history_lines, of_folder

    history = of_folder(args.run, args.flow, args.psn)
    if args.json:
        print_json(history)
    else:
        print_lines(history_lines(history, full=args.full))
