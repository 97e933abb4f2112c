# SPDX-License-Identifier: Apache-2.0
"""Runs, comparisons and sweeps from Python; `tailrace run`, `compare` and `sweep` call these functions.

They print only to `progress`, and set no signal handlers: Ctrl-C raises KeyboardInterrupt after everything
was cleaned up. They may be called from any thread, and while an event loop runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from msgspec import structs

from tailrace.api.experiment import Base, Keys, as_spec, experiment
from tailrace.api.stops import parse_stops
from tailrace.experiments.plan.axes import make_axis
from tailrace.experiments.plan.command import compare_command, run_command
from tailrace.experiments.plan.defaults import PRESET
from tailrace.experiments.plan.experiment import Experiment
from tailrace.experiments.plan.experiment_file import check_label, schemes_of
from tailrace.experiments.plan.plan import Plan, on_target, plan
from tailrace.experiments.plan.spec_list import labels
from tailrace.results.atomic_folder import atomic_folder
from tailrace.results.result import Result, write_result
from tailrace.results.results import ITSELF, LeftOut, Results, clear, set_aside
from tailrace.sim.mpi import World
from tailrace.sim.outcome import Backend
from tailrace.sim.run import Breakpoints, Condition, VirtualBackend
from tailrace.spec import SpecError
from tailrace.spec.units import format_time
from tailrace.study.grid import Grid, run_grid
from tailrace.study.grids import comparison_grid, plans, sweep_grid
from tailrace.study.pool import PCAP, OnResult, Where
from tailrace.study.prepare import choose_target, report_nics, report_runs, report_scale, report_transports
from tailrace.study.progress import Display
from tailrace.study.store.reuse import store_writer
from tailrace.study.store.store import Store
from tailrace.study.task import backend_of, key_of
from tailrace.study.task import run as run_plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from typing_extensions import Unpack

    from tailrace.schemes.base import SchemeConfig
    from tailrace.sim.network.ranks import RankTransport
    from tailrace.sim.run import PausedRun

Folder = str | os.PathLike[str]


def run(
    base: Base = None,
    /,
    *,
    scale: str | None = None,
    out: Folder | None = None,
    pcap: bool = False,
    ranks: int | RankTransport = 1,
    stop_at: Sequence[str] = (),
    at_stop: Callable[[PausedRun], None] | None = None,
    progress: bool | IO[str] = False,
    **keys: Unpack[Keys],
) -> Result:
    """Run one experiment, with one seed; `repeat` runs it with several.

    A run in which flows did not finish gives a result, too: see `complete` and `problems`.

    Args:
        base: the experiment that the keys change: an Experiment, a TOML file, or a preset such as `basic`.
        scale: `small` or `paper`: a size that the file defines.
        out: a folder for summary.json and flows.parquet; without it nothing is written.
        pcap: whether every link is captured, to `pcap` in that folder.
        ranks: number of processes that share the network, each with a part of it, in virtual time; the result
            is the same. Or, if all ranks call this function, their transport (such as MPI): then only the
            first rank writes, and each gets the result.
        stop_at: virtual times, such as `20us`, at which the run pauses; they are multiplied by `time_scale`.
            Or conditions such as `queue>100KB` or `drain`: the run pauses when each first holds.
        at_stop: called at each pause with a PausedRun; with several ranks its `network` is the part of the
            first rank. Until it returns, the other switches serve P4Runtime at `remote_addresses`.
        progress: where progress is shown: True for standard error, False for nowhere, or a file.
        keys: see Keys.

    Raises:
        SpecError: an invalid key, value or file, or a target that does not support them.
        RunError: the run failed.
    """
    first = isinstance(ranks, int) or ranks.rank == 0
    display = _display(progress if first else False)
    chosen = experiment(base, scale=scale, **keys)
    target = choose_target(chosen.target, display)
    planned = plan(chosen, target)
    if isinstance(ranks, World):
        # raises an error unless all ranks have the same experiment and code
        ranks.agree(key_of(structs.replace(chosen, target=target)))
    stops_ns, conditions = _stops(stop_at, planned)
    report_scale(planned, display)
    label = labels([chosen.scheme])[0]
    report_transports(chosen, [(label, planned)], display)
    backend: Backend = backend_of(target)
    if stop_at and not isinstance(ranks, int):
        raise SpecError("--stop-at: only ranks that this process has started can pause")
    if target == "virtual":
        stops = None if not stop_at or at_stop is None else Breakpoints(stops_ns, at_stop, conditions)
        backend = VirtualBackend(breakpoints=stops, ranks=ranks)
    elif ranks != 1:
        raise SpecError(f"ranks: target {target} does not support them; use the target virtual")
    with nullcontext() if out is None or not first else atomic_folder(Path(out)) as folder:
        # other ranks have no folder, and write no captures
        captures = _captures(folder if first else Path(), pcap)
        with display.run(label) as report:
            result = run_plan(planned, backend, report, label=label, pcap_dir=captures)
        if folder is not None:
            write_result(result, folder)
            set_aside(Path(out or ""), {(ITSELF, result.summary.option_string)}, display.say)
            clear(Path(out or ""))
    for time_ns in stops_ns:
        if time_ns > (result.summary.virtual_ns or 0):
            display.warn(f"the run ended before it could stop at {format_time(time_ns)}")
    return result


def _stops(texts: Any, planned: Plan) -> tuple[tuple[int, ...], tuple[Condition, ...]]:
    """The virtual times at which a run pauses, multiplied by its time scale, and the conditions."""
    is_list = isinstance(texts, Sequence) and not isinstance(texts, str)
    if not is_list or not all(isinstance(text, str) for text in texts):
        raise SpecError(f"--stop-at: expected a list of times such as 20us, found {texts!r}")
    if texts and planned.target != "virtual":
        raise SpecError("--stop-at needs target virtual")
    times_ns, conditions = parse_stops(texts)
    return tuple(round(time_ns * planned.job.time_scale) for time_ns in times_ns), tuple(conditions)


def compare(
    base: Base = None,
    /,
    schemes: Sequence[str | SchemeConfig] | Mapping[str, str | SchemeConfig] | None = None,
    *,
    scale: str | None = None,
    out: Folder | None = None,
    pcap: bool = False,
    workers: int = 1,
    again: bool = False,
    progress: bool | IO[str] = False,
    **keys: Unpack[Keys],
) -> Results:
    """Run several schemes on the same traffic; if there are faults, once without and once with them.

    The traffic is the same by construction: flows and faults are drawn from the seed, the workload and the
    network, independently of the scheme. With several seeds (`seed="1..10"`) every scheme runs with each, the
    table has means with 95 % intervals, and ratios are formed of pairs of runs with the same seed.

    A run that fails does not prevent others: see `complete` and `failed`. A scheme that
    requires a transport uses this transport. `left_out` lists the schemes that cannot run on the network.

    Args:
        base: the experiment, except for the scheme: an Experiment, a TOML file, or a preset such as `basic`.
        schemes: a list of schemes, or schemes by label (else labels are made from the specs); ratios are to
            the first. None: those of the file, or of the preset `basic`.
        scale: `small` or `paper`: a size that the file defines.
        out: a folder for results.json, the figure, and a folder for each run; in virtual time, runs that an
            earlier call has finished there are not repeated.
        pcap: whether every link is captured, to `pcap` in that folder; with one worker only.
        workers: number of parallel processes, in virtual time.
        again: whether to repeat runs that an earlier call has finished.
        progress: where progress is shown: True for standard error, False for nowhere, or a file.
        keys: see Keys.

    Raises:
        SpecError: an invalid key, value or file, a target that does not support them, or no scheme that can
            run on the network.
    """
    display = _display(progress)
    _check_workers(workers)
    named = _named(base, schemes, scale)
    # the keys need a scheme if the base has none
    if schemes is not None or base is None or isinstance(base, Experiment):
        keys["scheme"] = next(iter(named.values()))
    chosen = experiment(base, scale=scale, **keys)
    target = choose_target(chosen.target, display)
    chosen = on_target(structs.replace(chosen, target=target), target)
    left_out: list[LeftOut] = []
    planned = plans(chosen, tuple(named.values()), target, tuple(named), left_out)
    for each in left_out:
        display.warn(str(each))
    report_scale(planned[0][1], display, len(planned) * len(chosen.seeds))
    report_runs(planned, chosen.seeds, display)
    report_transports(chosen, planned, display)
    compared = list(dict.fromkeys(label for label, _ in planned))
    grid = comparison_grid(
        planned,
        chosen.seeds,
        first=compared[0] if len(compared) > 1 else "",
        left_out=left_out,
        command=compare_command(chosen, tuple(named.values())),
    )
    return _run(grid, out, Where(workers), display, again=again, pcap=pcap)


def repeat(
    base: Base = None,
    /,
    *,
    scale: str | None = None,
    out: Folder | None = None,
    pcap: bool = False,
    workers: int = 1,
    again: bool = False,
    progress: bool | IO[str] = False,
    **keys: Unpack[Keys],
) -> Results:
    """Run one experiment with each of its seeds: a comparison of one scheme, with its faults, if any.

    Args:
        base: the experiment that the keys change: an Experiment, a TOML file, or a preset such as `basic`.
        scale: `small` or `paper`: a size that the file defines.
        out: a folder for results.json, the figure, and a folder for each seed; in virtual time, runs that an
            earlier call has finished there are not repeated.
        pcap: whether every link is captured, to `pcap` in that folder; with one worker only.
        workers: number of parallel processes, in virtual time.
        again: whether to repeat runs that an earlier call has finished.
        progress: where progress is shown: True for standard error, False for nowhere, or a file.
        keys: see Keys; `seed` such as `1..10`.

    Raises:
        SpecError: an invalid key, value or file, or a target that does not support them.
    """
    display = _display(progress)
    _check_workers(workers)
    chosen = experiment(base, scale=scale, **keys)
    target = choose_target(chosen.target, display)
    chosen = on_target(structs.replace(chosen, target=target), target)
    planned = [(labels([chosen.scheme])[0], plan(chosen.each_seed()[0], target))]
    report_scale(planned[0][1], display, len(chosen.seeds))
    report_runs(planned, chosen.seeds, display)
    report_transports(chosen, planned, display)
    grid = comparison_grid(planned, chosen.seeds, command=run_command(chosen))
    return _run(grid, out, Where(workers), display, again=again, pcap=pcap)


def _run(
    grid: Grid,
    out: Folder | None,
    where: Where,
    display: Display,
    *,
    again: bool,
    pcap: bool = False,
    on_result: OnResult | None = None,
    drawn: bool = True,
) -> Results:
    """Runs a grid (all runs of a comparison or sweep), and writes the results and a figure to `out`."""
    folder = None if out is None else Path(out)
    done = run_grid(grid, folder, where, display, again=again, pcap=pcap, on_result=on_result)
    if folder is not None and drawn and done.results:
        # imported late, as what only some commands need
        from tailrace.report.figures.beside import draw_comparison

        display.say("drawing the figure ...")
        draw_comparison(done, folder, display.warn)
    return done


def _named(
    base: Base, schemes: Sequence[Any] | Mapping[str, Any] | None, scale: str | None
) -> dict[str, str]:
    """The specs of the schemes to compare, by label."""
    if schemes is None:
        file = None if base is None or isinstance(base, Experiment) else Path(base)
        schemes = schemes_of(file, scale) or schemes_of(Path(PRESET))
    if isinstance(schemes, Mapping):
        for label in schemes:
            check_label(label)
        return {label: as_spec("scheme", scheme) for label, scheme in schemes.items()}
    if isinstance(schemes, str) or not schemes:
        raise SpecError(f"schemes: expected a list of schemes, found {schemes!r}")
    specs = [as_spec("scheme", scheme) for scheme in schemes]
    for spec in specs:
        if specs.count(spec) > 1:
            raise SpecError(f"schemes: {spec!r} is given twice")
    return dict(zip(labels(specs), specs, strict=True))


def sweep(
    base: Base = None,
    /,
    axes: Mapping[str, Iterable[Any]] | None = None,
    *,
    scale: str | None = None,
    out: Folder | None = None,
    workers: int = 1,
    cluster: str | None = None,
    again: bool = False,
    store: Folder | None = None,
    progress: bool | IO[str] = False,
    **keys: Unpack[Keys],
) -> Results:
    """Run an experiment once for every combination of some keys' values.

    With several seeds (`seed="1..10"`) each combination runs with every seed, and the table has means with
    95 % intervals; an axis `seed` gives a row for each seed instead.

    A run that fails does not prevent others: see `complete` and `failed`.

    Args:
        base: the experiment that the axes change: an Experiment, a TOML file, or a preset such as `basic`.
        axes: values by key, or by an option of a key's spec, such as `scheme.rtt` or `workload.load`; the
            last axis varies fastest.
        scale: `small` or `paper`: a size that the file defines.
        out: a folder for results.json and a folder for each run; runs that an earlier call has finished there
            are not repeated.
        workers: number of parallel processes, in virtual time.
        cluster: address of the scheduler of a Dask cluster, which executes the runs instead.
        again: whether to repeat runs that an earlier call has finished.
        store: a folder of finished runs, to which each run in virtual time is added as a row.
        progress: where progress is shown: True for standard error, False for nowhere, or a file.
        keys: see Keys.

    Raises:
        SpecError: an invalid key, value or file, or a cluster that cannot be reached.
        RunError: the cluster has lost all its workers.
    """
    display = _display(progress)
    _check_workers(workers)
    if not axes:
        raise SpecError("sweep: expected axes such as {'seed': range(1, 6)}")
    parsed = [make_axis(key, (_text(key, value) for value in values)) for key, values in axes.items()]
    first = next((axis.values[0] for axis in parsed if axis.key == "scheme"), None)
    if base is None and "scheme" not in keys and first is not None:
        keys["scheme"] = first
    chosen = experiment(base, scale=scale, **keys)
    target = choose_target(chosen.target, display)
    report_nics(target, display)
    grid = sweep_grid(structs.replace(chosen, target=target), parsed, target)
    on_result = None
    if store is not None:
        finished = Store(Path(store))
        for scheme in {task.experiment.scheme.partition(":")[0] for task in grid.tasks}:
            finished.of(scheme)  # reports an invalid store before anything runs
        on_result = store_writer(finished, display)
    where = Where(workers, cluster)
    return _run(grid, out, where, display, again=again, on_result=on_result, drawn=False)


def figure(
    of: Result | Results,
    kind: str = "comparison",
    *,
    width: str | None = None,
    height: str | None = None,
    log: bool | None = None,
    labels: Mapping[str, str] | None = None,
) -> Figure:
    """A matplotlib figure of runs; `figure(…).savefig("cdf.pdf")` writes it.

    Args:
        of: a run, or the results of several.
        kind: what the figure shows, as in `tailrace plot`; `comparison` has completion times of the flows,
            the share of packets out of order and, in lossless networks, pauses.
        width: of the figure, such as `3.3in`, `8.4cm` or `84mm`; None: from the number of panels.
        height: None: from the width.
        log: whether axes of values are logarithmic; None: where values span more than a decade and a half.
        labels: names of schemes by their labels in tables, such as `{"rlb": "RLB*"}`.

    Raises:
        SpecError: an invalid argument, or results that have no such data.
    """
    # imported only where it is needed: matplotlib loads slowly
    from tailrace.report.collect import as_results
    from tailrace.report.figures.plot import Look, parse_inches
    from tailrace.report.kinds import draw

    wide, high = (None if text is None else parse_inches(text) for text in (width, height))
    results = as_results(of) if isinstance(of, Result) else of
    return draw(results, kind, Look(wide, high, log), labels or {})


def _text(key: str, value: Any) -> str:
    """A value of an axis in the form of specs."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(as_spec(key, value))


def _display(progress: Any) -> Display:
    """The display of progress: on standard error, in a file, or none."""
    if isinstance(progress, bool):
        return Display(sys.stderr if progress else None)
    if progress is not None and not hasattr(progress, "write"):
        raise SpecError(f"progress: expected True, False or a file, found {progress!r}")
    return Display(progress)


def _check_workers(workers: object) -> None:
    """Raises SpecError for an invalid number of processes."""
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        raise SpecError(f"workers: expected a whole number of at least 1, found {workers!r}")


def _captures(folder: Path | None, pcap: bool) -> Path | None:
    """The folder for captures; None if links are not captured."""
    if pcap and folder is None:
        raise SpecError("pcap: captures need a folder; give `out`")
    return folder / PCAP if pcap and folder is not None else None
