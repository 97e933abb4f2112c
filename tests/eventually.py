# SPDX-License-Identifier: Apache-2.0
"""Waiting for something that another process does."""

from __future__ import annotations

import time
from collections.abc import Callable

LONG_S = 120.0
POLL_S = 0.02


def eventually(check: Callable[[], bool]) -> bool:
    """Whether `check` becomes true within a generous time."""
    deadline = time.monotonic() + LONG_S
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True
