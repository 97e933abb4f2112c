# SPDX-License-Identifier: Apache-2.0
"""`tailrace paper`: the papers' figures and tables; `tailrace results`: stored results of finished runs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from tailrace.cli.arguments import argument, command, flag
from tailrace.cli.complete import complete_paper, one_of
from tailrace.cli.experiment_options import AGAIN, CLUSTER, STORE, WORKERS
from tailrace.cli.options import view_of, view_options


@command(
    argument(
        "name",
        nargs="?",
        metavar="NAME",
        default="list",
        help="`list`, `all`, a paper such as flowcut, or figures such as flowcut_fig8,flowcut_fig9",
        complete=complete_paper,
    ),
    argument(
        "--scale",
        metavar="NAME",
        default="small",
        help="small (seconds per figure) or paper (the paper's size)",
        complete=one_of("small", "paper"),
    ),
    flag(
        "--quick", help="only PASS, WARN or FAIL for each claim: small networks, three seeds, nothing is kept"
    ),
    argument(
        "--seed",
        metavar="N",
        help="seeds such as 1..10, instead of those of the papers' files; rankings need at least three",
    ),
    *(WORKERS, CLUSTER, AGAIN),
    argument(
        "--beside",
        metavar="FOLDER",
        type=Path,
        help="for figures beside other programs: the folder of these programs and of their outputs; without "
        "it, recorded numbers",
    ),
    argument("--out", metavar="DIR", type=Path, help="folder for the results (default: out/paper)"),
    argument(
        "--page",
        metavar="FILE.md",
        type=Path,
        help="also write the results as Markdown, with figures beside it; if this is a folder: one page per "
        "paper, and README.md about all pages there",
    ),
    STORE,
    view_options("cli.paper_command"),
)
def paper(args: Namespace) -> None:
    """Repeat the papers' experiments: a table, a figure, and every claim with its verdict.

    A number is graded as within 15 % of the paper's, within a factor of 1.5, or beyond; a ranking holds if
    the 95 % interval over seeds lies on the paper's side of equality.

    Runs that an earlier call has finished are not repeated, nor runs in a folder of finished runs (--store,
    by default the folder of --page). `tailrace report OUT` makes one page of all results.

        tailrace paper flowcut_fig8 --scale small

    With --quick, PASS: a claim holds; WARN: it is undecided, or a number differs in size only; FAIL: the
    measurement contradicts it; `known FAIL`: as before. The exit status is 1 if another claim fails. Results
    are kept only with --out or --store.

        tailrace paper flowcut --quick
    """
    from tailrace.cli.paper_command import list_papers, quick_papers, run_papers

    if args.name == "list":
        list_papers(view_of(args))
    elif args.quick:
        quick_papers(args)
    else:
        run_papers(args)


@command(
    argument(
        "filters",
        nargs="*",
        metavar="KEY=SPEC|FIGURE|claims",
        help="only runs with these specs, such as scheme=flowcut topology=fat-tree:k=8 seed=1..3; or figures "
        "such as rlb_fig12, with tables and claims; or `claims`: those of all figures, or of those given",
    ),
    argument("--where", metavar="EXPR", help='only rows that match, such as "verdict ~ beyond"'),
    flag("--over-seeds", help="combine seeds: one row with the means of their metrics"),
    STORE,
    view_options("cli.results_command"),
)
def results(args: Namespace) -> None:
    """Show finished runs that are stored as rows of DIR/*.parquet, or figures and claims of the pages there.

    tailrace results scheme=flowcut topology=fat-tree:k=8
    tailrace results claims rlb --where "verdict ~ beyond" --sort-by figure

    --json shows all that is stored of runs.
    """
    from tailrace.cli.results_command import show_results

    show_results(args)
