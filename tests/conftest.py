# SPDX-License-Identifier: Apache-2.0
"""For all tests."""

from __future__ import annotations

import gc

import pytest
from hypothesis import settings

# a busy machine may take long for any example: none fails for that
settings.register_profile("tailrace", settings(), deadline=None)
settings.load_profile("tailrace")

FIRST = ("tests/packaging/test_wheel.py", "tests/papers/", "tests/traces/", "tests/checks/soak/")
"""What takes longest of files whose tests stay together: begun last, one of them would run alone at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files in which little is done come last, for processes that share the files in this order."""
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


def pytest_collection_finish() -> None:
    """Thousands of tests and their modules stay to the end: no collection of garbage has to look at them again."""
    gc.collect()
    gc.freeze()
