# SPDX-License-Identifier: Apache-2.0
"""Units on axes: nobody reads 1e6 µs."""

from __future__ import annotations

import pytest

from tailrace.experiments.figures.plot import time_unit


@pytest.mark.parametrize(
    ("max_ns", "unit"),
    [
        (0, (1e3, "µs")),
        (9_999_999, (1e3, "µs")),
        (10_000_000, (1e6, "ms")),
        (9_999_999_999, (1e6, "ms")),
        (31_733_981_000, (1e9, "s")),
        (1e16, (1e9, "s")),
    ],
)
def test_times_are_shown_in_a_unit_that_suits_the_longest(max_ns: float, unit: tuple[float, str]) -> None:
    """Numbers of four digits at most, while there is a larger unit."""
    assert time_unit(max_ns) == unit
