# SPDX-License-Identifier: Apache-2.0
"""`tailrace paper`: the figures and tables of the papers, each beside the paper's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailrace.cli.complete import complete_paper, one_of
from tailrace.cli.experiment_options import Again, Cluster, StoreFolder, Workers
from tailrace.cli.options import View, with_view

DEFAULT_OUT = Path("out") / "paper"


@with_view
def paper(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="list, all, a paper (flowcut), or figures (flowcut_fig8,flowcut_fig9)",
            autocompletion=complete_paper,
        ),
    ] = "list",
    scale: Annotated[
        str,
        typer.Option(
            help="small (seconds a figure) or paper (the paper's own size)",
            autocompletion=one_of("small", "paper"),
        ),
    ] = "small",
    seed: Annotated[
        str | None,
        typer.Option(help="seeds instead of those of the papers' files, such as 1..10; rankings take three"),
    ] = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    again: Again = False,
    out: Annotated[Path, typer.Option(help="folder for the results")] = DEFAULT_OUT,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.md",
            help="also write a page of Markdown, figures beside it; into a folder: a page of each paper, and "
            "README.md about all pages there",
        ),
    ] = None,
    store: StoreFolder = None,
    *,
    view: View,
) -> None:
    """Repeat the papers' experiments: a table, a figure, and every claim with its verdict.

    Numbers of a paper are within 15 %, within a factor of 1.5, or beyond; a ranking holds where the 95 %
    interval over seeds lies on the paper's side of equality.

    What an earlier call has finished is not run again, nor what stands in a folder of finished runs (--store,
    else that of --page). `tailrace report OUT` makes one page of it all.

    tailrace paper flowcut_fig8 --scale small
    """
    from tailrace.cli.paper_command import list_papers, run_papers
    from tailrace.study.pool import Where

    if name == "list":
        list_papers(view)
    else:
        run_papers(
            name,
            scale,
            out,
            Where(workers, cluster),
            again=again,
            view=view,
            page=page,
            seed=seed,
            store=store,
        )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("paper")(paper)
