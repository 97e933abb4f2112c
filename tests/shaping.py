# SPDX-License-Identifier: Apache-2.0
"""Whether this machine can bound the rate of an interface, which tests of the kernel's TCP need."""

from __future__ import annotations

import shutil
import subprocess

PROGRAMS = ("tc", "ethtool", "unshare")
_TBF = ("tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "1mbit", "burst", "2000b", "limit", "9000b")


def why_not() -> str | None:
    """Why it cannot; None: it can."""
    for program in PROGRAMS:
        if shutil.which(program) is None:
            return f"{program} is not on PATH"
    probe = subprocess.run(["unshare", "--net", *_TBF], capture_output=True, text=True, check=False)
    return None if probe.returncode == 0 else f"no tbf here: {' '.join(probe.stderr.split())}"
