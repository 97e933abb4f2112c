# SPDX-License-Identifier: Apache-2.0
"""The benchmarks' C code (bench.h), built against the native switch's C core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tailrace.cbuild import headers
from tailrace.cbuild.artifacts import RUNTIME
from tailrace.cbuild.cc import library_recipe
from tailrace.switch.core import lib

_HERE = Path(__file__).resolve().parent

ffi = headers.declared([_HERE / "bench.h"], lib.ffi)


def load(source: str) -> Any:
    """The functions of a C file.

    Raises:
        BuildError: there is no C compiler, or no folder for its output.
    """
    lib.load()  # makes the core's symbols global, for the benchmarks' code
    recipe = library_recipe("libtailrace_bench", [_HERE / source], [_HERE, RUNTIME])
    return headers.bound(recipe.load(), ffi)
