# SPDX-License-Identifier: Apache-2.0
"""RLB state of switches, read by in-band queries: BMv2's P4Runtime server shows no registers. RLB's switches
warn each other that PFC is about to pause a path.
"""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.controller.inband.query import QueryClient, query_all, require_op
from tailrace.controller.inband.responses import PathState, RlbPort, parse_path, parse_rlb_port
from tailrace.controller.inspect.node import InspectedSwitch

_PATHS, _PORTS = "warned_until_ticks", "port_warned_until_ticks"
_PATH_OP, _PORT_OP = "READ_PATH", "READ_RLB_PORT"

PathKey = tuple[int, int]
"""A path as a switch names it: the port to the next hop, and the index of the destination's leaf."""


def knows_warnings(node: InspectedSwitch) -> bool:
    """Whether the program is one of RLB."""
    return node.program.register_size(_PATHS) > 0


def read_paths(
    node: InspectedSwitch, queries: QueryClient, paths: Iterable[PathKey]
) -> dict[PathKey, PathState]:
    """The state of some paths in an RLB switch, except for paths beyond the size of its registers.

    Raises:
        SwitchError: the switch cannot be read.
    """
    require_op(node.program, node.name, node.title, _PATH_OP)
    ports = node.program.register_size(_PORTS)
    leaves = node.program.register_size(_PATHS) // ports
    keys = {port * leaves + leaf: (port, leaf) for port, leaf in paths if port < ports and leaf < leaves}
    responses = query_all(queries, node.name, _PATH_OP, keys)
    return {keys[index]: parse_path(data, node.name) for index, data in responses.items()}


def read_ports(node: InspectedSwitch, queries: QueryClient, ports: Iterable[int]) -> dict[int, RlbPort]:
    """The state of some ports of an RLB switch.

    Raises:
        SwitchError: the switch cannot be read.
    """
    require_op(node.program, node.name, node.title, _PORT_OP)
    responses = query_all(queries, node.name, _PORT_OP, ports)
    return {port: parse_rlb_port(data, node.name) for port, data in responses.items()}


def in_ns(node: InspectedSwitch, ticks: int | None) -> int | None:
    """A time in ns; None if the length of a tick is not known."""
    return None if ticks is None or node.tick_ns is None else ticks * node.tick_ns
