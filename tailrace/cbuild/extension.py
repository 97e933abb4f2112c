# SPDX-License-Identifier: Apache-2.0
"""CPython extension modules of this package: compiled on first use and stored in the build cache."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType

from msgspec.structs import replace

from tailrace.cbuild.cc import library_recipe


def extension(
    name: str, sources: Sequence[Path], include: Sequence[Path], *, export_symbols: bool = False
) -> ModuleType:
    """Compiles C files to an extension module and imports it.

    Args:
        name: the module's name, as in its function ``PyInit_<name>``.
        include: folders for ``#include``.
        export_symbols: extensions that are loaded later can use the module's C symbols.

    Raises:
        BuildError: there is no C compiler, Python's headers are missing, or compiling failed.
    """
    python = Path(sysconfig.get_paths()["include"])
    recipe = library_recipe(name, sources, include)
    recipe = replace(
        recipe,
        # not Python's whole version: an extension runs on all releases with the same binary interface
        inputs=[*recipe.inputs, str(sysconfig.get_config_var("SOABI"))],
        include=(*include, python),
        # as usual for extensions: the assertions in Python's headers would also contain paths of this machine
        options=("-DNDEBUG",),
        python=python / "Python.h",
    )
    with recipe.opened() as (path, _):
        loader = ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        assert spec is not None
        before = sys.getdlopenflags()
        sys.setdlopenflags(os.RTLD_NOW | (os.RTLD_GLOBAL if export_symbols else 0))
        try:
            module = importlib.util.module_from_spec(spec)
        finally:
            sys.setdlopenflags(before)
        loader.exec_module(module)
    # the path is that of a descriptor that is closed now: a tool that opens the module's file (hypothesis,
    # coverage) would read another file with this descriptor, or block for ever on a pipe
    del module.__file__
    spec.origin, spec.has_location = None, False
    return module
