# SPDX-License-Identifier: Apache-2.0
"""What a summary says of HF2T: the gaps that NICs stretched, and what they took for long ones (HF2T §4)."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.hosts.gaps.hf2t import UNKNOWN
from tailrace.hosts.measured import Learned
from tailrace.results.rows import FlowRow
from tailrace.results.statistics import percentile

_SUMS = ("stretched", "stretched_ns", "natural")


def summary(rows: Sequence[FlowRow], nics: Sequence[Learned]) -> dict[str, int]:
    """Sums over the flows and NICs, and least, median and greatest T of the NICs that know it."""
    values = {name: sum(getattr(row, name) for row in rows) for name in _SUMS}
    values["trainings"] = sum(nic.trainings for nic in nics)
    known = sorted(nic.t_ns for nic in nics if nic.t_ns != UNKNOWN)
    if known:
        values |= {"t_ns_least": known[0], "t_ns_median": percentile(known, 50), "t_ns_most": known[-1]}
    return values
