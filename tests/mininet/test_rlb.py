# SPDX-License-Identifier: Apache-2.0
"""`make run SCHEME=rlb` under Mininet: a selector alone and with RLB in a network whose switches pause."""

from __future__ import annotations

import json
from typing import Any

from tests.mininet.conftest import Harness

TOPOLOGY = "leaf-spine:leaves=2,spines=2,hosts=4,rate=10Gbps,delay=1us,restricted=h7/1"
"""h1, h2 send to h5, h6; the receiver of the bursts of h8, and of h3, is h7."""

WORKLOAD = (
    "paused:load=0.2,duration=150us,size=32KiB,pairs=2,servers=1,burst=4,bytes=32KiB,bursts=1,long=256KiB"
)


def test_beside_the_selector_alone(harness: Harness) -> None:
    """Both run under PFC to their end, lose nothing, and say what was paused, foreseen and sent round."""
    out = harness.make_run(
        TARGET="native", SCHEME="rlb:pfc=24KB,flows=8", VARIANT="presto", TOPO=TOPOLOGY, WORKLOAD=WORKLOAD
    )
    assert "recircu" in out
    alone, with_rlb = (summary(harness, label) for label in ("presto", "rlb-variant-presto"))
    for measured in (alone, with_rlb):
        assert measured["target"] == "native"
        assert measured["completed"] == measured["flows"] > 0
        assert measured["packets"]["dropped"] == 0
        assert measured["pfc"]["pauses"] > 0
        assert measured["pfc"]["lost"] == 0
    assert "rlb" not in alone
    assert with_rlb["rlb"]["path_rtts_measured"] > 0
    assert {"warnings_sent", "warnings_received", "recirculations_refused"} <= with_rlb["rlb"].keys()
    assert with_rlb["recirculations"].keys() == {"total", "mean", "most"}
    assert (harness.out / "figure.svg").exists()
    assert not harness.processes()


def summary(harness: Harness, label: str) -> dict[str, Any]:
    """What was measured of a scheme."""
    path = harness.out / "clean" / label / "summary.json"
    document: dict[str, Any] = json.loads(path.read_text())
    return document
