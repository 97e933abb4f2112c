# SPDX-License-Identifier: Apache-2.0
"""The search for a scheme's parameter: the best mean FCT that keeps reordering below a limit.

Flowcut §III-C2 compares with flowlet switching at three such limits, 20, 5 and 2 % of packets out of order;
its Fig. 1 shows the best gap without a limit. If no value meets the limit, the value with the least
reordering is chosen, and the result has a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tailrace.papers.model import Tune

Measured = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen value, and a note about it for the reader, or an empty note."""

    value: str
    note: str = ""


def choose(tune: Tune, measured: Mapping[str, Measured]) -> Choice | None:
    """The best of the searched values; None if no value has a mean FCT.

    Args:
        tune: the search, with its limit.
        measured: the metrics of each value's runs, in the order of the values.
    """
    complete = {value: metrics for value, metrics in measured.items() if "fct_mean" in metrics}
    if not complete:
        return None
    limit = tune.below
    allowed = {
        value: metrics
        for value, metrics in complete.items()
        if limit is None or metrics.get("out_of_order_raw_share", 1.0) < limit
    }
    if not allowed:
        closest = min(complete, key=lambda value: complete[value].get("out_of_order_raw_share", 1.0))
        return Choice(closest, f"no {tune.option} keeps below {limit:.3g} out of order; the closest is shown")
    best = min(allowed, key=lambda value: allowed[value]["fct_mean"])
    values = list(measured)
    note = ""
    if len(values) > 1 and best in (values[0], values[-1]) and len(allowed) > 1:
        note = "at the end of the values that were tried"
    return Choice(best, note)
