# SPDX-License-Identifier: Apache-2.0
"""Work that makes very many objects and no cycles among them."""

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
