# SPDX-License-Identifier: Apache-2.0
"""`tailrace flows`: the Flowcut table, flow by flow.

`rtt_avg` is a multiple of the RTT without queueing. A flow in state DRAINING is paused to change its path.
"""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import command
from tailrace.cli.options import inspect_options, switch_names


@command(switch_names(), *inspect_options("controller.inspect.flows"))
def flows(args: Namespace) -> None:
    """Show the flows that switches track: ports, bytes in flight, RTT averages, state. Works with BMv2, too.

    tailrace flows --where 'state == DRAINING or rtt_avg > 2'
    tailrace flows leaf1 --watch 0.5
    """
    from tailrace.cli.inspect.network import InspectedNetwork, each
    from tailrace.cli.inspect.show import show
    from tailrace.controller.inspect.flows import COLUMNS, keeps_flows, read_flows
    from tailrace.controller.inspect.node import InspectedSwitch
    from tailrace.p4rt.errors import UnsupportedError
    from tailrace.tables.listing import Listing, merge

    def read(network: InspectedNetwork) -> Listing:
        def flows_of(node: InspectedSwitch) -> Listing:
            with network.query_client(node) as client:
                return read_flows(node, client)

        nodes = network.select(args.switches)
        with_table = [node for node, keeps in zip(nodes, each(nodes, keeps_flows), strict=True) if keeps]
        if not with_table:
            raise UnsupportedError(nodes[0].name, f"{nodes[0].title} has no flow table; flowcut has one")
        nothing = f"{len(with_table)} switches track no flow now"
        return merge("flows", COLUMNS, each(with_table, flows_of), nothing=nothing)

    show(args, read)
