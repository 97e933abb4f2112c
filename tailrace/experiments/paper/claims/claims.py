# SPDX-License-Identifier: Apache-2.0
"""The paper's claims against what was measured: holds, differs, or was not measured."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tailrace.experiments.paper.claims.expression import NotMeasuredError, Values, evaluate, names_cases
from tailrace.experiments.paper.model import Claim
from tailrace.experiments.results.units import UNITS

HOLDS, DIFFERS, NOT_MEASURED = "holds", "differs", "not measured"


class Verdict(msgspec.Struct, frozen=True):
    """A claim in one case.

    `ours` is None where it was not measured; `shown` is it in the claim's unit, and so is `expect`.
    """

    text: str
    case: str
    expect: str
    paper: str
    ours: float | None
    shown: str
    verdict: str
    why: str = ""


def judge(claims: Sequence[Claim], values: Values, cases: Sequence[str], scale: str) -> tuple[Verdict, ...]:
    """Every claim, in every case that it is about.

    Raises:
        SpecError: an expression that cannot be evaluated.
    """
    found = []
    for claim in claims:
        about = [""] if names_cases(claim.value) else claim.cases or list(cases)
        found += [_verdict(claim, values, case, scale) for case in about]
    return tuple(found)


def _verdict(claim: Claim, values: Values, case: str, scale: str) -> Verdict:
    try:
        ours = evaluate(claim.value, values, case)
    except NotMeasuredError as error:
        return Verdict(claim.text, case, claim.expect, claim.paper, None, "-", NOT_MEASURED, why=str(error))
    unit = UNITS[claim.unit]
    holds = claim.expectation.test(ours * unit.factor)
    return Verdict(
        claim.text,
        case,
        claim.expect,
        claim.paper,
        ours,
        unit.text(ours),
        HOLDS if holds else DIFFERS,
        why="" if holds else claim.explanation(scale),
    )
