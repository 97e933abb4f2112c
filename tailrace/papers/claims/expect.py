# SPDX-License-Identifier: Apache-2.0
"""The syntax of the value that a claim expects.

< 0.5   <= 0.5   > 2   >= 2   == 0
0.9..1.1                    from 0.9 to 1.1
11.3                        the paper's number; the grade depends on the distance to the measured value
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tailrace.spec import SpecError

_NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
_COMPARISON = re.compile(rf"(<=|>=|==|<|>)\s*({_NUMBER})")
_RANGE = re.compile(rf"({_NUMBER})\s*\.\.\s*({_NUMBER})")


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expected value: a value from `low` to `high`, excluding both if `is_open`.

    text: the expectation as written
    sense: -1 for a comparison with < or <=, 1 for a comparison with > or >=; else 0
    """

    text: str
    low: float
    high: float
    is_open: bool = False
    sense: int = 0

    def test(self, value: float) -> bool:
        """Whether a value meets the expectation."""
        if self.is_open:
            return self.low < value < self.high
        return self.low <= value <= self.high

    @property
    def is_number(self) -> bool:
        """Whether the expectation is a single number, without a comparison or a range."""
        return self.low == self.high and not self.text.strip().startswith("=")

    @property
    def even(self) -> float | None:
        """For a comparison with 1 or 0, that number, at which the two schemes are equal; else None."""
        end = self.high if self.sense < 0 else self.low
        return end if self.sense and end in (0.0, 1.0) else None

    def times(self, value: float, even: float = 0.0) -> float:
        """The ratio of a value to the nearest end of the expected range; 1 if the value is within the range.

        The result is 0 if value and end are on different sides of `even`, the value at which the two compared
        schemes are equal: 0 for a gain, 1 for a ratio.
        """
        if self.low <= value <= self.high:
            return 1.0
        end = self.low if value < self.low else self.high
        return value / end if (value - even) * (end - even) > 0 else 0.0


def parse_expectation(text: str) -> Expectation:
    """Parses an expectation.

    Raises:
        SpecError: the text is invalid.
    """
    stripped = text.strip()
    if match := _COMPARISON.fullmatch(stripped):
        sign, number = match[1], float(match[2])
        if sign == "==":
            return Expectation(text, number, number)
        is_open = len(sign) == 1
        if sign[0] == "<":
            return Expectation(text, -math.inf, number, is_open, sense=-1)
        return Expectation(text, number, math.inf, is_open, sense=1)
    if match := _RANGE.fullmatch(stripped):
        return Expectation(text, float(match[1]), float(match[2]))
    if re.fullmatch(_NUMBER, stripped):
        return Expectation(text, float(stripped), float(stripped))
    raise SpecError(f"expected a string such as '<= 0.5', '0.9..1.1' or '11.3', found {text!r}")
