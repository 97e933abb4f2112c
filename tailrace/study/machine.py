# SPDX-License-Identifier: Apache-2.0
"""What a run costs this process, and on which machine: so that it can be said what others will cost."""

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
"""What /proc/self/clear_refs takes to forget how much memory there was at most (proc(5))."""

_MOST_NAME = 80


def machine() -> str:
    """The processor's name and how many cores there are, as in `AMD EPYC 7B13, 2 cores`."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        text = ""
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    name = model[1] if model else os.uname().machine
    return f"{one_line(name, _MOST_NAME)}, {os.cpu_count() or 1} cores"


class Usage:
    """What this process takes from when it is made."""

    def __init__(self) -> None:
        """Begins to count. Where the peak of memory cannot be forgotten, that of earlier runs counts, too."""
        self._cpu_s = time.process_time()
        with contextlib.suppress(OSError):
            (_PROC / "clear_refs").write_text(_RESET_PEAK)

    def taken(self) -> dict[str, Any]:
        """Keys of a summary: CPU time in s, most memory held in bytes, and the machine."""
        return {
            "cpu_s": time.process_time() - self._cpu_s,
            "memory_bytes": _peak_bytes(),
            "machine": machine(),
        }


def _peak_bytes() -> int:
    """The most memory that this process has held, in bytes."""
    try:
        peak = re.search(r"^VmHWM:\s*([0-9]+) kB$", (_PROC / "status").read_text("ascii"), re.MULTILINE)
    except OSError:
        peak = None
    # Linux reports it in KiB both ways
    return (int(peak[1]) if peak else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) << 10
