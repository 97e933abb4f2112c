# SPDX-License-Identifier: Apache-2.0
"""`tailrace paths`: the paths from host to host that the installed entries allow, or the paths that Spritz's
endpoints choose among, by their entropy values (EV).
"""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from tailrace.cli.arguments import argument, command, flag, number
from tailrace.cli.complete import complete_host
from tailrace.cli.options import inspect_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tailrace.cli.inspect.network import InspectedNetwork
    from tailrace.controller.inband.responses import PathState
    from tailrace.controller.inspect.node import InspectedSwitch
    from tailrace.controller.inspect.paths import PathWalk
    from tailrace.switch.trace.events import Trace
    from tailrace.tables.listing import Listing
    from tailrace.topology import Host, Topology


@command(
    argument("src", nargs="?", metavar="SRC", help="Host or address (default: all).", complete=complete_host),
    argument("dst", nargs="?", metavar="DST", help="Host or address (default: all).", complete=complete_host),
    flag("--check", help="Walk every path of the EV lists through the installed entries."),
    argument("--sample", metavar="N", type=number(int, 1), help="With --check: walk only N of the paths."),
    argument(
        "--scheme",
        metavar="SPEC",
        help="List the paths that this scheme's endpoints use on --topology, without a running network.",
    ),
    *inspect_options("controller.inspect.paths"),
)
def paths(args: Namespace) -> None:
    """Walk the installed entries from host to host: at every hop the entry, its group and all its ports.

    If the program belongs to no scheme, each switch processes a UDP packet in dry runs, with all outcomes.

    If the switches run the program spritz, list the paths among which endpoints choose: the EV that selects
    each, its links, latency, category, weight and switches. With --check walk them through the entries.

    With RLB every port is a row: whether it is used, whether and how long there is a warning for its path,
    the RTT that the first leaf has measured, why a port is excluded, and for how much longer.

    Exit status 1 if a path ends before its host or at another host, loops, or differs from the EV list.

        tailrace paths h1 h9
    """
    from tailrace.cli.errors import FailedError
    from tailrace.cli.inspect.show import show, show_planned
    from tailrace.cli.inspect.steered_paths import SteeredPaths, endpoints_of, planned_lists
    from tailrace.controller.inspect.paths import Walker, listing, routes_as_schemes_do
    from tailrace.controller.inspect.rlb_paths import knows_warnings
    from tailrace.spec import SpecError

    if args.sample is not None and not args.check:
        raise SpecError("--sample goes with --check")
    if args.scheme is not None:
        if args.check or args.run is not None or args.address:
            raise SpecError("--scheme lists paths without a network: leave --check, --run and --address out")
        if args.topology is None:
            raise SpecError("--scheme goes with --topology")
        topology, endpoints = planned_lists(args.topology, args.scheme)
        pairs = _pairs(topology, args.src, args.dst)
        show_planned(args, SteeredPaths(topology, endpoints, {}).lists(pairs))
        return
    problems: list[str] = []

    def read(network: InspectedNetwork) -> Listing:
        topology = network.topology
        if topology is None:
            raise SpecError("paths needs the topology: give --topology, or --run")
        endpoints = endpoints_of(network, topology)
        pairs = _pairs(topology, args.src, args.dst)
        if endpoints is not None:
            steered = SteeredPaths(topology, endpoints, network.nodes)
            shown, problems[:] = (
                steered.check(pairs, args.sample) if args.check else (steered.lists(pairs), [])
            )
            return shown
        if args.check:
            raise SpecError("--check needs a network whose switches run the program spritz")
        if all(routes_as_schemes_do(node) for node in network.nodes.values()):
            walker = Walker(topology, network.nodes)
            walks = [walker.walk(first, last) for first, last in pairs]
        else:
            walks = _by_dry_runs(network, topology, pairs)
        problems[:] = [problem for walk in walks for problem in walk.problems]
        if any(knows_warnings(node) for node in network.nodes.values()):
            return _rlb_paths(network, topology, walks)
        return listing(walks)

    show(args, read)
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise FailedError(problems[0] + more)


def _by_dry_runs(
    network: InspectedNetwork, topology: Topology, pairs: Sequence[tuple[Host, Host]]
) -> list[PathWalk]:
    """The paths of packets by dry runs, for programs other than those of the schemes."""
    from tailrace.cli.inspect.dry_run_paths import DryRunPaths
    from tailrace.cli.inspect.dry_runs import DryRuns
    from tailrace.cli.inspect.packet_walk import host_frame

    with DryRuns(network) as dry_runs:

        def dry_run(switch: str, port: int, frame: bytes) -> list[Trace]:
            return dry_runs.traces(switch, port, frame, every=True)

        nic = network.has_scheme_nics(topology)
        return [
            DryRunPaths(topology, src, dst, dry_run).walk(host_frame(topology, src.name, dst.name, nic=nic))
            for src, dst in pairs
        ]


def _rlb_paths(network: InspectedNetwork, topology: Topology, walks: list[PathWalk]) -> Listing:
    """The paths with the state that the switches of RLB have for them now."""
    from tailrace.controller.inspect.rlb_paths import PathKey, RlbPaths, read_paths

    def states(node: InspectedSwitch, keys: Sequence[PathKey]) -> Mapping[PathKey, PathState]:
        with network.query_client(node) as client:
            return read_paths(node, client, keys)

    down, suppressed = network.known_to_controller()
    return RlbPaths(topology, network.nodes, down, suppressed, states).listing(walks)


def _pairs(topology: Topology, src: str | None, dst: str | None) -> list[tuple[Host, Host]]:
    """The pairs of different hosts with these names; at least one pair."""
    from tailrace.spec import SpecError

    pairs = [
        (first, last)
        for first in _hosts(topology, src)
        for last in _hosts(topology, dst)
        if first is not last
    ]
    if not pairs:
        raise SpecError("SRC and DST are the same host")
    return pairs


def _hosts(topology: Topology, name: str | None) -> list[Host]:
    """The host with this name or address; all hosts for None."""
    from tailrace.cli.inspect.packet_walk import check_host

    hosts = [host for host in topology.hosts if name in (None, host.name, host.ip)]
    if name is not None and not hosts:
        check_host(topology, name)
    return hosts
