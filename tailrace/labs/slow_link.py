# SPDX-License-Identifier: Apache-2.0
"""Lab 4: schemes beside a slow uplink, over several seeds. Schemes and cases have the sheet's labels."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import tailrace
from tailrace.labs.answers import WrongError
from tailrace.labs.lab import EXPERIMENT, Lab, Values, reordered

_CLEAN, _SLOW = "clean", "link-slow"
_FCT = "fct_mean"
_APART = 1.01
"""The least ratio of the two largest slowdowns: look.py shows them with two decimals."""


class SlowLink(Lab):
    number = 4
    values: ClassVar[Values] = {
        "ordered": lambda self: " ".join(name for name, count in self.late.items() if not count),
        "cost": lambda self: self.mean(_SLOW) / self.mean(_CLEAN),
        "worst": lambda self: max(self.first.rows, key=lambda row: row.slowdown or 0).id,
        "spine": lambda self: self.uplinks(self.first)[self.values["worst"](self)][0].partition("-")[2],
        "low": lambda self: self.ends(_SLOW, "flowcut")[0],
        "high": lambda self: self.ends(_SLOW, "flowcut")[1],
        "differs": lambda self: (
            "no" if self.ends(_CLEAN, "letflow")[0] <= 1 <= self.ends(_CLEAN, "letflow")[1] else "yes"
        ),
    }

    def problem(self) -> str:
        second, worst = sorted(row.slowdown or 0 for row in self.first.rows)[-2:]
        if worst < _APART * second or self.values["spine"](self) != "spine1":
            return "no flow on the slow link is the slowest with the first seed"
        shown = any(self.late.values()) and self.mean(_SLOW) > self.mean(_CLEAN)
        return "" if shown else "the slow link costs nothing, or no packet is out of order"

    @cached_property
    def results(self) -> tailrace.Results:
        """The comparison of the sheet."""
        return tailrace.compare(self.folder / EXPERIMENT)

    @property
    def first(self) -> tailrace.Result:
        """ECMP's run with the slow link and the first seed."""
        return self.results.result(case=_SLOW, scheme="ecmp", seed=self.results.axes["seed"][0])

    @property
    def late(self) -> dict[str, int]:
        """The number of packets out of order of each scheme, in all runs."""
        runs = self.results.results
        return {
            name: sum(reordered(run) for run in runs if run.label == name)
            for name in (run.label for run in runs)
        }

    def mean(self, case: str) -> float:
        """ECMP's mean FCT in ns."""
        return next(
            row.metrics[_FCT].value
            for row in self.results.rows
            if row.settings == {"case": case, "scheme": "ecmp"}
        )

    def ends(self, case: str, scheme: str) -> tuple[float, float]:
        """The interval of the ratio to ECMP's mean FCT."""
        settings = {"case": case, "scheme": scheme}
        (ends,) = (row.ratios[_FCT].ends for row in self.results.rows if row.settings == settings)
        if ends is None:
            raise WrongError("intervals need an extra: pip install 'tailrace[intervals]'")
        return ends
