# SPDX-License-Identifier: Apache-2.0
"""Files appear whole or not at all, also on a full disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.spec.atomic import write_file
from tailrace.switch.compiler import load_program
from tailrace.switch.core import V1ModelSwitch
from tailrace.switch.p4runtime.statistics import write_statistics
from tailrace.switch.trace.coverage import Coverage, write
from tests.full_disk import small_files

PROGRAM = Path(__file__).parents[1] / "programs" / "build" / "basic_l3.json"


def _coverage(path: Path) -> None:
    write([Coverage("x" * 10_000, "0" * 64, ())], path)


def _counts(path: Path) -> None:
    with V1ModelSwitch(load_program(PROGRAM.read_bytes())) as switch:
        write_statistics(path, switch, range(1, 100), 0)


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """No compiler writes its files while there is no room for them."""
    with V1ModelSwitch(load_program(PROGRAM.read_bytes())):
        pass


@pytest.mark.parametrize("fill", [lambda path: write_file(path, "x" * 10_000), _coverage, _counts])
def test_full_disk(fill: Callable[[Path], None], tmp_path: Path) -> None:
    """What was there stays, nothing lies beside it, and the error names it."""
    path = tmp_path / "file.json"
    path.write_text("before")
    with small_files(1000), pytest.raises(OSError, match="File too large") as caught:
        fill(path)
    assert caught.value.filename == str(path)
    assert [each.name for each in tmp_path.iterdir()] == ["file.json"]
    assert path.read_text() == "before"
    fill(path)
    assert path.stat().st_size > 1000
