#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/metrics.md from the registry of metrics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tailrace.experiments.workloads.classes import CLASSES
from tailrace.results.metrics import BUILT_IN, CLASS, METRICS, Metric
from tailrace.results.units import UNITS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "metrics.md"

HEAD = f"""# Metrics

A name is one number: in tables, figures, claims, JSON, Parquet and stored runs. `make docs` writes this page
from [metrics.py](../tailrace/results/metrics.py). Plug-ins register metrics of their own
([extend.md](extend.md)).

* **Values** are kept in ns, bytes, bit/s and shares from 0 to 1. The unit is that of tables and figures.
* **Over seeds** a metric is the mean of its values of all runs, also where these are percentiles, with a 95 %
  jackknife interval from three seeds on. Ratios are paired by seed ([experiments.md](experiments.md)).
* **Measured flows** are all flows but those of the background. Metrics with a star are also computed for one
  class of flows, as `fct_p99{CLASS}bystander`; the classes are {", ".join(CLASSES)}.
* A metric is absent where a run does not have it. Completion times and slowdowns are absent where a flow did
  not finish: the slowest flows would be missing.
* Definitions without a source are ours.

"""
_COLUMNS = ("name", "unit", "definition", "source", "better")


def page() -> str:
    """The text of docs/metrics.md."""
    return HEAD + "".join(f"| {' | '.join(cells)} |\n" for cells in _lines())


def _lines() -> Iterator[tuple[str, ...]]:
    yield _COLUMNS
    yield ("---",) * len(_COLUMNS)
    for name in BUILT_IN:
        yield _cells(METRICS[name])


def _cells(entry: Metric) -> tuple[str, ...]:
    mark = "*" if entry.by_class and entry.compute is not None else ""
    return f"`{entry.name}`{mark}", UNITS[entry.unit].name, entry.definition, entry.source, entry.better


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
