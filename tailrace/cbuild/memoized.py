# SPDX-License-Identifier: Apache-2.0
"""Stores results of slow computations in the build cache, under a hash of their inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from tailrace.cbuild.cache import open_folder
from tailrace.cbuild.errors import BuildError


def cached(kind: str, inputs: Iterable[str], cache_dir: Path | None = None) -> bytes | None:
    """The cached result; None: it is not cached, or no cache can be used."""
    try:
        return open_folder(cache_dir).content(_entry(kind, inputs))
    except BuildError:
        return None


def _entry(kind: str, inputs: Iterable[str]) -> str:
    digest = hashlib.sha256("\0".join((kind, *inputs)).encode()).hexdigest()
    return f"{kind}-{digest[:32]}"


def memoized(
    kind: str, inputs: Iterable[str], compute: Callable[[], bytes], cache_dir: Path | None = None
) -> bytes:
    """The cached result, or a newly computed one, which is then cached if a cache can be used.

    Args:
        kind: name of this kind of result; letters and underscores.
        inputs: everything that the result depends on.
        compute: computes the result; its exceptions propagate.
        cache_dir: folder of the cache; None: `cache.root()`.
    """
    inputs = tuple(inputs)  # they are read twice
    content = cached(kind, inputs, cache_dir)
    if content is not None:
        return content
    entry, made = _entry(kind, inputs), compute()
    # a result that cannot be stored is computed again next time
    with suppress(BuildError, OSError):
        folder = open_folder(cache_dir)
        with folder.builder(entry) as scratch:
            (scratch / kind).write_bytes(made)
            folder.put(entry, scratch / kind)
    return made
