# SPDX-License-Identifier: Apache-2.0
"""What `tailrace results` does after its options are parsed."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UnsetType

from tailrace.cli.options import OutputFormat, View, view_of
from tailrace.cli.output import TABLES, filtered, show
from tailrace.cli.paper_command import show_claims
from tailrace.papers.model import select
from tailrace.report.paper.summary import documents_in
from tailrace.report.paper.table import claims_of, measured_of, measured_table
from tailrace.results.estimates import seed_values
from tailrace.results.table import metric_column
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.spec.text import json_text, one_line
from tailrace.study.store.find import KEYS_OF, Test, tests
from tailrace.study.store.record import Record, without_seed
from tailrace.study.store.store import Store, usual_folder
from tailrace.tables.listing import Column, Listing
from tailrace.tables.row_filter import RowFilter

CLAIMS = "claims"
_MOST_ERRORS = 20
"""The most invalid rows that are reported one by one."""

# `rank`: a narrow terminal hides the columns of the highest rank first; rank 0 is never hidden, and a rank
# below 0 is shown even without values
_KEYS = (
    Column("scheme", key=True),
    Column("topology", key=True),
    Column("workload", key=True),
    Column("faults", key=True, rank=-1),
    Column("setting", key=True, rank=6),
)
_METRICS = {"fct_mean": 0, "fct_p99": 0, "slowdown_p99": 2, "out_of_order_share": 1}
"""The metrics in the tables, each with the rank of its column."""

_MEASURED = (
    Column("flows", rank=4, show=lambda value: f"{value:,}"),
    *(metric_column(name, rank) for name, rank in _METRICS.items()),
)
COLUMNS = (
    *_KEYS,
    Column("seed", key=True),
    *_MEASURED,
    Column("cpu_s", title="CPU s", show=lambda value: f"{value:.1f}", rank=5),
    Column("memory_bytes", title="memory MiB", show=lambda value: f"{value / (1 << 20):.0f}", rank=7),
    Column("code", rank=8),
    Column("trace", rank=3, show=lambda value: value[:12]),
)
OVER_SEEDS = (*_KEYS, Column("seeds", show=lambda value: f"{value}"), *_MEASURED)
_SHOWN = {"scheme", "topology", "workload", "faults", "seed", "target"}


def show_results(args: Namespace) -> None:
    """Show the runs of a folder that pass all filters, and report each invalid row; or figures and claims.

    Args:
        args: the command line of cli.results.

    Raises:
        SpecError: an invalid filter, no folder, no such figure, or a row that is no finished run.
    """
    folder = args.store or usual_folder()
    if folder is None:
        raise SpecError("results: this is no checkout with docs/results; expected --store DIR")
    view, where = view_of(args), None if args.where is None else RowFilter(args.where)
    names = [text for text in args.filters if "=" not in text]
    if not names:
        _show_runs(tests(args.filters), folder, view, where, over_seeds=args.over_seeds)
    elif len(names) < len(args.filters) or args.over_seeds:
        raise SpecError("results: expected either figures and `claims`, or KEY=SPEC of runs")
    else:
        _show_figures(names, folder, view, where)


def _show_figures(names: Sequence[str], folder: Path, view: View, where: RowFilter | None) -> None:
    """Show the stored tables and claims of figures, or with the name CLAIMS one table of their claims."""
    wanted = [name for name in names if name != CLAIMS]
    documents = documents_in(folder, select(",".join(wanted) or "all"))
    if not documents:
        raise SpecError(f"results: {folder} has no results of {', '.join(wanted)}")
    if len(wanted) < len(names):
        show(filtered(claims_of(documents), where), view)
        return
    if view.format not in TABLES:  # one document, or one table
        show(filtered(measured_of(documents), where), view)
        return
    for document in documents:
        show(filtered(measured_table(document), where), view)
        if document.claims and where is None:
            sys.stdout.write("\n")
            show_claims(document, view)


def _show_runs(
    conditions: Sequence[Test], folder: Path, view: View, where: RowFilter | None, *, over_seeds: bool
) -> None:
    records, bad = Store(folder).every()
    chosen = [record for record in records if all(test(record) for test in conditions)]
    rows = _over_seeds(chosen) if over_seeds else [_row(record) for record in chosen]
    if view.format is OutputFormat.JSON and where is None and not over_seeds:
        sys.stdout.write(json_text(msgspec.to_builtins(chosen), indent=1) + "\n")
    else:
        nothing = f"none of {len(records)} runs in {folder} has these specs"
        if not rows and bad:
            _refuse(bad)
        columns = OVER_SEEDS if over_seeds else COLUMNS
        show(filtered(Listing("runs", columns, tuple(rows), nothing=nothing), where), view)
    _refuse(bad)


def _refuse(bad: Sequence[FileError]) -> None:
    if len(bad) == 1:
        raise bad[0]
    for error in bad[:_MOST_ERRORS]:
        sys.stderr.write(f"tailrace: {one_line(str(error))}\n")
    if bad:
        raise SpecError(f"{len(bad)} rows or files are no finished runs, and were left out")


def _settings(record: Record) -> dict[str, Any]:
    setting = (f"{KEYS_OF.get(key, key)}={value}" for key, value in record.specs.items() if key not in _SHOWN)
    return {
        "scheme": record.summary.scheme,
        "topology": record.summary.topology,
        "workload": record.summary.workload,
        "faults": " ".join(record.summary.faults),
        "setting": " ".join(setting),
    }


def _row(record: Record) -> dict[str, Any]:
    summary = record.summary
    cells = {
        **_settings(record),
        "seed": summary.seed,
        "flows": summary.flows,
        **{name: record.measured.get(name) for name in _METRICS},
        "cpu_s": summary.cpu_s,
        "memory_bytes": summary.memory_bytes,
        # `ran`: hashes of all versions of the code that gave this result, the newest last
        "code": record.ran[-1],
        "trace": summary.trace_sha256,
    }
    return {key: None if isinstance(value, UnsetType) else value for key, value in cells.items()}


def _over_seeds(records: Sequence[Record]) -> list[dict[str, Any]]:
    """One row for runs that differ in their seeds only, with the means of their metrics."""
    groups: dict[bytes, list[Record]] = {}
    for record in records:
        groups.setdefault(without_seed(record.specs), []).append(record)
    return [
        {
            **_settings(seeds[0]),
            "seeds": len(seeds),
            "flows": sum(each.summary.flows for each in seeds),
            **{
                name: values.value
                for name, values in seed_values([record.measured for record in seeds]).items()
                if name in _METRICS
            },
        }
        for seeds in groups.values()
    ]
