# SPDX-License-Identifier: Apache-2.0
"""CPU time and memory of a run, and the machine that ran it, from which the cost of other runs follows."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import time
from pathlib import Path
from typing import Any

from tailrace.spec.text import one_line

_PROC = Path("/proc/self")
_RESET_PEAK = "5"
"""Written to /proc/self/clear_refs, this resets the peak of resident memory, VmHWM (proc(5))."""

_MOST_NAME = 80


def machine() -> str:
    """The processor's name and the number of cores, such as `AMD EPYC 7B13, 2 cores`."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        text = ""
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    name = model[1] if model else os.uname().machine
    return f"{one_line(name, _MOST_NAME)}, {os.cpu_count() or 1} cores"


class Usage:
    """The resources that this process uses after the object was created."""

    def __init__(self) -> None:
        """Starts counting. If the memory peak cannot be reset, it includes that of earlier runs."""
        self._cpu_s = time.process_time()
        with contextlib.suppress(OSError):
            (_PROC / "clear_refs").write_text(_RESET_PEAK)

    def taken(self) -> dict[str, Any]:
        """Keys of a summary: CPU time in s, peak of resident memory in bytes, and the machine."""
        return {
            "cpu_s": time.process_time() - self._cpu_s,
            "memory_bytes": _peak_bytes(),
            "machine": machine(),
        }


def _peak_bytes() -> int:
    """The peak of resident memory of this process in bytes."""
    try:
        peak = re.search(r"^VmHWM:\s*([0-9]+) kB$", (_PROC / "status").read_text("ascii"), re.MULTILINE)
    except OSError:
        peak = None
    # both values are in KiB
    return (int(peak[1]) if peak else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) << 10
