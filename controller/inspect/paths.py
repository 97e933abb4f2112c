# SPDX-License-Identifier: Apache-2.0
"""The paths from one host to another that the installed entries allow.

At each switch the entry with the longest prefix for the destination is looked up in the table `ipv4_routes`
of the schemes' programs. Its action names a port, or a group whose members are taken from the switch's
groups. All members are followed, so every path that any hash may choose is walked, and no other. For other
programs, whose routing tables are not known, dry runs are used (cli.inspect.dry_run_paths).

In a Dragonfly, packets from a switch of the same group have other next hops (`onward_groups`). Data of hosts
may take a detour through a third group; detours are not walked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from ipaddress import IPv4Address, IPv4Network

from tailrace.controller.inspect.groups import GROUP_KEY, ecmp_groups, entry_ports, group_tables
from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.controller.inspect.tables import DEFAULT, read_tables
from tailrace.p4rt.errors import SwitchError, UnsupportedError
from tailrace.p4rt.values import SwitchPort, Value
from tailrace.tables.listing import Column, Listing, Row
from tailrace.topology import Host, Topology

_ROUTES, _ONWARD, _TOWARD = "ipv4_routes", "onward_groups", "toward"

Place = tuple[str, bool]
"""A switch, and whether a packet came to it from a switch of the same Dragonfly group."""

# key: these columns identify a row; rank: columns of the highest rank are hidden first if the terminal is too
# narrow
COLUMNS = (
    Column("src", key=True),
    Column("dst", key=True),
    Column("hop", key=True),
    Column("switch", key=True),
    Column("prefix", rank=2),
    Column("action", rank=3),
    Column("group", rank=1),
    Column("ports"),
    Column("note"),
)


@dataclass(frozen=True, slots=True)
class PathStep:
    """What a switch does with packets to a destination: the entry, and the ports by which they may leave."""

    prefix: Value
    action: str | None
    group: Value
    ports: tuple[SwitchPort, ...]


class Router:
    """The forwarding of one switch, read once."""

    def __init__(self, node: InspectedSwitch) -> None:
        """Reads routes and groups. Raises SwitchError."""
        self.node = node
        if not node.program.has_table(_ROUTES):
            raise UnsupportedError(node.name, f"{node.title} has no table {_ROUTES}")
        self._rows = read_tables(node, frozenset({_ROUTES})).rows
        self._groups: dict[Value, list[SwitchPort]] = {}
        for table in group_tables(node):
            for group, ports in ecmp_groups(node, table).items():
                self._groups.setdefault(group, []).extend(ports)
        self.has_onward = node.program.has_table(_ONWARD)
        """Whether next hops depend on where a packet came from."""
        self._onward = self._read_onward() if self.has_onward else {}

    def _read_onward(self) -> dict[Value, Value]:
        """By ECMP group of a route: the group to use instead for packets from the same Dragonfly group."""
        values: dict[Value, Value] = {}
        for row in read_tables(self.node, frozenset({_ONWARD})).rows:
            match, params = row["match"], row["params"]
            if isinstance(match, dict) and isinstance(params, dict) and GROUP_KEY in params:
                values[match[_TOWARD]] = params[GROUP_KEY]
        return values

    def step(self, destination: IPv4Address, *, within: bool = False) -> PathStep:
        """The step of packets to an address; `within`: they come from the same Dragonfly group."""
        best, bits = None, -1
        for row in self._rows:
            prefix = _prefix_of(row)
            if prefix is not None and destination in prefix and prefix.prefixlen > bits:
                best, bits = row, prefix.prefixlen
        if best is None:
            best = next((row for row in self._rows if row["entry"] == DEFAULT), None)
        if best is None:
            return PathStep(None, None, None, ())
        params = best["params"] if isinstance(best["params"], dict) else {}
        group = params.get(GROUP_KEY)
        if within:
            group = self._onward.get(group, group)
        ports = self._groups.get(group, []) if group is not None else entry_ports(params)
        action = best["action"]
        return PathStep(
            _prefix_of(best),
            action if isinstance(action, str) else None,
            group,
            tuple(sorted(set(ports))),
        )


def routes_as_schemes_do(node: InspectedSwitch) -> bool:
    """Whether the program routes as the schemes' programs: it has an annotation @switch, and a table
    `ipv4_routes` without an action profile.
    """
    tables = [table for table in node.program.tables.values() if table.name == _ROUTES]
    return bool(node.program.constants) and any(not table.profile_id for table in tables)


def _prefix_of(row: Row) -> IPv4Network | None:
    match = row["match"]
    if not isinstance(match, dict):
        return None
    value = next(iter(match.values()))
    if isinstance(value, IPv4Address):
        return IPv4Network(value)
    if value is None:
        return IPv4Network("0.0.0.0/0")
    return value if isinstance(value, IPv4Network) else None


@dataclass(frozen=True, slots=True)
class PathWalk:
    """The paths from one host to another: one row per switch, and the problems, if any."""

    rows: tuple[Row, ...]
    problems: tuple[str, ...]


class Walker:
    """Walks through the switches of a topology."""

    def __init__(self, topology: Topology, nodes: Mapping[str, InspectedSwitch]) -> None:
        """`nodes`: the switches that can be read; paths through other switches cannot be walked."""
        self._topology, self._nodes = topology, nodes
        self._routers: dict[str, Router] = {}

    def walk(self, src: Host, dst: Host) -> PathWalk:
        """All paths between two hosts. Raises SwitchError when a switch on them cannot be read."""
        start = (src.switch, False)
        steps, hops = self._steps(start, dst)
        rows, problems = [], []
        shown: list[tuple[str, PathStep]] = []
        for place in sorted(steps, key=lambda place: (hops[place], list(steps).index(place))):
            name, step = place[0], steps[place]
            if (name, step) in shown:
                continue
            shown.append((name, step))
            note, problem = self._judge(name, step, dst)
            if problem:
                problems.append(f"{src.name} to {dst.name}: {name}: {note}")
            rows.append(_row(src, dst, hops[place], name, step, note))
        loop = self._loop(steps)
        if loop:
            problems.append(f"{src.name} to {dst.name}: loop {' '.join(name for name, _ in loop)}")
        return PathWalk(tuple(rows), tuple(problems))

    def _steps(self, start: Place, dst: Host) -> tuple[dict[Place, PathStep], dict[Place, int]]:
        """The step at every place that can be reached, breadth first, and its hop (1 for `start`)."""
        address = IPv4Address(dst.ip)
        steps: dict[Place, PathStep] = {}
        hops, waiting = {start: 1}, [start]
        while waiting:
            place = waiting.pop(0)
            steps[place] = self._router(place[0]).step(address, within=place[1])
            for next_place in self._next(place, steps[place]):
                if next_place not in hops:
                    hops[next_place] = hops[place] + 1
                    waiting.append(next_place)
        return steps, hops

    def _router(self, name: str) -> Router:
        if name not in self._routers:
            if name not in self._nodes:
                raise SwitchError(name, "not among the switches that can be read")
            self._routers[name] = Router(self._nodes[name])
        return self._routers[name]

    def _next(self, place: Place, step: PathStep) -> Iterator[Place]:
        name, _ = place
        peers, group = self._topology.ports_of(name), self._topology.switch(name).group
        for port in step.ports:
            peer = peers.get(port.number)
            if peer is not None and peer.kind == "switch":
                within = self._topology.switch(peer.name).group == group
                yield peer.name, within and self._router(name).has_onward

    def _judge(self, name: str, step: PathStep, dst: Host) -> tuple[str | None, bool]:
        """A note on a step, and whether it is a problem."""
        if not step.ports:
            what = "no entry and no default" if step.action is None else f"{step.action} sends to no port"
            return what, True
        peers = self._topology.ports_of(name)
        for port in step.ports:
            peer = peers.get(port.number)
            if peer is None:
                return f"port {port.number} leads nowhere", True
            if peer.kind == "host" and peer.name != dst.name:
                return f"delivered to {peer.name}, not {dst.name}", True
        delivered = any(peers[port.number].kind == "host" for port in step.ports)
        return ("delivered" if delivered else None), False

    def _loop(self, steps: Mapping[Place, PathStep]) -> list[Place]:
        """The places of a loop, the first place again at the end; empty if there is no loop."""
        order = list(steps)  # the first place of the loop is the nearest to the sending host
        try:
            TopologicalSorter({place: self._next(place, steps[place]) for place in order}).prepare()
        except CycleError as error:
            loop: list[Place] = error.args[1][:0:-1]  # against the arrows of the graph, and closed
            first = loop.index(min(loop, key=order.index))
            return [*loop[first:], *loop[: first + 1]]
        return []


def _row(src: Host, dst: Host, hop: int, name: str, step: PathStep, note: str | None) -> Row:
    return {
        "src": src.name,
        "dst": dst.name,
        "hop": hop,
        "switch": name,
        "prefix": step.prefix,
        "action": step.action,
        "group": step.group,
        "ports": step.ports,
        "note": note,
    }


def listing(walks: list[PathWalk]) -> Listing:
    """Rows of several walks in the order in which they were made."""
    return Listing("paths", COLUMNS, tuple(row for walk in walks for row in walk.rows))
