# SPDX-License-Identifier: Apache-2.0
"""Several schemes on the same topology, workload and seed, in a healthy network and with faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.backend import Backend
from experiments.errors import RunError
from experiments.experiment import Experiment
from experiments.figure import draw
from experiments.progress import Display
from experiments.result import COMPARISON, Failure, Result, comparison, to_json, write_result
from experiments.run import Plan, plan, run
from experiments.words import case_name, labels


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of it: results in the order of cases and schemes, and the runs that failed."""

    labels: tuple[str, ...]
    results: tuple[Result, ...]
    failed: tuple[Failure, ...]


def plans(base: Experiment, schemes: Sequence[str], target: str) -> list[tuple[str, Plan]]:
    """Label and plan of every run: each scheme without faults, then each with them if there are any.

    Raises:
        SpecError: words that do not fit together.
    """
    cases: list[tuple[str, ...]] = [()]
    if base.faults:
        cases.append(base.faults)
    return [
        (label, plan(replace(base, scheme=scheme, faults=faults), target))
        for faults in cases
        for label, scheme in zip(labels(schemes), schemes, strict=True)
    ]


def compare(
    planned: Sequence[tuple[str, Plan]], backend: Backend, display: Display, pcap_dir: Path | None = None
) -> Comparison:
    """Run one plan after the other. A run that fails does not keep the others from running.

    With `pcap_dir`, links are captured to CASE/SCHEME below it.

    Raises:
        SpecError: the target cannot do what was asked for.
    """
    results: list[Result] = []
    failed: list[Failure] = []
    for label, one in planned:
        case = case_name(one.experiment.faults)
        try:
            with display.run(f"{case} {label}") as report:
                captures = None if pcap_dir is None else pcap_dir / case / label
                results.append(run(one, backend, report, label=label, pcap_dir=captures))
        except RunError as error:
            failed.append(Failure(case, label, str(error)))
    return Comparison(tuple(dict.fromkeys(label for label, _ in planned)), tuple(results), tuple(failed))


def write(done: Comparison, folder: Path) -> None:
    """Write CASE/SCHEME/{summary.json,flows.parquet}, comparison.json and the figure into a folder."""
    for result in done.results:
        write_result(result, folder / result.case / result.label)
    document = comparison(done.results, done.labels[0], done.failed)
    (folder / COMPARISON).write_text(to_json(document), "utf-8")
    if done.results:
        draw(done.results, folder)
