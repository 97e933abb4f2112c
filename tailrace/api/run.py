# SPDX-License-Identifier: Apache-2.0
"""Runs, comparisons and sweeps from Python; `tailrace run`, `compare` and `sweep` call these functions.

Nothing is printed but to `progress`, and no handler of signals is set: Ctrl-C raises KeyboardInterrupt once
everything has been cleaned up. They may be called from any thread, and where an event loop runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from msgspec import structs

from tailrace.api.experiment import Base, Keys, as_spec, experiment
from tailrace.experiments.plan.defaults import PRESET
from tailrace.experiments.plan.experiment import Experiment
from tailrace.experiments.plan.experiment_file import check_label, schemes_of
from tailrace.experiments.plan.plan import Plan, on_target, plan
from tailrace.experiments.plan.spec_list import labels
from tailrace.report.figures.beside import draw_comparison
from tailrace.results.comparison import LeftOut
from tailrace.results.result import Result, to_json, write_result
from tailrace.results.staging import replace_file, staged
from tailrace.sim.errors import RunError
from tailrace.sim.mpi import World
from tailrace.sim.outcome import Backend
from tailrace.sim.run import Breakpoints, VirtualBackend
from tailrace.spec import SpecError
from tailrace.spec.errors import UnitError
from tailrace.spec.units import format_time, parse_time_ns
from tailrace.study.command import compare_command, run_command, sweep_command
from tailrace.study.compare import Comparison, compare_at_once, plans, write
from tailrace.study.compare import compare as compare_plans
from tailrace.study.pool import Where, run_all
from tailrace.study.prepare import choose_target, tell_runs, tell_scale, tell_transports
from tailrace.study.progress import Display
from tailrace.study.run import run as run_plan
from tailrace.study.store.stand import keeper
from tailrace.study.store.store import Store
from tailrace.study.sweep import SWEEP, Ended, Sweep, axis_text, make_axis, points
from tailrace.study.task import backend_of, key_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from typing_extensions import Unpack

    from tailrace.schemes.base import SchemeConfig
    from tailrace.sim.network.ranks import RankTransport
    from tailrace.sim.run import PausedRun

PCAP = "pcap"
"""The folder of captures, within that of the results."""

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

    A run in which flows did not finish is a result, too: look at `complete` and `problems`.

    Args:
        base: what it is like but for the keys: an experiment, a TOML file, or a preset such as `basic`.
        scale: `small` or `paper`: a size that the file knows.
        out: a folder for summary.json and flows.parquet; without it nothing is written.
        pcap: whether every link is captured, to `pcap` in that folder.
        ranks: so many processes run the network, each a part of it; in virtual time, with the same result. Or
            what they speak by, where all of them call this: the first alone writes, each has the result.
        stop_at: virtual times at full speed, such as `20us`, at which the run stands still.
        at_stop: called then, with the network as it stands; of several ranks with the part of the first, and
            the P4Runtime addresses of all other switches until it returns (`remote_addresses`).
        progress: True: shown on standard error, as the command line does; or a file to show it in.
        keys: as Keys has them.

    Raises:
        SpecError: a key, value or file that cannot be used, or a target that cannot do what they say.
        RunError: the run failed.
    """
    first = isinstance(ranks, int) or ranks.rank == 0
    display = _display(progress if first else False)
    chosen = experiment(base, scale=scale, **keys)
    target = choose_target(chosen.target, display)
    planned = plan(chosen, target)
    if isinstance(ranks, World):
        ranks.agree(key_of(structs.replace(chosen, target=target)))
    stops_ns = _stops_ns(stop_at, planned)
    tell_scale(planned, display)
    label = labels([chosen.scheme])[0]
    backend: Backend = backend_of(target)
    if stops_ns and not isinstance(ranks, int):
        raise SpecError("--stop-at: only ranks that this process has started can stand still")
    if target == "virtual":
        stops = Breakpoints(stops_ns, at_stop) if stops_ns and at_stop is not None else None
        backend = VirtualBackend(breakpoints=stops, ranks=ranks)
    elif ranks != 1:
        raise SpecError(f"ranks: target {target} has none; use the target virtual")
    with _kept(out if first else None) as folder:
        # others have no folder, and write none of it
        captures = _captures(folder if first else Path(), pcap)
        with display.run(label) as report:
            result = run_plan(planned, backend, report, label=label, pcap_dir=captures)
        if folder is not None:
            write_result(result, folder)
    for time_ns in stops_ns:
        if time_ns > (result.summary.virtual_ns or 0):
            display.warn(f"the run was over before it could stop at {format_time(time_ns)}")
    return result


def _stops_ns(texts: Any, planned: Plan) -> tuple[int, ...]:
    """The virtual times at which a run is to stop, at its time scale."""
    is_list = isinstance(texts, Sequence) and not isinstance(texts, str)
    if not is_list or not all(isinstance(text, str) for text in texts):
        raise SpecError(f"--stop-at: expected a list of times such as 20us, found {texts!r}")
    if texts and planned.target != "virtual":
        raise SpecError("--stop-at needs target virtual")
    try:
        times_ns = sorted({parse_time_ns(text) for text in texts})
    except UnitError as error:
        raise SpecError(f"--stop-at: {error}") from error
    return tuple(round(time_ns * planned.job.time_scale) for time_ns in times_ns)


def compare(
    base: Base = None,
    /,
    schemes: Sequence[str | SchemeConfig] | Mapping[str, str | SchemeConfig] | None = None,
    *,
    scale: str | None = None,
    out: Folder | None = None,
    pcap: bool = False,
    workers: int = 1,
    progress: bool | IO[str] = False,
    **keys: Unpack[Keys],
) -> Comparison:
    """Run several schemes on the same traffic; where there are faults, once without and once with them.

    The traffic is the same by construction: flows and faults are drawn from the seed, the workload and the
    network, never from the scheme. With several seeds (`seed="1..10"`) every scheme runs with each, the table
    has means with 95 % intervals, and ratios are of pairs of runs with the same seed.

    A run that fails does not keep the others from running: look at `complete` and `failed`. A scheme that
    works over one transport only keeps that. One that cannot run on the network is left out: look at
    `left_out`.

    Args:
        base: what is run but for the scheme: an experiment, a TOML file, or a preset such as `basic`.
        schemes: the first is what ratios are against; by label, or labels are made of their specs. None:
            those of the file, or of the preset `basic`.
        scale: `small` or `paper`: a size that the file knows.
        out: a folder for comparison.json, the figure, and a folder for each run.
        pcap: whether every link is captured, to `pcap` in that folder; with one worker only.
        workers: processes that run at once, in virtual time; what an earlier call has left in `out` is then
            not run again.
        progress: True: shown on standard error, as the command line does; or a file to show it in.
        keys: as Keys has them.

    Raises:
        SpecError: a key, value or file that cannot be used, a target that cannot do what they say, or no
            scheme that can run on the network.
    """
    display = _display(progress)
    _check_workers(workers)
    named = _named(base, schemes, scale)
    # a file that names no scheme is no experiment, unless it is told which
    if schemes is not None or base is None or isinstance(base, Experiment):
        keys["scheme"] = next(iter(named.values()))
    chosen = experiment(base, scale=scale, **keys)
    target = choose_target(chosen.target, display)
    chosen = on_target(structs.replace(chosen, target=target), target)
    left_out: list[LeftOut] = []
    planned = plans(chosen, tuple(named.values()), target, tuple(named), left_out)
    for each in left_out:
        display.warn(str(each))
    tell_scale(planned[0][1], display)
    tell_runs(planned, chosen.seeds, display)
    tell_transports(chosen, planned, display)
    command = compare_command(chosen, tuple(named.values()))
    return _compared(planned, chosen.seeds, out, pcap, workers, display, command, left_out)


def repeat(
    base: Base = None,
    /,
    *,
    scale: str | None = None,
    out: Folder | None = None,
    pcap: bool = False,
    workers: int = 1,
    progress: bool | IO[str] = False,
    **keys: Unpack[Keys],
) -> Comparison:
    """Run one experiment with each of its seeds: a comparison of one scheme, with its faults, if any.

    Args:
        base: what it is like but for the keys: an experiment, a TOML file, or a preset such as `basic`.
        scale: `small` or `paper`: a size that the file knows.
        out: a folder for comparison.json, the figure, and a folder for each seed.
        pcap: whether every link is captured, to `pcap` in that folder; with one worker only.
        workers: processes that run at once, in virtual time; what an earlier call has left in `out` is then
            not run again.
        progress: True: shown on standard error, as the command line does; or a file to show it in.
        keys: as Keys has them; `seed` such as `1..10`.

    Raises:
        SpecError: a key, value or file that cannot be used, or a target that cannot do what they say.
    """
    display = _display(progress)
    _check_workers(workers)
    chosen = experiment(base, scale=scale, **keys)
    target = choose_target(chosen.target, display)
    chosen = on_target(structs.replace(chosen, target=target), target)
    planned = [(labels([chosen.scheme])[0], plan(chosen.each_seed()[0], target))]
    tell_scale(planned[0][1], display)
    tell_runs(planned, chosen.seeds, display)
    return _compared(planned, chosen.seeds, out, pcap, workers, display, run_command(chosen))


def _compared(
    planned: Sequence[tuple[str, Plan]],
    seeds: Sequence[int],
    out: Folder | None,
    pcap: bool,
    workers: int,
    display: Display,
    command: str,
    left_out: Sequence[LeftOut] = (),
) -> Comparison:
    """Run plans with every seed; what there is to keep is written to `out`."""
    about: dict[str, Any] = {"command": command, "left_out": tuple(left_out)}
    if workers == 1:
        with _kept(out) as folder:
            done = compare_plans(
                planned, backend_of(planned[0][1].target), display, _captures(folder, pcap), seeds
            )
            done = replace(done, **about)
            if folder is not None:
                write(done, folder)
        return _drawn(done, out, display)
    if pcap:
        raise SpecError("--pcap: links are captured with one worker only")
    done = compare_at_once(planned, workers, None if out is None else Path(out), display, seeds)
    done = replace(done, **about)
    if out is not None:
        with staged(Path(out)) as folder:
            write(done, folder)
    return _drawn(done, out, display)


def _drawn(done: Comparison, out: Folder | None, display: Display) -> Comparison:
    """The comparison, whose figure is drawn beside its results, if they are kept."""
    if out is not None:
        draw_comparison(done.results, Path(out), display.warn)
    return done


def _named(
    base: Base, schemes: Sequence[Any] | Mapping[str, Any] | None, scale: str | None
) -> dict[str, str]:
    """The schemes to compare, specs by label."""
    if schemes is None:
        file = None if base is None or isinstance(base, Experiment) else Path(base)
        schemes = schemes_of(file, scale) or schemes_of(Path(PRESET))
    if isinstance(schemes, Mapping):
        for label in schemes:
            check_label(label)
        return {label: as_spec("scheme", one) for label, one in schemes.items()}
    if isinstance(schemes, str) or not schemes:
        raise SpecError(f"schemes: expected a list of schemes, found {schemes!r}")
    found = [as_spec("scheme", one) for one in schemes]
    for spec in found:
        if found.count(spec) > 1:
            raise SpecError(f"schemes: {spec!r} is given twice")
    return dict(zip(labels(found), found, strict=True))


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
) -> Sweep:
    """Run an experiment once for every combination of some keys' values.

    With several seeds (`seed="1..10"`) each combination runs with every one, and the table has means with
    95 % intervals; an axis `seed` has a row for each instead.

    A run that fails does not keep the others from running: look at `complete` and `failed`.

    Args:
        base: what no axis changes: an experiment, a TOML file, or a preset such as `basic`.
        axes: values by key, or by an option of a key's spec, such as `scheme.rtt` or `workload.load`; the
            last axis is the fastest.
        scale: `small` or `paper`: a size that the file knows.
        out: a folder for sweep.json and a folder for each run; what an earlier call has left there is not run
            again.
        workers: processes that run at once, in virtual time.
        cluster: address of the scheduler of a Dask cluster that runs them instead.
        again: whether what an earlier call has left is run again, too.
        store: a folder of finished runs, to which each one in virtual time is added as a line.
        progress: True: shown on standard error, as the command line does; or a file to show it in.
        keys: as Keys has them.

    Raises:
        SpecError: a key, value or file that cannot be used, or a cluster that cannot be reached.
        RunError: a cluster has lost all its workers.
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
    chosen = structs.replace(chosen, target=target)
    command = sweep_command(chosen, {axis.key: axis_text(axis) for axis in parsed})
    over_seeds = len(chosen.seeds) > 1 and "seed" not in axes
    if over_seeds:
        parsed.append(make_axis("seed", map(str, chosen.seeds)))
    ended: list[Ended] = []
    planned = points(chosen, parsed, target, ended)
    folder = None if out is None else Path(out)
    wanted = [point.task for point in planned]
    settled = None
    if store is not None:
        kept = Store(Path(store))
        for scheme in {task.experiment.scheme.partition(":")[0] for task in wanted}:
            kept.of(scheme)  # what is no store is told before anything runs
        settled = keeper(kept, display)
    ends = run_all(wanted, folder, Where(workers, cluster), display, again=again, settled=settled)
    for point in planned:
        end = ends[point.task.key]
        result, failed = (end, "") if isinstance(end, Result) else (None, end.reason)
        ended.append(Ended(point.settings, str(point.task.out), result, failed))
    places = {axis.key: {value: place for place, value in enumerate(axis.values)} for axis in parsed}
    ended.sort(key=lambda point: [places[key][value] for key, value in point.settings.items()])
    done = Sweep({axis.key: axis.values for axis in parsed}, tuple(ended), over_seeds, command)
    if folder is not None:
        _keep(folder / SWEEP, to_json(done.document))
    return done


def figure(of: Result | Comparison) -> Figure:
    """A matplotlib figure of a run or a comparison: completion times of the flows, and the share of packets
    out of order, for each case; in lossless networks pauses, too.
    """
    # only who draws waits for matplotlib
    from tailrace.report.figures.figure import comparison_figure

    return comparison_figure([of] if isinstance(of, Result) else of.results)


def _text(key: str, value: Any) -> str:
    """A value of an axis as specs have it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(as_spec(key, value))


def _keep(path: Path, text: str) -> None:
    """Writes a file; RunError where that cannot be done, for the runs before it were."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)
    except OSError as error:
        raise RunError(f"{path}: {error.strerror or error}") from error


def _display(progress: Any) -> Display:
    """Shows progress to whom it is for."""
    if isinstance(progress, bool):
        return Display(sys.stderr if progress else None)
    if progress is not None and not hasattr(progress, "write"):
        raise SpecError(f"progress: expected True, False or a file to show it in, found {progress!r}")
    return Display(progress)


def _check_workers(workers: object) -> None:
    """Raises SpecError where that is no number of processes."""
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        raise SpecError(f"workers: expected a whole number from 1 on, found {workers!r}")


@contextmanager
def _kept(out: Folder | None) -> Iterator[Path | None]:
    """Where results are to be written, which then appear in `out`; None: nowhere."""
    if out is None:
        yield None
        return
    with staged(Path(out)) as folder:
        yield folder


def _captures(folder: Path | None, pcap: bool) -> Path | None:
    """The folder for captures, if there are to be any."""
    if pcap and folder is None:
        raise SpecError("pcap: captures need a folder: out")
    return folder / PCAP if pcap and folder is not None else None
