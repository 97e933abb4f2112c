# SPDX-License-Identifier: Apache-2.0
"""What commands do not import: told by names, since times say more of the machine than of us."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from tailrace.codec.formats import formats

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 240

HEAVY = ("arro3", "finsy", "google", "grpc", "jinja2", "matplotlib", "numpy", "polars", "pydantic", "scapy")
DRAWS = ("numpy", "matplotlib", "polars", "jinja2", "networkx")
_TELL = (
    "import json, sys; sys.argv[0] = 'tailrace'; from tailrace.cli.main import main; status = main();"
    "sys.stderr.write(json.dumps(sorted({name.partition('.')[0] for name in sys.modules}))); sys.exit(status)"
)


def imported(
    *words: str, cwd: Path = ROOT, environment: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, set[str]]:
    """Standard output of a command, and the packages that are loaded at its end."""
    done = subprocess.run(
        [sys.executable, "-c", _TELL, *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    return done.stdout, set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("tables", "--help"), ("--version",)])
def test_help_loads_nothing_heavy(words: tuple[str, ...]) -> None:
    out, packages = imported(*words)
    assert out
    assert not packages & {*HEAVY, "argcomplete"}


def test_a_run_with_another_cache_says_that_nics_are_interpreted(tmp_path: Path) -> None:
    """In its summary; not on standard error, since it is short. What is compiled for C is compiled anew."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tailrace.cli.main", "run", "--target", "virtual", "--scheme", "ecmp"),
            *("--workload", "permutation:size=1KiB", "--out", str(tmp_path / "out")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
        env={**os.environ, "TAILRACE_CACHE": str(tmp_path / "cache"), "TAILRACE_HOSTS": "auto"},
    )
    assert "NICs run interpreted" not in done.stderr
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["nics"] == "interpreted"


def test_a_virtual_run_without_a_figure_loads_what_it_needs(tmp_path: Path) -> None:
    """It draws nothing, makes no packet with Scapy and no call with gRPC, shows no bar on a terminal, reads no
    file of words, and parses no C header anew.
    """
    formats()  # made from Scapy's layers, if no earlier run did that
    words = ("run", "--target", "virtual", "--scheme", "ecmp", "--topology", "fat-tree:k=4")
    _, packages = imported(*words, "--workload", "permutation:size=8KB", "--out", "here", cwd=tmp_path)
    assert (tmp_path / "here" / "summary.json").exists()
    assert not packages & {
        *DRAWS,
        "asyncio",
        "grpc",
        "mypy",
        "pycparser",
        "pydantic",
        "rich",
        "scapy",
        "tomli",
    }
