# SPDX-License-Identifier: Apache-2.0
"""Messages for unknown names: the closest known name, or all known names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST_NAMES = 40
_MOST_CHARACTERS = 80
_SHOWN = 3


def expected(name: object, known: Iterable[str], also: str = "") -> str:
    """`did you mean X?`, or `expected A, B, C`.

    Args:
        name: as the user wrote it.
        known: the known names, in the order in which they are shown.
        also: a possible input that is no name, such as FILE.
    """
    names = list(known)
    if matches := close(name, names):
        return f"did you mean {matches[0]}?"
    if len(names) > _MOST_NAMES:
        names = [f"one of {len(names)} such as {', '.join(names[:_SHOWN])}"]
    if not names and not also:
        return "there are none"
    return "expected " + " or ".join(filter(None, (", ".join(names), also)))


def close(name: object, known: Iterable[str]) -> list[str]:
    """A list with the known name that is closest to a name; empty if none is similar."""
    return difflib.get_close_matches(str(name)[:_MOST_CHARACTERS], list(known), 1)


def unknown(name: str, known: Iterable[str], also: str = "") -> str:
    """`'NAME' is not known; `, followed by the text of `expected`."""
    return f"{name[:_MOST_CHARACTERS]!r} is not known; {expected(name, known, also)}"
