# SPDX-License-Identifier: Apache-2.0
"""README's animated picture is what its script draws, and its caption says what the two runs have."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts.slow_link import SCHEMES, STAGES, Hop, Run, draw
from tailrace.hosts.nic.recording import RESUME

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return {name: Run(scheme) for scheme, name in SCHEMES.items()}


def test_the_picture_is_what_the_script_draws(runs: dict[str, Run]) -> None:
    """It is an SVG document with a title and a description; README says the same."""
    drawn = draw(runs)
    assert drawn == (ROOT / "docs" / "img" / "slow-link.svg").read_text("utf-8")
    title, description = list(ElementTree.fromstring(drawn))[:2]
    assert "ECMP beside Flowcut" in (title.text or "")
    readme = (ROOT / "README.md").read_text("utf-8")
    assert re.findall(r"after (\d+) µs", description.text or "") == re.findall(r"after\s+(\d+) µs", readme)


def test_packets_move_between_recorded_events(runs: dict[str, Run]) -> None:
    """Each crosses four links in turn; Flowcut's flow changes its path when the old path is empty."""
    run = runs["Flowcut"]
    slow = {wire for wire, *_ in run.header["slow"]}
    by_path: dict[bool, list[list[Hop]]] = {True: [], False: []}
    for (flow, _), hops in run.packets.items():
        assert len(hops) == len(STAGES) - 1
        assert all(hop.came_ns < hop.left_ns < hop.arrived_ns for hop in hops)
        times = [at for at, _, _ in run.points(hops, 0)]
        assert times == sorted(times)
        if flow == run.hot:
            by_path[hops[1].wire in slow].append(hops)
    resume_ns = run.first_ns(RESUME)
    assert resume_ns is not None
    assert max(hops[2].arrived_ns for hops in by_path[True]) < resume_ns
    assert min(hops[0].left_ns for hops in by_path[False]) > resume_ns - 1  # departures are rounded
