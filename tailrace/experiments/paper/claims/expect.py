# SPDX-License-Identifier: Apache-2.0
"""What a claim expects of a number.

< 0.5   <= 0.5   > 2   >= 2   == 0
0.9..1.1                    from 0.9 to 1.1
about 0.113                 within a factor of 1.5, for numbers that depend on what the paper leaves open
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tailrace.words import SpecError

ABOUT = 1.5
"""The factor of `about`."""

_NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
_COMPARISON = re.compile(rf"(<=|>=|==|<|>)\s*({_NUMBER})")
_RANGE = re.compile(rf"({_NUMBER})\s*\.\.\s*({_NUMBER})")
_ABOUT = re.compile(rf"about\s+({_NUMBER})")
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Expectation:
    """The text, and the test that it means."""

    text: str
    test: Callable[[float], bool]


def parse_expectation(text: str) -> Expectation:
    """The expectation that a text means.

    Raises:
        SpecError: it means none.
    """
    if match := _COMPARISON.fullmatch(text.strip()):
        compare, number = _OPERATORS[match[1]], float(match[2])
        return Expectation(text, lambda value: compare(value, number))
    if match := _RANGE.fullmatch(text.strip()):
        low, high = float(match[1]), float(match[2])
        return Expectation(text, lambda value: low <= value <= high)
    if match := _ABOUT.fullmatch(text.strip()):
        middle = float(match[1])
        return Expectation(text, lambda value: _near(value, middle))
    raise SpecError(f"expected a text such as '<= 0.5', '0.9..1.1' or 'about 0.11', found {text!r}")


def _near(value: float, middle: float) -> bool:
    if value == 0 or middle == 0:
        return value == middle
    return value * middle > 0 and abs(math.log(value / middle)) <= math.log(ABOUT)
