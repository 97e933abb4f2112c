# SPDX-License-Identifier: Apache-2.0
"""The paths between two hosts of an RLB network, with warnings (PFC is about to pause a path): one row per
hop and port.

The rows include ports that the entries would use without failures, and why they are not used: the link is
down, or the switch reported the path as faulty (RLB §IV-B.2). RTTs are those that the first leaf has measured
(RLB §V). All of this is read by in-band queries: BMv2's P4Runtime server shows no registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tailrace.controller.inband.query import QueryClient, query_all, require_op
from tailrace.controller.inband.relay import SuppressedLeft
from tailrace.controller.inband.responses import PathState, RlbPort, parse_path, parse_rlb_port
from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.controller.inspect.paths import PathWalk
from tailrace.p4rt.values import SwitchPort, Value
from tailrace.tables.listing import Column, Listing, Row
from tailrace.topology import Topology, next_hops
from tailrace.topology.paths.restricted import Hops, with_restricted
from tailrace.topology.paths.shortest import Down

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


# key: these columns identify a row; rank: columns of the highest rank are hidden first if the terminal is too
# narrow
COLUMNS = (
    Column("src", key=True),
    Column("dst", key=True),
    Column("hop", key=True),
    Column("switch", key=True),
    Column("port", key=True),
    Column("used"),
    Column("warned"),
    Column("warned_left_ns", is_time=True, rank=1),
    Column("rtt_ns", is_time=True),
    Column("rtt_age_ns", is_time=True, rank=3),
    Column("suppressed"),
    Column("suppressed_left_ns", is_time=True, rank=2),
    Column("note"),
)

LINK_DOWN, FAILURE = "link down", "failure alert"
"""Why a port is not used."""

States = Callable[[InspectedSwitch, Sequence[PathKey]], Mapping[PathKey, PathState]]
"""Reads the state of paths from a switch."""


@dataclass(frozen=True, slots=True)
class _PortRow:
    """An unfinished row, for one port of a hop. `leaf`: index of the destination's leaf, None at it."""

    row: Row
    switch: str
    port: int
    leaf: int | None


@dataclass(slots=True)
class RlbPaths:
    """Makes the rows for walked paths between hosts (PathWalk).

    down: dead links; suppressed: paths that the controller suppresses, each with its remaining time
    states: reads the state of paths from a switch
    """

    topology: Topology
    nodes: Mapping[str, InspectedSwitch]
    down: Down
    suppressed: Sequence[SuppressedLeft]
    states: States
    _hops: Hops = field(init=False)

    def __post_init__(self) -> None:
        # next hops without failures, by switch and leaf; also by host, for hosts that use only some paths
        self._hops = with_restricted(self.topology, next_hops(self.topology))

    def listing(self, walks: Sequence[PathWalk]) -> Listing:
        """All ports of all hops, in the order of the walks. Raises SwitchError."""
        port_rows = [each for walk in walks for row in walk.rows for each in self._ports_of(row)]
        wanted: dict[str, dict[PathKey, None]] = {}
        for each in port_rows:
            if each.leaf is not None:
                wanted.setdefault(each.switch, {})[each.port, each.leaf] = None
        states = {name: self.states(self.nodes[name], tuple(keys)) for name, keys in wanted.items()}
        rows = tuple(self._row(each, states) for each in port_rows)
        unknown = sorted({each.switch for each in port_rows if self.nodes[each.switch].tick_ns is None})
        notes = [f"{name}: the length of a tick is not known, so no times are shown" for name in unknown[:1]]
        return Listing("paths", COLUMNS, rows, notes=tuple(notes))

    def _ports_of(self, row: Row) -> list[_PortRow]:
        """One item per port that the entries use, or would use without failures."""
        name, ports, dst = str(row["switch"]), row["ports"], str(row["dst"])
        leaf = self.topology.host(dst).switch
        parts = ports if isinstance(ports, tuple) else ()
        used = {port.number for port in parts if isinstance(port, SwitchPort)}
        hops = self._hops[name]
        without_failures = () if name == leaf else hops.get(dst, hops[leaf])
        index = None if name == leaf else self.topology.leaves.index(leaf)
        ports_of_hop = sorted({*used, *without_failures})
        return [_PortRow({**row, "used": port in used}, name, port, index) for port in ports_of_hop]

    def _row(self, port_row: _PortRow, path_states: Mapping[str, Mapping[PathKey, PathState]]) -> Row:
        node = self.nodes[port_row.switch]
        state = None
        if port_row.leaf is not None:
            state = path_states[port_row.switch].get((port_row.port, port_row.leaf))
        cells: dict[str, Value] = dict.fromkeys(column.name for column in COLUMNS)
        cells |= {key: port_row.row[key] for key in ("src", "dst", "hop", "switch", "used", "note")}
        cells["port"] = SwitchPort(port_row.port, node.peer_of(port_row.port))
        cells["suppressed"], cells["suppressed_left_ns"] = self._why_suppressed(port_row)
        if state is not None:
            cells["warned"] = state.warned_ticks > 0
            cells["warned_left_ns"] = in_ns(node, state.warned_ticks or None)
            cells["rtt_ns"] = in_ns(node, state.rtt_ticks)
            cells["rtt_age_ns"] = in_ns(node, state.rtt_age_ticks)
        return cells

    def _why_suppressed(self, port_row: _PortRow) -> tuple[str | None, int | None]:
        """The reasons why a port is not used, and the remaining time of its suppression in ns."""
        end = (port_row.switch, port_row.port)
        peer = self.topology.ports_of(port_row.switch).get(port_row.port)
        reasons, remaining_ns = [], None
        if peer is not None and (end in self.down or (peer.name, peer.port) in self.down):
            reasons.append(LINK_DOWN)
        for switch, port, path_remaining_ns in self.suppressed:
            if (switch, port) == end:
                reasons.append(FAILURE)
                remaining_ns = path_remaining_ns
        return ", ".join(reasons) or None, remaining_ns
