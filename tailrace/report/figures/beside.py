# SPDX-License-Identifier: Apache-2.0
"""Figures beside results that are there already: one that cannot be drawn costs none of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.results.results import FIGURE
from tailrace.spec.text import one_line

if TYPE_CHECKING:
    from tailrace.results.result import Result

FORMATS = ("svg", "png")


def files_of(folder: Path, name: str) -> list[Path]:
    """The files of a figure, one a format."""
    return [folder / f"{name}.{kind}" for kind in FORMATS]


def draw_beside(files: list[Path], draw: Callable[[], object], warn: Callable[[str], None]) -> None:
    """Draws a figure whose results are written; whatever goes wrong is told in a line.

    Args:
        files: what is drawn; those of earlier results are taken away, which would be taken for these.
        draw: imports matplotlib, too, which a user's configuration can keep from being imported.
        warn: takes the line.
    """
    for file in files:
        with suppress(OSError):
            file.unlink()
    try:
        draw()
    except Exception as error:  # noqa: BLE001 - whatever a library that draws may raise
        warn(one_line(f"{files[0].with_suffix('')}: no figure: {type(error).__name__}: {error}"))


def draw_comparison(results: Sequence[Result], folder: Path, warn: Callable[[str], None]) -> None:
    """Draws the figure of a comparison into the folder of its results; a warning where it cannot."""
    if results:
        files = files_of(folder, FIGURE)
        draw_beside(files, lambda: _draw(results, files), warn)


def _draw(results: Sequence[Result], files: Sequence[Path]) -> None:
    from tailrace.report.figures.figure import draw  # only who draws waits for matplotlib

    draw(results, files)
