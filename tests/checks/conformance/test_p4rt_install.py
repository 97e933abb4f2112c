# SPDX-License-Identifier: Apache-2.0
"""The native P4Runtime server takes, from the same client, every plan that BMv2's server takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from finsy.proto import p4r

from checks.conformance.generator import generate
from checks.conformance.p4rt import PrimaryClient
from checks.conformance.program import CompiledProgram, load_programs
from tailrace.bmv2.process import DEVICE_ID, free_ports

BUILD = Path(__file__).resolve().parents[2] / "programs" / "build"
PROGRAMS = load_programs(BUILD)
STOP_S = 20.0


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A native switch without interfaces, as lenient as BMv2: plans may exceed the size of a selector."""
    (port,) = free_ports(1)
    server = f"127.0.0.1:{port}"
    command = [
        sys.executable,
        "-m",
        "tailrace.switch.daemon.cli",
        "--no-p4",
        "--device-id",
        str(DEVICE_ID),
        "--",
        "--bmv2-compat",
    ]
    process = subprocess.Popen([*command, "--grpc-server-addr", server], cwd=BUILD.parent.parent.parent)
    try:
        yield server
    finally:
        process.terminate()
        process.wait(STOP_S)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_plan_is_accepted_and_read_back(address: str, program: CompiledProgram) -> None:
    """Every update is accepted, and the entries of the plan are in the switch afterwards."""
    plan, _ = generate(program, 1)
    with PrimaryClient(address, program, DEVICE_ID) as client:
        client.become_primary()
        client.set_pipeline()
        client.install(plan)
        entries = [e.table_entry for e in client.read(p4r.Entity(table_entry=p4r.TableEntry()))]
        ours = [entry for entry in entries if not entry.is_const]
        assert len(ours) >= len(plan.entries)
        for counter, cells in client.counters().items():
            assert set(cells) == {(0, 0)}, counter
