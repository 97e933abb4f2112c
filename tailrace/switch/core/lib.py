# SPDX-License-Identifier: Apache-2.0
"""Python bindings of the C core, as tr_switch.h, tr_mem.h and tr_tracer.h declare it."""

from __future__ import annotations

import functools
from typing import Any

from tailrace.cbuild import headers
from tailrace.cbuild.artifacts import RUNTIME
from tailrace.spec.constants import PS_PER_NS
from tailrace.switch.core.build import runtime_library

ffi = headers.declared([RUNTIME / "tr_switch.h", RUNTIME / "tr_mem.h", RUNTIME / "tr_tracer.h"])
C = headers.numbers(ffi)
"""The numbers of the headers, by their names there."""

MAX_PORT: int = C.TR_MAX_PORTS - 1
"""v1model's ports are 9 bits wide."""

MAX_NS: int = C.TR_NEVER // PS_PER_NS - 1
"""The last time in ns that the core can count (213 days)."""


def fields(structure: Any) -> dict[str, int]:
    """The numbers of a structure, by name; spans in ns instead of ps."""
    return {
        name.replace("_ps", "_ns"): number // PS_PER_NS if name.endswith("_ps") else number
        for name, number in headers.fields(ffi, structure).items()
    }


@functools.cache
def load() -> Any:
    """The functions of the core."""
    return headers.bound(runtime_library(), ffi)
