# SPDX-License-Identifier: Apache-2.0
"""Numbers for people: so many digits, no exponents, and the value again when they are read."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tailrace.results.units import UNITS, Unit, ratio_text


@given(st.sampled_from(sorted(UNITS)), st.floats(0.001, 1e12))
@example("us", 999.6)
@example("ns", 99999.7)
@example("us", 999.4)
def test_digits(name: str, value: float) -> None:
    unit = UNITS[name]
    shown = unit.shown(value)
    assert "e" not in shown
    assert abs(float(shown.replace(",", "")) / value - 1) <= 0.5 * 10 ** (1 - unit.digits)
    assert unit.shown(-value) == f"-{shown}"


def test_text() -> None:
    """In the unit, with its name; 0 is just 0."""
    assert Unit("µs", 1e-3).text(999_600.0) == "1,000 µs"
    assert UNITS["%"].text(0.0) == "0 %"
    assert UNITS["ns"].without_name(12_345.4) == "12345"


@given(st.floats(0.01, 100))
@example(1.0)
@example(0.9984)
@example(1.00002)
def test_a_ratio_shows_on_which_side_of_1_it_lies(ratio: float) -> None:
    """Two decimals as long as they do; what differs by less than 1e-5 is 1."""
    shown = float(ratio_text(ratio))
    if abs(ratio - 1) >= 1e-5:
        assert (shown > 1, shown < 1) == (ratio > 1, ratio < 1)
    assert abs(shown - ratio) <= 0.0051
    assert (ratio_text(0.834), ratio_text(1.0), ratio_text(0.9984)) == ("0.83", "1.00", "0.998")
