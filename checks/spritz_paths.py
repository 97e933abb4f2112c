# SPDX-License-Identifier: Apache-2.0
"""Compares our enumeration of paths with a host table of Spritz's authors, path by path.

    python -m checks.spritz_paths dragonfly:p=4,a=8,h=4 dragonfly.adjlist.gz 0.lt.gz

A host table (`0.lt`) has, for each destination switch, lines of local hops, global hops, then pairs of the
first two switches on a path; the second one is 0 if default tables choose it. Switches have numbers from 0,
also in the adjacency list (`.adjlist`) of networkx. The table is that of switch 0. If switches have other
numbers than ours, an isomorphism of the graphs translates them.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections import Counter, defaultdict
from pathlib import Path

import networkx as nx

from tailrace.topology import Topology, parse_topology
from tailrace.topology.paths.bounded import BoundedPaths

Switches = tuple[int, ...]
Hops = tuple[int, int]
Table = dict[int, list[tuple[Hops, Switches]]]

_MOST_BYTES = 64 << 20


def lines_of(path: Path) -> list[list[int]]:
    """The numbers of each line of a file, compressed by gzip if its name ends in .gz.

    Raises:
        SystemExit: the file cannot be read, is larger than 64 MiB, or contains something else than numbers.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ValueError(f"expected at most {_MOST_BYTES} bytes")
        return [[int(word) for word in line.split()] for line in data.splitlines() if line.strip()]
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise SystemExit(f"spritz_paths: {path}: {error}") from error


def graph_of(path: Path) -> nx.Graph[int]:
    """The graph of an adjacency list."""
    return nx.Graph((first, other) for first, *others in lines_of(path) for other in others)


def table_of(path: Path) -> Table:
    """By destination: the hops (local, global) of each path, and the switches that the sender chooses."""
    table: Table = defaultdict(list)
    destination = -1
    for numbers in lines_of(path):
        if len(numbers) == 1:
            destination = numbers[0]
            continue
        local, global_, *switches = numbers
        if len(switches) % 2:
            raise SystemExit(f"spritz_paths: {path}: expected pairs of switches to {destination}")
        for first, second in zip(switches[::2], switches[1::2], strict=True):
            chosen = (0, first, second) if second else (0, first)
            table[destination].append(((local, global_), chosen))
    return table


def numbers_of(topology: Topology, theirs: nx.Graph[int]) -> dict[str, int]:
    """Their number of each of our switches.

    Raises:
        SystemExit: the graphs differ.
    """
    numbers = {switch.name: number for number, switch in enumerate(topology.switches)}
    ours = nx.Graph((numbers[link.a], numbers[link.b]) for link in topology.links)
    if {frozenset(edge) for edge in ours.edges} == {frozenset(edge) for edge in theirs.edges}:
        return numbers
    sides = len(topology.switches) // 2  # of a Slim Fly
    for graph in (ours, theirs):
        nx.set_node_attributes(graph, {node: node // sides for node in graph}, "side")
    numbering = nx.vf2pp_isomorphism(ours, theirs, node_label="side")
    if numbering is None:
        raise SystemExit("spritz_paths: the graphs are not isomorphic")
    return {name: numbering[number] for name, number in numbers.items()}


def compare(topology: Topology, theirs: nx.Graph[int], table: Table) -> Counter[str]:
    """Counts of paths: `both`, with the hops equal, and those of one side only, by their hops."""
    numbers = numbers_of(topology, theirs)
    names = {number: name for name, number in numbers.items()}
    paths = BoundedPaths(topology)
    counts: Counter[str] = Counter()
    for destination in sorted(set(names) - {0}):
        ours: dict[Switches, Hops] = {}
        for path in paths.between(names[0], names[destination]):
            ours[tuple(numbers[name] for name in path.switches)] = (path.local, path.global_)
        counts["ours"] += len(ours)
        for hops, chosen in table[destination]:
            counts["theirs"] += 1
            same = [
                path for path, counted in ours.items() if path[: len(chosen)] == chosen and counted == hops
            ]
            if same:
                counts["both"] += 1
                del ours[same[0]]
            else:
                counts[f"theirs alone, {hops[0]} local and {hops[1]} global hops"] += 1
        for local, global_ in ours.values():
            counts[f"ours alone, {local} local and {global_} global hops"] += 1
    return counts


def main(arguments: list[str]) -> int:
    """Prints the counts; the exit status is 1 if the paths differ."""
    if len(arguments) != 3:
        raise SystemExit("usage: python -m checks.spritz_paths TOPOLOGY ADJLIST LT")
    spec, graph, table = arguments
    counts = compare(parse_topology(spec), graph_of(Path(graph)), table_of(Path(table)))
    for name, count in counts.items():
        sys.stdout.write(f"{count:>7}  {name}\n")
    return int(counts["both"] != counts["ours"] or counts["both"] != counts["theirs"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
