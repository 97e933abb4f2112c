# SPDX-License-Identifier: Apache-2.0
"""What a run has left: processes, interfaces, namespaces, files."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

_MARK = "TAILRACE_SOAK"
_NAMESPACES = Path("/var/run/netns")


@dataclass(frozen=True, slots=True)
class Before:
    """What there was: `word` is in the environment of whatever this run starts."""

    word: str
    interfaces: frozenset[str]
    namespaces: frozenset[str]


def _interfaces() -> frozenset[str]:
    return frozenset(name for _, name in socket.if_nameindex())


def _namespaces() -> frozenset[str]:
    return frozenset(path.name for path in _NAMESPACES.iterdir()) if _NAMESPACES.exists() else frozenset()


def mark() -> Before:
    """Notes what there is, and marks all that is started from now on."""
    os.environ[_MARK] = word = f"{os.getpid()}.{os.urandom(8).hex()}"
    return Before(word, _interfaces(), _namespaces())


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
    found += [f"namespace {name}" for name in _namespaces() - before.namespaces]
    return sorted(found)
