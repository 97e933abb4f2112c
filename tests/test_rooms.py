# SPDX-License-Identifier: Apache-2.0
"""The rooms of `tailrace/`: the contracts of pyproject.toml hold, no circle between folders."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import grimp
import networkx
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tailrace"

C_INCLUDES = {
    "codec/c": {"codec/c"},
    "switch/core/c": {"switch/core/c"},
    "switch/daemon/io": {"switch/daemon/io", "switch/core/c"},
    "sim/network/c": {"sim/network/c", "switch/core/c", "codec/c"},
}
"""Folders of C, and the folders whose headers their files include."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("tailrace", exclude_type_checking_imports=True, cache_dir=None)


def test_contracts() -> None:
    done = subprocess.run(
        [ROOT / ".venv/bin/lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def modules() -> dict[str, Path]:
    """Every module of the package but the Mininet harness, whose folder is no package."""
    files = [path for room in sorted(PACKAGE.iterdir()) for path in [room, *room.rglob("*.py")]]
    names = {}
    for path in files:
        parts = path.relative_to(ROOT).with_suffix("").parts
        if path.suffix == ".py" and parts[1] not in ("mininet", "p4src"):
            names[".".join(part for part in parts if part != "__init__")] = path
    return names


def test_every_module_is_in_the_graph(graph: grimp.ImportGraph) -> None:
    """A folder without `__init__.py` would not be, and no contract would hold for it."""
    assert modules().keys() - graph.modules == set()


def test_no_circle_between_folders(graph: grimp.ImportGraph) -> None:
    """Modules that import each other lie in one folder."""
    files = modules()
    imports = networkx.DiGraph(
        (name, other) for name in files for other in graph.find_modules_directly_imported_by(name)
    )
    circles = networkx.strongly_connected_components(imports)
    assert [circle for circle in circles if len({files[name].parent for name in circle}) > 1] == []


@pytest.mark.parametrize("folder", C_INCLUDES)
def test_c_includes(folder: str) -> None:
    files = {path.name for room in C_INCLUDES[folder] for path in (PACKAGE / room).glob("*.[ch]")}
    for path in (PACKAGE / folder).glob("*.[ch]"):
        included = re.findall(r'^#include "([^"]+)"', path.read_text("utf-8"), re.MULTILINE)
        assert set(included) <= files, path


def test_every_folder_of_c_is_listed() -> None:
    folders = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.c")}
    assert folders == set(C_INCLUDES)
