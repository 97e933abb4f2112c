# SPDX-License-Identifier: Apache-2.0
"""What a switch costs before it has seen a packet."""

from __future__ import annotations

import subprocess
import sys

SWITCHES = 40
MIB = 1 << 20

SCRIPT = f"""
from tailrace.switch.core import SwitchConfig, V1ModelSwitch
from tests.p4src.rig import program
import resource

def resident():
    with open("/proc/self/statm") as found:
        return int(found.read().split()[1]) * resource.getpagesize()

flowcut = program("flowcut")
bytes({8 * MIB})
before = resident()
switches = []
for _ in range({SWITCHES}):
    # who frees a large block is given its place again
    bytes([1]) * {4 * MIB}
    switches.append(V1ModelSwitch(flowcut, SwitchConfig()))
print(resident() - before)
"""


def test_registers_that_nobody_writes_take_no_memory() -> None:
    """They have more than 3 MiB in a switch of Flowcut, most of which a small network never touches."""
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert int(run.stdout) < SWITCHES * MIB
