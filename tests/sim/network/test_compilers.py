# SPDX-License-Identifier: Apache-2.0
"""The same run has the same trace whatever compiled it, and however."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.long import more
from tests.sim.network.roce import add_flows, fabric

_ROOT = Path(__file__).parents[3]
_PROGRAM = """
from tailrace.cbuild import cc
of_project = cc._flags
cc._flags = lambda *how: (*of_project(*how), {flag!r})
from tests.sim.network.test_compilers import busy_trace
print(busy_trace())
"""


def busy_trace() -> str:
    """Losses, drains, retransmissions, several sizes of frames."""
    net, nics = fabric(
        "leaf-spine:leaves=3,spines=2,hosts=2,rate=10Gbps,delay=500ns", "flowcut:variant=full,rtt=1.1,left=0"
    )
    with net:
        net.drop("leaf1", "spine1", 0.02)
        net.link_rate("leaf2", "spine2", 0.3, 20_000)
        pairs = [("h1", "h3"), ("h2", "h5"), ("h3", "h6"), ("h4", "h1"), ("h5", "h2"), ("h6", "h4")]
        add_flows(net, nics, [(a, b, 60_000 + 777 * number) for number, (a, b) in enumerate(pairs)])
        assert net.run()
        assert net.traffic().dropped > 0
        return net.trace_sha256


def trace_of(flag: str, compiler: str, cache: Path) -> str:
    """The trace of another process whose C parts are compiled by `compiler` with one more flag."""
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(flag=flag)],
        capture_output=True,
        text=True,
        check=True,
        cwd=_ROOT,
        env={**os.environ, "CC": compiler, "TAILRACE_CACHE": str(cache), "TAILRACE_HOSTS": "interpreted"},
    )
    return run.stdout.strip()


_FLAGS = ["-O0", *more("-O2", *(["-march=x86-64"] if platform.machine() == "x86_64" else []))]


@pytest.mark.parametrize("flag", _FLAGS)
def test_optimisation_changes_nothing(flag: str, tmp_path: Path) -> None:
    assert trace_of(flag, os.environ.get("CC", "cc"), tmp_path) == busy_trace()


@pytest.mark.skipif(shutil.which("clang") is None, reason="no second compiler is installed")
def test_another_compiler_changes_nothing(tmp_path: Path) -> None:
    assert trace_of("-O2", "clang", tmp_path) == busy_trace()
