# SPDX-License-Identifier: Apache-2.0
"""Mutated and random frames through every test program, built with the address and undefined sanitizers.

`make fuzz` runs a million frames a program; an ordinary test run a few thousand (TAILRACE_FUZZ_FRAMES). A
failure prints the sanitizer's report; the same seed and number of frames repeat it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tailrace.native.compiler.emit import emit
from tailrace.native.compiler.read.bmv2_json import read_bmv2_json

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
RUNTIME = ROOT / "tailrace" / "native" / "runtime" / "c"
PROGRAMS = sorted((ROOT / "tests" / "programs" / "build").glob("*.json"))
FRAMES = int(os.environ.get("TAILRACE_FUZZ_FRAMES", "20000"))
SEED = int(os.environ.get("TAILRACE_FUZZ_SEED", "1"))
# Leaks are found by the address sanitizer's own leak check at the end of the run.
FLAGS = ["-std=gnu11", "-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined"]
FLAGS += ["-fno-sanitize-recover=all"]
# Far above what it takes on a slow machine: only a run that hangs reaches it.
TIMEOUT_S = 180 + FRAMES // 500
# A switch that hoards packets ends with a report before it hurts the machine.
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "hard_rss_limit_mb=2048:detect_leaks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}

CC = shutil.which("cc")
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler")


def compile_c(arguments: list[str], cwd: Path) -> None:
    """Run the C compiler with the sanitizers; its complaints end the test."""
    command = [str(CC), *FLAGS, "-I", str(RUNTIME), "-I", str(HERE), *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The runtime and the driver, compiled once for all programs."""
    folder = tmp_path_factory.mktemp("fuzz")
    sources = [*sorted(RUNTIME.glob("*.c")), *sorted(HERE.glob("*.c"))]
    compile_c(["-c", *map(str, sources)], folder)
    return [str(folder / f"{source.stem}.o") for source in sources]


def build(program: Path, objects: list[str], folder: Path) -> Path:
    """The driver, linked with `program` as an object of its own, which has its own data plane, as everywhere."""
    generated = folder / "program.c"
    generated.write_text(emit(read_bmv2_json(program.read_bytes(), program.name)), "utf-8")
    compile_c(["-shared", "-fPIC", "-fvisibility=hidden", "program.c", "-o", "libprogram.so"], folder)
    where = ["-L.", "-lprogram", f"-Wl,-rpath,{folder}"]
    compile_c(["-rdynamic", *objects, *where, "-o", "fuzz", "-lpthread", "-lm"], folder)
    return folder / "fuzz"


def run(driver: Path, frames: int, seed: int) -> str:
    """The driver's line of figures; a sanitizer's report ends the test."""
    command = [str(driver), str(frames), str(seed)]
    environment = {**os.environ, **SANITIZER_OPTIONS}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.parametrize("program", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_no_sanitizer_report(program: Path, objects: list[str], tmp_path: Path) -> None:
    """Whatever the frame and whatever the controller did before it, memory stays sound."""
    driver = build(program, objects, tmp_path)
    assert run(driver, FRAMES, SEED).startswith(f"frames={FRAMES} ")


def test_same_seed_same_trace(objects: list[str], tmp_path: Path) -> None:
    """A run can be repeated exactly, and another seed makes another run."""
    driver = build(PROGRAMS[0], objects, tmp_path)
    first = run(driver, 2000, 7)
    assert first == run(driver, 2000, 7)
    assert first != run(driver, 2000, 8)
