# SPDX-License-Identifier: Apache-2.0
"""Real NICs in networks: by packets as by frames, compiled as interpreted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.codec.calls import RAW, Raw
from tailrace.codec.nic import port
from tailrace.hosts import build as hosts_build
from tailrace.hosts.compiled import COMPILED, INTERPRETED, VARIABLE
from tailrace.hosts.nic.nic import Nic
from tests.sim.network.host_scenario import CONFIGS, run

ROOT = Path(__file__).parents[3]


class ByFrames:
    """A NIC behind two ports: its own in Python's hands, and another that is handed frames as they are."""

    def __init__(self, nic: Nic) -> None:
        self._nic = nic
        self._port = port(nic)

    @property
    def idle(self) -> bool:
        return self._nic.idle

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        self._port.arrive(now_ns, frame, virtual_bytes)

    def next_packet(self, now_ns: int) -> Raw | int | None:
        sent = self._port.depart(now_ns)
        return (RAW, *sent) if isinstance(sent, tuple) else sent


@pytest.mark.parametrize("loss", [0.0, 0.02])
@pytest.mark.parametrize("name", CONFIGS)
def test_by_packets_as_by_frames(name, loss):
    """A port makes the same network from Python as from C, to the last byte and picosecond."""
    assert run(CONFIGS[name], ByFrames, loss=loss) == run(CONFIGS[name], loss=loss)


def test_all_flows_end_and_some_packets_were_lost():
    """The comparison is not one of nothings."""
    result = run(CONFIGS["gbn"], loss=0.02)
    assert all(record["end_ns"] for record in result.records)
    assert sum(int(str(record["retransmitted"])) for record in result.records) > 0
    assert [{}] * len(result.counters) == result.counters


def scenario(implementation: str) -> dict[str, object]:
    """All scenarios in a process of their own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim.network.host_scenario"],
        cwd=ROOT,
        env={**os.environ, VARIABLE: implementation},
        capture_output=True,
        text=True,
        check=True,
    )
    story: dict[str, object] = json.loads(done.stdout)
    return story


def test_compiled_as_interpreted():
    """NICs compiled by mypyc do exactly what they do in Python: same traces, same records."""
    hosts_build.build()
    compiled, interpreted = scenario(COMPILED), scenario(INTERPRETED)
    assert (COMPILED, INTERPRETED) == (compiled.pop("implementation"), interpreted.pop("implementation"))
    assert interpreted == compiled
