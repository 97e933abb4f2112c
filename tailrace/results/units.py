# SPDX-License-Identifier: Apache-2.0
"""Units in which metrics and claims are shown: a name, and the factor from the unit of stored values."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Unit(msgspec.Struct, frozen=True):
    """How a value is shown: multiplied by `factor`, with `digits` significant digits, `name` after it."""

    name: str
    factor: float
    digits: int = 3

    def text(self, value: float, *, with_name: bool = True) -> str:
        """The value as text for people; thousands are separated, and 0 is shown as 0."""
        number = self.shown(value * self.factor)
        return f"{number} {self.name}".rstrip() if with_name else number

    def shown(self, value: float) -> str:
        """A value that is in the unit already, as text without the unit's name."""
        # 999.6 with 3 digits becomes 1e+03, so the rounded value decides on the format
        short = f"{value:.{self.digits}g}"
        if short == "1" and self.name == "×":
            return ratio_text(value) if ratio_text(value) != "1.00" else short
        return f"{value:,.0f}" if abs(float(short)) >= 10**self.digits else short

    def without_name(self, value: float) -> str:
        """The value without the unit's name, which the head of its column shows."""
        return self.text(value, with_name=False)


def ratio_text(value: float) -> str:
    """A ratio with two decimals, or with as many, up to five, as show on which side of 1 it lies."""
    decimals = next((count for count in range(2, 6) if round(value, count) != 1), 2)
    return f"{value:.{decimals}f}"


UNITS: Mapping[str, Unit] = {
    "": Unit("", 1),
    "%": Unit("%", 100),
    "times": Unit("×", 1),
    "ns": Unit("ns", 1, 5),
    "us": Unit("µs", 1e-3),
    "ms": Unit("ms", 1e-6),
    "Gb/s": Unit("Gb/s", 1e-9),
    "B": Unit("B", 1, 5),
    "KiB": Unit("KiB", 1 / (1 << 10)),
    "MiB": Unit("MiB", 1 / (1 << 20)),
}
"""Units by the name that files use; stored values are in ns, bytes and bit/s; shares are from 0 to 1."""
