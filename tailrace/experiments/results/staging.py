# SPDX-License-Identifier: Apache-2.0
"""Results appear whole or not at all: they are written beside their place and moved there by renaming."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tailrace.experiments.errors import RunError
from tailrace.experiments.results.gaps import clear_gaps
from tailrace.experiments.results.result import SUMMARY
from tailrace.experiments.results.timelines import clear_timelines
from tailrace.words import SpecError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""Errors of writing that name no file."""

_YOUNG_S = 10.0
"""What is younger may not be locked yet, or not be complete, because somebody is at it."""

_HEX = 8
"""Digits that tell temporary files and folders apart."""


@contextmanager
def staged(out: Path) -> Iterator[Path]:
    """A fresh folder whose files replace those of the same name under `out` when the block ends well.

    Whatever else lies in `out` stays, but for the timelines and gaps of a run whose summary is replaced. When
    the block raises, the folder vanishes and `out` is as it was.

    What an earlier process left there that was killed is taken away.

    Raises:
        SpecError: `out` cannot be written, or is no folder.
        RunError: the disk is full, or fails otherwise while results are written.
    """
    out = out.absolute()
    if "\0" in str(out):
        raise SpecError(f"{out}: no name that a folder can have")
    try:
        if out.exists() and not out.is_dir():
            raise SpecError(f"{out}: not a folder")
        out.parent.mkdir(parents=True, exist_ok=True)
        _sweep_up(out)
        folder, lock = _made(out)
    except OSError as error:
        raise SpecError(f"{out}: {error.strerror}") from error
    try:
        yield folder
        _publish(folder, out)
    except OSError as error:
        if not (error.errno in _FULL or str(error.filename or "").startswith(str(folder))):
            raise
        raise RunError(f"{out}: {error.strerror or error}; no results were written") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _prefix(out: Path) -> str:
    return f".{out.name}.partial-"


def _made(out: Path) -> tuple[Path, int | None]:
    """A fresh folder beside `out` with its lock, which it has had since it has its name."""
    name = secrets.token_hex(_HEX // 2)
    young = out.parent / f".{out.name}.making-{name}"
    young.mkdir()
    lock = _locked(young)
    return young.rename(out.parent / f"{_prefix(out)}{name}"), lock


def _locked(folder: Path) -> int | None:
    """A descriptor that keeps a folder locked while it is open; None where another process has it so."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened


def _sweep_up(out: Path) -> None:
    """Takes away the folders of processes that were killed: those that nobody holds locked."""
    for path in _left(out.parent, _prefix(out), 0.0) + _left(out.parent, f".{out.name}.making-", _YOUNG_S):
        lock = _locked(path)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _left(folder: Path, prefix: str, age_s: float) -> list[Path]:
    """What has such a name, and was not touched for so long."""
    name = re.compile(rf"{re.escape(prefix)}[0-9a-f]{{{_HEX}}}")
    found = []
    for path in folder.iterdir():
        with suppress(OSError):
            if name.fullmatch(path.name) and time.time() - path.lstat().st_mtime >= age_s:
                found.append(path)
    return found


def write_file(path: Path, content: str | bytes) -> None:
    """Writes a file whole or not at all, text as UTF-8; into a device or pipe, if the path is one, directly.

    What an earlier process left there that was killed is taken away.

    Raises:
        OSError: it cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        mode = path.stat().st_mode
    except OSError:
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        # who reads from a pipe must be there already
        opened = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(opened, "wb") as file:
            os.set_blocking(file.fileno(), True)
            file.write(data)
        return
    # a link stays one
    path = path.resolve()
    prefix = f".{path.name[:200]}."
    for left in _left(path.parent, prefix, _YOUNG_S):
        left.unlink(missing_ok=True)
    temporary = path.with_name(f"{prefix}{secrets.token_hex(_HEX // 2)}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _publish(folder: Path, out: Path) -> None:
    """Move every file of `folder` to `out`: one rename where `out` is new, one a file where it exists."""
    try:
        if not out.exists():
            folder.rename(out)
            return
        for summary in folder.rglob(SUMMARY):
            earlier = (out / summary.relative_to(folder)).parent
            clear_timelines(earlier)
            clear_gaps(earlier)
            # whoever is killed from here on leaves no result, rather than parts of two
            (earlier / SUMMARY).unlink(missing_ok=True)
        for source in sorted(path for path in folder.rglob("*") if path.is_file()):
            target = out / source.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
    except OSError as error:
        raise SpecError(f"{out}: {error.strerror}") from error
