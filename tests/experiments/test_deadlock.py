# SPDX-License-Identifier: Apache-2.0
"""The worst case of a lossless network whose paths make circles: it is deadlocked and says so, or has channels and
runs to its end without a loss.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from msgspec import UNSET

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.results.result import Result, read_result, write_result
from tailrace.spec import SpecError
from tailrace.topology import parse_topology
from tests.experiments.virtual import result_of

DRAGONFLY = "dragonfly:p=4,a=2,h=1,rate=10Gbps,delay=1us"
SLIM_FLY = "slim-fly:p=2,q=3,rate=10Gbps,delay=1us"
THRESHOLDS = "xoff=8KiB,xon=4KiB"
LOSSLESS = "trim=off,queue=16MiB"
CASES = {
    "minimal": ("minimal", DRAGONFLY),
    "valiant": ("valiant", DRAGONFLY),
    "ugal-l": ("ugal-l", DRAGONFLY),
    "flowcut": ("flowcut:path=valiant", DRAGONFLY),
    "ingress": ("flowcut:variant=ingress,path=valiant", DRAGONFLY),
    "spray": (f"spritz:variant=spray,{LOSSLESS}", DRAGONFLY),
    "scout": (f"spritz:variant=scout,{LOSSLESS}", DRAGONFLY),
    "slim fly, valiant": (f"valiant:draw=hop,{LOSSLESS}", SLIM_FLY),
    "slim fly, spray": (f"spritz:variant=spray,{LOSSLESS}", SLIM_FLY),
}


@cache
def measure(case: str, pfc: str) -> Result:
    """The result of a case; `pfc`: options beside the thresholds."""
    scheme, topology = CASES[case]
    words = {
        "scheme": scheme,
        "topology": topology,
        "workload": "alltoall:size=32KiB,window=23",
        "window": "256KiB",
        "pfc": f"{THRESHOLDS},{pfc}",
        "seed": 1,
    }
    return result_of(words)


@pytest.mark.parametrize("case", CASES)
def test_with_channels_all_arrives(case: str) -> None:
    """By default; nothing is lost, nothing sent again."""
    result = measure(case, "storm=off,channels=auto")
    summary = result.summary
    assert result.complete and result.problems == ()
    assert (summary.packets.dropped, summary.packets.retransmitted, summary.deadlock) == (0, 0, UNSET)
    assert isinstance(summary.pfc, dict)
    assert summary.pfc["pauses"] > 0 and summary.pfc["lost"] == 0


@pytest.mark.parametrize("case", CASES)
def test_without_it_is_deadlocked(case: str, tmp_path: Path) -> None:
    """The same traffic ends in a circle, which is named: each queue leads to the switch of the next one."""
    result = measure(case, "storm=off,channels=off")
    circle = result.summary.deadlock
    assert isinstance(circle, tuple) and not result.complete
    topology = parse_topology(CASES[case][1])
    for queue, behind in zip(circle, [*circle[1:], circle[0]], strict=True):
        match = re.fullmatch(r"(\w+) port (\d+) class 0", queue)
        assert match is not None
        assert topology.ports_of(match[1])[int(match[2])].name == behind.split()[0]
    (event,) = (event for event in result.events if event.kind == "deadlock")
    assert event.text.endswith(" waits for ".join([*circle, circle[0]]))
    assert result.problems[0] == f"clean, it: deadlocked: {' waits for '.join([*circle, circle[0]])}"
    write_result(result, tmp_path)
    assert read_result(tmp_path, case="", label="").summary.deadlock == circle


def test_the_watchdog_can_do_it_instead() -> None:
    """It drops what stands still, so the flows end, with losses."""
    result = measure("valiant", "channels=off,deadlock=pass")
    assert result.summary.deadlock is UNSET
    assert isinstance(result.summary.pfc, dict) and result.summary.pfc["storms"] > 0


def test_slow_is_not_stuck() -> None:
    """Pauses that last, of links at a hundredth of their rate, are none: every flow ends."""
    words = {
        "scheme": "ecmp:queue=0",
        "topology": "leaf-spine:leaves=2,spines=2,hosts=4,rate=10Gbps,delay=1us",
        "workload": "incast:degree=6,size=64KiB",
        "fault": ("link-slow:fraction=0.5,factor=0.01",),
        "pfc": f"{THRESHOLDS},storm=off",
    }
    result = result_of(words)
    assert result.complete and result.summary.deadlock is UNSET
    assert isinstance(result.summary.pfc, dict) and result.summary.pfc["mean_pause_ns"] > 50_000


@pytest.mark.parametrize(
    ("scheme", "pfc", "target", "message"),
    [
        ("valiant", "channels=4", "virtual", r"^pfc: channels=4: valiant needs 5 in dragonfly:"),
        ("ecmp", "channels=3", "virtual", r"^pfc: channels: ecmp has none in dragonfly:"),
        ("valiant", "channels=5", "bmv2", r"^pfc: channels: BMv2 has none"),
        ("valiant", "channels=7", "virtual", r"^pfc: channels [^\n]*a number from 2 to 6"),
        ("valiant", "deadlock=yes", "virtual", "^pfc: deadlock=yes: expected stop, pass"),
    ],
)
def test_refused(scheme: str, pfc: str, target: str, message: str) -> None:
    """In one line, before anything runs."""
    with pytest.raises(SpecError, match=message):
        plan(make({"scheme": scheme, "topology": DRAGONFLY, "pfc": pfc, "workload": "permutation"}), target)
