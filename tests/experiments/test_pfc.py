# SPDX-License-Identifier: Apache-2.0
"""Priority flow control as an experiment's key: its words, and what it does to an incast."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import UNSET

from controller.defaults import bdp_bytes
from experiments.experiment import make
from experiments.pfc import HEADROOM_FRAMES, XON_SHARE, Pfc, Thresholds, parse_pfc
from experiments.result import Result
from experiments.run import plan, run
from experiments.schema import KeyProblemError
from experiments.virtual_backend import VirtualBackend
from spec import SpecError
from topology import parse_topology

FABRIC = parse_topology("leaf-spine:leaves=2,spines=2,hosts=4,rate=10Gbps,delay=1us")


def test_words() -> None:
    """Each threshold by its name; `default` says nothing of any."""
    assert parse_pfc("xoff=256KiB,xon=200KiB,headroom=64KiB") == Pfc(256 << 10, 200 << 10, 64 << 10)
    assert parse_pfc("xon=1KiB") == Pfc(xon_bytes=1024)
    assert parse_pfc("default") == Pfc()


@pytest.mark.parametrize("text", ["", "xoff", "xoff=0", "xof=1KiB", "xoff=many", "on"])
def test_bad_words(text: str) -> None:
    """One line that names the key."""
    with pytest.raises(KeyProblemError, match=r"^pfc: [^\n]+$"):
        make({"scheme": "ecmp", "pfc": text})


def test_thresholds_that_follow_from_the_topology() -> None:
    """One BDP, a share of it, and what the longest link holds both ways beside frames that had begun."""
    xoff = bdp_bytes(FABRIC)
    expected = Thresholds(xoff, int(xoff * XON_SHARE), 2 * 1250 + HEADROOM_FRAMES * 1500)
    assert expected == Pfc().of(FABRIC, 1500)
    assert Pfc(1000, 1000, 7).of(FABRIC, 1500) == Thresholds(1000, 1000, 7)
    with pytest.raises(SpecError, match=r"xon .1001 bytes. is above xoff .1000 bytes"):
        Pfc(1000, 1001).of(FABRIC, 1500)


def measure(tmp_path: Path, **values: object) -> Result:
    path = tmp_path / "flows.csv"
    senders = ("h2", "h3", "h5", "h6", "h7", "h8")
    path.write_text("src,dst,bytes,start\n" + "".join(f"{name},h1,256KiB,0\n" for name in senders))
    words = {"scheme": "ecmp:queue=64KiB", "topology": FABRIC.words, "workload": str(path), "window": "64KiB"}
    backend = VirtualBackend()
    return run(plan(make({**words, **values}), "virtual"), backend, lambda _progress: None, label="it")


def test_an_incast_overflows_a_queue_without_pfc(tmp_path: Path) -> None:
    """Six windows do not fit into the queue of the last link."""
    result = measure(tmp_path)
    assert isinstance(result.summary.packets.dropped, int)
    assert result.summary.packets.dropped > 0
    assert result.summary.pfc is UNSET


def test_pfc_loses_nothing(tmp_path: Path) -> None:
    """The same incast, with a pause before any queue is full; the pauses show in the summary."""
    result = measure(tmp_path, pfc="xoff=8KiB,xon=4KiB")
    assert result.complete
    assert (result.summary.packets.dropped, result.summary.packets.retransmitted) == (0, 0)
    assert isinstance(result.summary.pfc, dict)
    assert result.summary.pfc["frames"] > 0
    assert 0 < result.summary.pfc["pause_fraction"] < 1


def test_other_targets_have_none() -> None:
    """Refused before anything starts."""
    with pytest.raises(SpecError, match=r"^pfc: .*virtual target only"):
        plan(make({"scheme": "ecmp", "topology": FABRIC.words, "pfc": "default"}), "native")
