# SPDX-License-Identifier: Apache-2.0
"""Kinds of claims: how each is graded, what counts, and that intervals of expressions are of pairs."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.papers.claims.claims import (
    UNEXPLAINED,
    OfSeeds,
    Verdict,
    graded,
    headline,
    judge,
    other_kinds,
    tally,
)
from tailrace.papers.claims.expect import parse_expectation
from tailrace.papers.claims.kinds import (
    BEYOND,
    CLOSE,
    DIFFERS,
    HOLDS,
    NEAR,
    NOT_MEASURED,
    NUMBER,
    RANKING,
    REVERSED,
    TIE,
    UNDECIDED,
    grade,
)
from tailrace.papers.model import Claim, names, read_paper
from tailrace.results.estimates import Estimate, SeedValues


@pytest.mark.parametrize(
    ("expect", "close", "near", "beyond"),
    [
        ("10", [8.5, 10, 11.5], [6.7, 8.4, 11.6, 15], [6.6, 15.1, 0, -10]),
        ("2.5..25.4", [2.2, 2.5, 9, 25.4, 29.2], [1.7, 2.1, 29.3, 38], [1.6, 38.2, -3]),
        ("-4", [-4.6, -3.4], [-6, -2.7], [4, 0]),
    ],
)
def test_numbers(expect: str, close: list[float], near: list[float], beyond: list[float]) -> None:
    """By how many times the nearest end of what the paper says, whatever the interval."""
    for values, verdict in ((close, CLOSE), (near, NEAR), (beyond, BEYOND)):
        for value in values:
            for ends in (None, (value - 1, value + 1)):
                assert grade(NUMBER, parse_expectation(expect), value, ends) == verdict, value


@given(paper=st.floats(0.7, 1.4), ours=st.floats(0.7, 1.4))
def test_the_other_one_of_two_is_not_near(paper: float, ours: float) -> None:
    """A ratio says which of two is better: on the other side of 1 it is beyond, and its inverse, too."""
    for number, value in ((paper, ours), (1 / paper, 1 / ours)):
        expected = parse_expectation(f"{number:.9f}")
        other = (expected.low - 1) * (value - 1) <= 0 and value != expected.low
        assert (grade(NUMBER, expected, value, None, even=1.0) == BEYOND) >= other
        if not other:
            assert grade(NUMBER, expected, value, None, even=1.0) == grade(NUMBER, expected, value, None)


@given(st.floats(0.01, 1e6), st.floats(1e-3, 1e3))
def test_a_number_is_graded_by_its_ratio(middle: float, factor: float) -> None:
    """The unit does not matter."""
    expected = parse_expectation(f"{middle:.9f}")
    verdict = grade(NUMBER, expected, expected.low * factor, None)
    edges = (0.85, 1.15, 1.5, 1 / 1.5)
    if min(abs(factor - edge) for edge in edges) > 1e-6:
        assert verdict == (CLOSE if 0.85 < factor < 1.15 else NEAR if 1 / 1.5 < factor < 1.5 else BEYOND)


@pytest.mark.parametrize("expect", ["< 1", "<= 1", "> 1", ">= 1", "> 0", "<= 0"])
@given(low=st.floats(-3, 3), width=st.floats(0, 2))
def test_rankings(expect: str, low: float, width: float) -> None:
    """By the interval alone: on the paper's side, around equality, or on the other; never without one."""
    expected = parse_expectation(expect)
    even, high = expected.even, low + width
    assert even is not None
    verdict = grade(RANKING, expected, low, (low, high))
    below = expect.startswith("<")
    if low <= even <= high:
        assert verdict == TIE
    else:
        assert verdict == (HOLDS if (high < even) == below else REVERSED)
    assert grade(RANKING, expected, low, None) == UNDECIDED


def test_the_rest_holds_or_differs() -> None:
    for kind in ("direction", "invariant", "arithmetic", "ours"):
        assert grade(kind, parse_expectation("0.9..1.1"), 1.0, None) == HOLDS
        assert grade(kind, parse_expectation("== 0"), 1e-9, (1e-9, 1)) == DIFFERS


def test_an_interval_can_leave_open_what_is_no_law() -> None:
    """Where other seeds could say the other thing; never of an invariant, for one case against it is enough."""
    for kind, open_ in (
        ("direction", UNDECIDED),
        ("ours", UNDECIDED),
        ("invariant", HOLDS),
        ("arithmetic", HOLDS),
    ):
        expected = parse_expectation("0.9..1.1")
        assert grade(kind, expected, 1.0, (0.95, 1.05)) == HOLDS
        for ends in ((0.8, 1.05), (0.95, 1.2), (0.8, 1.2)):
            assert grade(kind, expected, 1.0, ends) == open_
        for value, ends in ((0.7, (0.0, 1.7)), (0.85, (0.8, 0.95)), (1.2, (1.05, 1.4))):
            assert grade(kind, expected, value, ends) == (DIFFERS if open_ == HOLDS else open_)
        assert grade(kind, parse_expectation("< 1"), 0.96, (0.9, 1.03)) == open_
        assert grade(kind, parse_expectation("< 1"), 1.2, (1.1, 1.3)) == DIFFERS


def claim(kind: str = NUMBER, expect: str = "10", **more: object) -> Claim:
    words = {"kind": kind, "text": "t", "value": "fct['a'] / fct['b']", "expect": expect}
    return msgspec.convert(words | more, Claim)


def verdict(kind: str, judged: str, number: str = "", *, counts: bool = True, text: str = "t") -> Verdict:
    return Verdict(text, "", "", "", 1.0, "", judged, kind=kind, number=number, counts=counts)


def test_a_number_counts_once() -> None:
    """With its worst case, over claims with one name, too; of another figure it is another."""
    figure = [
        verdict(NUMBER, CLOSE),
        verdict(NUMBER, BEYOND),
        verdict(NUMBER, NEAR, "x"),
        verdict(NUMBER, CLOSE, "x", text="u"),
        verdict(NUMBER, BEYOND, counts=False, text="v"),
        verdict(NUMBER, NOT_MEASURED, text="w"),
        verdict(RANKING, HOLDS),
        verdict(RANKING, TIE),
        verdict(RANKING, REVERSED, counts=False),
        verdict("invariant", HOLDS),
    ]
    assert headline(tally([figure])) == (
        "3 numbers: 1 within 1.5, 1 beyond, 1 not measured; 2 rankings: 1 holds, 1 tie"
    )
    assert headline(tally([figure[:1], figure[:1]])) == "2 numbers: 2 within 15 %"
    assert other_kinds(tally([figure])) == "1 invariant: 1 holds"
    assert headline(tally([])) == other_kinds(tally([])) == ""


def test_what_counts_is_said_by_case() -> None:
    """Missing: every case; else those that are named."""
    estimate = Estimate(10.0)
    assert graded(claim(), "one", estimate, "small").counts
    assert graded(claim(counts=["one"]), "one", estimate, "small").counts
    assert not graded(claim(counts=["one"]), "two", estimate, "small").counts
    assert not graded(claim(counts=[]), "one", estimate, "small").counts


@pytest.mark.parametrize(
    ("value", "without", "given"), [(10.0, "", ""), (12.0, "", "chance"), (100.0, UNEXPLAINED, "chance")]
)
def test_what_differs_has_its_cause_or_is_called_unexplained(value: float, without: str, given: str) -> None:
    """What contradicts nothing needs no cause, but may have one."""
    assert graded(claim(), "one", Estimate(value), "small").why == without
    assert graded(claim(why="chance"), "one", Estimate(value), "small").why == given


def test_a_ratio_is_one_of_two_over_the_other() -> None:
    """0.95 is near 1.05, but not where 1.05 says which of two is the better."""
    estimate = Estimate(0.95)
    assert graded(claim(expect="1.05"), "one", estimate, "small").verdict == CLOSE
    assert graded(claim(expect="1.05", unit="times"), "one", estimate, "small").verdict == BEYOND


def samples(seeds: int) -> dict[tuple[str, str], dict[str, SeedValues]]:
    """Two schemes whose times differ far more between seeds than from each other: b is 5 % faster, always."""
    rng = random.Random(7)
    base = [rng.lognormvariate(10, 1) for _ in range(seeds)]
    return {
        ("", label): {"fct": SeedValues(tuple(value * factor for value in base))}
        for label, factor in (("a", 1.0), ("b", 0.95), ("c", 1.0))
    }


def test_intervals_of_expressions_are_of_pairs() -> None:
    """5 % that every seed has is a ranking, and nothing at all is a tie."""
    measures = samples(6)
    values = {
        key: {name: estimate.value for name, estimate in metrics.items()} for key, metrics in measures.items()
    }
    of_seeds = OfSeeds(measures, 6)
    texts = (
        "fct['b'] / fct['a']",
        "fct['c'] / fct['a']",
        "min(fct['b'], fct['c']) / fct['a']",
        "1 - fct['b'] / mean(fct['*'])",
    )
    expects = ("< 1", "< 1", "< 1", "> 0")
    claims = [
        Claim(kind=RANKING, text="t", value=text, expect=expect)
        for text, expect in zip(texts, expects, strict=True)
    ]
    verdicts = [judged.verdict for judged in judge(claims, values, [""], "small", of_seeds)]
    assert verdicts == [HOLDS, TIE, HOLDS, HOLDS]
    alone = of_seeds.estimate("fct['b']", "")
    assert alone.ends is not None
    assert alone.ends[0] < values["", "a"]["fct"] < alone.ends[1], "apart nobody could tell them"
    assert of_seeds.estimate("fct['b']", "") == alone
    few = judge(claims, values, [""], "small", OfSeeds(samples(2), 2))
    assert {judged.verdict for judged in few} == {UNDECIDED}


@pytest.mark.parametrize("name", names())
def test_every_claim_of_the_papers_is_sorted(name: str) -> None:
    """Only ours are of no paper, and a number that a figure tests in several claims counts in one of them."""
    file = read_paper(name)
    for entry in file.claim:
        assert bool(entry.paper.strip("-")) or entry.kind == "ours", entry.text
    for scale in ("small", "paper"):
        counted = [
            (case, entry.value)
            for entry in file.claims(scale)
            if entry.kind == NUMBER and not entry.number
            for case in (entry.counts if entry.counts is not None else entry.cases or [""])
        ]
        assert len(counted) == len(set(counted))
