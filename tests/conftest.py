# SPDX-License-Identifier: Apache-2.0
"""For all tests."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """Thousands of tests and their modules stay to the end: no collection of garbage has to look at them again."""
    gc.collect()
    gc.freeze()
