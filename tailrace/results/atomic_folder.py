# SPDX-License-Identifier: Apache-2.0
"""Atomic writing of result folders: files are written to a temporary folder, which is then renamed."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tailrace.results.result import RUN_FILES, SUMMARY
from tailrace.sim.errors import RunError
from tailrace.spec import SpecError
from tailrace.spec.atomic import YOUNG_S, fresh_digits, left_behind

_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""Errors of the disk; an OSError with such a number may have no file name."""


@contextmanager
def atomic_folder(out: Path) -> Iterator[Path]:
    """Yields a new folder; when the block succeeds, its files replace files of the same name in `out`.

    Other files in `out` stay, with two exceptions: files of a run whose summary is replaced are removed, and
    a link in place of a file or folder is replaced and never followed. If the block raises, the new folder is
    removed and `out` is unchanged.

    Temporary folders of killed processes are removed.

    Raises:
        SpecError: `out` cannot be written, or is not a folder.
        RunError: the disk is full or has another error while results are written.
    """
    out = out.absolute()
    check_place(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _remove_unlocked(out)
        folder, lock = _create(out)
    except OSError as error:
        raise SpecError(f"{out}: {error.strerror}") from error
    try:
        yield folder
        _publish(folder, out)
    except OSError as error:
        if not (error.errno in _DISK_ERRORS or str(error.filename or "").startswith(str(folder))):
            raise
        raise RunError(f"{out}: {error.strerror or error}; no results were written") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def check_place(out: Path) -> None:
    """Checks, before anything runs, that a folder can be written or created.

    Raises:
        SpecError: the folder or a parent is not a folder, is a broken link, or cannot be written.
    """
    out = out.absolute()
    if "\0" in str(out):
        raise SpecError(f"{out}: not a valid name of a folder")
    try:
        nearest = next(path for path in (out, *out.parents) if path.exists() or path.is_symlink())
        name = "" if nearest == out else f"{nearest} is "
        if not nearest.exists():
            raise SpecError(f"{out}: {name}a broken link; expected a folder")
        if not nearest.is_dir():
            raise SpecError(f"{out}: {name}not a folder")
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise SpecError(f"{out}: {name}not a writable folder")
    except OSError as error:
        raise SpecError(f"{out}: {error.strerror}") from error


def refuse_links(root: Path, folders: Iterable[Path]) -> None:
    """Raises SpecError if a folder, given relative to `root`, or a parent below `root` is a link, since files
    would be written elsewhere.
    """
    for folder in folders:
        for part in (folder, *folder.parents):
            path = root / part
            if path != root and path.is_symlink():
                raise SpecError(f"{path}: a link, expected a folder; results are not written through links")


def _prefix(out: Path) -> str:
    return f".{out.name}.partial-"


def _create(out: Path) -> tuple[Path, int | None]:
    """Creates a folder with the same parent as `out`; returns the folder and its lock.

    The folder is locked before it is renamed to the name by which other processes find and remove folders of
    killed processes.
    """
    digits = fresh_digits()
    unlocked = out.parent / f".{out.name}.making-{digits}"
    unlocked.mkdir()
    lock = _locked(unlocked)
    return unlocked.rename(out.parent / f"{_prefix(out)}{digits}"), lock


def _locked(folder: Path) -> int | None:
    """A file descriptor that locks a folder while it is open; None if another process has locked it."""
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


def _remove_unlocked(out: Path) -> None:
    """Removes the temporary folders of killed processes, that is, those that no process has locked."""
    # left_behind(folder, prefix, age): files that are at least `age` seconds old. A folder that is being made
    # is not locked yet, so only an old one is removed
    partial = left_behind(out.parent, _prefix(out), 0.0)
    for path in partial + left_behind(out.parent, f".{out.name}.making-", YOUNG_S):
        lock = _locked(path)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _publish(folder: Path, out: Path) -> None:
    """Moves every file of `folder` to `out`: by one rename if `out` is new, else by one rename per file."""
    try:
        if not out.exists():
            folder.rename(out)
            return
        for subfolder in sorted(path for path in folder.rglob("*") if path.is_dir()):
            target = out / subfolder.relative_to(folder)
            if target.is_symlink():
                target.unlink()
        for summary in folder.rglob(SUMMARY):
            # if the process is killed from here on, `out` has no result instead of parts of two results
            for pattern in RUN_FILES:
                for path in (out / summary.relative_to(folder)).parent.glob(pattern):
                    path.unlink(missing_ok=True)
        for source in sorted(path for path in folder.rglob("*") if path.is_file()):
            target = out / source.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
    except OSError as error:
        raise SpecError(f"{out}: {error.strerror}") from error
