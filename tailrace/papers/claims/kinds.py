# SPDX-License-Identifier: Apache-2.0
"""The kinds of claims, and how each is graded.

number      a number of the paper's evaluation, not a bound: the measured value is within 15 % of it, within a
            factor of 1.5, or beyond; beyond, too, if the measured value is on the other side of equality of
            two schemes
ranking     which of two schemes is better: holds if the interval over seeds is on the paper's side of
            equality, is reversed if it is on the other side, else a tie; undecided with too few seeds for an
            interval
direction   a statement without a number or a ranking: more or less, about the same, at least a value;
            undecided if the interval over seeds includes both values that meet it and values that do not
invariant   a property that must always hold: packets in order, no losses
arithmetic  the paper's calculations, checked without a run
ours        statements of this project, not of a paper; graded like directions

Only numbers and rankings are in headlines. A number of a paper counts once: if it is tested in several cases,
or by several claims with the same `number`, the worst verdict counts. Claims that `counts` excludes are
ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tailrace.papers.claims.expect import Expectation

NUMBER, RANKING = "number", "ranking"
KINDS = (NUMBER, RANKING, "direction", "invariant", "arithmetic", "ours")

_UNCERTAIN = ("direction", "ours")
"""Kinds that an interval can leave undecided."""

HOLDS, DIFFERS, NOT_MEASURED = "holds", "differs", "not measured"
CLOSE, NEAR, BEYOND = "within 15 %", "within 1.5", "beyond"
TIE, REVERSED, UNDECIDED = "tie", "reversed", "undecided"

GRADES: Mapping[str, tuple[str, ...]] = {
    NUMBER: (CLOSE, NEAR, BEYOND),
    RANKING: (HOLDS, TIE, REVERSED, UNDECIDED),
    **dict.fromkeys(KINDS[2:], (HOLDS, DIFFERS)),
    **dict.fromkeys(_UNCERTAIN, (HOLDS, UNDECIDED, DIFFERS)),
}
"""The verdicts on each kind, the best first; a claim of any kind may also be NOT_MEASURED."""

GOOD = (HOLDS, CLOSE)
"""Verdicts that confirm the paper."""
FAIR = (NEAR, TIE, UNDECIDED)
"""Verdicts that neither confirm nor contradict the paper."""

_CLOSE, _NEAR, _ROUNDING = 0.15, 1.5, 1e-9


def grade(
    kind: str, expected: Expectation, value: float, ends: tuple[float, float] | None, even: float = 0.0
) -> str:
    """The verdict on a measured value.

    Args:
        kind: one of KINDS.
        expected: the expectation; for a ranking a comparison with 1 or 0.
        value: the measured value, in the unit of `expected`.
        ends: the ends of the value's interval over seeds; None: there is no interval.
        even: for a number, the value at which the compared schemes are equal.
    """
    if kind == NUMBER:
        times = expected.times(value, even)
        if abs(times - 1) <= _CLOSE + _ROUNDING:
            return CLOSE
        return NEAR if 1 / _NEAR - _ROUNDING <= times <= _NEAR + _ROUNDING else BEYOND
    if kind == RANKING:
        return _ranking(expected, ends)
    verdict = HOLDS if expected.test(value) else DIFFERS
    if kind in _UNCERTAIN and ends is not None:
        within = all(map(expected.test, ends))
        meets = expected.test(value) or (ends[0] <= expected.high and ends[1] >= expected.low)
        if meets and not within:
            return UNDECIDED  # other seeds could give the opposite verdict
    return verdict


def _ranking(expected: Expectation, ends: tuple[float, float] | None) -> str:
    even = expected.even
    assert even is not None, "model.py checks the expectations of rankings"
    if ends is None:
        return UNDECIDED
    low, high = ends
    if low <= even <= high:
        return TIE
    return HOLDS if (high < even) == (expected.sense < 0) else REVERSED


def worst(kind: str, verdicts: Iterable[str]) -> str:
    """The worst of some verdicts on claims of one kind; NOT_MEASURED only if no claim was measured."""
    grades = GRADES[kind]
    return max((verdict for verdict in verdicts if verdict in grades), key=grades.index, default=NOT_MEASURED)
