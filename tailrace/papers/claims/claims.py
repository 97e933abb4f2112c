# SPDX-License-Identifier: Apache-2.0
"""The paper's claims against what was measured, each graded by its kind (kinds.py); and how many came out
how.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from tailrace.papers.claims.expression import NotMeasuredError, Values, evaluate, names_cases
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
from tailrace.papers.claims.of_seeds import OfSeeds
from tailrace.papers.model import Claim
from tailrace.results.estimates import Estimate
from tailrace.results.units import UNITS

_RATIO = "times"
"""The unit of one of two over the other."""

UNEXPLAINED = "Unexplained."
"""What stands where a claim differs, and nobody knows why."""


class Verdict(msgspec.Struct, frozen=True):
    """A claim in one case.

    `ours` is None where it was not measured; `shown` is it in the claim's unit, with its interval over
    seeds if there is one, and `expect` is in that unit, too. `number` is what claims about one number of
    the paper have in common; `counts` says whether this one is among the headlines, if its kind is; `rerun`
    is what the paper's authors found when they ran it again, if they did.
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
    """Every claim, in every case that it is about; `draws` has what other seeds would have given.

    Raises:
        SpecError: an expression that cannot be evaluated.
    """
    verdicts = []
    for claim in claims:
        about = [""] if names_cases(claim.value) else claim.cases or list(cases)
        verdicts += [_verdict(claim, values, case, scale, of_seeds) for case in about]
    return tuple(verdicts)


def _verdict(claim: Claim, values: Values, case: str, scale: str, of_seeds: OfSeeds | None) -> Verdict:
    try:
        ours = evaluate(claim.value, values, case)
    except NotMeasuredError as error:
        return _made(claim, case, None, "-", NOT_MEASURED, str(error))
    interval = Estimate(ours) if of_seeds is None else of_seeds.estimate(claim.value, case)
    return graded(claim, case, Estimate(ours, interval.low, interval.high), scale)


def graded(claim: Claim, case: str, ours: Estimate, scale: str) -> Verdict:
    """The verdict on the value of a claim's expression in a case."""
    unit = UNITS[claim.unit]
    ends = None if ours.ends is None else (ours.ends[0] * unit.factor, ours.ends[1] * unit.factor)
    even = 1.0 if claim.unit == _RATIO else 0.0
    verdict = grade(claim.kind, claim.expectation, ours.value * unit.factor, ends, even)
    shown = unit.text(ours.value)
    if ends is not None and ends[0] < ends[1]:
        shown = f"{shown} ({unit.shown(ends[0])}..{unit.shown(ends[1])})"
    why = "" if verdict in GOOD else claim.explanation(scale) or ("" if verdict in FAIR else UNEXPLAINED)
    return _made(claim, case, ours.value, shown, verdict, why)


def _made(claim: Claim, case: str, ours: float | None, shown: str, verdict: str, why: str) -> Verdict:
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
"""How often each verdict was given on each kind."""


def tally(documents: Iterable[Sequence[Verdict]]) -> Tally:
    """The verdicts on the claims of each figure; a number of the paper counts once in each."""
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
        for each in numbers.values():
            counts[NUMBER][worst(NUMBER, each)] += 1
    return counts


def headline(counts: Tally) -> str:
    """Numbers and rankings in one line; empty where there are none."""
    return "; ".join(filter(None, (_kind_text(kind, counts[kind]) for kind in (NUMBER, RANKING))))


def other_kinds(counts: Tally) -> str:
    """The other kinds in one line; empty where there are none."""
    return "; ".join(filter(None, (_kind_text(kind, counts[kind]) for kind in KINDS[2:])))


_NAMES = {"ours": ("of ours", "of ours"), "arithmetic": ("of arithmetic", "of arithmetic")}
_VERBS = {HOLDS: ("holds", "hold"), DIFFERS: ("differs", "differ"), TIE: ("tie", "ties")}
"""One of them, and several."""


def _kind_text(kind: str, seen: Counter[str]) -> str:
    """`12 numbers: 3 within 15 %, 9 beyond`."""
    count = sum(seen.values())
    if not count:
        return ""
    name = _NAMES.get(kind, (kind, f"{kind}s"))[count > 1]
    parts = [
        f"{seen[verdict]} {_VERBS.get(verdict, (verdict, verdict))[seen[verdict] > 1]}"
        for verdict in (*GRADES[kind], NOT_MEASURED)
        if seen[verdict]
    ]
    return f"{count} {name}: {', '.join(parts)}"
