# SPDX-License-Identifier: Apache-2.0
"""From the command line's words to a job, and through a backend, everything is parsed and resolved once."""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tailrace.experiments.faults.parse import parse_fault
from tailrace.experiments.plan import known
from tailrace.experiments.plan.experiment_file import read_experiment
from tailrace.experiments.plan.nic import parse_window
from tailrace.experiments.plan.pfc import parse_pfc
from tailrace.experiments.plan.plan import plan
from tailrace.experiments.workloads.flow_file import read_flows
from tailrace.experiments.workloads.workload import parse_workload
from tailrace.hosts.options.transports import parse_transport
from tailrace.schemes.base import resolve
from tailrace.schemes.registry import parse_scheme
from tailrace.sim.run import VirtualBackend
from tailrace.study.grids import plans
from tailrace.study.task import make_task, run_task
from tailrace.topology import parse_topology

OF_WORDS: tuple[Callable[..., Any], ...] = (
    *(parse_scheme, parse_topology, parse_workload, parse_fault, parse_transport, parse_window, parse_pfc),
)
PARSERS = (*OF_WORDS, read_flows, resolve)
LEAF_SPINE = "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"
DRAGONFLY = "dragonfly:p=1,a=2,h=1,rate=10Gbps,delay=1us"
FIXED_TRANSPORT = ("rlb:variant=hermes", "spritz")
WORDS: dict[str, Any] = {
    "topology": LEAF_SPINE,
    "workload": "permutation:size=4KiB",
    "fault": ["link-slow:fraction=0.1,factor=0.5"],
    "transport": "sr",
    "window": "16KiB",
    "pfc": "xoff=64KiB",
}


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """How often each parser is entered, whoever calls it and by whatever name; nothing is known before."""
    for cached in (known._scheme, known._generated):
        cached.cache_clear()
    names = {parser.__code__: parser.__name__ for parser in PARSERS}
    counts: Counter[str] = Counter()

    def enter(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in names:
            counts[names[frame.f_code]] += 1

    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        yield counts
    finally:
        sys.setprofile(before)


def once(**counts: int) -> dict[str, int]:
    """Calls expected of each parser of words: one, or as many as `counts` says; parsers at 0 are left out."""
    expected = {**dict.fromkeys((parser.__name__ for parser in OF_WORDS), 1), "resolve": 1, **counts}
    return {name: times for name, times in expected.items() if times}


@pytest.mark.parametrize(
    ("scheme", "topology"),
    [
        ("ecmp", LEAF_SPINE),
        ("flowcut:variant=nic", LEAF_SPINE),
        ("rlb:variant=hermes", LEAF_SPINE),
        ("spritz", DRAGONFLY),
    ],
)
def test_a_run_parses_and_resolves_once(scheme: str, topology: str) -> None:
    """On the way to a job, and none of it again in the backend."""
    values = {**WORDS, "scheme": scheme, "topology": topology}
    if scheme in FIXED_TRANSPORT:
        del values["transport"]
    with counted() as planned:
        job = plan(read_experiment(None, None, values), "virtual").job
    assert planned == once(parse_transport=int("transport" in values))
    with counted() as ran:
        outcome = VirtualBackend().run(job, lambda _progress: None)
    assert ran == {}
    assert all(record.end_ns is not None for record in outcome.records)


def test_a_file_of_flows_is_read_once(tmp_path: Path) -> None:
    """It may be large."""
    path = tmp_path / "flows.csv"
    path.write_text("src,dst,bytes,start\nh1,h3,4KiB,0us\nh2,h4,4KiB,1us\n")
    values = {**WORDS, "scheme": "ecmp", "workload": str(path)}
    with counted() as planned:
        job = plan(read_experiment(None, None, values), "virtual").job
    assert planned == once(read_flows=1)
    assert len(job.flows) == 2


def test_a_comparison_parses_what_its_schemes_share_once() -> None:
    """And each scheme; it is resolved once a run, without faults and with them."""
    with counted() as planned:
        base = read_experiment(None, None, {**WORDS, "scheme": "ecmp"})
        planned_runs = plans(base, ("ecmp", "flowcut"), "virtual")
    assert planned == once(parse_scheme=2, resolve=4)
    assert [len(planned_run.job.faults) for _, planned_run in planned_runs] == [0, 0, 1, 1]


def test_a_worker_parses_nothing() -> None:
    """It gets what the words mean; resolving is its own, once for the key and once for the run."""
    experiment = read_experiment(None, None, {**WORDS, "scheme": "ecmp", "target": "virtual"})
    sent = pickle.dumps(make_task(experiment, "virtual", label="it", out=Path("it")))
    with counted() as worked:
        task = pickle.loads(sent)
        assert run_task(task).complete
    assert worked.keys() <= {"resolve"}
    assert task.experiment == experiment
