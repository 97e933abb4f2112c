# SPDX-License-Identifier: Apache-2.0
"""Mutated and random frames through programs, built with the address and undefined sanitizers.

A few thousand for each (TAILRACE_FUZZ_FRAMES), drawn from a seed; `make fuzz` runs many more, guided by coverage, and
through all programs. A failure prints the sanitizer's report; the same seed and number of frames repeat it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.long import some
from tests.switch.fuzz.builds import CORPUS, OPTIONS, PROGRAMS, SEEDED, c_text, driver

FRAMES = int(os.environ.get("TAILRACE_FUZZ_FRAMES", "20000"))
SEED = int(os.environ.get("TAILRACE_FUZZ_SEED", "1"))
# Far above what it takes on a slow machine: only a run that hangs reaches it.
TIMEOUT_S = 180 + FRAMES // 500

# The others, which take long to compile, are for `make fuzz`, which has all of them.
SMALL = [name for name, path in PROGRAMS.items() if path.parents[1].name == "programs" or name == "letflow"]

pytestmark = pytest.mark.skipif(SEEDED.cc is None, reason="no C compiler")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where drivers are made; their common part once for all programs."""
    return tmp_path_factory.mktemp("fuzz")


def run(name: str, folder: Path, frames: int, seed: int) -> str:
    """The driver's line of figures; a sanitizer's report ends the test."""
    made = driver(SEEDED, c_text(name), folder)
    command = [str(made), str(frames), str(seed), str(CORPUS / f"{name}.story")]
    environment = {**os.environ, **OPTIONS}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.parametrize("name", some(SMALL, 4))
def test_no_sanitizer_report(name: str, folder: Path) -> None:
    """Whatever the frame and whatever the controller did before it, memory stays sound."""
    assert run(name, folder, FRAMES, SEED).startswith(f"frames={FRAMES} ")


def test_same_seed_same_trace(folder: Path) -> None:
    """A run can be repeated exactly, and another seed makes another run."""
    name = next(iter(PROGRAMS))
    first = run(name, folder, 2000, 7)
    assert first == run(name, folder, 2000, 7)
    assert first != run(name, folder, 2000, 8)
