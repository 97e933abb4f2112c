# SPDX-License-Identifier: Apache-2.0
"""For all tests: which of them `make test` runs, and what `make test-all` does otherwise."""

from __future__ import annotations

import gc
import json
from collections import defaultdict
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import settings

from tests.long import ALL

gc.disable()

DURATIONS = Path(__file__).with_name("durations.json")
SLOW_S = 0.5
"""Tests that take as long or longer stand in `DURATIONS`, in s. `make test` leaves them out, but for two kinds:"""
FUNCTION_S = 1.0
"""the quickest case of a test function, if all its cases are slow and this one takes no longer;"""
FILE_S = 10.0
"""the quickest test of a file, likewise."""
CASES = 16
"""Of the quick cases of a test function, `make test` runs this many at most, evenly drawn."""

# A busy machine may take long for any example: none fails for that. Chance is for `make test-all`.
settings.register_profile("tailrace", settings(), deadline=None, derandomize=not ALL, database=None)
settings.load_profile("tailrace")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that writes `DURATIONS`."""
    parser.addoption("--write-durations", action="store_true", help=f"write {DURATIONS.name}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what takes long; a test that is asked for by its name is run."""
    if ALL or any("::" in argument for argument in config.args):
        return
    kept = quick(items, json.loads(DURATIONS.read_text("utf-8")))
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def quick(items: list[pytest.Item], seconds: dict[str, float]) -> set[pytest.Item]:
    """The tests that `make test` runs: the quick ones and those that stand for the rest (`SLOW_S`)."""

    def duration(item: pytest.Item) -> float:
        return float("inf") if item.get_closest_marker("long") else seconds.get(item.nodeid, 0.0)

    kept: set[pytest.Item] = set()
    for tests in grouped(items, "["):
        cases = [item for item in tests if duration(item) < SLOW_S]
        kept.update(cases[:: -(-len(cases) // CASES) or 1])
    for mark, limit in (("[", FUNCTION_S), ("::", FILE_S)):
        for tests in grouped(items, mark):
            best = min(tests, key=duration)
            if kept.isdisjoint(tests) and duration(best) <= limit:
                kept.add(best)
    return kept


def grouped(items: list[pytest.Item], mark: str) -> list[list[pytest.Item]]:
    """Neighbours whose names are the same up to a mark: "[" of a test function, "::" of a file."""
    return [list(group) for _, group in groupby(items, lambda item: item.nodeid.partition(mark)[0])]


def pytest_collection_finish() -> None:
    """Thousands of tests and their modules stay to the end: no collection of garbage has to look at them again."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Writes how long the slow tests took, each with its fixtures."""
    if config.getoption("write_durations") and ALL:
        seconds: dict[str, float] = defaultdict(float)
        for report in (each for reports in terminalreporter.stats.values() for each in reports):
            seconds[getattr(report, "nodeid", "")] += getattr(report, "duration", 0.0)
        slow = {test: round(duration, 1) for test, duration in sorted(seconds.items()) if duration >= SLOW_S}
        DURATIONS.write_text(json.dumps(slow, indent=0, ensure_ascii=False) + "\n", "utf-8")
