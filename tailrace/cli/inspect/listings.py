# SPDX-License-Identifier: Apache-2.0
"""`tailrace tables`, `groups`, `counters`, `registers`, `flows`, `queues`: what switches hold; `diff`: how it
differs from the intended state.
"""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from tailrace.cli.arguments import command, flag
from tailrace.cli.options import inspect_options, switch_names

_ALL = flag("--all", help="Also show cells that are 0.")


@command(switch_names("table"), *inspect_options("controller.inspect.tables"))
def tables(args: Namespace) -> None:
    """Show table entries and default actions, with names and typed values.

    tailrace tables leaf1 ipv4_routes --where 'dst has 10.0.1.2'
    tailrace tables --address s1=127.0.0.1:50051 --topology topology.json --where 'entry != default'
    """
    from tailrace.cli.inspect.show import show_named
    from tailrace.controller.inspect.tables import COLUMNS, read_tables

    show_named(args, "table", COLUMNS, read_tables)


@command(switch_names(), *inspect_options("controller.inspect.groups"))
def groups(args: Namespace) -> None:
    """Show groups: ECMP, selectors, multicast and clone sessions, with ports and the entries that use them.

    tailrace groups leaf1 --where 'kind == ecmp and ports == spine2'
    """
    from tailrace.cli.inspect.network import each
    from tailrace.cli.inspect.show import show
    from tailrace.controller.inspect.groups import COLUMNS, read_groups
    from tailrace.tables.listing import merge

    show(args, lambda network: merge("groups", COLUMNS, each(network.select(args.switches), read_groups)))


@command(switch_names("counter"), _ALL, *inspect_options("controller.inspect.counters"))
def counters(args: Namespace) -> None:
    """Show counters; with --watch also their rates per second.

    tailrace counters drops
    tailrace counters leaf1 port_tx --watch 1
    """
    from tailrace.cli.inspect.show import show_named
    from tailrace.controller.inspect.counters import COLUMNS, read_counters

    nothing = "all counters are 0; --all shows them"
    show_named(args, "counter", COLUMNS, partial(read_counters, zeros=args.all), nothing)


@command(switch_names("register"), _ALL, *inspect_options("controller.inspect.registers"))
def registers(args: Namespace) -> None:
    """Show registers. BMv2's P4Runtime server does not support them: use `flows` and `queues` there.

    tailrace registers leaf1 rtt_min_ticks
    """
    from tailrace.cli.inspect.show import show_named
    from tailrace.controller.inspect.registers import COLUMNS, read_registers

    nothing = "all registers are 0; --all shows them"
    show_named(args, "register", COLUMNS, partial(read_registers, zeros=args.all), nothing)


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
        programs = each(nodes, lambda node: node.program)
        with_table = [node for node, program in zip(nodes, programs, strict=True) if keeps_flows(program)]
        if not with_table:
            raise UnsupportedError(nodes[0].name, f"{nodes[0].title} has no flow table; flowcut has one")
        nothing = f"{len(with_table)} switches track no flow now"
        return merge("flows", COLUMNS, each(with_table, flows_of), nothing=nothing)

    show(args, read)


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
