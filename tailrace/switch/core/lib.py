# SPDX-License-Identifier: Apache-2.0
"""Python bindings of the C core, made from the declarations in tr_switch.h, tr_mem.h and tr_tracer.h."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from tailrace.cbuild import headers
from tailrace.cbuild.artifacts import RUNTIME
from tailrace.cbuild.cc import Recipe, library_recipe
from tailrace.spec.constants import PS_PER_NS

ffi = headers.declared([RUNTIME / "tr_switch.h", RUNTIME / "tr_mem.h", RUNTIME / "tr_tracer.h"])
C = headers.numbers(ffi)
"""The constants of the headers, as attributes."""

MAX_PORT: int = C.TR_MAX_PORTS - 1
"""Largest port number: v1model's port numbers have 9 bits."""

MAX_NS: int = C.TR_NEVER // PS_PER_NS - 1
"""The largest time in ns that the core can represent (213 days)."""


def fields(structure: Any) -> dict[str, int]:
    """The members of a C structure by name; members in ps are converted to ns and renamed (``_ns``)."""
    return {
        name.replace("_ps", "_ns"): number // PS_PER_NS if name.endswith("_ps") else number
        for name, number in headers.fields(ffi, structure).items()
    }


def runtime_recipe(sanitize: bool = False) -> Recipe:
    """The recipe (cc.py) by which the core is compiled and loaded, as a shared object."""
    sources = sorted(RUNTIME.glob("tr_*.c"))
    return library_recipe("libtailrace", sources, sanitize=sanitize, link=("-lpthread",))


@functools.cache
def runtime_library(sanitize: bool = False) -> ctypes.CDLL:
    """Loads the core with global symbols, so that compiled programs loaded later can link to it."""
    return runtime_recipe(sanitize).load(ctypes.RTLD_GLOBAL)


@functools.cache
def load() -> Any:
    """The functions of the core; compiles the core if it is not in the build cache."""
    return headers.bound(runtime_library(), ffi)
