# SPDX-License-Identifier: Apache-2.0
"""Intervals of claims over seeds: an interval is computed for the expression, not for its single metrics.

All metrics in an expression are from the same selection of seeds, so runs with the same traffic stay paired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.papers.claims.expression import evaluate, subtracts
from tailrace.results.estimates import Estimate, SeedValues, estimate

Measures = Mapping[tuple[str, str], Mapping[str, SeedValues]]
"""The values of each seed, by case and scheme's label, then by metric."""


@dataclass(frozen=True, slots=True)
class OfSeeds:
    """The measurements of all seeds; `seeds` is their number."""

    measures: Measures
    seeds: int

    def estimate(self, text: str, case: str) -> Estimate:
        """The value of an expression in a case, with its interval over seeds."""

        def statistic(seeds: Any) -> Any:
            chosen = {key: _Chosen(by_metric, seeds) for key, by_metric in self.measures.items()}
            return evaluate(text, chosen, case)

        estimated = estimate(statistic, self.seeds)
        return estimated if subtracts(text) or estimated.value < 0 else estimated.not_negative()


class _Chosen(Mapping[str, Any]):
    """Metrics over a selection of seeds, computed on access."""

    def __init__(self, measures: Mapping[str, SeedValues], seeds: Any) -> None:
        self._measures, self._seeds = measures, seeds

    def __getitem__(self, name: str) -> Any:
        return self._measures[name].statistic(self._seeds)

    def __iter__(self) -> Iterator[str]:
        return iter(self._measures)

    def __len__(self) -> int:
        return len(self._measures)
