# SPDX-License-Identifier: Apache-2.0
"""scripts/compile_p4.py --check notices every difference of sources and output, without a compiler."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "compile_p4.py"
PROGRAMS = ROOT / "tests" / "programs"


def check(source: Path) -> subprocess.CompletedProcess[str]:
    """Run --check on a folder with its build folder inside, with no compiler on PATH."""
    command = [sys.executable, str(SCRIPT), "--check", str(source), str(source / "build")]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": ""})


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the test programs and their output."""
    return Path(shutil.copytree(PROGRAMS, tmp_path / "programs"))


def test_committed_output_is_up_to_date() -> None:
    done = check(PROGRAMS)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "verb"),
    [("common/base.p4", "has changed"), ("build/loops.json", "has changed"), ("extra.p4", "is new")],
)
def test_a_changed_or_new_file_is_named(copy: Path, name: str, verb: str) -> None:
    with (copy / name).open("a", encoding="utf-8") as file:
        file.write("\n")
    done = check(copy)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert f"{name} {verb}" in done.stderr


def test_a_removed_source_is_named(copy: Path) -> None:
    (copy / "common" / "base.p4").unlink()
    done = check(copy)
    assert done.returncode == 1
    assert "common/base.p4 is gone" in done.stderr


def test_output_without_a_program_is_named(copy: Path) -> None:
    (copy / "build" / "old.json").write_text("{}", "utf-8")
    done = check(copy)
    assert done.returncode == 1
    assert "old.json: belongs to no program" in done.stderr


def test_a_missing_folder_is_bad_usage(tmp_path: Path) -> None:
    done = check(tmp_path / "nowhere")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_output_names_sources_by_relative_path() -> None:
    """No artifact holds a path of the machine it was made on."""
    for path in (PROGRAMS / "build").glob("*.json"):
        assert '"filename": "/' not in path.read_text("utf-8"), path.name
