# SPDX-License-Identifier: Apache-2.0
"""RLB and the switches know the same threshold, however it was given."""

from __future__ import annotations

import re

import pytest

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import Plan, plan
from tailrace.results.queues import queues_of
from tailrace.schemes.rlb.declaration import ResolvedRlb
from tailrace.spec import SpecError
from tailrace.topology.timing import bdp_bytes


def planned(scheme: str, pfc: str | None = None, target: str = "virtual") -> Plan:
    """An experiment on the paper's links."""
    words = {"scheme": scheme, "topology": "leaf-spine:leaves=2,spines=3,hosts=2,rate=40Gbps,delay=2us"}
    return plan(make(words if pfc is None else {**words, "pfc": pfc}), target)


@pytest.mark.parametrize(
    ("scheme", "pfc", "pause_bytes"),
    [
        ("rlb", None, 260_000),
        ("rlb", "default", 260_000),
        ("rlb:pfc=300KB", None, 300_000),
        ("rlb:pfc=300KB", "xoff=300KB", 300_000),
        ("rlb:variant=letflow", "xoff=280KB,headroom=64KiB", 280_000),
    ],
)
def test_one_threshold(scheme: str, pfc: str | None, pause_bytes: int) -> None:
    """What either was given holds for both; without words it is that of the scheme."""
    job = planned(scheme, pfc).job
    config = job.scheme
    assert isinstance(config, ResolvedRlb)
    assert job.pfc is not None
    assert (config.pause_bytes, job.pfc.xoff_bytes) == (pause_bytes, pause_bytes)


def test_other_schemes_do_not_need_pfc() -> None:
    """They have it if it is given; `off` disables it, but not for RLB."""
    assert planned("drill", "off").job.pfc is None
    with pytest.raises(SpecError, match="pfc: off, but the scheme rlb predicts pauses"):
        planned("rlb", "off")
    job = planned("drill", "xoff=100KB").job
    assert job.pfc is not None
    assert job.pfc.xoff_bytes == 100_000
    assert job.scheme.pauses_at_bytes is None


def test_on_bmv2_the_program_brings_it_along() -> None:
    """With the thresholds of the other targets, but for headroom, which goes with the rates of the target."""
    bmv2, native = planned("rlb", target="bmv2").job.pfc, planned("rlb", target="native").job.pfc
    assert bmv2 is not None
    assert native is not None
    assert (bmv2.xoff_bytes, bmv2.xon_bytes) == (native.xoff_bytes, native.xon_bytes)


@pytest.mark.parametrize(
    ("scheme", "pfc", "message"),
    [
        ("rlb:pfc=300KB", "xoff=200KB", "pfc: xoff is 200000 bytes, expected the scheme"),
        ("rlb:pfc=20KB", "default", "scheme rlb: no qth is possible"),
    ],
)
def test_two_thresholds_or_none(scheme: str, pfc: str, message: str) -> None:
    """One line says what does not fit."""
    with pytest.raises(SpecError, match=re.escape(message)):
        planned(scheme, pfc)


@pytest.mark.parametrize(
    ("values", "target", "has_pfc"),
    [
        ({}, "virtual", True),
        ({"transport": "gbn"}, "native", True),
        ({"transport": "dcqcn"}, "virtual", True),
        ({"transport": "dcqcn"}, "bmv2", False),
        ({"transport": "sr"}, "virtual", False),
        ({"transport": "dctcp"}, "virtual", False),
        ({"transport": "tcp"}, "virtual", False),
        ({"scheme": "mp-rdma"}, "virtual", False),
        ({"scheme": "spritz"}, "virtual", False),
        ({"scheme": "ecmp:queue=64KiB"}, "virtual", False),
        ({"scheme": "ecmp:queue=64KiB", "pfc": "default"}, "virtual", True),
        ({"pfc": "off"}, "virtual", False),
    ],
)
def test_the_transport_decides_on_pfc_and_queues(values: dict[str, str], target: str, has_pfc: bool) -> None:
    """With PFC queues have room for all windows; without it they have a limit, but not on BMv2."""
    topology = "leaf-spine:leaves=2,spines=3,hosts=2,rate=40Gbps,delay=2us"
    if values.get("scheme") == "spritz":
        topology = "fat-tree:k=4,rate=40Gbps,delay=2us"
    words = {"scheme": "ecmp", "topology": topology, "workload": "incast:degree=3,size=4MiB"} | values
    job = plan(make(words), target).job
    assert (job.pfc is not None) == has_pfc
    if "queue=" not in words["scheme"]:
        assert queues_of(job).holds_all == (has_pfc or target == "bmv2")


@pytest.mark.parametrize("transport", ["dctcp", "mp-rdma"])
def test_queues_mark_for_transports_led_by_marks(transport: str) -> None:
    """From a fifth of a BDP to four fifths of one."""
    scheme = "ecmp" if transport == "dctcp" else "mp-rdma"
    topology = "leaf-spine:leaves=2,spines=3,hosts=2,rate=40Gbps,delay=2us"
    values = {"scheme": scheme, "topology": topology} | ({"transport": transport} if scheme == "ecmp" else {})
    job = plan(make(values), "virtual").job
    bdp = bdp_bytes(job.topology, job.scheme.frame_bytes)
    red = job.scheme.red
    assert red is not None
    assert (red.kmin_bytes, red.kmax_bytes) == (bdp // 5, 4 * bdp // 5)
