# SPDX-License-Identifier: Apache-2.0
"""What was sent is somewhere: the numbers of summary.json alone add up, and drops are told by what they carried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tailrace.results.result import Result
from tailrace.sim import run as virtual_run
from tests.experiments.virtual import result_of

LEAF_SPINE = "leaf-spine:leaves=2,spines=2,hosts=4,rate=10Gbps,delay=1us"
DRAGONFLY = "dragonfly:p=2,a=2,h=1,rate=10Gbps"

LOSSLESS = {"scheme": "drill", "pfc": "default", "workload": "incast:degree=5,size=128KiB"}
FULL = {"scheme": "spray:queue=20KB", "workload": "incast:degree=5,size=64KiB"}
"""Switches drop what their queues have no room for."""

TRIMMING = {
    "scheme": "ops:queue=10KB",
    "topology": DRAGONFLY,
    "workload": "incast:degree=6,size=64KiB",
}
FAULTS = {
    "drops": ["drop:rate=0.02"],
    "link-down": ["link-down:fraction=0.2,at=50us,until=400us"],
    "blackhole": ["blackhole:pairs=0.3,where=spine,at=20us,until=300us"],
}


def measure(**words: object) -> Result:
    return result_of({"topology": LEAF_SPINE, "target": "virtual", "seed": 3, **words})


def check(result: Result) -> dict[str, int]:
    """The sums of a summary; all that is in packets is a number."""
    packets = result.summary.packets
    fields = {name: getattr(packets, name) for name in packets.__struct_fields__}
    numbers = {name: value for name, value in fields.items() if isinstance(value, int)}
    trimmed = numbers.get("trimmed", 0)
    in_all = numbers["delivered"] + trimmed + numbers["dropped_data"] + numbers["under_way"]
    assert numbers["sent"] == in_all
    kinds = [numbers[f"dropped_{kind}"] for kind in ("data", "trimmed", "control")]
    assert sum(kinds) == numbers["dropped"]
    assert min(kinds) >= 0
    # of what was trimmed the rest has arrived, for nothing is left when all flows are complete
    assert not result.complete or sum(row.trimmed for row in result.rows) + kinds[1] == trimmed
    assert numbers["first_delivered"] <= numbers["sent"] - numbers["retransmitted"]
    return numbers


def test_lossless() -> None:
    """Nothing is dropped, whatever pauses there were."""
    result = measure(**LOSSLESS)
    numbers = check(result)
    assert numbers["sent"] == numbers["delivered"]
    assert numbers["dropped"] == numbers["under_way"] == 0
    assert isinstance(result.summary.pfc, dict)
    times, mean = result.summary.pfc["times_paused"], result.summary.pfc["mean_pause_ns"]
    assert times > 0
    assert mean == result.summary.pfc["paused_ns"] / times


def test_full_queues() -> None:
    """Data is dropped, and nothing else."""
    numbers = check(measure(**FULL))
    assert numbers["dropped"] == numbers["dropped_data"] > 0


def test_trimming() -> None:
    """What is trimmed is not delivered, and not dropped unless its header is, too."""
    numbers = check(measure(**TRIMMING))
    assert numbers["trimmed"] > 0
    both = check(measure(**TRIMMING, fault=["drop:rate=0.05"]))
    assert both["dropped_trimmed"] > 0
    assert both["dropped_data"] > 0
    assert both["dropped_control"] > 0


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str) -> None:
    """Faults take data, and answers, where they hit any."""
    numbers = check(measure(scheme="letflow", workload="permutation:size=256KiB", fault=FAULTS[name]))
    assert numbers["dropped_data"] > 0
    assert name != "drops" or numbers["dropped_control"] > 0


def test_flowcut_makes_copies() -> None:
    """Its switches clone data to answer it: clones are no data, lost or not."""
    words = {"scheme": "flowcut", "workload": "permutation:size=128KiB"}
    check(measure(**words, fault=["drop:rate=0.02"]))
    numbers = check(measure(**words, fault=["ack-loss:rate=0.2"]))
    assert numbers["dropped"] == numbers["dropped_control"] > 0


@contextmanager
def ending(time_ns: int) -> Iterator[None]:
    """Runs end at this time, with packets wherever they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(virtual_run, "limit_ns", lambda _job: time_ns)
        yield


@pytest.mark.parametrize("words", [LOSSLESS, FULL, TRIMMING], ids=["lossless", "full", "trimming"])
@pytest.mark.parametrize("time_ns", [12_345, 40_000, 77_777])
def test_what_is_under_way(words: dict[str, object], time_ns: int) -> None:
    """A run that ends early has packets on wires and in queues."""
    with ending(time_ns):
        assert check(measure(**words))["under_way"] > 0
