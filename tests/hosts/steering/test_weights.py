# SPDX-License-Identifier: Apache-2.0
"""gen(w): indices come by their weights, whatever has changed since."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.hosts.steering.weights import UNIT, Weights
from tests.hosts.steering.path_lists import Given

changes = st.lists(
    st.tuples(st.sampled_from(["block", "put", "times", "restore"]), st.integers(0, 8)),
    min_size=10,
    max_size=40,
)


@settings(max_examples=150)
@given(
    first=st.one_of(
        st.lists(st.integers(0, 8), max_size=4), st.lists(st.integers(0, 8), min_size=12, max_size=40)
    ).map(lambda rest: [8, *rest]),
    changes=changes,
    number=st.integers(0, 2**30 - 1),
)
def test_an_index_is_where_the_sum_passes_the_number(first, changes, number):
    """As a search from one end would find it."""
    weights, plain = Weights(tuple(map(float, first))), [UNIT // 8 * weight for weight in first]
    begun = list(plain)
    for kind, value in changes:
        i = value * 5 % len(first)
        if kind == "block":
            weights.block(i)
            plain[i] = 0
        elif kind == "put":
            weights.put(i, float(value))
            plain[i] = UNIT // 8 * value
        elif kind == "times":
            weights.put_first_times(i, 3)
            plain[i] = 3 * begun[i]
        else:
            weights.restore(i)
            plain[i] = begun[i]
        assert sum(plain) == weights.total
        assert (plain[i] == 0) == weights.is_zero(i)
    drawn = weights.draw(Given([number / 2**30]))
    ruling = plain if sum(plain) else begun
    target = number * sum(ruling) // 2**30
    assert sum(ruling[:drawn]) <= target < sum(ruling[: drawn + 1])


def test_shares_are_those_of_the_weights():
    """Eq. 1's example: 1.86 to 1.00, and a path of weight 0 never."""
    weights, rng = Weights((1491.0 / 799.6, 1.0, 0.0)), random.Random(1)
    drawn = Counter(weights.draw(rng) for _ in range(20_000))
    assert 1491.0 / 799.6 == pytest.approx(drawn[0] / drawn[1], rel=0.05)
    assert 0 == drawn[2]


def test_a_small_weight_is_not_nothing():
    """However small it is beside others."""
    weights = Weights((1e9, 1e-9))
    assert not weights.is_zero(1)
    weights.block(0)
    assert 1 == weights.draw(Given([0.0]))


def test_one_path_is_always_drawn():
    """Even if it is blocked."""
    weights = Weights((2.5,))
    assert 0 == weights.draw(Given([0.999999]))
    weights.block(0)
    assert 0 == weights.draw(Given([0.999999]))


def test_when_all_are_blocked_the_first_weights_count():
    """For something must be sent."""
    weights = Weights((1.0, 3.0))
    weights.block(0)
    weights.block(1)
    assert [0, 1, 1, 1] == [weights.draw(Given([number])) for number in (0.2, 0.26, 0.5, 0.99)]
