# SPDX-License-Identifier: Apache-2.0
"""What kinds of claims there are, and how each is graded.

number      a number of the paper's evaluation: within 15 % of it, within a factor of 1.5, or beyond, which
            is also what says that the other one of two is the better; not a bound, which anything may meet
ranking     who is better: holds where the interval over seeds lies on the paper's side of equality, is
            reversed where it lies on the other, else a tie; undecided where there are too few seeds for one
direction   what is said without a number or an order: more or less, about the same, at least so much;
            undecided where the interval over seeds reaches to both sides of what is expected
invariant   what must always be: order, nothing lost
arithmetic  the paper's own numbers, without a run
ours        what no paper says, likewise

Only numbers and rankings are headlines. A number of a paper counts once: where it is tested in several cases,
or by several claims with one `number`, the worst of them counts, but those that do not count at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tailrace.papers.claims.expect import Expectation

NUMBER, RANKING = "number", "ranking"
KINDS = (NUMBER, RANKING, "direction", "invariant", "arithmetic", "ours")

_UNCERTAIN = ("direction", "ours")
"""What an interval can leave open."""

HOLDS, DIFFERS, NOT_MEASURED = "holds", "differs", "not measured"
CLOSE, NEAR, BEYOND = "within 15 %", "within 1.5", "beyond"
TIE, REVERSED, UNDECIDED = "tie", "reversed", "undecided"

GRADES: Mapping[str, tuple[str, ...]] = {
    NUMBER: (CLOSE, NEAR, BEYOND),
    RANKING: (HOLDS, TIE, REVERSED, UNDECIDED),
    **dict.fromkeys(KINDS[2:], (HOLDS, DIFFERS)),
    **dict.fromkeys(_UNCERTAIN, (HOLDS, UNDECIDED, DIFFERS)),
}
"""The verdicts on each kind, the best first; besides, anything may be not measured."""

GOOD = (HOLDS, CLOSE)
FAIR = (NEAR, TIE, UNDECIDED)
"""Verdicts that are as the paper says, and those that do not contradict it; what is in neither does."""

_CLOSE, _NEAR, _ROUNDING = 0.15, 1.5, 1e-9


def grade(
    kind: str, expected: Expectation, value: float, ends: tuple[float, float] | None, even: float = 0.0
) -> str:
    """The verdict on a value, in the unit of what is expected of it.

    Args:
        kind: one of KINDS.
        expected: of a ranking a comparison with equality.
        value: what was measured.
        ends: its interval over seeds, if there is one.
        even: where what a number compares is equal.
    """
    if kind == NUMBER:
        times = expected.times(value, even)
        if abs(times - 1) <= _CLOSE + _ROUNDING:
            return CLOSE
        return NEAR if 1 / _NEAR - _ROUNDING <= times <= _NEAR + _ROUNDING else BEYOND
    if kind == RANKING:
        return _ranking(expected, ends)
    verdict = HOLDS if expected.test(value) else DIFFERS
    if kind in _UNCERTAIN and ends is not None and len({expected.test(each) for each in (value, *ends)}) > 1:
        return UNDECIDED  # other seeds could say the other thing
    return verdict


def _ranking(expected: Expectation, ends: tuple[float, float] | None) -> str:
    even = expected.even
    assert even is not None, "model.py has seen to that"
    if ends is None:
        return UNDECIDED
    low, high = ends
    if low <= even <= high:
        return TIE
    return HOLDS if (high < even) == (expected.sense < 0) else REVERSED


def worst(kind: str, verdicts: Iterable[str]) -> str:
    """The worst of some verdicts on one kind; not measured only where none was."""
    grades = GRADES[kind]
    return max((verdict for verdict in verdicts if verdict in grades), key=grades.index, default=NOT_MEASURED)
