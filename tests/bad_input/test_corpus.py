# SPDX-License-Identifier: Apache-2.0
"""A corpus of broken files and command lines: one line, the place, exit status 2, nothing left behind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.bad_input import files, lines, results
from tests.bad_input.case import ROOT, SMALLEST, Case, check, in_a_process, in_this_process

EVERY = 120
"""Of so many cases one also runs in a process of its own."""

GROUPS: dict[str, Callable[[], Iterator[Case]]] = {
    "files": files.all_cases,
    "store": lambda: results.of_store(ROOT / "docs/results/mp-rdma.parquet"),
    "jobs": results.of_jobs,
    "bench": results.of_bench,
    "plugins": results.of_plugins,
    "lines": lines.all_cases,
}


def _all() -> list[Case]:
    return [case for make in GROUPS.values() for case in make()]


def _tell(cases: Iterator[Case], tmp_path: Path, subtests: pytest.Subtests) -> None:
    """Runs cases, each in folders of its own."""
    for number, case in enumerate(cases):
        with subtests.test(msg=case.name):
            folder = tmp_path / str(number)
            folder.mkdir()
            check(case, in_this_process(case, folder), folder)


@pytest.mark.parametrize("group", GROUPS)
def test_here(group: str, tmp_path: Path, subtests: pytest.Subtests) -> None:
    """Each case within this process."""
    _tell(GROUPS[group](), tmp_path, subtests)


def test_results(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """Results of runs that have just been made, and damaged."""
    run = Case("run", ("tailrace", "run", "--scheme", "ecmp", *SMALLEST, "--out", "../run/out"))
    sweep = Case(
        "sweep", ("tailrace", "sweep", "--set", "scheme=ecmp,letflow", *SMALLEST, "--out", "../run/out")
    )
    for case in (run, sweep):
        (tmp_path / case.name).mkdir()
        assert in_this_process(case, tmp_path / case.name).status == 0
    cases = itertools.chain(
        results.of_result(tmp_path / "run" / "run" / "out"),
        results.of_documents((tmp_path / "sweep" / "run" / "out" / "results.json").read_bytes()),
    )
    _tell(cases, tmp_path, subtests)


@pytest.mark.parametrize("case", _all()[::EVERY], ids=lambda case: case.name)
def test_in_processes(case: Case, tmp_path: Path) -> None:
    """Some of them as a user does it."""
    check(case, in_a_process(case, tmp_path), tmp_path)
