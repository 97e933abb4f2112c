# SPDX-License-Identifier: Apache-2.0
"""Texts that follow from others and take long to find: found once and kept in the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from tailrace.toolchain.cache import open_folder
from tailrace.toolchain.errors import BuildError
from tailrace.toolchain.seals import FOOTER


def remembered(kind: str, follows_from: Iterable[str], find: Callable[[], str]) -> str:
    """A text, of the cache if it is there; without a cache it is found each time.

    Args:
        kind: letters and _, what it is.
        follows_from: all that decides what it says.
        find: makes it; what it raises is raised.
    """
    whole = hashlib.sha256("\0".join(follows_from).encode()).hexdigest()
    entry = f"{kind}-{whole[:32]}"
    try:
        folder = open_folder()
        content = folder.content(entry)
    except BuildError:
        return find()
    if content is not None:
        return content[:-FOOTER].decode()
    text = find()
    try:
        with folder.lock(entry), folder.scratch(entry) as scratch:
            made = scratch / kind
            made.write_text(text)
            folder.put(entry, made)
    except BuildError:
        # it is only slower the next time
        pass
    return text
