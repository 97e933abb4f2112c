# SPDX-License-Identifier: Apache-2.0
"""Reads files that a user names: regular ones of a bounded size, and nothing that could block."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

MOST_BYTES = 256 << 20
"""Of a file of results or of a workload."""

MOST_TEXT_BYTES = 64 << 20
"""Of a file that people write, such as an experiment or a topology."""


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """What a regular file holds.

    Raises:
        OSError: it cannot be read, is a folder, a pipe or a device, or is larger than `most` bytes; strerror
            says which.
    """
    name = str(path)
    try:
        # a pipe without a writer must not hold us up before it is known to be one
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:
        raise OSError(errno.EINVAL, "no name that a file can have", name) from None
    mode = os.fstat(opened).st_mode
    if not stat.S_ISREG(mode):
        os.close(opened)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        raise OSError(errno.EINVAL, "no regular file", name)
    with os.fdopen(opened, "rb") as file:
        # one byte more than allowed tells: sizes that the kernel states need not be true, as in /proc
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MiB", name)
    return data


def read_text(path: Path, most: int = MOST_TEXT_BYTES) -> str:
    """The UTF-8 text in a regular file, lines ending as they do there.

    Raises:
        OSError: see read_bytes.
        UnicodeDecodeError: it is no such text.
    """
    return read_bytes(path, most).decode()


def json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object from its keys and values, as an `object_pairs_hook`.

    Raises:
        ValueError: a key stands twice; of two values one would be lost.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {json.dumps(key[:64])} stands twice in an object")
            seen.add(key)
    return found
