# SPDX-License-Identifier: Apache-2.0
"""Meters against models with exact fractions: two rates (RFC 2698), one rate (RFC 2697), what they count."""

from __future__ import annotations

import functools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.core import MeterRates, StateError, V1ModelSwitch
from tests.switch.bmv2_builder import Builder, call, field

MOST = 2**63 - 1
"""P4Runtime's rates and bursts are int64."""

GREEN, YELLOW, RED = range(3)


@functools.cache
def metered(unit: str) -> SwitchProgram:
    """Each packet names a cell of two, and gets its colour."""
    b = Builder([("index", 8)], [("colour", 8)])
    b.extra["meter_arrays"] = [
        {"name": "m", "id": 0, "is_direct": False, "size": 2, "rate_count": 2, "type": unit}
    ]
    array = {"type": "meter_array", "value": "m"}
    b.run([call("execute_meter", array, field("in", "index"), field("out", "colour"))])
    return load_program(b.text())


def colour_of(switch: V1ModelSwitch, size: int, now_ns: int, index: int = 1) -> int:
    """The colour of a frame of so many bytes."""
    switch.inject(1, bytes([index]) + bytes(size - 1), now_ns)
    switch.run(now_ns)
    (output,) = switch.outputs()
    return output.data[1]


class Model:
    """Token buckets of rationals, in one unit of time: ns."""

    def __init__(self, rates: MeterRates) -> None:
        self.rates = rates
        self.committed = Fraction(rates.cburst)
        self.other = Fraction(rates.eburst or rates.pburst)
        self.at_ns = 0

    def colour(self, amount: int, now_ns: int) -> int:
        rates, seconds = self.rates, Fraction(now_ns - self.at_ns, 10**9)
        self.at_ns = now_ns
        filled = self.committed + rates.cir * seconds
        self.committed = min(filled, Fraction(rates.cburst))
        if rates.eburst:
            self.other = min(self.other + filled - self.committed, Fraction(rates.eburst))
            if self.committed >= amount:
                self.committed -= amount
                return GREEN
            if self.other >= amount:
                self.other -= amount
                return YELLOW
            return RED
        self.other = min(self.other + rates.pir * seconds, Fraction(rates.pburst))
        if self.other < amount:
            return RED
        self.other -= amount
        if self.committed < amount:
            return YELLOW
        self.committed -= amount
        return GREEN


NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, 10**6), st.integers(0, MOST), st.just(MOST))
PAUSES_NS = st.one_of(st.integers(0, 10**9), st.integers(0, 10**14))
FRAMES = st.lists(st.tuples(PAUSES_NS, st.integers(2, 200)), min_size=1, max_size=40)


@st.composite
def some_rates(draw: st.DrawFn) -> MeterRates:
    cir, cburst = draw(NUMBERS), draw(NUMBERS)
    if draw(st.booleans()):
        return MeterRates(cir, cburst, cir, cburst, draw(NUMBERS))
    return MeterRates(cir, cburst, draw(st.integers(cir, MOST)), draw(NUMBERS))


@given(unit=st.sampled_from(["packets", "bytes"]), rates=some_rates(), frames=FRAMES)
@settings(max_examples=150)
def test_colours_and_counts_equal_a_model(
    unit: str, rates: MeterRates, frames: list[tuple[int, int]]
) -> None:
    """Whatever the rates are, to the largest that P4Runtime has; a cell beside it is green all the time."""
    model, now_ns, counts, beside = Model(rates), 0, [0] * 6, [0] * 6
    with V1ModelSwitch(metered(unit)) as switch:
        switch.meter_set(0, 1, rates)
        assert [None, rates] == switch.meter_cells(0, 0, 2)
        for pause_ns, size in frames:
            now_ns += pause_ns
            expected = model.colour(size if unit == "bytes" else 1, now_ns)
            assert expected == colour_of(switch, size, now_ns)
            counts[2 * expected] += size
            counts[2 * expected + 1] += 1
            assert GREEN == colour_of(switch, size, now_ns, 0)
            beside[0] += size
            beside[1] += 1
        assert [tuple(beside), tuple(counts)] == switch.colours_cells(0, 0, 2)


@given(cir=NUMBERS, cburst=NUMBERS, frames=FRAMES)
@settings(max_examples=60)
def test_two_colours_are_two_rates_that_are_equal(
    cir: int, cburst: int, frames: list[tuple[int, int]]
) -> None:
    """Specification 9.4: such a configuration marks alike whatever the meter's type is; yellow is nothing."""
    model, tokens, now_ns = Model(MeterRates(cir, cburst, cir, cburst)), Fraction(cburst), 0
    with V1ModelSwitch(metered("bytes")) as switch:
        switch.meter_set(0, 1, model.rates)
        for pause_ns, size in frames:
            now_ns += pause_ns
            tokens = min(tokens + Fraction(cir * pause_ns, 10**9), Fraction(cburst))
            expected = GREEN if tokens >= size else RED
            tokens -= size if expected == GREEN else 0
            assert expected == model.colour(size, now_ns) == colour_of(switch, size, now_ns)


@pytest.mark.parametrize(
    "rates",
    [
        MeterRates(cir=2, cburst=1, pir=1, pburst=1),
        MeterRates(cir=2, cburst=1, pir=3, pburst=1, eburst=1),
        MeterRates(cir=2, cburst=1, pir=2, pburst=2, eburst=1),
    ],
)
def test_rates_that_no_meter_has_are_refused(rates: MeterRates) -> None:
    """The cell goes on as it was."""
    with V1ModelSwitch(metered("packets")) as switch:
        with pytest.raises(StateError, match="invalid"):
            switch.meter_set(0, 1, rates)
        assert [None, None] == switch.meter_cells(0, 0, 2)


def test_new_rates_leave_what_was_counted() -> None:
    """And counts are set by themselves."""
    with V1ModelSwitch(metered("packets")) as switch:
        switch.meter_set(0, 1, MeterRates(0, 1, 0, 2))
        seen = [colour_of(switch, 10, 0) for _ in range(3)]
        assert [GREEN, YELLOW, RED] == seen
        for rates in (MeterRates(5, 5, 5, 5, 5), None):
            switch.meter_set(0, 1, rates)
            assert [(10, 1, 10, 1, 10, 1)] == switch.colours_cells(0, 1, 1)
        switch.colours_store(0, 0, (1, 2, 3, 4, 5, 6) * 2)
        assert [(1, 2, 3, 4, 5, 6)] * 2 == switch.colours_cells(0, 0, 2)
        with pytest.raises(StateError) as caught:
            switch.colours_cells(0, 1, 2)
        assert "range" == caught.value.code


def test_an_index_behind_the_end_leaves_the_field_alone() -> None:
    """And counts nowhere."""
    with V1ModelSwitch(metered("packets")) as switch:
        switch.inject(1, bytes([2, 9]) + bytes(10), 0)
        switch.run(0)
        assert [9] == [output.data[1] for output in switch.outputs()]
        assert [(0,) * 6] * 2 == switch.colours_cells(0, 0, 2)


def test_an_entry_without_a_direct_meter_has_no_rates() -> None:
    """A table says whether its entries have one."""
    b = Builder([("a", 8)])
    act = b.action("act", [])
    b.table("t", [("exact", "in", "a")], "exact", [act], default=(act, []))
    with V1ModelSwitch(load_program(b.text())) as switch:
        for ask in (
            lambda: switch.entry_meter_set(0, -1, MeterRates(1, 1, 1, 1)),
            lambda: switch.entry_colours(0, -1),
            lambda: switch.entry_colours_set(0, -1, (0,) * 6),
        ):
            with pytest.raises(StateError) as caught:
                ask()
            assert "invalid" == caught.value.code
