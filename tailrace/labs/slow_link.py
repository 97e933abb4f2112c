# SPDX-License-Identifier: Apache-2.0
"""Lab 4: schemes beside a slow uplink, over several seeds."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import tailrace
from tailrace.labs.answers import WrongError, compare, flow_ids, require, words
from tailrace.labs.lab import EXPERIMENT, Lab, Values, lab, reordered
from tailrace.results.estimates import SummaryRow
from tailrace.sim.link_faults import LinkSlow

_CLEAN, _SLOW = "clean", "link-slow"
_FCT = "fct_mean"


@lab
class SlowLink(Lab):
    """Schemes have the labels of the sheet."""

    number = 4
    values: ClassVar[Values] = {
        "ordered": lambda self: " ".join(name for name, count in self.late.items() if not count),
        "cost": lambda self: (
            self.row(_SLOW, "ecmp").metrics[_FCT].value / self.row(_CLEAN, "ecmp").metrics[_FCT].value
        ),
        "ratio": lambda self: self.row(_SLOW, "flowcut").ratios[_FCT].value,
        "differs": lambda self: (
            "no" if self.ends(_CLEAN, "letflow")[0] <= 1 <= self.ends(_CLEAN, "letflow")[1] else "yes"
        ),
    }

    @cached_property
    def results(self) -> tailrace.Results:
        """The comparison of the sheet."""
        return tailrace.compare(self.folder / EXPERIMENT)

    @cached_property
    def late(self) -> dict[str, int]:
        """The number of packets out of order of each scheme."""
        schemes = map(str, self.results.axes["scheme"])
        runs = self.results.results
        return {name: sum(reordered(run) for run in runs if run.label == name) for name in schemes}

    def row(self, case: str, scheme: str) -> SummaryRow:
        """A row of the table."""
        rows = self.results.rows
        return next(row for row in rows if row.settings == {"case": case, "scheme": scheme})

    def ends(self, case: str, scheme: str) -> tuple[float, float]:
        """The interval of the ratio to ECMP's mean FCT."""
        if (ends := self.row(case, scheme).ratios[_FCT].ends) is None:
            raise WrongError("intervals need an extra: pip install 'tailrace[intervals]'")
        return ends

    def problem(self) -> str:
        """Whether the slow link matters, and a scheme reorders."""
        return "" if any(self.late.values()) and self.slow_flows[1] else "no flow crosses the slow link"

    @cached_property
    def slow_flows(self) -> tuple[tailrace.Result, set[int]]:
        """ECMP's run with the first seed beside the slow link, and the flows that cross this link."""
        run = self.results.result(case=_SLOW, scheme="ecmp", seed=self.results.axes["seed"][0])
        slow = next(fault for fault in self.job.faults if isinstance(fault, LinkSlow))
        # between the two leaves every path over this spine crosses the link
        return run, {flow for flow, links in self.uplinks(run).items() if slow.b in str(links)}

    def crossing(self, answer: str) -> str:
        """A flow that crosses the slow link."""
        run, slow = self.slow_flows
        (flow,) = flow_ids(answer, 1, [row.id for row in run.rows])
        text = f"flow {flow} has a slowdown of {run.rows[flow - 1].slowdown or 0:.1f}"
        require(flow in slow, f"{text}, and none of its packets crosses the slow link")
        return f"{text}, because its packets cross the slow link"

    def interval(self, answer: str) -> str:
        """The interval of Flowcut's ratio."""
        require(len(words(answer)) == 2, "expected both ends, such as 0.2 0.4")
        hint = self.sheet.questions["interval"][1]
        low, high = self.ends(_SLOW, "flowcut")
        for text, end in zip(words(answer), (low, high), strict=True):
            compare(text, end, "x", hint)
        return f"from {low:.2f} to {high:.2f}; {'1 is outside' if high < 1 or low > 1 else '1 is inside'}"
