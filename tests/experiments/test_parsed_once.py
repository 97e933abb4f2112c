# SPDX-License-Identifier: Apache-2.0
"""From the command line's words to a job, and through a backend, everything is parsed and resolved once."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from tailrace.experiments.backends.virtual.run import VirtualBackend
from tailrace.experiments.plan import known
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.experiments.workloads.workload import parse_workload
from tailrace.schemes.base import resolve
from tailrace.schemes.registry import parse_scheme
from tailrace.topology import parse_topology

PARSERS: tuple[Callable[..., Any], ...] = (parse_scheme, parse_topology, parse_workload, resolve)
LEAF_SPINE = "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"
DRAGONFLY = "dragonfly:p=1,a=2,h=1,rate=10Gbps,delay=1us"


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """How often each parser is entered, whoever calls it and by whatever name."""
    names = {parser.__code__: parser.__name__ for parser in PARSERS}
    found: Counter[str] = Counter()

    def enter(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in names:
            found[names[frame.f_code]] += 1

    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        yield found
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize(
    ("scheme", "topology"),
    [
        ("ecmp", LEAF_SPINE),
        ("flowcut:variant=ingress", LEAF_SPINE),
        ("flowcut:variant=nic", LEAF_SPINE),
        ("letflow:hf2t=on", LEAF_SPINE),
        ("rlb:variant=hermes", LEAF_SPINE),
        ("spritz", DRAGONFLY),
        ("ugal-l:draw=hop", DRAGONFLY),
    ],
)
def test_a_run_parses_and_resolves_once(scheme: str, topology: str) -> None:
    """On the way to a job, and none of it again in the backend."""
    for cached in (known.scheme_of, known._generated, known._without_files):
        cached.cache_clear()
    words = {
        "scheme": scheme,
        "topology": topology,
        "workload": "permutation:size=4KiB",
        "fault": "link-slow:fraction=0.1,factor=0.5",
        "pfc": "default",
    }
    with counted() as planned:
        job = plan(make(words), "virtual").job
    assert planned == {parser.__name__: 1 for parser in PARSERS}
    with counted() as ran:
        outcome = VirtualBackend().run(job, lambda _progress: None)
    assert ran == {}
    assert all(record.end_ns is not None for record in outcome.records)
