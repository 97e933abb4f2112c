# SPDX-License-Identifier: Apache-2.0
"""Values computed from a topology without simulation: the size of an endpoint's table (Spritz §III-C, Fig.
3), and the types and latencies of paths (Table I).
"""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.experiments.plan.known import topology_of
from tailrace.papers.document import Curve
from tailrace.papers.model import Panel, PaperFile
from tailrace.topology import Topology
from tailrace.topology.paths.bounded import BoundedPaths
from tailrace.topology.paths.endpoint_table import endpoint_bytes, max_list_length

MEMORY, PATHS = "memory", "paths"
"""The metrics of Fig. 3; each has a panel."""

TYPES = "all"
"""The label of the cell that contains the number of path types."""

_SOURCES = 4
"""Least number of evenly spaced switches from which paths are listed, or all switches if there are fewer. All
switches of a kind have the same types of paths, and there are at most four kinds."""

_PS_NS = 1_000

Values = dict[tuple[str, str], dict[str, float]]


def endpoint_values(file: PaperFile) -> tuple[Values, tuple[Curve, ...]]:
    """By panel and topology, the bytes of an endpoint's table and the length of its longest path list; and
    the curves of both over the number of hosts.
    """
    values: Values = {}
    curves: list[Curve] = []
    for panel in file.panel:
        hosts, counts = [], []
        for spec in panel.topologies:
            network = topology_of(spec)
            hosts.append(float(len(network.hosts)))
            counts.append({MEMORY: float(endpoint_bytes(network)), PATHS: float(max_list_length(network))})
            values[panel.name, spec] = counts[-1]
        curves += [
            Curve(metric, panel.title or panel.name, tuple(hosts), tuple(each[metric] for each in counts))
            for metric in (MEMORY, PATHS)
        ]
    return values, tuple(sorted(curves, key=lambda curve: curve.panel))


def path_values(file: PaperFile) -> Values:
    """Latencies in ns by panel and path type, such as `minimal 1+0` (category, local and global links)."""
    values: Values = {}
    for panel in file.panel:
        types = _types(panel)
        values |= {(panel.name, label): {"latency": latency_ns} for label, latency_ns in types.items()}
        values[panel.name, TYPES] = {"types": float(len(types))}
    return values


def _types(panel: Panel) -> dict[str, float]:
    """The latency in ns of each path type, sorted by category and latency."""
    longest_ps: dict[str, int] = {}
    for spec in panel.topologies:
        network = topology_of(spec)
        paths = BoundedPaths(network)
        for source in _sources(network):
            for target in network.leaves:
                for path in paths.between(source, target):
                    label = f"{path.category} {path.local}+{path.global_}"
                    # all paths of a type should have the same latency; if not, the longest is used
                    longest_ps[label] = max(path.latency_ps, longest_ps.get(label, 0))
    ordered = sorted(longest_ps.items(), key=lambda item: (item[0].partition(" ")[0], item[1]))
    return {label: latency_ps / _PS_NS for label, latency_ps in ordered}


def _sources(network: Topology) -> Iterator[str]:
    step = max(1, len(network.leaves) // _SOURCES)
    yield from network.leaves[::step]
