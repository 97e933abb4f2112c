# SPDX-License-Identifier: Apache-2.0
"""Results of slow computations, kept in the cache by a hash of their inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from tailrace.cbuild.cache import open_folder
from tailrace.cbuild.errors import BuildError
from tailrace.cbuild.seals import FOOTER


def cached(kind: str, follows_from: Iterable[str], cache_dir: Path | None = None) -> bytes | None:
    """The cached result; None: there is none, or there is no cache."""
    try:
        content = open_folder(cache_dir).content(_entry(kind, follows_from))
    except BuildError:
        return None
    return None if content is None else content[:-FOOTER]


def _entry(kind: str, follows_from: Iterable[str]) -> str:
    digest = hashlib.sha256("\0".join(follows_from).encode()).hexdigest()
    return f"{kind}-{digest[:32]}"


def memoized(
    kind: str, follows_from: Iterable[str], find: Callable[[], bytes], cache_dir: Path | None = None
) -> bytes:
    """A result, from the cache if it is there; without a cache it is computed each time.

    Args:
        kind: of result, in letters and _.
        follows_from: all inputs of the computation.
        find: computes the result; its exceptions propagate.
        cache_dir: the cache; None: the user's.
    """
    entry = _entry(kind, follows_from)
    try:
        folder = open_folder(cache_dir)
        content = folder.content(entry)
    except BuildError:
        return find()
    if content is not None:
        return content[:-FOOTER]
    made = find()
    try:
        with folder.lock(entry), folder.scratch(entry) as scratch:
            path = scratch / kind
            path.write_bytes(made)
            folder.put(entry, path)
    except BuildError:
        # it is only slower the next time
        pass
    return made
