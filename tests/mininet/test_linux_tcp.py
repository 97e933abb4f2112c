"""The kernel's own TCP through a fabric: what is measured of it, and what is refused."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tailrace.experiments.backends.job import check_real_time
from tailrace.experiments.backends.mininet import MininetBackend
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.experiments.results.result import write_result
from tailrace.experiments.run.run import run
from tailrace.words import SpecError
from tests import shaping
from tests.mininet.conftest import Harness
from tests.mininet.test_runs import flow, result

FLOW_BYTES = 60_000
SEGMENT_BYTES = 1024
WORDS: dict[str, Any] = {
    "scheme": "letflow",
    "topology": "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us",
    "workload": "permutation:size=64KiB,peers=remote",
    "transport": "linux-tcp:cc=reno",
    "gaps": True,
    "time_scale": 2000,
}


@pytest.fixture
def shaped(machine: None) -> None:
    """Skips, with one line, where hosts' links can have no rate."""
    reason = shaping.why_not()
    if reason is not None:
        pytest.skip(reason)


@pytest.mark.usefixtures("shaped")
@pytest.mark.parametrize(("target", "scheme"), [("native", "letflow"), ("bmv2", "ecmp")])
def test_tcp_crosses_the_fabric(harness: Harness, target: str, scheme: str) -> None:
    """Every flow is complete, its packets and the gaps between them are counted, and nothing stays."""
    if target == "bmv2" and shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    flows = [
        flow(0, "10.0.1.2", "10.0.2.2", FLOW_BYTES),
        flow(1, "10.0.2.3", "10.0.1.3", FLOW_BYTES),
        {**flow(2, "10.0.1.2", "10.0.2.3", FLOW_BYTES), "after": [0]},
    ]
    job = harness.job(
        flows=flows, target=target, scheme=scheme, kernel_tcp="cubic", nic={"measure_gaps": True}
    )
    done = harness.run(job)
    assert (done.returncode, done.stderr) == (0, "")
    found = result(harness)
    for record in found["flows"]:
        assert record["end_ns"] > record["start_ns"]
        assert record["packets"] >= record["received"] >= FLOW_BYTES // SEGMENT_BYTES
    one, _, dependent = found["flows"]
    assert dependent["start_ns"] >= one["end_ns"]
    sent = sum(record["packets"] for record in found["flows"])
    assert sum(count for _, count in found["gaps"]) == sent - len(flows)
    spines = [found["switches"][name]["port_rx"] for name in ("spine1", "spine2")]
    # acknowledgments cross them, too, and the three packets of each handshake came before
    assert sum(spines) > sent - len(flows)
    if scheme == "letflow":
        assert found["switches"]["leaf1"]["flowlets_created"] > 0
    assert {"out_of_order", "path_changes"} <= set(found["unobserved"])
    assert harness.left_behind() == []


@pytest.mark.usefixtures("shaped")
def test_it_is_an_experiment_like_others(tmp_path: Path) -> None:
    """The same files; what nobody could count is in none of them."""
    planned = plan(make(WORDS), "native")
    found = run(planned, MininetBackend(), lambda _progress: None, label="letflow")
    write_result(found, tmp_path)
    summary: dict[str, Any] = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["transport"], summary["flows"], summary["completed"]) == ("linux-tcp", 4, 4)
    assert summary["packets"]["sent"] >= 4 * 64
    assert not {"out_of_order", "out_of_order_fraction", "ood_p99"} & summary["packets"].keys()
    assert "path_changes" not in summary
    assert summary["gaps"]["count"] == summary["packets"]["sent"] - 4
    assert (tmp_path / "gaps.parquet").is_file()


@pytest.mark.parametrize(
    ("changes", "target", "message"),
    [
        ({}, "virtual", "it is of real hosts; use the target native or bmv2, not virtual"),
        ({"scheme": "flowcut"}, "native", "it runs over ecmp and letflow, not flowcut"),
        ({"pfc": "default"}, "native", "it does not heed the pauses of PFC"),
        ({"scheme": "letflow:hf2t=99"}, "native", "NICs stretch gaps, and its packets pass none"),
    ],
)
def test_refusals(changes: dict[str, Any], target: str, message: str) -> None:
    """One line, before anything is started."""
    with pytest.raises(SpecError, match=f"^transport linux-tcp: {message}$"):
        plan(make({**WORDS, **changes}), target)


def test_a_job_with_pauses_is_refused() -> None:
    """Whoever wrote it."""
    job = plan(make({**WORDS, "transport": "gbn", "pfc": "default"}), "native").job
    check_real_time(job)
    with pytest.raises(SpecError, match=r"^pfc: the kernel's TCP does not heed its pauses$"):
        check_real_time(structs.replace(job, kernel_tcp="reno"))
