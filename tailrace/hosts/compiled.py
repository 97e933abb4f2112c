# SPDX-License-Identifier: Apache-2.0
"""The NIC algorithms compiled by mypyc: which modules are compiled, and where a compiled set is stored.

`python -m tailrace.hosts.build` makes a set for exactly the present sources; `hosts` loads it. A binary wheel
contains a set. Compiled and interpreted NICs behave identically. `summary.json` records whether the NICs of a
run were compiled. Before a run, `why_interpreted` returns the reason if they are not.

Values of the environment variable TAILRACE_HOSTS: auto (the default) uses a set if it exists, compiled
requires a set, interpreted uses none.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Final

from tailrace.cbuild.artifacts import PACKAGE, PREBUILT
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
"""How a user compiles a set; used at the end of messages."""

FOLDERS: Final = ("gaps", "nic", "steering", "transport")
"""Packages of which all modules are compiled; Python does not find interpreted modules of such packages."""

_PACKAGE: Final = PACKAGE / "hosts"
_CODEC: Final = PACKAGE / "codec"
_CONSTANTS: Final = PACKAGE / "spec" / "constants.py"
_DRIVER: Final = "driver"
_DIGITS: Final = 32
_SET_PREFIX: Final = "hosts-"


def sources() -> list[Path]:
    """The source file of each module that is compiled."""
    return sorted(path for folder in FOLDERS for path in (_PACKAGE / folder).rglob("*.py"))


def digest() -> str:
    """The hash that names a set. It covers the sources and this Python's binary interface.

    The sources are all of `hosts` except the driver, all of `codec`, and `spec.constants`, because compiled
    modules contain constants and types of the modules that they import.
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
    """The folder of the set for the present sources, which contains `tailrace/hosts`; it need not exist."""
    return cache / f"{_SET_PREFIX}{digest()}"


def find() -> Path | None:
    """The folder of the set to be used according to TAILRACE_HOSTS; None: the NICs run interpreted.

    Raises:
        ImportError: a set is required and there is none, or the variable is invalid.
    """
    wanted = os.environ.get(VARIABLE) or AUTO
    if wanted not in (AUTO, COMPILED, INTERPRETED):
        raise ImportError(f"{VARIABLE} is {wanted!r}, expected {AUTO}, {COMPILED} or {INTERPRETED}")
    if wanted == INTERPRETED:
        return None
    if (prebuilt := folder(PREBUILT)).is_dir():
        return prebuilt
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
    """One line: why NICs run interpreted, and what to do; empty if they do not, or if the user chose so.

    They are not compiled automatically, since compiling takes longer, and more memory, than most runs.
    """
    if os.environ.get(VARIABLE) == INTERPRETED or find() is not None:
        return ""
    try:
        old = next(root().glob(f"{_SET_PREFIX}*"), None)
    except (BuildError, OSError) as error:
        return f"NICs run interpreted, at half the speed or less: {error}"
    if old is not None:
        return f"NICs run interpreted: their sources have changed since they were compiled: {BUILD_COMMAND}"
    how = HOW if shutil.which("cc") else f"install gcc and python3-dev (Debian, Ubuntu), then {HOW}"
    return f"NICs run interpreted, at half the speed or less in long runs; to compile them once: {how}"
