# SPDX-License-Identifier: Apache-2.0
"""Runs code inside another network namespace."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tailrace.hosts.errors import DeviceError

_CLONE_NEWNET = 0x40000000
_NAMED = Path("/var/run/netns")
_CURRENT = Path("/proc/thread-self/ns/net")
_LIBC = ctypes.CDLL(None, use_errno=True)


def namespace_path(netns: str | int) -> Path:
    """The path of a namespace that is given by pid, by name, or by its path."""
    if isinstance(netns, int):
        return Path(f"/proc/{netns}/ns/net")
    return Path(netns) if "/" in netns else _NAMED / netns


@contextmanager
def inside(netns: str | int | None) -> Iterator[None]:
    """Runs its block in a network namespace (None: the current one), then returns to the previous namespace.

    Raises:
        DeviceError: there is no such namespace, or it may not be entered.
    """
    if netns is None:
        yield
        return
    path = namespace_path(netns)
    current = os.open(_CURRENT, os.O_RDONLY)
    try:
        _enter(path)
        try:
            yield
        finally:
            _set_namespace(current, _CURRENT)
    finally:
        os.close(current)


def _enter(path: Path) -> None:
    try:
        other = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise DeviceError(f"network namespace {path}: {error.strerror}") from error
    try:
        _set_namespace(other, path)
    finally:
        os.close(other)


def _set_namespace(descriptor: int, path: Path) -> None:
    if _LIBC.setns(descriptor, _CLONE_NEWNET) != 0:
        raise DeviceError(f"network namespace {path}: {os.strerror(ctypes.get_errno())}")
