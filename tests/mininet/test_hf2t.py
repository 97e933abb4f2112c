# SPDX-License-Identifier: Apache-2.0
"""`make run SCHEME=letflow VARIANT=hf2t` under Mininet: NICs that are programs make flowlets, and switches see them."""

from __future__ import annotations

import json
from typing import Any

import polars
import pytest

from tests.long import more
from tests.mininet.conftest import Harness

SCHEME = "letflow:gap=60us,stretch=66us,t=1us,min_thr=5,max_thr=5"
"""A gap is stretched after 5 packets or 6, and so far beyond the flowlet threshold that no process is so late."""

LEAF_SPINE = {
    "TOPO": "leaf-spine:leaves=2,spines=2,hosts=4,rate=10Gbps,delay=1us",
    "WORKLOAD": "permutation:size=48KiB,peers=remote",
}
FAT_TREE = {"WORKLOAD": "permutation:size=48KiB,peers=group"}
"""Where HF²T is shown when nothing else is asked for, with 20 switches."""

PACKETS = 48
MISSED = 0.1
"""Of the flowlets that were meant, so many may be counted more or less: in real time a process may stand still."""


@pytest.mark.parametrize(
    ("words", "kind", "flows"), [(LEAF_SPINE, "leaf-spine", 8), *more((FAT_TREE, "fat-tree", 16))]
)
def test_switches_see_what_nics_stretch(
    harness: Harness, words: dict[str, str], kind: str, flows: int
) -> None:
    """Beside LetFlow alone both run to their end; flowlets are flows and stretched gaps."""
    out = harness.make_run(TARGET="native", SCHEME=SCHEME, VARIANT="hf2t", **words)
    assert "stretched" in out
    plain, stretched = sorted((harness.out / "clean").iterdir(), key=lambda folder: len(folder.name))
    summaries: dict[str, dict[str, Any]] = {
        folder.name: json.loads((folder / "summary.json").read_text()) for folder in (plain, stretched)
    }
    for summary in summaries.values():
        assert summary["target"] == "native"
        assert summary["topology"].startswith(f"{kind}:")
        assert summary["completed"] == summary["flows"] == flows
        assert summary["pfc"]["lost"] == 0
    assert "hf2t" not in summaries[plain.name]
    hf2t = summaries[stretched.name]["hf2t"]
    rows = polars.read_parquet(stretched / "flows.parquet")
    assert hf2t["stretched"] == rows["stretched"].sum() >= flows * (PACKETS // 7)
    assert hf2t["trainings"] == 0
    meant = flows + hf2t["stretched"] + hf2t["natural"]
    counted = summaries[stretched.name]["flowlets"]["flowlets_at_leaves"]
    assert abs(counted - meant) <= MISSED * meant
    assert counted > 3 * summaries[plain.name]["flowlets"]["flowlets_at_leaves"]
    assert harness.left_behind() == []
