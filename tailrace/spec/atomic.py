# SPDX-License-Identifier: Apache-2.0
"""Atomic writes of files: a temporary file beside the target is renamed to it."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from contextlib import suppress
from pathlib import Path

from tailrace.spec.errors import FileError

YOUNG_S = 10.0
"""Files younger than this may not be complete or locked yet: a process may be writing them."""

_DIGITS = 8
"""Hexadecimal digits in the names of temporary files and folders."""


def fresh_digits() -> str:
    """A random suffix for a temporary file or folder."""
    return secrets.token_hex(_DIGITS // 2)


def left_behind(folder: Path, prefix: str, age_s: float) -> list[Path]:
    """Temporary files and folders with this prefix that were not modified for `age_s` seconds."""
    name = re.compile(rf"{re.escape(prefix)}[0-9a-f]{{{_DIGITS}}}")
    paths = []
    for path in folder.iterdir():
        with suppress(OSError):
            if name.fullmatch(path.name) and time.time() - path.lstat().st_mtime >= age_s:
                paths.append(path)
    return paths


def write_file(path: Path, content: str | bytes) -> None:
    """Writes a file atomically, or a device or pipe directly; text is written as UTF-8.

    Temporary files of killed processes are removed.

    Raises:
        OSError: the file cannot be written; `filename` is the path.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        _write(path, data)
    except OSError as error:
        # errors of a full disk have no filename, others have the name of the temporary file
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_output(path: Path, content: str | bytes) -> None:
    """The same as write_file, for a path that a user has given: raises FileError."""
    try:
        write_file(path, content)
    except (OSError, ValueError) as error:
        raise FileError(path, "", getattr(error, "strerror", None) or str(error)) from error


def _write(path: Path, data: bytes) -> None:
    try:
        mode = path.stat().st_mode
    except OSError:
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        # with O_NONBLOCK, opening a pipe without a reader fails instead of blocking
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "wb") as file:
            os.set_blocking(file.fileno(), True)
            file.write(data)
        return
    # a symbolic link is kept; its target is replaced
    path = path.resolve()
    prefix = f".{path.name[:200]}."
    for old in left_behind(path.parent, prefix, YOUNG_S):
        old.unlink(missing_ok=True)
    temporary = path.with_name(prefix + fresh_digits())
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
