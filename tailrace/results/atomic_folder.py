# SPDX-License-Identifier: Apache-2.0
"""Atomic directories of results: written beside their place and moved there by renaming."""

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
from tailrace.spec.atomic import YOUNG_S, fresh_digits, left_behind, write_file

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""Errors of writing that name no file."""


@contextmanager
def atomic_folder(out: Path) -> Iterator[Path]:
    """A new folder whose files replace those of the same name under `out` when the block succeeds.

    Whatever else lies in `out` stays, but for the files of a run whose summary is replaced, and
    links that are in the way, which are replaced and never followed. When the block raises, the folder
    vanishes and `out` is as it was.

    Remains of processes that were killed are removed.

    Raises:
        SpecError: `out` cannot be written, or is no folder.
        RunError: the disk is full, or fails otherwise while results are written.
    """
    out = out.absolute()
    check_place(out)
    try:
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


def check_place(out: Path) -> None:
    """Checks before anything runs that a folder can be written, or made.

    Raises:
        SpecError: it is no folder or below none, a link to nothing, or cannot be written.
    """
    out = out.absolute()
    if "\0" in str(out):
        raise SpecError(f"{out}: no name that a folder can have")
    try:
        place = next(place for place in (out, *out.parents) if place.exists() or place.is_symlink())
        name = "" if place == out else f"{place} is "
        if not place.exists():
            raise SpecError(f"{out}: {name}a link to what is not there; expected a folder")
        if not place.is_dir():
            raise SpecError(f"{out}: {name}not a folder")
        if not os.access(place, os.W_OK | os.X_OK):
            raise SpecError(f"{out}: {name}no folder that can be written")
    except OSError as error:
        raise SpecError(f"{out}: {error.strerror}") from error


def refuse_links(root: Path, folders: Iterable[Path]) -> None:
    """Raises SpecError where one of some folders below `root` is a link or below one: what is written there
    would lie elsewhere.
    """
    for folder in folders:
        for part in (folder, *folder.parents):
            place = root / part
            if place != root and place.is_symlink():
                raise SpecError(f"{place}: a link, expected a folder; results are not written through links")


def replace_file(path: Path, content: str | bytes) -> None:
    """Writes a file into a folder of results; a link in its place is replaced, and never followed.

    Raises:
        OSError: it cannot be written; filename is the path.
    """
    # whoever made the folder would choose what is overwritten
    if path.is_symlink():
        path.unlink()
    write_file(path, content)


def _prefix(out: Path) -> str:
    return f".{out.name}.partial-"


def _made(out: Path) -> tuple[Path, int | None]:
    """A new folder beside `out` with its lock, which it has had since it has its name."""
    name = fresh_digits()
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
    """Removes the folders of processes that were killed: those without a lock."""
    made = left_behind(out.parent, _prefix(out), 0.0)
    for path in made + left_behind(out.parent, f".{out.name}.making-", YOUNG_S):
        lock = _locked(path)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _publish(folder: Path, out: Path) -> None:
    """Move every file of `folder` to `out`: one rename where `out` is new, one a file where it exists."""
    try:
        if not out.exists():
            folder.rename(out)
            return
        for made in sorted(path for path in folder.rglob("*") if path.is_dir()):
            place = out / made.relative_to(folder)
            if place.is_symlink():
                place.unlink()
        for summary in folder.rglob(SUMMARY):
            # whoever is killed from here on leaves no result, rather than parts of two
            for name in RUN_FILES:
                (out / summary.relative_to(folder)).with_name(name).unlink(missing_ok=True)
        for source in sorted(path for path in folder.rglob("*") if path.is_file()):
            target = out / source.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
    except OSError as error:
        raise SpecError(f"{out}: {error.strerror}") from error
