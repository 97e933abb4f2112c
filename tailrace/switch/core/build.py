# SPDX-License-Identifier: Apache-2.0
"""The runtime: the C core as a shared object, to which compiled programs link."""

from __future__ import annotations

import ctypes
import functools

from tailrace.cbuild.artifacts import RUNTIME
from tailrace.cbuild.cc import Recipe, library_recipe
from tailrace.cbuild.errors import BuildError


@functools.cache
def runtime_library(sanitize: bool = False) -> ctypes.CDLL:
    """Loads the runtime with global symbols, so that programs loaded later can link to it."""
    return runtime_recipe(sanitize).load(ctypes.RTLD_GLOBAL)


def runtime_recipe(sanitize: bool = False) -> Recipe:
    """The recipe (cc.py) by which the runtime is compiled and loaded."""
    sources = sorted(RUNTIME.glob("tr_*.c"))
    return library_recipe("libtailrace", sources, sanitize=sanitize, link=("-lpthread",))


__all__ = [
    "RUNTIME",
    "BuildError",
    "Recipe",
    "library_recipe",
    "runtime_library",
    "runtime_recipe",
]
