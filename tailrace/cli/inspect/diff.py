# SPDX-License-Identifier: Apache-2.0
"""`tailrace diff`: compares the intended state with the state of the switches."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import command
from tailrace.cli.options import inspect_options, switch_names


@command(switch_names(), *inspect_options("controller.inspect.differences"))
def diff(args: Namespace) -> None:
    """List every difference between the intended and the actual state of switches; exit status 1 if there
    is one.

    The intended state is computed anew from topology, scheme and target in the run file, without the links
    that the running controller considers down and the paths that it has withdrawn.

        tailrace diff leaf1 -o json
    """
    from dataclasses import replace

    from tailrace.cli.errors import FailedError
    from tailrace.cli.inspect.network import InspectedNetwork, each
    from tailrace.cli.inspect.show import show
    from tailrace.controller.inspect.differences import COLUMNS, read_differences
    from tailrace.p4rt.target import target
    from tailrace.schemes.intent import intent
    from tailrace.spec import SpecError
    from tailrace.spec.scale import scaled
    from tailrace.tables.listing import Listing, merge

    def read(network: InspectedNetwork) -> Listing:
        run, topology = network.run, network.topology
        if run is None or topology is None:
            raise SpecError(
                "diff needs a run file, which says what is intended: give --run FILE, not --address"
            )
        down, suppressed = network.known_to_controller()
        # the run file has the specs before time scaling; the network runs scaled
        slowed = scaled(topology, run.time_scale)
        scheme = network.scheme_on(slowed)
        assert scheme is not None, "there is a run file"
        # switches do not use the withdrawn paths as next hops
        suppressed_ends = {(switch, port) for switch, port, _ in suppressed}
        wanted = target(run.target, run.tick_ns, run.pfc, run.channels)
        # intent: the table entries that a switch should have
        intents = intent(slowed, scheme, wanted, down, suppressed=suppressed_ends)
        nodes = network.select(args.switches)
        for node in nodes:
            if node.name not in intents:
                raise SpecError(f"{node.name}: the topology of the run file has no such switch")
        differences = merge(
            "diff", COLUMNS, each(nodes, lambda node: read_differences(node, intents[node.name]))
        )
        return replace(differences, nothing=f"no differences: {len(nodes)} switches have the intended state")

    listing = show(args, read)
    if listing.rows:
        names = {row["switch"] for row in listing.rows}
        raise FailedError(f"{len(listing.rows)} differences on {len(names)} of the switches")
