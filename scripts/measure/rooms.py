# SPDX-License-Identifier: Apache-2.0
"""The source files of the product, and the room (component) that each belongs to (rooms.toml)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = (".py", ".c", ".h", ".js", ".ts")
TESTS = ("tests/", "ptf_tests/")

_ROOMS = msgspec.toml.decode((Path(__file__).parent / "rooms.toml").read_bytes(), type=dict[str, list[str]])
_PREFIXES = {prefix: room for room, prefixes in _ROOMS.items() for prefix in prefixes}


def room_of(path: str) -> str:
    """The room of a path below the root, such as `tailrace/topology/model.py`.

    Raises KeyError if no prefix in rooms.toml fits.
    """
    return _PREFIXES[max((prefix for prefix in _PREFIXES if path.startswith(prefix)), key=len, default=path)]


def tracked(*suffixes: str) -> list[str]:
    """The paths below the root of all files in git with one of the suffixes; links are left out."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    paths = [path for path in listing.decode().split("\0") if path.endswith(suffixes)]
    return [path for path in paths if (ROOT / path).is_file() and not (ROOT / path).is_symlink()]


def product() -> list[str]:
    """The paths of all source files outside the tests."""
    return [path for path in tracked(*SUFFIXES) if not path.startswith(TESTS)]


def text_of(path: str) -> str:
    """A file's text."""
    return (ROOT / path).read_text(encoding="utf-8")
