"""A scheme and a transport from outside, which are in NICs alone, in the hosts' processes of a real-time run."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.extend.conftest import ROOT, TIMEOUT_S, documented


@pytest.mark.parametrize("target", ["native", "bmv2"])
def test_plug_ins_of_nics(machine: None, tmp_path: Path, target: str) -> None:
    """Flows end, and their paths were chosen by the class from outside."""
    if target == "bmv2" and shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    words = ("--scheme", "bend", "--transport", "aimd:cut=0.7", "--target", target, "--out", "out")
    traffic = ("--topology", "leaf-spine:leaves=2,spines=2,hosts=1", "--workload", "permutation:size=16KiB")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tailrace.cli.main",
            "run",
            "--plugin",
            documented(tmp_path / "mine"),
            *words,
            *traffic,
        ],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text("utf-8"))
    assert (summary["completed"], summary["transport"]) == (2, "aimd")
    assert summary["counters"]["bend"]["explored"] >= 2
    assert set(summary["plugins"]) == {"aimd.py", "bend.py"}
