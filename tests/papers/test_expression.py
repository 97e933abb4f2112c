# SPDX-License-Identifier: Apache-2.0
"""Expressions and expectations of claims."""

from __future__ import annotations

import pytest

from tailrace.papers.claims.expect import parse_expectation
from tailrace.papers.claims.expression import (
    NotMeasuredError,
    checked,
    evaluate,
    names_cases,
)
from tailrace.spec import SpecError

VALUES = {
    ("a", "ecmp"): {"fct": 10.0, "gap": 1.0},
    ("a", "flowcut"): {"fct": 5.0},
    ("b", "ecmp"): {"fct": 30.0, "gap": 20.0},
    ("b", "flowcut"): {"fct": 6.0},
}


@pytest.mark.parametrize(
    ("text", "case", "value"),
    [
        ("fct['flowcut'] / fct['ecmp']", "a", 0.5),
        ("fct['flowcut'] / fct['ecmp']", "b", 0.2),
        ("fct['b', 'ecmp'] - 1.5", "a", 28.5),
        ("max(gap['*', 'ecmp']) / min(gap['*', 'ecmp'])", "", 20),
        ("mean(fct['*'])", "a", 7.5),
        ("max(fct['*', 'flowcut'] / fct['*', 'ecmp'])", "", 0.5),
        ("min(2 * fct['*'], 7)", "b", 7),
        ("1 + 2 * 3", "", 7),
    ],
)
def test_values(text: str, case: str, value: float) -> None:
    """Arithmetic over metrics of this case, of a named one, and over lists."""
    checked(text)
    assert evaluate(text, VALUES, case) == pytest.approx(value)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "fct",
        "fct.real",
        "fct['a']['b']",
        "fct[0]",
        "fct['a', 'b', 'c']",
        "max()",
        "sum(fct['*'])",
        "(lambda: 1)()",
        "fct['a'] if 1 else 2",
        "[1]",
        "'text'",
        "True",
        "2 ** 9",
        "1 +",
        "+".join(["1"] * 3000),
        "+".join(["1"] * 1000),
        "+".join(["1"] * 202),
        "-" * 50_000 + "1",
        "-" * 1900 + "1",
        "(" * 900 + "1" + ")" * 900,
        "0x" + "f" * 5000,
        "0x" + "f" * 1900,
        "1e999 - 1e999",
    ],
    ids=lambda text: text[:20],
)
def test_nothing_else_is_let_through(text: str) -> None:
    """Claims are arithmetic, not programs."""
    with pytest.raises(SpecError):
        checked(text)


@pytest.mark.parametrize(
    "text",
    ["fct['nobody']", "speed['ecmp']", "gap['*']", "fct['ecmp'] / (1 - 1)", "1e308 * 10 - 1e308 * 10"],
)
def test_what_is_missing_is_not_measured(text: str) -> None:
    """Rather than a number that was made up; also where only some of a list are there."""
    with pytest.raises(NotMeasuredError):
        evaluate(text, VALUES, "a")


def test_lists_need_a_function() -> None:
    """A list is no number, and lists of different lengths do not go together."""
    with pytest.raises(SpecError, match="is a list"):
        evaluate("fct['*']", VALUES, "a")
    with pytest.raises(SpecError, match="cannot be combined"):
        evaluate("max(fct['*'] + gap['*', 'e*'] + fct['*', '*'])", VALUES, "a")


def test_which_expressions_are_of_no_case() -> None:
    """Those that name all cases themselves."""
    assert names_cases("max(gap['*', 'x']) / gap['a', 'x']")
    assert not names_cases("gap['a', 'x'] / gap['x']")


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ("< 2", [1.9, -5], [2, 3]),
        ("<= 2", [2], [2.1]),
        ("> 0", [0.1], [0, -1]),
        (">= 1e-2", [0.01], [0.009]),
        ("== 0", [0], [1e-9]),
        ("0.9..1.1", [0.9, 1, 1.1], [0.89, 1.11]),
        ("11.3", [11.3], [11.2, 11.4]),
    ],
)
def test_expectations(text: str, good: list[float], bad: list[float]) -> None:
    """Each form, at its edges."""
    expectation = parse_expectation(text)
    assert all(map(expectation.test, good))
    assert not any(map(expectation.test, bad))


@pytest.mark.parametrize("text", ["", "= 2", "< x", "1..", "about 3", "<> 3", "less than 3"])
def test_no_expectation(text: str) -> None:
    """A text that means none."""
    with pytest.raises(SpecError, match="expected a string such as"):
        parse_expectation(text)
