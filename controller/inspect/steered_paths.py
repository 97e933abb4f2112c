# SPDX-License-Identifier: Apache-2.0
"""Lists of EVs (entropy values, which select paths) as listings, and a check that the entries follow them.

A row of `read_lists` is a path. A row of `check_lists` is a pair of hosts: how many paths were walked through
the present entries of the switches, and how many differed from the list.

ROLES are the names of a switch's roles for a packet: FIRST chooses the first link of the path, SECOND the
second link. ALL is the class of all paths. `near`: 1 if the destination is in the switch's Dragonfly group.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network

from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.controller.inspect.tables import read_tables
from tailrace.p4rt.errors import SwitchError, UnsupportedError
from tailrace.p4rt.values import SwitchPort, Value
from tailrace.schemes.spritz.endpoints import EndpointPaths
from tailrace.schemes.spritz.walk import ALL, ROLES, TABLES, EvWalk, EvWalker, SteeredTables
from tailrace.spec.constants import PS_PER_NS
from tailrace.tables.listing import Column, Listing, Row
from tailrace.topology import Host, Topology
from tailrace.topology.paths.bounded import BoundedPath

# key: these columns identify a row; rank: columns of the highest rank are hidden first if the terminal is too
# narrow
LIST_COLUMNS = (
    Column("src", key=True),
    Column("dst", key=True),
    Column("ev", key=True),
    Column("ev1", rank=3),  # the high byte of the EV
    Column("ev2", rank=3),  # the low byte
    Column("links"),
    Column("local", rank=2),  # number of links within groups
    Column("global", rank=2),  # number of links between groups
    Column("latency_ns", is_time=True, rank=1),
    Column("category", rank=1),  # minimal or not
    Column("weight"),
    Column("switches"),
)
CHECK_COLUMNS = (
    Column("src", key=True),
    Column("dst", key=True),
    Column("paths"),
    Column("walked"),
    Column("different"),
    Column("note"),
)

Pair = tuple[Host, Host]


def read_lists(endpoints: EndpointPaths, pairs: Iterable[Pair]) -> Listing:
    """The lists of pairs of hosts, in their order; weights only where endpoints choose by EV."""
    rows = [row for src, dst in pairs for row in _list_rows(endpoints, src, dst)]
    return Listing("paths", LIST_COLUMNS, tuple(rows))


def _list_rows(endpoints: EndpointPaths, src: Host, dst: Host) -> Iterator[Row]:
    listed = endpoints.of(src.ip, dst.ip)
    weights = dict(zip(listed.evs, listed.weights, strict=True))
    for path in endpoints.paths.between(src.switch, dst.switch):
        yield {
            "src": src.name,
            "dst": dst.name,
            "ev": path.ev,
            "ev1": path.ev >> 8,
            "ev2": path.ev & 0xFF,
            "links": len(path.ports),
            "local": path.local,
            "global": path.global_,
            "latency_ns": path.latency_ps / PS_PER_NS,
            "category": path.category,
            "weight": weights.get(path.ev),
            "switches": path.switches,
        }


def check_lists(endpoints: EndpointPaths, walker: EvWalker, pairs: Iterable[Pair]) -> Listing:
    """All paths of pairs of hosts, walked. Raises SwitchError when a switch cannot be read.

    The hosts of each pair must be on different switches, also in `check_sample`.
    """
    return _checked(endpoints, walker, ((pair, None) for pair in pairs))


def check_sample(endpoints: EndpointPaths, walker: EvWalker, pairs: list[Pair], count: int) -> Listing:
    """As `check_lists`, with only `count` paths of random pairs; every call chooses the same paths."""
    rng = random.Random(count)
    chosen: dict[int, list[float]] = {}
    for _ in range(count):
        chosen.setdefault(rng.randrange(len(pairs)), []).append(rng.random())
    return _checked(endpoints, walker, ((pairs[index], chosen[index]) for index in sorted(chosen)))


def _checked(
    endpoints: EndpointPaths, walker: EvWalker, work: Iterable[tuple[Pair, list[float] | None]]
) -> Listing:
    """Walks paths of pairs of hosts. Numbers in `work` select paths: each is a position in the pair's list,
    as a fraction of the list's length; None: all paths.
    """
    rows: list[Row] = []
    for (src, dst), positions in work:
        paths = endpoints.paths.between(src.switch, dst.switch)
        selected = paths if positions is None else tuple(paths[int(part * len(paths))] for part in positions)
        differences = [(path, walk) for path in selected if (walk := _differs(path, walker, src, dst))]
        rows.append(
            {
                "src": src.name,
                "dst": dst.name,
                "paths": len(paths),
                "walked": len(selected),
                "different": len(differences),
                "note": _note(*differences[0]) if differences else None,
            }
        )
    return Listing("paths", CHECK_COLUMNS, tuple(rows))


def _differs(path: BoundedPath, walker: EvWalker, src: Host, dst: Host) -> EvWalk | None:
    walk = walker.walk(src, dst, path.ev)
    return None if walk == EvWalk(path.switches, path.ports) else walk


def _note(path: BoundedPath, walk: EvWalk) -> str:
    suffix = f": {walk.problem}" if walk.problem else ""
    return f"EV {path.ev} goes {' '.join(walk.switches)}, not {' '.join(path.switches)}{suffix}"


def walker_of(topology: Topology, nodes: Mapping[str, InspectedSwitch]) -> EvWalker:
    """A walker through the present entries of switches. Each switch is read when it is first needed.

    Walks raise SwitchError where a switch cannot be read.
    """

    def read(name: str) -> SteeredTables:
        if name not in nodes:
            raise SwitchError(name, "not among the switches that can be read")
        return read_steered(nodes[name])

    return EvWalker(topology, read)


def read_steered(node: InspectedSwitch) -> SteeredTables:
    """The entries of a switch that determine the path of an EV. Raises SwitchError."""
    names = {table.name for table in node.program.tables.values()}
    if not names.issuperset(TABLES):
        raise UnsupportedError(node.name, f"{node.title} does not steer packets by an EV")
    tables = SteeredTables()
    for row in read_tables(node, frozenset(TABLES)).rows:
        match, params = row["match"], row["params"]
        if not isinstance(match, Mapping) or not isinstance(params, Mapping):
            continue
        if row["table"] != "path_lists":
            _add(tables, row, match, params)
        elif match["class"] == node.program.enum_value("PathClass_t", ALL):
            role = next(name for name in ROLES if node.program.enum_value("Role_t", name) == match["role"])
            near, index, size = (_number(value) for value in (match["near"], params["list"], params["size"]))
            tables.add_list(role, near, index, size)
    return tables


def _add(tables: SteeredTables, row: Row, match: Mapping[str, Value], params: Mapping[str, Value]) -> None:
    table, action = row["table"], row["action"]
    if table == "port_role" and action not in ("host_port", "guarded_port"):
        tables.add_port(_number(match["ingress_port"]))
    elif table == "ipv4_routes" and action == "to_host":
        dst = match["dst"]
        address = dst.network_address if isinstance(dst, IPv4Network) else dst
        if isinstance(address, IPv4Address):
            tables.add_host(address, _number(params["port"]))
    elif table == "second_role" and isinstance(match["src"], IPv4Network):
        tables.add_second(_number(match["ingress_port"]), match["src"])
    elif table == "path_slots":
        tables.add_slot(_number(match["list"]), _number(match["slot"]), _number(params["port"]))
    elif table == "destinations" and isinstance(match["dst"], IPv4Network):
        tables.add_destination(match["dst"], _number(params["near"]), _number(params["port"]))


def _number(value: Value) -> int:
    """The integer of a number or of a port."""
    if isinstance(value, SwitchPort):
        return value.number
    assert isinstance(value, int), f"{value!r} is no number"
    return value
