# SPDX-License-Identifier: Apache-2.0
"""Words that have a new name: the old one goes on working for one release, and one line says the new one."""

from __future__ import annotations

import functools
import sys


@functools.cache
def warn_renamed(what: str, old: str, new: str) -> None:
    """Say on standard error, once in a process, that `what` has a new name."""
    sys.stderr.write(
        f"tailrace: {what} {old!r} is called {new!r} now; the old name ends with the next release\n"
    )
