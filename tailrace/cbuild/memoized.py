# SPDX-License-Identifier: Apache-2.0
"""What follows from something else and takes long to find: found once and kept in the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from tailrace.cbuild.cache import open_folder
from tailrace.cbuild.errors import BuildError
from tailrace.cbuild.seals import FOOTER


def cached(kind: str, follows_from: Iterable[str], cache_dir: Path | None = None) -> bytes | None:
    """The same bytes where they were found before; None: they were not, or there is no cache."""
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
    """Some bytes, of the cache if they are there; without a cache they are found each time.

    Args:
        kind: letters and _, what it is.
        follows_from: all that decides what they are.
        find: makes them; what it raises is raised.
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
