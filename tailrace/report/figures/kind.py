# SPDX-License-Identifier: Apache-2.0
"""What a kind of figures is. The decorator `kind` makes one from the function that draws it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from tailrace.report.figures.plot import Look
from tailrace.results.results import Results

SAMPLES, FOLLOWED, FINISHED = "samples: --sample", "followed flows: --follow", "finished flows"
"""What several kinds need."""

Draw = Callable[[Results, Look], Figure | None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of figures.

    name: of the kind, and of its files
    title: what the figure shows, as its caption
    needs: the results of which there is such a figure
    draw: draws the figure; None if these results have no such data, or if all values are 0
    of_network: whether the figure needs the network, which is built again from its spec
    of_one_run: whether the figure shows one run; a report has a figure of each group's first run
    """

    name: str
    title: str
    needs: str
    draw: Draw
    of_network: bool = False
    of_one_run: bool = False


def kind(
    title: str, needs: str, *, of_network: bool = False, of_one_run: bool = False
) -> Callable[[Draw], Kind]:
    """Makes a kind, with the name of the function that is decorated."""
    return lambda draw: Kind(draw.__name__.replace("_", "-"), title, needs, draw, of_network, of_one_run)
