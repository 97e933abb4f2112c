# SPDX-License-Identifier: Apache-2.0
"""Results appear whole or not at all: they are written beside their place and moved there by renaming."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.gaps import clear_gaps
from experiments.result import SUMMARY
from experiments.timeline import clear_timelines
from spec import SpecError


@contextmanager
def staged(out: Path) -> Iterator[Path]:
    """A fresh folder whose files replace those of the same name under `out` when the block ends well.

    Whatever else lies in `out` stays, but for the timelines and gaps of a run whose summary is replaced. When
    the block raises, the folder vanishes and `out` is as it was.

    Raises:
        SpecError: `out` cannot be written, or is no folder.
    """
    out = out.absolute()
    try:
        if out.exists() and not out.is_dir():
            raise SpecError(f"{out}: not a folder")
        out.parent.mkdir(parents=True, exist_ok=True)
        folder = out.parent / f".{out.name}.partial-{secrets.token_hex(4)}"
        folder.mkdir()
    except OSError as error:
        raise SpecError(f"{out}: {error.strerror}") from error
    try:
        yield folder
        _publish(folder, out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
        for source in sorted(path for path in folder.rglob("*") if path.is_file()):
            target = out / source.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
    except OSError as error:
        raise SpecError(f"{out}: {error.strerror}") from error
