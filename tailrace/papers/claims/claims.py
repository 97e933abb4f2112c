# SPDX-License-Identifier: Apache-2.0
"""Compares a paper's claims with measurements, grades each by its kind (kinds.py), and counts verdicts.

A case is one setting in which a figure compares schemes, such as one workload in one network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tailrace.papers.claims.expression import NotMeasuredError, Values, evaluate, names_cases, subtracts
from tailrace.papers.claims.kinds import (
    DIFFERS,
    FAIR,
    GOOD,
    GRADES,
    HOLDS,
    KINDS,
    NOT_MEASURED,
    NUMBER,
    RANKING,
    TIE,
    grade,
    worst,
)
from tailrace.papers.model import Claim
from tailrace.results.estimates import Estimate, SeedValues, estimate
from tailrace.results.units import UNITS

_RATIO = "times"
"""The unit of ratios: n times."""

UNEXPLAINED = "Unexplained."
"""The explanation of a claim that differs for an unknown reason."""


class Verdict(msgspec.Struct, frozen=True):
    """The verdict on a claim in one case.

    text, case: the claim's text, and the case in which it was checked
    expect, paper: the expected value in the claim's unit, and the paper's value as text
    ours: the measured value; None: not measured
    shown: the measured value as text in the claim's unit, with its interval over seeds if there is one
    verdict, why: the verdict, and an explanation if the claim differs
    kind: one of kinds.KINDS
    number: a name shared by all claims about the same number of the paper
    counts: False if the claim is excluded from the headline counts
    rerun: the value that the paper's authors measured when they repeated the experiment; empty: they did not
    """

    text: str
    case: str
    expect: str
    paper: str
    ours: float | None
    shown: str
    verdict: str
    why: str = ""
    kind: str = ""
    number: str = ""
    counts: bool = True
    rerun: str = ""


def judge(
    claims: Sequence[Claim], values: Values, cases: Sequence[str], scale: str, of_seeds: OfSeeds | None = None
) -> tuple[Verdict, ...]:
    """The verdicts on every claim in each of its cases; `of_seeds` gives the intervals over seeds.

    Raises:
        SpecError: an expression that cannot be evaluated.
    """
    verdicts = []
    for claim in claims:
        checked_cases = [""] if names_cases(claim.value) else claim.cases or list(cases)
        verdicts += [_verdict(claim, values, case, scale, of_seeds) for case in checked_cases]
    return tuple(verdicts)


def _verdict(claim: Claim, values: Values, case: str, scale: str, of_seeds: OfSeeds | None) -> Verdict:
    try:
        ours = evaluate(claim.value, values, case)
    except NotMeasuredError as error:
        return _make(claim, case, None, "-", NOT_MEASURED, str(error))
    interval = Estimate(ours) if of_seeds is None else of_seeds.estimate(claim.value, case)
    return graded(claim, case, Estimate(ours, interval.low, interval.high), scale)


def even_of(claim: Claim) -> float:
    """The value, in the unit of a claim, at which two schemes are equal."""
    return 1.0 if claim.unit == _RATIO else 0.0


def graded(claim: Claim, case: str, ours: Estimate, scale: str) -> Verdict:
    """The verdict on a claim in a case, given the measured value `ours` of its expression."""
    unit = UNITS[claim.unit]
    ends = None if ours.ends is None else (ours.ends[0] * unit.factor, ours.ends[1] * unit.factor)
    verdict = grade(claim.kind, claim.expectation, ours.value * unit.factor, ends, even_of(claim))
    shown = unit.text(ours.value)
    if ends is not None and ends[0] < ends[1]:
        shown = f"{shown} ({unit.shown(ends[0])}..{unit.shown(ends[1])})"
    why = "" if verdict in GOOD else claim.explanation(scale) or ("" if verdict in FAIR else UNEXPLAINED)
    return _make(claim, case, ours.value, shown, verdict, why)


def _make(claim: Claim, case: str, ours: float | None, shown: str, verdict: str, why: str) -> Verdict:
    return Verdict(
        text=claim.text,
        case=case,
        expect=claim.expect,
        paper=claim.paper,
        rerun=claim.rerun.get(case, ""),
        ours=ours,
        shown=shown,
        verdict=verdict,
        why=why,
        kind=claim.kind,
        number=claim.number,
        counts=claim.counts is None or case in claim.counts,
    )


Tally = dict[str, Counter[str]]
"""By kind of claim, how often each verdict was given."""


def tally(documents: Iterable[Sequence[Verdict]]) -> Tally:
    """Counts the verdicts of all figures; a paper's number counts once per figure, with its worst verdict."""
    counts: Tally = {kind: Counter() for kind in KINDS}
    for verdicts in documents:
        numbers: dict[tuple[str, ...], list[str]] = {}
        for verdict in verdicts:
            if not verdict.counts and verdict.kind in (NUMBER, RANKING):
                continue
            if verdict.kind == NUMBER:
                key = (verdict.number,) if verdict.number else (verdict.text, verdict.paper)
                numbers.setdefault(key, []).append(verdict.verdict)
            else:
                counts[verdict.kind][verdict.verdict] += 1
        for verdicts_of_number in numbers.values():
            counts[NUMBER][worst(NUMBER, verdicts_of_number)] += 1
    return counts


def headline(counts: Tally) -> str:
    """The counts of numbers and rankings in one line; empty if there are none."""
    return "; ".join(filter(None, (_kind_text(kind, counts[kind]) for kind in (NUMBER, RANKING))))


def other_kinds(counts: Tally) -> str:
    """The counts of the other kinds in one line; empty if there are none."""
    return "; ".join(filter(None, (_kind_text(kind, counts[kind]) for kind in KINDS[2:])))


_NAMES = {"ours": ("of ours", "of ours"), "arithmetic": ("of arithmetic", "of arithmetic")}
_VERBS = {HOLDS: ("holds", "hold"), DIFFERS: ("differs", "differ"), TIE: ("tie", "ties")}
"""Singular and plural."""


def _kind_text(kind: str, verdicts: Counter[str]) -> str:
    """The counts of one kind as text, such as `12 numbers: 3 within 15 %, 9 beyond`."""
    count = sum(verdicts.values())
    if not count:
        return ""
    name = _NAMES.get(kind, (kind, f"{kind}s"))[count > 1]
    parts = [
        f"{verdicts[verdict]} {_VERBS.get(verdict, (verdict, verdict))[verdicts[verdict] > 1]}"
        for verdict in (*GRADES[kind], NOT_MEASURED)
        if verdicts[verdict]
    ]
    return f"{count} {name}: {', '.join(parts)}"


# ---- intervals over seeds ----
# An interval is computed for the expression, not for its single metrics. All metrics in an expression are
# from the same selection of seeds, so runs with the same traffic stay paired.


Measures = Mapping[tuple[str, str], Mapping[str, SeedValues]]
"""The values of each seed, by case and scheme's label, then by metric."""


@dataclass(frozen=True, slots=True)
class OfSeeds:
    """The measurements of all seeds; `seeds` is their number."""

    measures: Measures
    seeds: int

    def estimate(self, text: str, case: str) -> Estimate:
        """The value of an expression in a case, with its interval over seeds."""

        def statistic(seeds: Any) -> Any:
            chosen = {key: _Chosen(by_metric, seeds) for key, by_metric in self.measures.items()}
            return evaluate(text, chosen, case)

        estimated = estimate(statistic, self.seeds)
        return estimated if subtracts(text) or estimated.value < 0 else estimated.not_negative()


class _Chosen(Mapping[str, Any]):
    """Metrics over a selection of seeds, computed on access."""

    def __init__(self, measures: Mapping[str, SeedValues], seeds: Any) -> None:
        self._measures, self._seeds = measures, seeds

    def __getitem__(self, name: str) -> Any:
        return self._measures[name].statistic(self._seeds)

    def __iter__(self) -> Iterator[str]:
        return iter(self._measures)

    def __len__(self) -> int:
        return len(self._measures)
