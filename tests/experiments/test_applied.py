# SPDX-License-Identifier: Apache-2.0
"""What a target does not apply of what was asked stands in the summary and under the table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailrace.emulation.applied import not_applied
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.results.estimates import comparison_groups
from tailrace.results.table import make_table
from tailrace.sim.job import Job
from tailrace.sim.outcome import Outcome
from tests.experiments.fake import FakeBackend, compare_on, record

NETWORK = "leaf-spine:leaves=2,spines=2,hosts=1,rate=10Mbps"
RATE = "rate: in packets/s, so that every data frame takes as long as one of 1082 bytes; control frames have no rate limit"
QUEUES = "queues: the lengths that programs see do not include packets that wait for BMv2's egress threads"
PFC = "pfc: by the P4 program, without headroom; a paused port still sends what is in egress"
NO_CHANNELS = "pfc channels: none, so that pauses can deadlock"
CNMS = "priority of RLB's warnings (CNMs): that of data, since BMv2 has no class of service for clones"
NO_DELAY = "delay: links between switches have no delay, since this kernel has no netem"


@pytest.mark.parametrize(
    ("target", "keys", "delays", "expected"),
    [
        ("native", {}, True, ()),
        (
            "native",
            {"sample": "1ms", "follow": [1], "record": "events"},
            True,
            (
                "sample: samples are taken in virtual time only",
                "follow: paths of flows are recorded in virtual time only",
                "record: frames are recorded in virtual time only",
            ),
        ),
        ("native", {"pfc": "default"}, True, ()),
        ("bmv2", {}, True, (RATE, QUEUES)),
        ("bmv2", {}, False, (RATE, QUEUES, NO_DELAY)),
        ("bmv2", {"pfc": "default"}, True, (RATE, QUEUES, PFC)),
        ("bmv2", {"scheme": "rlb:variant=drill,queue=0"}, True, (RATE, QUEUES, PFC, CNMS)),
        (
            "bmv2",
            {"scheme": "minimal", "topology": "dragonfly:p=1,a=2,h=1,rate=10Mbps", "pfc": "default"},
            True,
            (RATE, QUEUES, PFC, NO_CHANNELS),
        ),
    ],
)
def test_lines_of_a_job(target: str, keys: dict[str, Any], delays: bool, expected: tuple[str, ...]) -> None:
    experiment = make({"scheme": "ecmp", "topology": NETWORK, "target": target, **keys})
    assert not_applied(plan(experiment, target).job, delays=delays) == expected


def answer(job: Job) -> Outcome:
    lines = ("delay: none",) if job.scheme.name == "ecmp" else ("delay: none", "rate: another")
    return Outcome(tuple(map(record, job.flows)), wall_s=1.0, not_applied=lines)


def test_under_tables_and_in_the_summary(tmp_path: Path) -> None:
    """Once for all runs, and with the runs where it is not of all."""
    base = make({"scheme": "ecmp", "topology": NETWORK, "target": "native"})
    done = compare_on(FakeBackend(answer), base, ("ecmp", "letflow"), target="native", folder=tmp_path)
    lines = ("not as asked on native, delay: none", "not as asked on native, rate: another (clean, letflow)")
    assert done.table.caption[-2:] == lines
    summary = json.loads((tmp_path / "clean" / "letflow" / "summary.json").read_text())
    assert summary["not_applied"] == ["delay: none", "rate: another"]
    assert all(line in (tmp_path / "table.md").read_text() for line in lines)
    plain = [replace(result, summary=done.results[0].summary) for result in done.results]
    assert make_table(comparison_groups(plain)).caption[-1:] == lines[:1]


def test_nothing_where_all_is_applied() -> None:
    base = make({"scheme": "ecmp", "topology": NETWORK, "target": "native"})
    backend = FakeBackend(lambda job: Outcome(tuple(map(record, job.flows)), wall_s=1.0))
    done = compare_on(backend, base, ("ecmp",), target="native")
    assert not any("not as asked" in line for line in done.table.caption)
    assert not done.results[0].summary.not_applied
