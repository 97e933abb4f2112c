# SPDX-License-Identifier: Apache-2.0
"""The rooms of `tailrace/` and what each may import: arrows lead downwards, and no two folders need each other.

Imports inside functions count; those below `if TYPE_CHECKING:` do not, for nothing is loaded by them.
"""

from __future__ import annotations

import ast
import collections
import graphlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CONTROLLER = ROOT / "controller"  # tailrace/controller is a link to it

# What each room may import, lowest first; a room may always import itself.
MAY: dict[str, list[str]] = {
    "words": [],
    "toolchain": ["words"],
    "bmv2": ["words"],
    "topology": ["words"],
    "codec": ["words", "toolchain"],
    "p4rt": ["words", "toolchain"],
    "hosts": ["words", "toolchain", "codec"],
    "schemes": ["words", "topology", "codec", "p4rt", "hosts"],
    "switch.compiler": ["words", "toolchain"],
    "switch.core": ["words", "toolchain", "switch.compiler"],
    "switch.trace": ["words", "switch.compiler", "switch.core"],
    "switch.p4runtime": ["words", "toolchain", "p4rt", "switch.compiler", "switch.core", "switch.trace"],
    "switch.replay": [
        *("words", "bmv2", "p4rt"),
        *("switch.compiler", "switch.core", "switch.trace", "switch.p4runtime"),
    ],
    "switch.daemon": [
        *("words", "toolchain", "bmv2", "p4rt"),
        *("switch.compiler", "switch.core", "switch.trace", "switch.p4runtime"),
    ],
    "sim.network": [
        *("words", "toolchain", "topology", "codec", "p4rt"),
        *("switch.compiler", "switch.core", "switch.p4runtime"),
    ],
    "controller": ["words", "topology", "p4rt", "hosts", "schemes"],
    "experiments": [
        *("words", "toolchain", "bmv2", "topology", "codec", "p4rt", "hosts", "schemes", "native"),
        "controller",
    ],
    "api": ["words", "topology", "schemes", "experiments"],
    "cli": [
        *("words", "toolchain", "bmv2", "topology", "codec", "p4rt", "hosts", "schemes", "native"),
        *("controller", "experiments", "api"),
    ],
}

# Arrows that are not allowed and still there, each with its reason. What is no longer needed here fails.
EXCEPTIONS: dict[tuple[str, str], str] = {}

FILES = 22
"""Most Python modules in a folder, `__init__.py` not counted; most C files and headers in one."""

C_EXCEPTIONS = {"tailrace/switch/core/c": "the switch's core is one subsystem"}

PRODUCT = ("tailrace", "controller", "mininet", "bench", "conformance", "scripts")


def modules() -> dict[str, Path]:
    """Every module of the package by its name without `tailrace.`; a package by the folder's name."""
    found = {}
    for top, prefix in ((ROOT / "tailrace", ()), (CONTROLLER, ("controller",))):
        for path in sorted(top.rglob("*.py")):
            parts = prefix + path.relative_to(top).with_suffix("").parts
            if prefix or parts[0] != "controller":
                found[".".join(part for part in parts if part != "__init__")] = path
    return found


def loaded(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a tree but those that only type checkers see."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in {
            getattr(node.test, "id", ""),
            getattr(node.test, "attr", ""),
        }:
            for other in node.orelse:
                yield other
                yield from loaded(other)
            continue
        yield node
        yield from loaded(node)


def imports(text: str, known: Mapping[str, Path]) -> set[str]:
    """The modules that a module's text imports: of `tailrace` without that word, and our other folders."""
    found = set()
    for node in loaded(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}".removeprefix("tailrace.")
                found.add(whole if whole in known else node.module.removeprefix("tailrace."))
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("tailrace.") for alias in node.names}
    return {name for name in found if name in known or name.partition(".")[0] in PRODUCT}


def room(module: str) -> str:
    """The room that a module is in."""
    return next((name for name in MAY if (module + ".").startswith(name + ".")), module.partition(".")[0])


def forbidden(module: str, imported: str) -> bool:
    """Whether MAY has no such arrow."""
    target = room(imported)
    allowed = (room(module), *MAY.get(room(module), ()))
    return not any((target + ".").startswith(name + ".") for name in allowed)


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    known = modules()
    return {name: imports(path.read_text("utf-8"), known) for name, path in known.items()}


def test_every_module_is_in_a_room(graph: dict[str, set[str]]) -> None:
    """But the two packages that only gather rooms."""
    assert {name for name in graph if room(name) not in MAY} == {"", "native"}
    assert {room(name) for name in graph} >= set(MAY)
    assert len(graph) > 300


def test_rooms_only_import_lower_ones() -> None:
    """MAY itself has no circle, so that "lower" means something."""
    below = {
        name: {one for one in MAY for part in parts if (one + ".").startswith(part + ".")}
        for name, parts in MAY.items()
    }
    assert list(graphlib.TopologicalSorter(below).static_order())


def test_arrows(graph: dict[str, set[str]]) -> None:
    arrows = {(name, other) for name, others in graph.items() for other in others if forbidden(name, other)}
    assert sorted(arrows - set(EXCEPTIONS)) == [], "not allowed by MAY"
    assert sorted(set(EXCEPTIONS) - arrows) == [], "no longer needed: take it off the list"


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The sets of modules that need each other, each sorted."""
    left = dict(graph)
    while done := {name for name, others in left.items() if not others & left.keys()}:
        left = {name: others for name, others in left.items() if name not in done}
    return _circles(left)


def _circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The same; takes long where much is in no circle."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = graph.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        reached[start] = seen
    found = {tuple(sorted(b for b in reached[a] if b in graph and a in reached[b])) for a in graph}
    return sorted(list(each) for each in found if len(each) > 1)


def test_no_circle_between_folders(graph: dict[str, set[str]]) -> None:
    paths = modules()
    across = [each for each in circles(graph) if len({paths[name].parent for name in each}) > 1]
    assert across == []


def crowded(files: Iterable[Path]) -> set[str]:
    """The folders that hold more than FILES of them."""
    sizes = collections.Counter(path.parent.relative_to(ROOT).as_posix() for path in files)
    return {name for name, size in sizes.items() if size > FILES}


def test_folders_are_small() -> None:
    files = [path for top in PRODUCT for path in (ROOT / top).rglob("*.py")]
    assert crowded(path for path in files if path.name != "__init__.py") == set()


def test_c_folders_are_small() -> None:
    """But one."""
    assert crowded((ROOT / "tailrace").rglob("*.[ch]")) == set(C_EXCEPTIONS)


def test_the_picture_has_all_rooms_and_no_other_arrows() -> None:
    """Of docs/architecture.md."""
    text = (
        (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("```mermaid")[2].partition("```")[0]
    )
    rooms = dict(re.findall(r'^ +(\w+)\["([\w.]+): .*"\]$', text, re.MULTILINE))
    arrows = re.findall(r"^ +(\w+) -->\|.*\| (\w+)$", text, re.MULTILINE)
    assert len(rooms) + len(arrows) + 1 == len([line for line in text.splitlines() if line.strip()])
    assert set(rooms.values()) == set(MAY) - {"bmv2"}, "bmv2 has its words below the picture"
    assert [(a, b) for a, b in arrows if forbidden(rooms[a], rooms[b])] == []
    assert {end for arrow in arrows for end in arrow} == set(rooms)


# ---- the finder itself ----


def test_what_counts_as_an_import() -> None:
    known = dict.fromkeys(["a", "a.b", "c", "d.e", "f"], Path())
    text = """
from __future__ import annotations
import typing
import tailrace.c
from typing import TYPE_CHECKING
from tailrace.a import b, name
if TYPE_CHECKING:
    from tailrace.f import hidden
else:
    import checks.bench.speed
if typing.TYPE_CHECKING:
    import tailrace.f
def later():
    from tailrace.d.e import inner
"""
    assert imports(text, known) == {"a", "a.b", "c", "d.e", "bench.speed"}


def test_what_is_forbidden() -> None:
    assert forbidden("spec.units", "topology.model")
    assert forbidden("schemes.ecmp_app", "sim.network")
    assert forbidden("switch.p4runtime.service", "switch.daemon.ports")
    assert forbidden("cli.main", "bench.speed")
    assert not forbidden("cli.main", "switch.daemon.ports")
    assert not forbidden("topology.families.build", "topology.model")


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"a"}}
    assert circles(graph) == [["a", "b", "c"]]
