# SPDX-License-Identifier: Apache-2.0
"""`tailrace trace`: a dry run of a packet on a running switch, step by step."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.cli.arguments import argument, command, flag, number
from tailrace.cli.complete import complete_switch
from tailrace.cli.inspect.replay import ReplayTarget, print_json, print_lines, repeat
from tailrace.cli.options import PRIMARY_ELECTION_ID, SOURCE

if TYPE_CHECKING:
    from tailrace.cli.inspect.dry_runs import DryRuns
    from tailrace.cli.inspect.network import InspectedNetwork
    from tailrace.switch.trace.events import Trace


@command(
    argument("start", nargs="?", metavar="SWITCH|SRC", help="A switch, or a host.", complete=complete_switch),
    argument(
        "then",
        nargs="?",
        metavar="PACKET|DST",
        help="Packet if SWITCH is given; destination host if SRC is given.",
    ),
    argument(
        "packet", nargs="?", metavar="PACKET", help="Packet between SRC and DST (default: a UDP packet)."
    ),
    argument("--port", metavar="N", type=number(int, 0), help="Ingress port of the packet."),
    argument("--flow", metavar="N", type=number(int, 1), help="With --run FOLDER: id of a flow."),
    argument("--psn", metavar="N", type=number(int, 0), help="With --flow: PSN of a packet, from 0."),
    flag("--all", help="Show the outcomes for all group members, meter colours and random numbers."),
    flag("--full", help="Also show statements that change nothing; between hosts, all steps."),
    flag("--json", help="Print a list of traces as JSON."),
    flag("--proto", help="Print traces in protobuf's text format, as BMv2's packet_trace messages."),
    flag("--send", help="Inject the packet into the live switch, and trace it."),
    PRIMARY_ELECTION_ID,
    argument(
        "--save",
        metavar="FILE",
        type=Path,
        help="File for the trace of a switch, with all state that the packet read.",
    ),
    argument("--replay", metavar="FILE", type=Path, help="Replay a saved trace on a new switch."),
    argument(
        "--target",
        choices=[target.value for target in ReplayTarget],
        default=ReplayTarget.NATIVE.value,
        help="With --replay: the kind of switch.",
    ),
    argument(
        "--export",
        metavar="FILE.stf|FILE.py",
        type=Path,
        help="With --replay: instead of running the trace, write it as a test for p4c's STF or for PTF.",
    ),
    SOURCE,
)
def trace(args: Namespace) -> None:
    """Show what a switch would do with a packet, step by step, or all switches between two hosts.

    The state of switches does not change, except with --send. PACKET is hexadecimal digits, a .pcap file, or
    a Scapy expression. A trace has parser states, tables with keys and entries, actions, changed fields with
    the lines of the P4 program, externs, queues, copies, and the packets that leave.

        tailrace trace leaf1 --port 1 'Ether()/IP(dst="10.0.1.2")/UDP()'
        tailrace trace h1 h9
        tailrace trace s1 --address s1=127.0.0.1:50051@0 --port 1 packet.pcap --all
        tailrace trace leaf1 --port 1 packet.pcap --send
        tailrace trace leaf1 --port 1 packet.pcap --save trace.json
        tailrace trace --replay trace.json --target bmv2

    With the folder of a finished run in virtual time, show everything that happened to one of its packets:

        tailrace trace --run out --flow 7 --psn 1042
    """
    from tailrace.cli.inspect.network import find
    from tailrace.spec import SpecError

    port, save = args.port, args.save
    if args.proto and (port is None or args.json):
        raise SpecError("--proto: only for a switch, with --port N, and without --json")
    if args.send and (port is None or args.all or save is not None):
        raise SpecError("--send: only for a switch, with --port N, and without --all or --save")
    if args.replay is not None:
        if any(each is not None for each in (args.start, port, args.flow, args.psn, save)) or args.all:
            raise SpecError(
                "--replay: the file has switch, port and packet; give no others, nor --save or --all"
            )
        repeat(args.replay, ReplayTarget(args.target), args.export, full=args.full, json=args.json)
        return
    if args.export is not None or args.target != ReplayTarget.NATIVE.value:
        raise SpecError("--export and --target: only for a saved trace, with --replay FILE")
    if save is not None and (port is None or args.all):
        raise SpecError("--save: only for a switch, with --port N, and without --all")
    if args.flow is not None or args.psn is not None:
        if args.flow is None or args.psn is None or args.run is None:
            raise SpecError("a packet of a finished run: give all of --run FOLDER, --flow N and --psn N")
        if args.start is not None or port is not None or args.all:
            raise SpecError("a packet of a finished run: expected no SWITCH, SRC, --port or --all")
        _show_history(args)
        return
    if args.start is None or args.then is None:
        raise SpecError(
            "expected SWITCH --port N PACKET, SRC DST, --replay FILE, or --run FOLDER --flow N --psn N"
        )
    network = find(args, args.p4info)
    if port is not None:
        if args.packet is not None:
            raise SpecError("--port: only for a switch, followed by one PACKET")
        _at_switch(network, args)
    elif args.all:
        raise SpecError("--all: only for a switch, with --port N; from host to host one path is shown")
    else:
        _through_network(network, args)


def _send(network: InspectedNetwork, switch: str, port: int, frame: bytes, election_id: int) -> list[Trace]:
    """Injects a frame into a switch, with this election id, and returns its traces."""
    from tailrace.cli.inspect.dry_runs import decoded
    from tailrace.p4rt.requests import TraceRequest
    from tailrace.spec import SpecError
    from tailrace.switch.trace.events import Trace

    connection = network.connection_to(switch)
    request = TraceRequest(connection.device_id, port, frame.hex(), send=True, election_id=election_id)
    responses = connection.traces(request)
    if responses is None:
        raise SpecError(
            f"--send: {connection.name} cannot trace packets: it is no switch of Tailrace;"
            " without --send a copy of it traces them"
        )
    return [decoded(response, Trace) for response in responses]


def _save_trace(
    dry_runs: DryRuns, network: InspectedNetwork, switch: str, port: int, frames: list[bytes], file: Path
) -> Trace:
    """Saves the trace of a dry run together with the state that it needs, and returns the trace."""
    from tailrace.cli.inspect.replay import write
    from tailrace.spec import SpecError

    if len(frames) != 1:
        raise SpecError(f"--save: one packet, not {len(frames)}")
    trace, needs = dry_runs.needs(switch, port, frames[0])
    write(file, trace, needs, network.connection_to(switch))
    return trace


def _at_switch(network: InspectedNetwork, args: Namespace) -> None:
    """Shows what a switch does, or would do, with packets received on a port."""
    from tailrace.cli.inspect.dry_runs import DryRuns
    from tailrace.cli.inspect.packet_argument import read_packets
    from tailrace.switch.trace.text import lines, tree

    switch, port, frames = args.start, args.port, read_packets(args.then)
    with DryRuns(network) as dry_runs:
        if args.save is not None:
            traces_of = [[_save_trace(dry_runs, network, switch, port, frames, args.save)]]
        elif args.send:
            from tailrace.controller.session import DEFAULT_ELECTION_ID

            election_id = args.election_id or DEFAULT_ELECTION_ID
            traces_of = [_send(network, switch, port, frame, election_id) for frame in frames]
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
    """Shows what all switches between two hosts would do with packets."""
    from tailrace.cli.inspect.dry_runs import DryRuns
    from tailrace.cli.inspect.packet_argument import read_packets
    from tailrace.cli.inspect.packet_walk import Arrival, host_frame, walk
    from tailrace.spec import SpecError
    from tailrace.switch.trace.text import lines, summary

    if network.topology is None:
        raise SpecError("from host to host: give --topology, or --port N of a switch")
    src, dst = args.start, args.then
    if args.packet is None:
        nic = network.has_scheme_nics(network.topology)
        frames = [host_frame(network.topology, src, dst, nic=nic)]
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


def _show_history(args: Namespace) -> None:
    from tailrace.cli.inspect.packet_history import history_lines, of_folder

    history = of_folder(args.run, args.flow, args.psn)
    if args.json:
        print_json(history)
    else:
        print_lines(history_lines(history, full=args.full))
