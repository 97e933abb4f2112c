# SPDX-License-Identifier: Apache-2.0
"""Quantities with units, from text and back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.spec import SpecError, UnitError
from tailrace.spec.units import (
    format_bytes,
    format_rate,
    format_time,
    parse_bytes,
    parse_rate_bps,
    parse_time_ns,
    readable_time,
    significant,
    time_unit,
)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_rate_bps, "200Gbps", 200_000_000_000),
        (parse_rate_bps, "10mbps", 10_000_000),
        (parse_rate_bps, "1.5 Kbps", 1_500),
        (parse_rate_bps, "800", 800),
        (parse_time_ns, "1us", 1_000),
        (parse_time_ns, "2.5ms", 2_500_000),
        (parse_time_ns, "7", 7),
        (parse_bytes, "8MiB", 8 << 20),
        (parse_bytes, "9KB", 9_000),
        (parse_bytes, "64", 64),
    ],
)
def test_parse(parse: Callable[[str], int], text: str, value: int) -> None:
    """A quantity is a whole number of its smallest unit; a bare number has that unit."""
    assert value == parse(text)


@pytest.mark.parametrize("parse", [parse_rate_bps, parse_time_ns, parse_bytes])
@pytest.mark.parametrize("text", ["", "x", "1 parsec", "-1", "1.2.3", "0.3", "1e3", "∞"])
def test_refuse(parse: Callable[[str], int], text: str) -> None:
    """Everything else is refused in one line that shows the text."""
    with pytest.raises(UnitError) as caught:
        parse(text)
    assert isinstance(caught.value, SpecError)
    assert repr(text) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_case_matters_where_it_means_something() -> None:
    """MS is no time and KIB no size, though Gbps may be written in any case."""
    with pytest.raises(UnitError):
        parse_time_ns("1MS")
    with pytest.raises(UnitError):
        parse_bytes("1KIB")


@pytest.mark.parametrize(
    ("format_text", "parse"),
    [(format_rate, parse_rate_bps), (format_time, parse_time_ns), (format_bytes, parse_bytes)],
)
@given(value=st.integers(0, 1 << 50))
def test_format_is_near(format_text: Callable[[int], str], parse: Callable[[str], int], value: int) -> None:
    """The text for a value is that of a value no further away than half of the last of three decimals."""
    number = format_text(value)
    digits = number.rstrip("BKMGTbipsnum")
    unit = parse("1" + number[len(digits) :])
    assert abs(float(digits) * unit - value) <= 0.0005 * unit + value * 1e-9


def test_format_examples() -> None:
    """The largest unit that is not larger than the value is used."""
    assert ["0bps", "999bps", "1Kbps", "200Gbps"] == [
        format_rate(rate) for rate in (0, 999, 1_000, 200_000_000_000)
    ]
    assert ["1.5us", "2s"] == [format_time(1_500), format_time(2_000_000_000)]
    assert ["1000B", "8MiB"] == [format_bytes(1_000), format_bytes(8 << 20)]


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [(0, "0 ns"), (7, "7.00 ns"), (12_345, "12.3 µs"), (9_890_000, "9.89 ms"), (4_750_000_000, "4.75 s")],
)
def test_times_for_people(time_ns: int, text: str) -> None:
    assert readable_time(time_ns) == text


def test_one_unit_suits_the_longest() -> None:
    assert [time_unit(ns)[1] for ns in (0, 999, 1_000, 999_999, 10**6, 10**9, 10**16)] == [
        *("ns", "ns", "µs", "µs", "ms", "s", "s")
    ]


def test_numbers_have_no_exponent() -> None:
    assert [significant(value) for value in (0.00012, 1.5, 99.9, 31_740)] == [
        "0.000120",
        "1.50",
        "99.9",
        "31,740",
    ]
