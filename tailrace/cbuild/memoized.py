# SPDX-License-Identifier: Apache-2.0
"""Results of slow computations, kept in the cache by a hash of their inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from tailrace.cbuild.cache import open_folder
from tailrace.cbuild.errors import BuildError


def cached(kind: str, follows_from: Iterable[str], cache_dir: Path | None = None) -> bytes | None:
    """The cached result; None: there is none, or there is no cache."""
    return _content(_entry(kind, follows_from), cache_dir)


def _content(entry: str, cache_dir: Path | None) -> bytes | None:
    try:
        return open_folder(cache_dir).content(entry)
    except BuildError:
        return None


def _entry(kind: str, follows_from: Iterable[str]) -> str:
    digest = hashlib.sha256("\0".join((kind, *follows_from)).encode()).hexdigest()
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
    content = _content(entry, cache_dir)
    if content is not None:
        return content
    made = find()
    # without an entry it is only slower the next time
    with suppress(BuildError, OSError):
        folder = open_folder(cache_dir)
        with folder.builder(entry) as scratch:
            (scratch / kind).write_bytes(made)
            folder.put(entry, scratch / kind)
    return made
