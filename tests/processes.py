# SPDX-License-Identifier: Apache-2.0
"""Processes that tests start, and those that must be gone."""

from __future__ import annotations

import re
import signal
from pathlib import Path

NOT_IGNORED = ("env", "--default-signal=HUP,INT,TERM")
"""Before a command: what ends a process does. Shells start what is in the background with SIGINT ignored, nohup does so
with SIGHUP, and tests may be there. It is a program because Python code between fork and exec is unsafe where gRPC has
threads: its handlers of forks have ended such children before their program started."""


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal: before that its interpreter is still starting."""
    caught = re.search(
        r"^SigCgt:\s*([0-9a-f]+)$", Path(f"/proc/{pid}/status").read_text("ascii"), re.MULTILINE
    )
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


def children(parent: int) -> list[int]:
    """The numbers of the processes that a process has started and that live."""
    pids = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = place.read_text("ascii", "replace")
        except OSError:
            continue  # it has ended
        # the name before may have spaces in it
        if int(stat.rpartition(")")[2].split()[1]) == parent:
            pids.append(int(place.parent.name))
    return pids


def running(*words: str) -> list[int]:
    """The numbers of all processes whose command line has all of these words."""
    pids = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            given = place.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # it has ended
        if set(words) <= set(given):
            pids.append(int(place.parent.name))
    return pids
