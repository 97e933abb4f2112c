# SPDX-License-Identifier: Apache-2.0
"""HF2T under the compiled switch programs in virtual time: flowlets at the ToR are those that NICs meant."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest
from msgspec import UNSET

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.results.result import Result
from tailrace.sim.run import VirtualBackend
from tailrace.study.task import run

# Every packet of a flow crosses its own leaf's flowlet table and no other one; at so few flows none share a slot.
TOPOLOGY = "leaf-spine:leaves=2,spines=4,hosts=4,rate=100Gbps,delay=1us"
WORKLOAD = "poisson:cdf=websearch,load=0.7,duration=200us,peers=remote"


@cache
def measure(scheme: str, transport: str = "dcqcn", time_scale: float = 1, **more: str) -> Result:
    words = {
        "scheme": scheme,
        "topology": TOPOLOGY,
        "target": "virtual",
        "workload": WORKLOAD,
        "transport": transport,
        "pfc": "default",
        "gaps": True,
        "seed": 1,
        "time_scale": time_scale,
        **more,
    }
    planned = plan(make(words), "virtual")
    return run(planned, VirtualBackend(), lambda _progress: None, label="it")


def counted(result: Result, name: str) -> int:
    numbers = getattr(result.summary, name)
    assert isinstance(numbers, Mapping)
    return int(numbers["flowlets_at_leaves"] if name == "flowlets" else numbers["stretched"])


@pytest.mark.parametrize("transport", ["dcqcn", "gbn", "tcp"])
@pytest.mark.parametrize(
    "words",
    [
        "hf2t=97.5,train=200",
        "hf2t=on,t=87ns,dynamic=off",
        "hf2t=on,t=300ns,min_thr=3,max_thr=9,stretch=10us,gap=10us",
    ],
)
def test_flowlets_at_the_tor_are_those_that_were_meant(transport, words):
    """Exactly: the first packet of each flow, the gaps that were stretched, and those that were long by themselves."""
    result = measure(f"letflow:{words}", transport)
    assert result.complete
    stretched = sum(row.stretched for row in result.rows)
    natural = sum(row.natural for row in result.rows)
    assert stretched == counted(result, "hf2t") > 0
    assert len(result.rows) + stretched + natural == counted(result, "flowlets")


def test_without_it_there_are_fewer_flowlets():
    """What it is for; and nothing is said of it where it is off."""
    plain, shaped = measure("letflow"), measure("letflow:hf2t=on,train=200")
    assert counted(plain, "flowlets") < counted(shaped, "flowlets") / 2
    assert plain.summary.hf2t is UNSET
    assert {(0, 0, 0)} == {(row.stretched, row.stretched_ns, row.natural) for row in plain.rows}


def test_a_gap_that_is_stretched_too_little_is_no_flowlet():
    """What is stretched is a new flowlet only if it is stretched to the threshold of the switch."""
    result = measure("letflow:hf2t=on,train=200,stretch=4us,gap=8us")
    stretched, natural = (sum(getattr(row, name) for row in result.rows) for name in ("stretched", "natural"))
    assert stretched > 0
    assert counted(result, "flowlets") < len(result.rows) + stretched + natural


def test_at_another_time_scale_the_same():
    """Ten times slower everything is ten times slower: the same gaps are stretched, but for what ns round."""
    fast, slow = (measure("letflow:hf2t=on,t=300ns", time_scale=scale) for scale in (1, 10))
    assert counted(slow, "hf2t") == pytest.approx(counted(fast, "hf2t"), rel=0.1)
    assert len(slow.rows) + sum(row.stretched + row.natural for row in slow.rows) == counted(slow, "flowlets")


@pytest.mark.parametrize(
    ("scheme", "transport", "topology"),
    [
        ("ecmp:hf2t=on,t=100ns", "sr", TOPOLOGY),
        ("spray:hf2t=on,t=100ns", "mp-rdma", TOPOLOGY),
        ("flowcut:hf2t=on,t=100ns", "gbn", TOPOLOGY),
        ("flowcut:variant=nic,hf2t=on,t=100ns", "gbn", TOPOLOGY),
        ("hermes:hf2t=on,t=100ns", "dcqcn", TOPOLOGY),
        ("rlb:variant=letflow,hf2t=on,t=100ns", "dcqcn", TOPOLOGY),
        ("spritz:hf2t=on,t=100ns", "dctcp", "dragonfly:p=2,a=2,h=1,rate=100Gbps,delay=1us"),
        ("ugal-l:per=flowlet,hf2t=on,t=100ns", "gbn", "dragonfly:p=2,a=2,h=1,rate=100Gbps,delay=1us"),
    ],
)
def test_it_composes_with_every_fabric_and_transport(scheme, transport, topology):
    """Gaps are stretched, and every flow ends; Flowcut still keeps the order."""
    more = {"topology": topology, "workload": "permutation:size=256KiB,peers=remote"}
    result = measure(scheme, transport=transport, **more)
    assert result.complete
    assert counted(result, "hf2t") > 0
    if scheme.startswith("flowcut"):
        assert {0} == {row.out_of_order for row in result.rows}


def test_what_stretching_costs_and_brings():
    """No flow is delayed by more than a threshold a stretched gap, and the summary adds all of it up."""
    result = measure("letflow:hf2t=on,train=200")
    most_ns = 8_512 + 2 + 2
    assert all(0 <= row.stretched_ns <= row.stretched * most_ns for row in result.rows)
    said = result.summary.hf2t
    assert isinstance(said, Mapping)
    sums = {
        name: sum(getattr(row, name) for row in result.rows)
        for name in ("stretched", "stretched_ns", "natural")
    }
    assert sums == {name: said[name] for name in sums}
    assert said["trainings"] >= 1
    assert 0 < said["t_ns_least"] <= said["t_ns_median"] <= said["t_ns_most"]
