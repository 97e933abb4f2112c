# SPDX-License-Identifier: Apache-2.0
"""The NIC algorithms as compiled by mypyc: which modules these are, and where a set of them lies.

`python -m tailrace.hosts.build` makes a set for exactly the present sources; `hosts` loads it. Compiled
or not, NICs decide the same; how they ran, `summary.json` says, and `why_interpreted` before a run.

TAILRACE_HOSTS=auto|compiled|interpreted: a set if there is one (the default); a set or an error; none.
"""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from pathlib import Path
from typing import Final

from tailrace.cbuild.artifacts import PACKAGE
from tailrace.cbuild.cache import open_folder, root
from tailrace.cbuild.errors import BuildError

VARIABLE: Final = "TAILRACE_HOSTS"
AUTO: Final = "auto"
COMPILED: Final = "compiled"
INTERPRETED: Final = "interpreted"
# The shared library of a set is the module GROUP__mypyc.
GROUP: Final = "tailrace.hosts.compiled_set"
BUILD_COMMAND: Final = "python -m tailrace.hosts.build"
HOW: Final = f"make setup in a checkout, else pip install 'tailrace[compiled]' and {BUILD_COMMAND}"
"""How a user comes by a set."""

FOLDERS: Final = ("gaps", "nic", "steering", "transport")
"""What is compiled, whole: Python looks into a compiled package for its other modules in the set alone."""

_PACKAGE: Final = PACKAGE / "hosts"
_CODEC: Final = PACKAGE / "codec"
_CONSTANTS: Final = PACKAGE / "spec" / "constants.py"
_DRIVER: Final = "driver"
_DIGITS: Final = 32
_SET: Final = "hosts-"


def sources() -> list[Path]:
    """The source file of each module."""
    return sorted(path for folder in FOLDERS for path in (_PACKAGE / folder).rglob("*.py"))


def digest() -> str:
    """What a set is known by: a hash of the sources and of this Python's binary interface.

    All sources but the driver's count, those of `codec`, and `spec.constants`: compiled modules hold
    numbers and types of those they import.
    """
    hashed = hashlib.sha256()
    for part in (sys.implementation.cache_tag, sysconfig.get_config_var("EXT_SUFFIX"), GROUP):
        hashed.update(f"{part}\0".encode())
    for path in sorted([*_PACKAGE.rglob("*.py"), *_CODEC.rglob("*.py"), _CONSTANTS]):
        name = path.relative_to(PACKAGE)
        if _DRIVER not in name.parts:
            hashed.update(f"{name.as_posix()}\0".encode())
            hashed.update(path.read_bytes())
    return hashed.hexdigest()[:_DIGITS]


def folder(cache: Path) -> Path:
    """Where the set of the present sources lies if there is one; its modules lie as in the package hosts."""
    return cache / f"{_SET}{digest()}"


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
        compiled = folder(root())
        if compiled.is_dir() and open_folder(compiled.parent).is_intact(compiled.name):
            return compiled
    except BuildError as error:
        if wanted == COMPILED:
            raise ImportError(f"{VARIABLE} is {COMPILED}, but {error}") from None
        return None
    if wanted == COMPILED:
        raise ImportError(f"{VARIABLE} is {COMPILED}, but these sources are not compiled: {BUILD_COMMAND}")
    return None


def why_interpreted() -> str:
    """A line that says why NICs run interpreted, and what to do; empty: they do not, or were asked to.

    Nothing compiles them by itself, since that takes longer than most runs and more memory.
    """
    if os.environ.get(VARIABLE) == INTERPRETED or find() is not None:
        return ""
    try:
        old = next(root().glob(f"{_SET}*"), None)
    except (BuildError, OSError) as error:
        return f"NICs run interpreted, at half the speed or less: {error}"
    if old is not None:
        return f"NICs run interpreted: their sources have changed since they were compiled: {BUILD_COMMAND}"
    return f"NICs run interpreted, at half the speed or less in long runs; to compile them once: {HOW}"
