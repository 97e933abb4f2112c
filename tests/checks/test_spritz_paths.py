# SPDX-License-Identifier: Apache-2.0
"""The comparison of our paths with a host table of Spritz's authors finds what differs, and only that."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from checks import spritz_paths
from checks.spritz_paths import graph_of, main, numbers_of
from tailrace.topology import Topology, parse_topology
from tailrace.topology.paths.bounded import BoundedPaths

SPEC = "dragonfly:p=2,a=4,h=2"
SLIM_FLY = "slim-fly:p=2,q=5"


def files(folder: Path, topology: Topology) -> tuple[Path, Path]:
    """Our own graph and paths in the authors' formats: in a Dragonfly the sender chooses up to two switches."""
    numbers = {switch.name: number for number, switch in enumerate(topology.switches)}
    lines = [f"{numbers[link.a]} {numbers[link.b]}" for link in topology.links]
    (folder / "graph.adjlist").write_text("\n".join(lines))
    paths, rows = BoundedPaths(topology), []
    for switch in topology.switches[1:]:
        rows.append(str(numbers[switch.name]))
        for path in paths.between(topology.switches[0].name, switch.name):
            first, second = [*(numbers[name] for name in path.switches[1:3]), 0][:2]
            rows.append(f"{path.local} {path.global_} {first} {second}")
    (folder / "0.lt").write_text("\n".join(rows))
    return folder / "graph.adjlist", folder / "0.lt"


def test_our_own_paths_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every path, whether a second switch is named or not."""
    graph, table = files(tmp_path, parse_topology(SPEC))
    assert main([SPEC, str(graph), str(table)]) == 0
    assert "alone" not in capsys.readouterr().out


def test_a_path_that_one_side_lacks_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing one, and one with other hops."""
    graph, table = files(tmp_path, parse_topology(SPEC))
    rows = table.read_text().splitlines()
    assert rows[:2] == ["1", "1 0 1 0"]
    table.write_text("\n".join(["1", "0 1 1 0", *rows[3:]]))
    assert main([SPEC, str(graph), str(table)]) == 1
    printed = capsys.readouterr().out
    assert "1  theirs alone, 0 local and 1 global hops" in printed
    assert "1  ours alone, 1 local and 0 global hops" in printed
    assert "1  ours alone, 2 local and 0 global hops" in printed


def test_other_numbers_of_the_same_graph(tmp_path: Path) -> None:
    """A Slim Fly whose routers are numbered otherwise within each side is recognised."""
    topology = parse_topology(SLIM_FLY)
    graph, _ = files(tmp_path, topology)
    side = len(topology.switches) // 2
    mixed = [number // side * side + number * 7 % side for number in range(2 * side)]
    renumbered = type(graph_of(graph))((mixed[a], mixed[b]) for a, b in graph_of(graph).edges)
    numbers = numbers_of(topology, renumbered)
    assert sorted(numbers.values()) == list(range(2 * side))
    assert all(renumbered.has_edge(numbers[link.a], numbers[link.b]) for link in topology.links)


def test_other_graphs_are_refused(tmp_path: Path) -> None:
    graph, table = files(tmp_path, parse_topology(SPEC))
    graph.write_text(graph.read_text().partition("\n")[2])
    with pytest.raises(SystemExit, match="the graphs are not isomorphic"):
        main([SPEC, str(graph), str(table)])


@pytest.mark.parametrize(
    ("text", "problem"),
    [("1\n1 0 1\n", "expected pairs of switches to 1"), ("1\n1 0 x 0\n", "0.lt: invalid literal")],
)
def test_a_broken_table_gets_a_line(tmp_path: Path, text: str, problem: str) -> None:
    graph, table = files(tmp_path, parse_topology(SPEC))
    table.write_text(text)
    with pytest.raises(SystemExit, match=problem):
        main([SPEC, str(graph), str(table)])


def test_a_table_that_grows_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, table = files(tmp_path, parse_topology(SPEC))
    packed = table.with_suffix(".lt.gz")
    packed.write_bytes(gzip.compress(table.read_bytes()))
    assert main([SPEC, str(graph), str(packed)]) == 0
    monkeypatch.setattr(spritz_paths, "_MOST_BYTES", 1000)
    with pytest.raises(SystemExit, match="expected at most 1000 bytes"):
        main([SPEC, str(graph), str(packed)])
