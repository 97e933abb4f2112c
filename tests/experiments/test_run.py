# SPDX-License-Identifier: Apache-2.0
"""One run: what the job says, and what summary and rows say of the outcome."""

from __future__ import annotations

import json
from pathlib import Path

import polars
import pytest

from tailrace.experiments.plan.experiment import Experiment, make
from tailrace.experiments.plan.plan import plan
from tailrace.results.result import to_json, write_result
from tailrace.schemes.flowcut.declaration import ResolvedFlowcut
from tailrace.sim.errors import RunError
from tailrace.sim.ideal import Ideal
from tailrace.sim.job import Job
from tailrace.sim.link_faults import LinkDown
from tailrace.sim.outcome import Outcome, Progress
from tailrace.spec import SpecError
from tailrace.spec.scale import scaled
from tailrace.study.task import run
from tests.experiments.fake import FakeBackend, record

SUMMARY_KEYS = {
    "scheme", "variant", "topology", "workload", "target", "seed", "version", "p4_sha256", "flows", "completed", "fct_ns",
    "slowdown", "packets", "flowcut", "pfc", "recirculations", "flowlets", "spritz", "virtual_ns", "nics", "wall_s", "traffic_s", "cpu_s", "memory_bytes", "machine", "packet_hops",
    "packet_hops_per_s", "trace_sha256", "overloaded",
    # beyond DESIGN §10: how to read the rest, and the sums that the table shows
    "faults", "queues", "not_applied", "time_scale", "overload_reasons", "path_changes", "drains", "drained_ns",
    "transport", "window_bytes", "mtu_bytes", "task", "classes", "format", "timeouts", "words", "fair", "sampled",
}  # fmt: skip
ROW_KEYS = [
    "id", "src", "dst", "bytes", "start_ns", "end_ns", "fct_ns", "ideal_fct_ns", "slowdown", "packets", "retransmitted",
    "out_of_order", "ood_max", "path_changes", "drains", "drained_ns", "overtaken", "timeouts", "ce_marked",
    "trimmed", "nacks", "explored", "reused", "blocked", "received", "first_received",
    "out_of_order_raw", "cnps_sent", "cnps_received", "stretched",
    "stretched_ns", "natural", "class",
]  # fmt: skip


def experiment(**values) -> Experiment:
    words = {"scheme": "ecmp", "topology": "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"}
    return make({**words, "target": "virtual", **values})


def ignore(_progress: Progress) -> None:
    return None


def run_with(answer, **values):
    planned = plan(experiment(**values), "virtual")
    backend = FakeBackend(answer)
    return planned, backend, run(planned, backend, ignore, label="it")


def all_done(job: Job) -> Outcome:
    """Flow i took i ms and had i packets out of order."""
    records = [
        record(flow, flow.id * 1_000_000, out_of_order=flow.id, ood_max=2 * flow.id) for flow in job.flows
    ]
    return Outcome(tuple(records), wall_s=2.0)


def test_summary_of_a_run(tmp_path: Path) -> None:
    """Figures follow from the records; what was not observed is absent; keys are those of DESIGN §10."""
    planned, _, result = run_with(all_done)
    document = json.loads(to_json(result.summary))
    assert document.keys() <= SUMMARY_KEYS
    assert document["flows"] == document["completed"] == 4
    assert document["fct_ns"] == {"mean": 2.5e6, "p50": 2_000_000, "p99": 4_000_000, "max": 4_000_000}
    ideal = Ideal(planned.topology, 1024).fct_ns(planned.job.flows[0])
    assert document["slowdown"]["p99"] == pytest.approx(4_000_000 / ideal)
    assert document["packets"] == {
        "sent": 400,
        "delivered": 400,
        "first_delivered": 400,
        "retransmitted": 0,
        "out_of_order": 10,
        "out_of_order_share": 0.025,
        "out_of_order_raw": 0,
        "out_of_order_raw_share": 0.0,
        "ood_p99": 8,
    }
    assert document["overloaded"] is False
    for absent in (
        "virtual_ns",
        "trace_sha256",
        "packet_hops",
        "flowcut",
        "flowlets",
        "pfc",
        "variant",
        "p4_sha256",
        "nics",
    ):
        assert absent not in document
    assert result.problems == ()


def test_files_of_a_run(tmp_path: Path) -> None:
    """summary.json as shown, flows.parquet with one row a flow, columns by name, hosts by name."""
    _, _, result = run_with(all_done)
    write_result(result, tmp_path / "it")
    assert json.loads((tmp_path / "it/summary.json").read_text()) == json.loads(to_json(result.summary))
    frame = polars.read_parquet(tmp_path / "it/flows.parquet")
    assert frame.columns == ROW_KEYS
    assert frame["id"].to_list() == [1, 2, 3, 4]
    assert set(frame["src"]) == {"h1", "h2", "h3", "h4"}
    assert frame["fct_ns"].to_list() == [1_000_000, 2_000_000, 3_000_000, 4_000_000]
    assert (frame["slowdown"] * frame["ideal_fct_ns"]).to_list() == pytest.approx(frame["fct_ns"].to_list())


def test_unfinished_flows(tmp_path: Path) -> None:
    """They count as flows and not as completed, their cells are null, percentiles leave them out, and they are told."""

    def answer(job: Job) -> Outcome:
        return Outcome(tuple(record(flow, None if flow.id == 4 else 1000) for flow in job.flows), 1.0)

    _, _, result = run_with(answer)
    assert (result.summary.flows, result.summary.completed) == (4, 3)
    assert not result.complete
    assert json.loads(to_json(result.summary))["fct_ns"]["max"] == 1000
    assert result.problems == ("clean, it: 1 of 4 flows did not finish",)
    write_result(result, tmp_path)
    assert polars.read_parquet(tmp_path / "flows.parquet")["end_ns"].null_count() == 1


def test_nothing_finished(tmp_path: Path) -> None:
    """No times, no slow-downs: absent, and the file still has all columns."""

    def answer(job: Job) -> Outcome:
        return Outcome(tuple(record(flow, None) for flow in job.flows), 1.0)

    _, _, result = run_with(answer)
    document = json.loads(to_json(result.summary))
    assert "fct_ns" not in document
    assert "slowdown" not in document
    write_result(result, tmp_path)
    assert polars.read_parquet(tmp_path / "flows.parquet").schema["fct_ns"] == polars.Int64


def test_counters_and_overload() -> None:
    """Counters are summed over the switches, those of each kind in its place; overload comes with its reasons."""

    def answer(job: Job) -> Outcome:
        switches = {
            "leaf1": {"flowcut_created": 3, "xoff_sent": 1, "port_tx": 9},
            "leaf2": {"flowcut_created": 4},
        }
        records = tuple(record(flow) for flow in job.flows)
        return Outcome(
            records, 4.0, counters=switches, dropped=0, overload_reasons=("too slow",), packet_hops=100
        )

    _, _, result = run_with(answer)
    document = json.loads(to_json(result.summary))
    assert document["flowcut"] == {"flowcut_created": 7, "xoff_sent": 1}
    assert "flowlets" not in document
    assert document["packets"]["dropped"] == 0
    assert document["packet_hops_per_s"] == 25
    assert (document["overloaded"], document["overload_reasons"]) == (True, ["too slow"])
    assert result.problems == ("clean, it: overloaded: too slow",)


@pytest.mark.parametrize("change", [lambda records: records[1:], lambda records: (*records, records[0])])
def test_records_must_match_the_flows(change) -> None:
    """A missing or doubled record fails the run: no figure is made of half the truth."""

    def answer(job: Job) -> Outcome:
        return Outcome(change(tuple(record(flow) for flow in job.flows)), 1.0)

    with pytest.raises(RunError, match="each of its flows exactly once"):
        run_with(answer)


def test_job_is_at_its_scale() -> None:
    """With a time scale the flows' starts, the NIC's times and the faults are slowed down, and the words are not."""
    values = {
        "workload": "random:flows=8,jitter=1ms",
        "fault": "link-down:link=leaf1-spine1,at=10us,until=20us",
    }
    full = plan(experiment(**values), "virtual").job
    slow = plan(experiment(**values, time_scale=100), "virtual").job
    assert full.time_scale == 1
    assert slow.time_scale == 100
    assert [flow.start_ns for flow in slow.flows] == [100 * flow.start_ns for flow in full.flows]
    assert slow.faults == (LinkDown("leaf1", "spine1", 1_000_000, 2_000_000),)
    assert slow.nic.rto_ns == pytest.approx(100 * full.nic.rto_ns, rel=1e-3)
    assert slow.nic.window_bytes == pytest.approx(full.nic.window_bytes, rel=1e-3)
    assert slow.topology == scaled(full.topology, 100)


def test_scheme_gets_room_for_every_window() -> None:
    """Unless the words give a queue limit, none of the windows together can exceed it; slow links are announced."""
    fault = "link-slow:link=leaf1-spine1,factor=0.01"
    job = plan(experiment(scheme="flowcut:variant=ingress", fault=fault), "virtual").job
    scheme = job.scheme
    assert isinstance(scheme, ResolvedFlowcut)
    assert scheme.queue_limit_bytes > len(job.flows) * job.nic.window_bytes
    assert (scheme.slowest_fraction, scheme.variant) == (0.01, "ingress")
    assert plan(experiment(scheme="ecmp:queue=10KiB"), "virtual").job.scheme.queue_limit_bytes == 10 * 1024


def test_nic_variant() -> None:
    """variant=nic puts Flowcut on the NICs, with the scheme's parameters; the others do not."""
    assert plan(experiment(scheme="flowcut"), "virtual").job.nic.flowcut_nic is None
    nic = plan(
        experiment(scheme="flowcut:variant=nic,rtt=3,growth=off,resume=4KiB"), "virtual"
    ).job.nic.flowcut_nic
    assert nic is not None
    assert (nic.rtt_threshold, nic.growth_threshold, nic.resume_bytes) == (3.0, None, 4096)


def test_workload_and_number_of_flows() -> None:
    """Without words the target's default; `flows` goes into the words, and refuses words that leave nothing open."""
    assert len(plan(experiment(flows=6), "virtual").job.flows) == 6
    assert len(plan(experiment(workload="random", flows=9), "virtual").job.flows) == 9
    assert plan(experiment(), "bmv2").job.flows[0].bytes < plan(experiment(), "native").job.flows[0].bytes
    with pytest.raises(SpecError, match="workload alltoall: unknown key 'flows'"):
        plan(experiment(workload="alltoall", flows=9), "virtual")


def test_ideal_times_leave_out_delays_that_were_not_there() -> None:
    """A target whose switches send without delay is measured against such a network: one delay of four is left."""

    def answer(job: Job) -> Outcome:
        return Outcome(tuple(record(flow) for flow in job.flows), 1.0, delays=False)

    _, _, with_delays = run_with(all_done, workload="permutation:peers=remote")
    _, _, without = run_with(answer, workload="permutation:peers=remote")
    for row, other in zip(with_delays.rows, without.rows, strict=True):
        assert row.ideal_fct_ns - other.ideal_fct_ns == 3 * 1000
