# SPDX-License-Identifier: Apache-2.0
"""A disk on which there is room for small files only."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def small_files(most_bytes: int) -> Iterator[None]:
    """Within the block no file can grow beyond so many bytes: the system refuses it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
