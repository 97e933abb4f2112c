# SPDX-License-Identifier: Apache-2.0
"""The search for a flowlet gap: limits of reordering, the best mean, and what is said about the choice."""

from __future__ import annotations

from tailrace.papers.model import Tune
from tailrace.papers.tune import Choice, choose

MEASURED = {
    "1us": {"fct_mean": 10.0, "out_of_order_raw_share": 0.5},
    "2us": {"fct_mean": 12.0, "out_of_order_raw_share": 0.19},
    "3us": {"fct_mean": 11.0, "out_of_order_raw_share": 0.04},
    "4us": {"fct_mean": 15.0, "out_of_order_raw_share": 0.01},
}


def test_best_mean_below_the_limit() -> None:
    """A value with less reordering wins where it is also faster."""
    choices = {below: choose(Tune("gap", below), MEASURED) for below in (0.2, 0.05, 0.02)}
    assert choices == {0.2: Choice("3us"), 0.05: Choice("3us"), 0.02: Choice("4us")}


def test_without_limit() -> None:
    """The fastest of all; at the end of what was tried, the reader is told."""
    assert choose(Tune("gap"), MEASURED) == Choice("1us", "at the end of the values that were tried")


def test_no_value_keeps_the_limit() -> None:
    """The closest one counts, and says so."""
    note = "no gap keeps below 0.001 out of order; the closest is shown"
    assert choose(Tune("gap", 0.001), MEASURED) == Choice("4us", note)


def test_runs_that_failed_are_left_out() -> None:
    """A value without a mean FCT is no candidate; without any there is no choice."""
    assert choose(Tune("gap", 0.2), {**MEASURED, "3us": {"out_of_order_raw_share": 0.0}}) == Choice("2us")
    assert choose(Tune("gap", 0.2), {"1us": {}}) is None
