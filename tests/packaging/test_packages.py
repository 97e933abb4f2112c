# SPDX-License-Identifier: Apache-2.0
"""What is installed: the package `tailrace` with all its folders, and nothing that poses as mininet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from setuptools import find_packages

from tailrace.emulation import target

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = find_packages(str(ROOT), include=["tailrace*"])


def test_every_folder_with_modules_is_a_package() -> None:
    """Also those behind the link to the controller's folder at the top."""
    tops = [ROOT / "tailrace", ROOT / "tailrace" / "controller"]
    folders = {file.parent.relative_to(ROOT) for top in tops for file in top.rglob("*.py")}
    assert {".".join(folder.parts) for folder in folders} == set(PACKAGES)


def test_mininet_is_never_a_package() -> None:
    """Debian's package has that name."""
    assert not (ROOT / "mininet" / "__init__.py").exists()
    assert all(name.split(".")[0] == "tailrace" for name in PACKAGES)


def test_c_sources_lie_in_packages() -> None:
    """C is compiled on the user's machine: every C file is in a package or in a folder of one."""
    folders = {file.parent.relative_to(ROOT) for file in (ROOT / "tailrace").rglob("*.[ch]")}
    assert folders
    assert all({".".join(f.parts), ".".join(f.parent.parts)} & set(PACKAGES) for f in folders)


def test_only_mininet_is_seen_of_debian() -> None:
    """Where it is installed: its own modules import each other, no other package of Debian's comes with it."""
    if not target.MININET.is_dir():
        pytest.skip("Mininet is not installed")
    code = (
        "import sys; from tailrace.emulation.target import add_mininet_path; paths = [add_mininet_path(), add_mininet_path()];"
        "import mininet.net, mininet.cli; print(paths, mininet.__file__, *sys.path, sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    available, file, *path = done.stdout.splitlines()
    assert available == "[True, True]"
    assert Path(file).parent == target.MININET
    assert str(target.MININET.parent) not in path
