# SPDX-License-Identifier: Apache-2.0
"""A picture of a topology: layers if every link joins two neighbouring layers, else a ring of groups.

Links with faults are red. Networks with many hosts are drawn without hosts.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping

from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from tailrace.experiments.faults.parse import parse_fault
from tailrace.report import networks
from tailrace.report.figures import plot
from tailrace.report.figures.kind import kind
from tailrace.report.figures.plot import NATURAL, Look
from tailrace.results.results import Results
from tailrace.results.summary import Summary
from tailrace.sim.link_faults import LinkDown, LinkSlow
from tailrace.spec import SpecError
from tailrace.topology import Topology
from tailrace.topology.paths.shortest import has_tiers, links_to_hosts

MOST_HOSTS = 64
"""Maximum number of hosts that are drawn; more hosts would merge into a black line."""

# in the order of the legend
_ROLES = ("edge", "leaf", "router", "switch", "agg", "spine", "core")
_HOST = "host"
_FAULTY, _FAULTY_WIDTH = "#C00000", 1.8
_ROLE_COLOURS = [colour for colour in plot.COLOURS if colour != "#D55E00"]
"""Without the colour that is nearly the red of faulty links."""

_MOST_NAMES = 40
"""Maximum number of switches whose names fit into the picture."""

Position = tuple[float, float]


@kind("The network: faulty links are red", "the network's spec", of_network=True)
def network(results: Results, look: Look) -> Figure:
    """The picture of the first run's network, with the faulty links of all runs."""
    topology = networks.network(results.results[0].summary.topology)
    faulty = {pair for result in results.results for pair in _faulty(result.summary, topology)}
    return topology_figure(topology, faulty, look)


def _faulty(summary: Summary, topology: Topology) -> Iterator[frozenset[str]]:
    """The ends of the faulty links of a run; random links are drawn with the same generator as in the run."""
    for number, fault in enumerate(summary.faults):
        try:
            rng = random.Random(f"fault {number} {summary.seed}")
            link_faults = parse_fault(fault).resolve(topology, rng)
        except SpecError:
            continue
        for link_fault in link_faults:
            if isinstance(link_fault, LinkSlow | LinkDown):
                yield frozenset((link_fault.a, link_fault.b))


def topology_figure(
    topology: Topology, faulty: Iterable[frozenset[str]] = (), look: Look = NATURAL, *, named: bool = False
) -> Figure:
    """The picture of a topology; `faulty` contains the two ends of each link that has a fault; `named`:
    switches have their names beside them, and few hosts, too.
    """
    faulty_links = set(faulty)
    levels = links_to_hosts(topology)
    ring = not has_tiers(topology)
    positions = _ring(topology) if ring else _layers(topology, levels)
    with_hosts = len(topology.hosts) <= MOST_HOSTS
    if with_hosts:
        positions |= _hosts(topology, positions, ring=ring)
    ends = [frozenset((link.a, link.b)) for link in topology.links]
    if with_hosts:
        ends += [frozenset((host.name, host.switch)) for host in topology.hosts]
    size = 22 if len(topology.switches) <= 2 * MOST_HOSTS else 5
    with plot.style():
        figure, (axis,) = plot.panels(1, look, width=7.5, height=6.0 if ring else 4.2)
        link_alpha = 0.35 if len(ends) <= 4 * MOST_HOSTS else 0.08
        for is_faulty, colour, width, alpha in (
            (False, "#7A7A7A", 0.8, link_alpha),
            (True, _FAULTY, _FAULTY_WIDTH, 1.0),
        ):
            links = [pair for pair in ends if (pair in faulty_links) is is_faulty]
            lines = [[positions[name] for name in sorted(pair)] for pair in links]
            axis.add_collection(LineCollection(lines, colors=colour, linewidths=width, alpha=alpha))
        roles = {switch.name: switch.role for switch in topology.switches}
        shown = sorted({roles.get(name, _HOST) for name in positions}, key=_legend_rank)
        for number, role in enumerate(shown):
            dots = [position for name, position in positions.items() if roles.get(name, _HOST) == role]
            marker = "o" if role == _HOST else "s"
            x, y = zip(*dots, strict=True)
            axis.scatter(
                x,
                y,
                s=size,
                marker=marker,
                color=_ROLE_COLOURS[number % len(_ROLE_COLOURS)],
                zorder=3,
                label=f"{len(dots)} hosts" if role == _HOST else f"{len(dots)} {role} switches",
            )
        if named and len(topology.switches) <= _MOST_NAMES:
            for name, position in positions.items():
                axis.annotate(name, position, (4, 4), textcoords="offset points", fontsize="xx-small")
        if faulty_links:
            axis.plot([], [], color=_FAULTY, linewidth=_FAULTY_WIDTH, label="faulty link")
        axis.set_axis_off()
        axis.autoscale_view()
        plot.legend(figure, axis)
    return figure


def _legend_rank(role: str) -> int:
    return -1 if role == _HOST else _ROLES.index(role) if role in _ROLES else len(_ROLES)


def _layers(topology: Topology, levels: Mapping[str, int]) -> dict[str, Position]:
    """Positions of switches: the height is the distance from hosts in links; a layer fills the width."""
    layers = dict[int, list[str]]()
    for switch in topology.switches:
        layers.setdefault(levels[switch.name], []).append(switch.name)
    return {
        name: ((number + 0.5) / len(names), float(level))
        for level, names in layers.items()
        for number, name in enumerate(names)
    }


def _ring(topology: Topology) -> dict[str, Position]:
    """Positions of switches: groups on a circle, and the switches of each group on a smaller circle."""
    groups: dict[int, list[str]] = {}
    for switch in topology.switches:
        groups.setdefault(switch.group, []).append(switch.name)
    radius = 0.75 * math.pi / max(len(groups), 3)
    positions = {}
    for number, names in enumerate(groups.values()):
        centre = _on_circle(number, len(groups), 1.0 if len(groups) > 1 else 0.0)
        for index, name in enumerate(names):
            x, y = _on_circle(index, len(names), radius)
            positions[name] = (centre[0] + x, centre[1] + y)
    return positions


def _on_circle(number: int, count: int, radius: float) -> Position:
    angle = 2 * math.pi * number / count + math.pi / 2
    return radius * math.cos(angle), radius * math.sin(angle)


def _hosts(topology: Topology, switches: Mapping[str, Position], *, ring: bool) -> dict[str, Position]:
    """Positions of hosts, given positions of switches: in a tree below their switch, in a ring outside it."""
    positions = {}
    width = 0.8 / max(1, len(topology.leaves))
    for switch in topology.leaves:
        x, y = switches[switch]
        hosts = topology.hosts_of(switch)
        for number, host in enumerate(hosts):
            share = (number + 0.5) / len(hosts) - 0.5
            if ring:
                angle, radius = math.atan2(y, x) + 0.25 * share, math.hypot(x, y) + 0.35
                positions[host.name] = (radius * math.cos(angle), radius * math.sin(angle))
            else:
                positions[host.name] = (x + share * width, y - 0.6)
    return positions
