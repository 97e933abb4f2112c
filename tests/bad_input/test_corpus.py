# SPDX-License-Identifier: Apache-2.0
"""A corpus of broken files and command lines: one line, the place, exit status 2, nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input import files
from tests.bad_input.case import Case, check, in_this_process

CASES = [*files.all_cases()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, tmp_path: Path) -> None:
    check(case, in_this_process(case, tmp_path), tmp_path)
