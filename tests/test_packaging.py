# SPDX-License-Identifier: Apache-2.0
"""What is installed: the hand-written package list matches the folders; nothing of ours poses as mininet."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Folders that are never installed. mininet/ would shadow Debian's package of that name.
NOT_PACKAGES = {"mininet", "p4src", "ptf_tests", "scripts", "tests", "requirements", "build", "dist", "out"}


def listed_packages() -> set[str]:
    """The names in the `packages` list of pyproject.toml (Python 3.10 has no TOML reader)."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    block = re.search(r"^packages = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    return set(re.findall(r'"([\w.]+)"', block.group(1)))


def packages_in_tree() -> set[str]:
    """Every folder below the root that holds Python modules of ours and may be imported."""
    tops = (d for d in ROOT.iterdir() if d.is_dir() and d.name.isidentifier() and d.name not in NOT_PACKAGES)
    files = (file.relative_to(ROOT) for top in tops for file in top.rglob("*.py"))
    return {".".join(file.parent.parts) for file in files}


def test_package_list_matches_folders() -> None:
    """Every folder with Python modules is installed, and every installed package has modules."""
    assert packages_in_tree() == {name for name in listed_packages() if any((ROOT / path(name)).glob("*.py"))}


def test_listed_packages_exist() -> None:
    """A listed package without a folder would break the build."""
    assert [name for name in sorted(listed_packages()) if not (ROOT / path(name)).is_dir()] == []


def test_mininet_is_never_a_package() -> None:
    """Neither the list nor a stray __init__.py makes our mininet/ importable."""
    assert not any(name.split(".")[0] in NOT_PACKAGES for name in listed_packages())
    assert not (ROOT / "mininet" / "__init__.py").exists()


def test_c_sources_lie_in_packages() -> None:
    """C is compiled on the user's machine, so every C file must be in a folder that is installed."""
    folders = {
        file.parent.relative_to(ROOT) for top in ("native", "bench") for file in (ROOT / top).rglob("*.[ch]")
    }
    assert {".".join(folder.parts) for folder in folders} <= listed_packages()


def path(package: str) -> Path:
    return Path(*package.split("."))
