# SPDX-License-Identifier: Apache-2.0
"""Where the paths of a scheme come from that may run in a Dragonfly, in words: `path=` and `share=`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tailrace.schemes.base import DEFAULT_SHARE
from tailrace.words import Options

PATHS = ("shortest", "minimal", "valiant", "ugal-l", "mixed")
"""Where paths come from. All but `shortest` are of a Dragonfly; `mixed` is minimal or Valiant's by a coin."""

SHORTEST, MIXED, UGAL_L = "shortest", "mixed", "ugal-l"
GRAINS = ("packet", "flow", "flowlet")

SHARE_STEPS = 256
"""The share of minimal paths is a multiple of 1/256."""

PATH_KEYS = ("path", "share")


def share(options: Options, key: str, default: float, steps: int, least: float = 0) -> float:
    """A number from `least` to 1, rounded to what the switch can hold.

    Raises:
        SpecError: a bad value.
    """
    return float(Fraction(round(options.number(key, default, least=least, most=1) * steps), steps))


def path_options(options: Options) -> dict[str, Any]:
    """The fields `path` and `minimal_share`.

    Raises:
        SpecError: a bad value.
    """
    path = options.choice("path", PATHS, SHORTEST) if "path" in options else None
    if "share" in options and path not in (None, MIXED):
        raise options.error("share", f"given only where path is {MIXED}")
    return {"path": path, "minimal_share": share(options, "share", DEFAULT_SHARE, SHARE_STEPS)}
