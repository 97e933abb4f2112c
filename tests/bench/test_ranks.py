# SPDX-License-Identifier: Apache-2.0
"""What many ranks would gain, reckoned from what each of them has to do."""

from __future__ import annotations

import pytest

from bench.quiet import Noise, Round
from bench.ranks import (
    Meeting,
    Work,
    growth,
    imbalance,
    least,
    longest_s,
    mpi_meeting,
    results,
    seconds,
    shared_meeting,
)
from bench.virtual import apart

FREE = Meeting()
ONE = Work(((8.0,), (4.0,)), ((0,), (0,)))
TWO = Work(((5.0, 3.0), (1.0, 3.0)), ((10, 20), (0, 30)))


def test_each_stretch_takes_as_long_as_its_longest_part() -> None:
    assert seconds(TWO, FREE, 2) == 5 + 3
    assert seconds(TWO, FREE, 1) == seconds(ONE, FREE, 1) == 12
    assert imbalance(TWO) == pytest.approx((8 / 6, 1.0))


def test_meetings_and_bytes_cost() -> None:
    """Bytes cost who hands them over, so another part may be the longest."""
    assert seconds(TWO, Meeting(fixed_s=0.5), 2) == 8 + 2 * 0.5
    assert seconds(TWO, Meeting(byte_s=0.5), 2) == max(5 + 5, 3 + 10) + 3 + 15
    assert shared_meeting(4, Meeting(0.5, 0.25)) == Meeting(1.5, 0.25)
    assert mpi_meeting(64, 2, 0.0).fixed_s == pytest.approx(6 * 2e-6)


def test_cores_that_are_shared() -> None:
    """The longest first, to whom is free."""
    assert longest_s([3, 3, 2, 2, 2], 2) == 7
    assert longest_s([3, 1], 8) == 3


def test_the_least_of_each_time() -> None:
    again = Work(((6.0, 2.0), (1.5, 2.5)), TWO.sent_bytes)
    assert least([TWO, again]) == Work(((5.0, 2.0), (1.0, 2.5)), TWO.sent_bytes)


def test_growth_is_told_from_rounds_side_by_side() -> None:
    slow = Work(((16.0,), (8.0,)), ONE.sent_bytes)
    assert growth([TWO, TWO], [ONE, ONE]) == 1.0
    assert growth([TWO, TWO, TWO], [slow, ONE, ONE]) == 1.0
    assert growth([TWO], [slow]) == 0.5


def test_rows_compare_with_what_was_measured() -> None:
    quiet = Noise(0.0, 0.0, 0.0)
    measured = {ranks: [Round(value, quiet)] for ranks, value in ((1, 12.0), (2, 10.0))}
    (row,) = results("it", {1: (ONE, 1.0), 2: (TWO, 1.25)}, FREE, measured, 2)
    assert (row.name, row.value) == ("2 ranks", 12 / 1.25 / 8)
    assert row.rival is not None and row.rival.value == pytest.approx(1.2)


def _parts(ranks: int) -> Work:
    from bench.rank_work import work
    from bench.ranks import words

    return work(words("ecmp", 4, 20_000), ranks)


def test_the_work_of_a_network_in_parts() -> None:
    """All parts come to the same meetings, and who is alone hands nothing over."""
    one, three = apart(_parts, 1), apart(_parts, 3)
    assert {len(each) for each in three.cpu_s} == {3} and {len(each) for each in one.cpu_s} == {1}
    assert len(three.cpu_s) > 2
    assert min(map(min, three.cpu_s)) >= 0 and sum(map(sum, one.sent_bytes)) == 0
    assert sum(map(sum, three.sent_bytes)) > 20_000
