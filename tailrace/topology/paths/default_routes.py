# SPDX-License-Identifier: Apache-2.0
"""One static minimal next hop from each switch to each leaf (switch with hosts): the default forwarding table
of Spritz §III-A.

In a Dragonfly, minimal next hops are the switch's links to the destination's group, or if it has none,
switches of its group that have such links (topology.paths.dragonfly: `onward`). In other networks they are
the next hops of shortest paths. Of the n next hops, sorted by port, the table has the one at index (switch
id + position of the leaf) mod n, which spreads the load without random choices. Each next hop is nearer to
the destination, so packets never loop.
"""

from __future__ import annotations

from tailrace.topology.kinds import DRAGONFLY
from tailrace.topology.model import Topology
from tailrace.topology.paths.dragonfly import MinimalRoutes
from tailrace.topology.paths.shortest import Down, next_hops


class DefaultRoutes:
    """The default tables of all switches while the links in `down` are dead."""

    def __init__(self, topology: Topology, down: Down = frozenset()) -> None:
        """Makes look-up tables; next hops are computed on demand."""
        self._topology = topology
        self._down = down
        self._ids = {switch.name: switch.id for switch in topology.switches}
        self._positions = {leaf: position for position, leaf in enumerate(topology.leaves)}
        self._routes = MinimalRoutes(topology, down) if topology.kind == DRAGONFLY else None
        self._ports: dict[str, dict[str, list[int]]] = {name: {} for name in self._ids}
        for link in topology.links:
            if (link.a, link.a_port) not in down and (link.b, link.b_port) not in down:
                self._ports[link.a].setdefault(link.b, []).append(link.a_port)
                self._ports[link.b].setdefault(link.a, []).append(link.b_port)
        self._neighbours = {name: frozenset(neighbour_ports) for name, neighbour_ports in self._ports.items()}
        self._shortest: dict[str, dict[str, tuple[int, ...]]] | None = None
        self._chosen: dict[tuple[str, str], int | None] = {}

    def minimal(self, switch: str, leaf: str) -> tuple[int, ...]:
        """All minimal next hops to another switch, sorted; empty if it is unreachable."""
        if self._routes is not None:
            return tuple(sorted(set(self._routes.towards(switch, leaf).onward)))
        ports = self._ports[switch]
        if leaf in ports:
            return tuple(sorted(ports[leaf]))
        between = self._neighbours[switch] & self._neighbours[leaf]
        if between:
            return tuple(sorted(port for name in between for port in ports[name]))
        # more than two links: in a network of diameter two only after a link failure
        if self._shortest is None:
            self._shortest = next_hops(self._topology, self._down)
        return self._shortest[switch][leaf]

    def port(self, switch: str, leaf: str) -> int | None:
        """The static next hop to another switch; None if it is unreachable."""
        key = (switch, leaf)
        if key not in self._chosen:
            ports = self.minimal(switch, leaf)
            index = self._ids[switch] + self._positions[leaf]
            self._chosen[key] = ports[index % len(ports)] if ports else None
        return self._chosen[key]


def minimal_next_hops(topology: Topology, down: Down = frozenset()) -> dict[str, dict[str, tuple[int, ...]]]:
    """For each switch and each other leaf all minimal next hops of packets from hosts, sorted.

    In a Dragonfly they are the switch's links to the destination's group, and switches of its group that have
    such links; these always forward into that group, so packets do not loop.
    """
    if topology.kind != DRAGONFLY:
        return next_hops(topology, down)
    routes = MinimalRoutes(topology, down)
    names = [switch.name for switch in topology.switches]
    return {
        name: {
            leaf: tuple(sorted(set(routes.towards(name, leaf).entering)))
            for leaf in topology.leaves
            if leaf != name
        }
        for name in names
    }
