# SPDX-License-Identifier: Apache-2.0
"""The C part of the virtual network: a CPython extension, compiled on first use and kept in the cache."""

from __future__ import annotations

import functools
import importlib.util
import sys
import sysconfig
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType

from tailrace.native.runtime import lib
from tailrace.toolchain.artifacts import RUNTIME, VIRTUAL
from tailrace.toolchain.cc import BuildError, Recipe, files_digest

_NAME = "tailrace_virtual"


@functools.cache
def extension() -> ModuleType:
    """The extension module.

    Raises:
        BuildError: there is no C compiler, or Python's headers are missing.
    """
    # its symbols must be there before the extension is loaded
    lib.load()
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").exists():
        raise BuildError(f"no {include / 'Python.h'} (Debian, Ubuntu: install python3-dev)")
    sources = sorted(VIRTUAL.glob("tv_*.c"))
    inputs: list[bytes | str] = [path.name + "\0" + path.read_text() for path in sources]
    inputs += [files_digest(folder, "*.h") for folder in (RUNTIME, VIRTUAL)]
    inputs += [sys.version, str(sysconfig.get_config_var("SOABI"))]
    return Recipe(_NAME, inputs, lambda: sources, (RUNTIME, VIRTUAL, include)).use(_import, ImportError)


def _import(path: str) -> ModuleType:
    loader = ExtensionFileLoader(_NAME, path)
    spec = importlib.util.spec_from_file_location(_NAME, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
