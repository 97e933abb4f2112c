# SPDX-License-Identifier: Apache-2.0
"""`tailrace paper --plan`: what figures need that is not there yet, and what that will cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tailrace.cli.options import View
from tailrace.cli.output import show
from tailrace.cli.paper_command import seeds_of
from tailrace.controller.listing.listing import Column, Listing
from tailrace.experiments.paper.harness import check_scale, prepare
from tailrace.experiments.paper.model import PaperFile, select
from tailrace.experiments.run.task import Task, finished
from tailrace.experiments.store.estimate import RECKONED, SAME, SEED, UNKNOWN, Cost, Estimator
from tailrace.experiments.store.stand import Kind, Survey, survey
from tailrace.experiments.store.store import Store, usual_folder

TOTAL = "all"
_HOUR_S = 3600

COLUMNS = (
    Column("name", key=True),
    Column("runs"),
    Column("stored", rank=2),
    Column("again", rank=1, title="to run again"),
    Column("waiting", rank=3, title="waiting for these"),
    Column("missing"),
    Column("core_hours", title="core-hours", show=lambda value: f"{value:.3g}"),
    Column("memory_gib", title="memory GiB", show=lambda value: f"{value:.2f}"),
)


def show_plan(
    wanted: str, scale: str, out: Path, folder: Path | None, view: View, *, seed: str | None = None
) -> None:
    """Show for each figure what has to be run, and what that costs; a run counts where it is first needed.

    Args:
        wanted: figures, as `tailrace paper` takes them.
        scale: small or paper.
        out: the folder of results; what is finished there is not run either.
        folder: of finished runs; None: that of this checkout.
        view: how.
        seed: seeds instead of those of the files.

    Raises:
        SpecError: no such figure, scale or seed, a file that is not as it should be, or a bad line.
    """
    check_scale(scale)
    folder = folder or usual_folder()
    store = None if folder is None else Store(folder)
    records, bad = ([], []) if store is None else store.every()
    if bad:
        raise bad[0]
    estimator, chosen = Estimator(records), select(wanted)
    rows, how, seen, sampled = [], Counter[str](), set[str](), set[Kind]()
    for name, (file, planned) in zip(chosen, prepare(chosen, scale, seeds_of(seed)), strict=True):
        tasks = {
            task.key: task
            for bar in planned
            for own in bar.tasks.values()
            for task in own
            if task.key not in seen
        }
        seen |= tasks.keys()
        if planned:
            found = _surveyed(file, list(tasks.values()), scale, store, out, sampled)
            rows.append(_row(name, len(tasks), found, estimator, how))
    listing = Listing("figures with runs", COLUMNS, (*rows, *_total(rows)), caption=_caption(estimator, how))
    show(listing, view)


def _surveyed(
    file: PaperFile, tasks: list[Task], scale: str, store: Store | None, out: Path, sampled: set[Kind]
) -> Survey:
    """What stands for the tasks, in the store or in the folder of results."""
    if store is None or file.needs_flows:
        found = Survey(missing=tasks)
    else:
        found = survey(store, tasks, file.needs(scale), sampled=sampled)
    found.missing = [task for task in found.missing if finished(task, out) is None]
    return found


def _row(name: str, runs: int, found: Survey, estimator: Estimator, how: Counter[str]) -> dict[str, Any]:
    costs = [estimator.cost(task) for task in (*found.missing, *found.again)]
    how.update(cost.how for cost in costs)
    return {
        "name": name,
        "runs": runs,
        "stored": len(found.standing),
        "again": len(found.again),
        "waiting": len(found.waiting),
        "missing": len(found.missing),
        "core_hours": _hours(costs),
        "memory_gib": max((cost.memory_bytes for cost in costs), default=0.0) / (1 << 30),
    }


def _hours(costs: list[Cost]) -> float:
    return sum(cost.cpu_s for cost in costs) / _HOUR_S


def _total(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    if len(rows) > 1:
        total = {key: sum(row[key] for row in rows) for key in rows[0] if key not in ("name", "memory_gib")}
        yield {"name": TOTAL, **total, "memory_gib": max(row["memory_gib"] for row in rows)}


def _caption(estimator: Estimator, how: Counter[str]) -> tuple[str, ...]:
    """How the costs are known."""
    told = {
        SAME: "as the same words took",
        SEED: "as another seed took",
        RECKONED: "reckoned from the hops of runs like them",
        UNKNOWN: "of unknown cost, for no run is on record",
    }
    parts = [f"{how[each]} {text}" for each, text in told.items() if how[each]]
    if not parts:
        return ()
    times = f"; CPU times of {estimator.machine}, memory of one process" if estimator.machine else ""
    return (f"costs: {', '.join(parts)}{times}",)
