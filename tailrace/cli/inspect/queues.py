# SPDX-License-Identifier: Apache-2.0
"""`tailrace queues`: bytes queued at each port."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import command
from tailrace.cli.options import inspect_options, switch_names


@command(switch_names(), *inspect_options("controller.inspect.queues"))
def queues(args: Namespace) -> None:
    """Show the queues of every port. The P4 program reports them in packets, so this works with BMv2, too.
    With other programs, native switches and networks in virtual time report those of the traffic manager.

    With PFC it also shows pauses; with RLB also warnings, and for each switch a row with its recirculations
    and with packets that hosts sent though only switches may send them.

        tailrace queues --watch 1 --where 'egress_queue_bytes > 10KiB'
    """
    from tailrace.cli.inspect.network import InspectedNetwork, each
    from tailrace.cli.inspect.show import show
    from tailrace.controller.inspect.node import InspectedSwitch
    from tailrace.controller.inspect.queues import (
        answers_queries,
        columns_of,
        read_queues,
        read_traffic_manager,
    )
    from tailrace.tables.listing import Listing, merge

    def read(network: InspectedNetwork) -> Listing:
        def queues_of(node: InspectedSwitch) -> Listing:
            if not answers_queries(node):
                return read_traffic_manager(node)
            with network.query_client(node) as client:
                return read_queues(node, client)

        parts = each(network.select(args.switches), queues_of)
        return merge("queues", columns_of(parts), parts)

    show(args, read)
