# SPDX-License-Identifier: Apache-2.0
"""What a run has left: processes, interfaces, files.

Its namespaces have no names and its mounts are its own, so they end with its processes and interfaces.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

_MARK = "TAILRACE_SOAK"


@dataclass(frozen=True, slots=True)
class Before:
    """What there was: `word` is in the environment of whatever this run starts."""

    word: str
    interfaces: frozenset[str]


def _interfaces() -> frozenset[str]:
    return frozenset(name for _, name in socket.if_nameindex())


def mark() -> Before:
    """Notes what there is, and marks all that is started from now on."""
    os.environ[_MARK] = word = f"{os.getpid()}.{os.urandom(8).hex()}"
    return Before(word, _interfaces())


def left_behind(before: Before, folder: Path) -> list[str]:
    """A line for each thing that this run has left; of other runs, which come and go meanwhile, nothing."""
    word = f"{_MARK}={before.word}".encode()
    found = [f"folder {folder}"] if folder.exists() else []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            try:
                if word in (process / "environ").read_bytes().split(b"\0"):
                    found.append(f"process {process.name}")
            except OSError:
                continue
    ours = ("leaf", "spine", "h1-", "h2-", "h3-", "h4-")
    found += [f"interface {name}" for name in _interfaces() - before.interfaces if name.startswith(ours)]
    return sorted(found)
