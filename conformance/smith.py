# SPDX-License-Identifier: Apache-2.0
"""P4Smith's random programs, made from consecutive seeds and compiled with p4c."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from conformance.program import CompiledProgram, ConformanceError, load_programs

SMITH, COMPILER = "p4smith", "p4c-bm2-ss"
LONGEST_S = 120
NOT_OPTIMIZED = ("-O0",)
"""For the C compiler: each program is used for moments only."""


def missing() -> str | None:
    """The tool that is not on PATH, if any."""
    return next((tool for tool in (SMITH, COMPILER) if shutil.which(tool) is None), None)


def programs(count: int, seed: int, folder: Path) -> Iterator[CompiledProgram]:
    """The programs of the seeds from `seed` on that p4c compiles, called s1, s2 and so on; their files stay
    in `folder`, and are not made again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(seed, seed + count):
        source = folder / f"s{number}.p4"
        made = ("--target", "bmv2", "--arch", "v1model", "--seed", str(number), str(source))
        if not source.is_file() and not (_run(SMITH, *made) and source.is_file()):
            raise ConformanceError(f"{SMITH} made no program of the seed {number}")
        if compile_program(source, folder):
            yield from load_programs(folder, source.stem)


def compile_program(source: Path, build: Path) -> bool:
    """Compile a program into `build` unless it is there; whether it is now."""
    target, p4info = build / f"{source.stem}.json", build / f"{source.stem}.p4info.txtpb"
    if target.is_file() and target.stat().st_mtime >= source.stat().st_mtime:
        return True
    include = str(source.parent)
    if _run(COMPILER, "-I", include, "--p4runtime-files", str(p4info), "-o", str(target), str(source)):
        return True
    target.unlink(missing_ok=True)
    p4info.unlink(missing_ok=True)
    return False


def _run(*command: str) -> bool:
    """Whether the command ends well, in time."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
