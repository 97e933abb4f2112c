# SPDX-License-Identifier: Apache-2.0
"""`make run SCHEME=letflow VARIANT=hf2t` under Mininet: NICs that are programs make flowlets, and switches see them."""

from __future__ import annotations

import json
from typing import Any

import polars

from tests.mininet.conftest import Harness

SCHEME = "letflow:gap=60us,stretch=66us,t=1us,min_thr=5,max_thr=5"
"""A gap is stretched after 5 packets or 6, and so far beyond the flowlet threshold that no process is so late."""

WORKLOAD = "permutation:size=48KiB,peers=group"
FLOWS = 16
PACKETS = 48
MISSED = 0.1
"""Of the flowlets that were meant, so many may be counted more or less: in real time a process may stand still."""


def test_switches_see_what_nics_stretch(harness: Harness) -> None:
    """Beside LetFlow alone, in a fat tree: both run to their end; flowlets are flows and stretched gaps."""
    out = harness.make_run(TARGET="native", SCHEME=SCHEME, VARIANT="hf2t", WORKLOAD=WORKLOAD)
    assert "stretched" in out
    plain, stretched = sorted((harness.out / "clean").iterdir(), key=lambda folder: len(folder.name))
    found: dict[str, dict[str, Any]] = {
        folder.name: json.loads((folder / "summary.json").read_text()) for folder in (plain, stretched)
    }
    for summary in found.values():
        assert summary["target"] == "native"
        assert summary["topology"].startswith("fat-tree:k=4,")
        assert summary["completed"] == summary["flows"] == FLOWS
        assert summary["pfc"]["lost"] == 0
    assert "hf2t" not in found[plain.name]
    hf2t = found[stretched.name]["hf2t"]
    rows = polars.read_parquet(stretched / "flows.parquet")
    assert hf2t["stretched"] == rows["stretched"].sum() >= FLOWS * (PACKETS // 7)
    assert hf2t["trainings"] == 0
    meant = FLOWS + hf2t["stretched"] + hf2t["natural"]
    counted = found[stretched.name]["flowlets"]["flowlets_at_leaves"]
    assert abs(counted - meant) <= MISSED * meant
    assert counted > 3 * found[plain.name]["flowlets"]["flowlets_at_leaves"]
    assert harness.left_behind() == []
