# SPDX-License-Identifier: Apache-2.0
"""The NIC algorithms as compiled by mypyc: which modules these are, and where a set of them lies.

`python -m tailrace.hosts.build` makes a set for exactly the present sources; `hosts` loads it. Compiled
or not, NICs decide the same, so a run's result does not tell how they ran.

TAILRACE_HOSTS=auto|compiled|interpreted: a set if there is one (the default); a set or an error; none.
"""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from pathlib import Path
from typing import Final

from tailrace.toolchain.cache import open_folder, root
from tailrace.toolchain.errors import BuildError

cache_root = root

VARIABLE: Final = "TAILRACE_HOSTS"
AUTO: Final = "auto"
COMPILED: Final = "compiled"
INTERPRETED: Final = "interpreted"
# The shared library of a set is the module GROUP__mypyc.
GROUP: Final = "hosts.compiled_set"
BUILD_COMMAND: Final = "python -m tailrace.hosts.build"
MODULES: Final = (
    "tailrace.codec.calls",
    "tailrace.hosts.nic.end",
    "tailrace.hosts.steering.flowcut",
    "tailrace.hosts.nic.dependents",
    "tailrace.hosts.gaps.histogram",
    "tailrace.hosts.gaps.hf2t",
    "tailrace.hosts.nic.message",
    "tailrace.hosts.nic.nic",
    "tailrace.hosts.nic.order",
    "tailrace.hosts.transport.dcqcn.pacer",
    "tailrace.hosts.nic.pause",
    "tailrace.hosts.nic.receiver",
    "tailrace.hosts.nic.sender",
    "tailrace.hosts.gaps.spacing",
    "tailrace.hosts.steering",
    "tailrace.hosts.steering.base",
    "tailrace.hosts.steering.flicr",
    "tailrace.hosts.steering.flow_ecmp",
    "tailrace.hosts.steering.hermes",
    "tailrace.hosts.steering.hermes_paths",
    "tailrace.hosts.steering.ops",
    "tailrace.hosts.steering.assign",
    "tailrace.hosts.steering.scout",
    "tailrace.hosts.steering.spray",
    "tailrace.hosts.steering.spritz",
    "tailrace.hosts.steering.weights",
    "tailrace.hosts.nic.timers",
    "tailrace.hosts.transport",
    "tailrace.hosts.transport.base",
    "tailrace.hosts.transport.dcqcn.transport",
    "tailrace.hosts.transport.dcqcn.cnp",
    "tailrace.hosts.transport.dcqcn.rate",
    "tailrace.hosts.transport.dctcp",
    "tailrace.hosts.transport.ecn_window",
    "tailrace.hosts.transport.go_back_n",
    "tailrace.hosts.transport.mp_rdma",
    "tailrace.hosts.transport.selective_repeat",
    "tailrace.hosts.transport.tcp.transport",
    "tailrace.hosts.transport.tcp.rto",
    "tailrace.hosts.transport.tcp.scoreboard",
    "tailrace.hosts.transport.tcp.window",
)
_DRIVER: Final = "driver"
_PACKAGE: Final = Path(__file__).parent
_DIGITS: Final = 32


def sources() -> list[Path]:
    """The source file of each module."""
    paths: list[Path] = []
    for name in MODULES:
        path = _PACKAGE.joinpath(*name.split(".")[1:])
        paths.append(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
    return paths


def digest() -> str:
    """What a set is known by: a hash of the sources and of this Python's binary interface.

    All sources but the driver's count: compiled modules hold numbers and types of those they import.
    """
    hashed = hashlib.sha256()
    for part in (sys.implementation.cache_tag, sysconfig.get_config_var("EXT_SUFFIX"), GROUP):
        hashed.update(f"{part}\0".encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        name = path.relative_to(_PACKAGE)
        if name.parts[0] != _DRIVER:
            hashed.update(f"{name.as_posix()}\0".encode())
            hashed.update(path.read_bytes())
    return hashed.hexdigest()[:_DIGITS]


def folder(cache: Path) -> Path:
    """Where the set of the present sources lies if there is one; its modules lie as in the package hosts."""
    return cache / f"hosts-{digest()}"


def find() -> Path | None:
    """The set to be used, if any, by the environment.

    Raises:
        ImportError: there must be one and there is none, or the variable makes no sense.
    """
    wanted = os.environ.get(VARIABLE) or AUTO
    if wanted not in (AUTO, COMPILED, INTERPRETED):
        raise ImportError(f"{VARIABLE} is {wanted!r}, expected {AUTO}, {COMPILED} or {INTERPRETED}")
    if wanted == INTERPRETED:
        return None
    try:
        found = folder(cache_root())
        if found.is_dir() and open_folder(found.parent).sound(found.name):
            return found
    except BuildError as error:
        if wanted == COMPILED:
            raise ImportError(f"{VARIABLE} is {COMPILED}, but {error}") from None
        return None
    if wanted == COMPILED:
        raise ImportError(f"{VARIABLE} is {COMPILED}, but these sources are not compiled: {BUILD_COMMAND}")
    return None


def pinned(found: Path) -> str:
    """A path to a set that leads to what `find` has verified, whatever becomes of the cache's own path."""
    return open_folder(found.parent).place(found.name)
