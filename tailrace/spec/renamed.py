# SPDX-License-Identifier: Apache-2.0
"""Renamed keys and options: the old name works for one release, with a warning of one line."""

from __future__ import annotations

import functools
import sys


@functools.cache
def warn_renamed(what: str, old: str, new: str) -> None:
    """Warns on standard error, once in a process, that `what` has a new name."""
    sys.stderr.write(
        f"tailrace: {what} {old!r} is called {new!r} now; the old name ends with the next release\n"
    )
