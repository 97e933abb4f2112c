# SPDX-License-Identifier: Apache-2.0
"""Suspends the garbage collector for work that makes many objects and no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Looks for no cycles meanwhile: each look would go through all objects that are alive."""
    looked = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looked:
            gc.enable()
