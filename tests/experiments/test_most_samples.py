# SPDX-License-Identifier: Apache-2.0
"""Samples do not fill the memory, neither those that a run takes at least nor those it turns out to take."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.cli.main import main
from tailrace.sim import progress

INCAST = (
    *("run", "--scheme", "ecmp", "--target", "virtual", "--workload", "incast:degree=15,size=256KiB"),
    *("--topology", "leaf-spine:leaves=2,spines=2,hosts=8"),
)


@pytest.mark.parametrize("period", ["1ns", "10ns"])
def test_too_many(
    period: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 1 ns it is known before; of 10 ns a flow alone has few enough, but flows have to wait."""
    monkeypatch.setattr(progress, "MOST_SAMPLES", 100_000)
    assert main([*INCAST, "--sample", period, "--out", str(tmp_path / "out")]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("tailrace: sample: that comes to ")
    assert "samples, and the limit is 100,000 " in line
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("TAILRACE_LIMIT_FACTOR", "10")
    assert main([*INCAST, "--sample", "10ns", "--out", str(tmp_path / "out")]) == 0
