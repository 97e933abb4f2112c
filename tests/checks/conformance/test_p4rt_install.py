# SPDX-License-Identifier: Apache-2.0
"""The native P4Runtime server takes, from the same client, all updates that BMv2's server takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from finsy.proto import p4r

from checks.conformance.p4rt import GrpcSwitch
from checks.conformance.packets import generate
from checks.conformance.program import CompiledProgram, load_programs
from tailrace.bmv2.process import DEVICE_ID, free_ports

BUILD = Path(__file__).resolve().parents[2] / "programs" / "build"
PROGRAMS = load_programs(BUILD)
STOP_S = 20.0


@pytest.fixture(scope="module")
def addresses() -> Iterator[tuple[str, str]]:
    """A native switch without interfaces, as lenient as BMv2: groups may exceed the size of a selector."""
    server, dataplane = (f"127.0.0.1:{port}" for port in free_ports(2))
    command = [
        sys.executable,
        "-m",
        "tailrace.switch.daemon.cli",
        "--no-p4",
        "--device-id",
        str(DEVICE_ID),
        "--",
        "--bmv2-compat",
        "--grpc-server-addr",
        server,
        "--dp-grpc-server-addr",
        dataplane,
    ]
    process = subprocess.Popen(command, cwd=BUILD.parent.parent.parent)
    try:
        yield server, dataplane
    finally:
        process.terminate()
        process.wait(STOP_S)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_updates_are_accepted_and_read_back(addresses: tuple[str, str], program: CompiledProgram) -> None:
    """Every update is accepted, and the entries are in the switch afterwards."""
    updates, _ = generate(program, 1)
    with GrpcSwitch(program, *addresses) as switch:
        switch.install(updates)
        entries = [e.table_entry for e in switch.read(p4r.Entity(table_entry=p4r.TableEntry()))]
        ours = [entry for entry in entries if not entry.is_const]
        assert len(ours) >= sum(update.entity.HasField("table_entry") for update in updates)
        for counter, cells in switch.counters().items():
            assert set(cells) == {(0, 0)}, counter
