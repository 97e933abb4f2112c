# SPDX-License-Identifier: Apache-2.0
"""A hash of the code that decides what a run gives: NICs, native switch, networks, controller, workloads.

The version alone does not tell apart two states of a checkout that is being worked on.
"""

from __future__ import annotations

import functools
import hashlib

from tailrace.toolchain.artifacts import PACKAGE

_SHOWN = ("api", "cli", "experiments/figures", "experiments/paper", "experiments/report")
"""What only shows results, or asks for them in words."""

_SUFFIXES = (".py", ".c", ".h")


@functools.cache
def code_sha256() -> str:
    """64 hexadecimal digits; a change of any of these sources changes them."""
    digest = hashlib.sha256()
    # each room by itself: some are links, which a search does not follow
    for room in sorted(path for path in PACKAGE.iterdir() if path.name != "__pycache__"):
        for path in [room] if room.is_file() else sorted(room.rglob("*")):
            name = path.relative_to(PACKAGE).as_posix()
            if path.suffix in _SUFFIXES and not name.startswith(_SHOWN):
                digest.update(f"{name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
