# SPDX-License-Identifier: Apache-2.0
"""The runtime's shared object, and the builder that makes others which go with it."""

from __future__ import annotations

import ctypes
import functools

from tailrace.toolchain.artifacts import RUNTIME
from tailrace.toolchain.cc import BuildError, library_recipe, shared_library


@functools.cache
def runtime_library(sanitize: bool = False) -> ctypes.CDLL:
    """The runtime, loaded so that programs find its symbols."""
    sources = sorted(RUNTIME.glob("tr_*.c"))
    recipe = library_recipe("libtailrace", sources, sanitize=sanitize, link=("-lpthread",))
    return recipe.load(ctypes.RTLD_GLOBAL)


__all__ = ["RUNTIME", "BuildError", "library_recipe", "runtime_library", "shared_library"]
