# SPDX-License-Identifier: Apache-2.0
"""Draws figures after results have been written, so that errors in drawing do not affect the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.results.results import FIGURE
from tailrace.spec.text import one_line

if TYPE_CHECKING:
    from tailrace.results.results import Results

FORMATS = ("svg", "png")


def files_of(folder: Path, name: str) -> list[Path]:
    """The files of a figure, one for each format."""
    return [folder / f"{name}.{kind}" for kind in FORMATS]


def draw_beside(files: list[Path], draw: Callable[[], object], warn: Callable[[str], None]) -> None:
    """Draws a figure of results that have been written; any error becomes a warning.

    Args:
        files: the files to draw; existing files are removed first, so that no file shows earlier results.
        draw: draws the files; it also imports matplotlib, which a user's configuration may prevent.
        warn: is called with the one-line warning.
    """
    for file in files:
        with suppress(OSError):
            file.unlink()
    try:
        draw()
    except Exception as error:  # noqa: BLE001 - matplotlib may raise anything
        warn(one_line(f"{files[0].with_suffix('')}: no figure: {type(error).__name__}: {error}"))


def draw_comparison(results: Results, folder: Path, warn: Callable[[str], None]) -> None:
    """Draws the figure of a comparison into the folder of its results; any error becomes a warning."""
    if results.results:
        files = files_of(folder, FIGURE)
        draw_beside(files, lambda: _draw(results, files), warn)


def _draw(results: Results, files: Sequence[Path]) -> None:
    # imported late, since matplotlib is slow to import
    from tailrace.report.figures.figure import draw
    from tailrace.report.figures.names import named

    draw(named(results, {}), files)
