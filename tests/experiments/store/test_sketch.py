# SPDX-License-Identifier: Apache-2.0
"""Sketches against all the values that they stand for."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.experiments.results.statistics import percentile
from tailrace.experiments.store.sketch import MOST_BINS, Sketch

# a flow takes from a µs to seconds; some values are equal
values = st.lists(st.one_of(st.integers(0, 400), st.integers(1_000, 10**10)), min_size=1, max_size=300)


@settings(derandomize=True, deadline=None)
@given(values, st.integers(1, 100))
def test_percentiles_are_as_near_as_the_sketch_says(found: list[int], percent: int) -> None:
    """Within the stated share of the nearest-rank percentile of the values themselves."""
    sketch = Sketch.of(found)
    exact = percentile(found, percent)
    assert sketch.count == len(found)
    assert abs(sketch.percentile(percent) - exact) <= sketch.error * exact


@settings(derandomize=True, deadline=None)
@given(st.lists(values, min_size=1, max_size=4), st.integers(1, 100))
def test_sketches_put_together_are_that_of_all_values(each: list[list[int]], percent: int) -> None:
    """In any order and grouping, and no less exact than they say."""
    together = Sketch.merged(Sketch.of(found) for found in each)
    assert together == Sketch.merged(Sketch.of(found) for found in reversed(each))
    assert together == Sketch.merged([Sketch.merged(map(Sketch.of, each[:2])), *map(Sketch.of, each[2:])])
    every = [value for found in each for value in found]
    assert abs(together.percentile(percent) - percentile(every, percent)) <= together.error * percentile(
        every, percent
    )


def test_size_is_bounded() -> None:
    """However many values there are, and however far apart; the error grows with what is left out."""
    wide = Sketch.of(range(1, 3_000_000, 37))
    assert len(wide.steps) <= 2 * MOST_BINS
    assert 0 < wide.halvings <= 3
    assert Sketch.of([7] * 100_000).error == 1 / 256
    assert len(msgspec.json.encode(wide)) < 4096


@pytest.mark.parametrize(
    "text",
    [
        *(b"[0,[1]]", b"[0,[1,0]]", b"[0,[1,2,0,2]]", b"[0,[1,-2]]", b"[9,[]]", b"[0,[99999,1]]"),
        *(b"[7,[56,1]]", b"[0,[1.5,1]]", b"{}", b"[0]", b"[0," + b"[" + b"1," * 600 + b"1]]"),
    ],
)
def test_what_is_no_sketch_is_refused(text: bytes) -> None:
    """Steps back, empty bins, bins beyond the last, and too many."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=Sketch)


def test_a_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="percentile 99 of 0 values"):
        Sketch.of([]).percentile(99)
