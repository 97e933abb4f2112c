# SPDX-License-Identifier: Apache-2.0
"""Limits of sizes, so that a typing error is refused instead of filling the memory of the machine.

TAILRACE_LIMIT_FACTOR=N makes every limit N times as large, for users with enough memory and time.
"""

from __future__ import annotations

import os

from tailrace.spec.errors import SpecError

FACTOR = "TAILRACE_LIMIT_FACTOR"

MOST_FACTOR = 1_000_000


def factor() -> int:
    """The factor of all limits.

    Raises:
        SpecError: the environment variable is no whole number of at least 1.
    """
    text = os.environ.get(FACTOR, "").strip()
    if not text:
        return 1
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_FACTOR))
    if not is_number or not 1 <= int(text) <= MOST_FACTOR:
        raise SpecError(f"{FACTOR}: expected a whole number from 1 to {MOST_FACTOR}, found {text[:40]!r}")
    return int(text)


def refuse_above(title: str, what: str, amount: float, most: int) -> None:
    """Checks an amount against a limit.

    Args:
        title: what was asked for, such as `topology fat-tree`.
        what: what is counted, such as `hosts`.
        amount: how many there would be.
        most: the limit without a factor.

    Raises:
        SpecError: the amount exceeds the limit; the message contains both, and how to raise the limit.
    """
    if amount <= most:
        return
    limit = most * factor()
    if amount > limit:
        raise SpecError(
            f"{title}: that comes to {_text(amount)} {what}, and the limit is {_text(limit)}"
            f" ({FACTOR}=N makes limits N times as large)"
        )


def _text(amount: float) -> str:
    """A number for people; large ones rounded."""
    try:
        return f"{amount:,.0f}" if amount < 10**12 else f"{float(amount):.3g}"
    except OverflowError:
        return "more than 1e308"
