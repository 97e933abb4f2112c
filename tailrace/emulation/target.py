# SPDX-License-Identifier: Apache-2.0
"""Chooses the target of an experiment: BMv2 or the native switch under Mininet, or virtual time. Makes
Debian's Mininet importable in a virtual environment, since Mininet from PyPI lacks mnexec.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tailrace.bmv2.process import EXECUTABLE, MISSING
from tailrace.sim.errors import TargetError

MININET = Path("/usr/lib/python3/dist-packages/mininet")
"""Debian's package, which is pure Python, so that it runs with any version of Python."""


def add_mininet_path() -> bool:
    """Makes `mininet` importable, but no other of Debian's Python packages; whether it is installed."""
    installed = importlib.util.find_spec("mininet")
    # find_spec also finds a plain folder `mininet` without __init__.py, such as this repository's
    if installed is not None and installed.origin is not None:
        return True
    spec = importlib.util.spec_from_file_location("mininet", MININET / "__init__.py")
    if spec is None or spec.loader is None or not MININET.is_dir():
        return False
    module = sys.modules["mininet"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return True


_PROBE = ("unshare", "--net", "ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1")
_PROBE_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Machine:
    """What this machine can run. `no_mininet`: the reason why Mininet cannot run here; empty if it can."""

    has_bmv2: bool
    no_mininet: str


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """The target, and why it was chosen."""

    name: str
    reason: str


def probe_machine() -> Machine:
    """Finds out whether BMv2 is installed and Mininet can run."""
    return Machine(shutil.which(EXECUTABLE) is not None, _no_mininet())


def _no_mininet() -> str:
    if os.geteuid() != 0:
        return "not root"
    if not add_mininet_path():
        return "Mininet is not installed"
    for program in ("mnexec", "unshare", "ip"):
        if shutil.which(program) is None:
            return f"{program} is not on PATH"
    try:
        probe = subprocess.run(_PROBE, capture_output=True, text=True, check=False, timeout=_PROBE_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"a network namespace cannot be made: {error}"
    if probe.returncode != 0:
        return f"a network namespace cannot be made: {probe.stderr.strip() or probe.returncode}"
    return ""


def choose(wanted: str, probe: Callable[[], Machine] = probe_machine) -> TargetChoice:
    """The target to run on.

    Args:
        wanted: auto, bmv2, native or virtual.
        probe: finds out what the machine can run; called only if the choice depends on it.

    Raises:
        TargetError: the wanted target cannot run here.
    """
    if wanted == "virtual":
        return TargetChoice("virtual", "as requested")
    machine = probe()
    if wanted == "auto":
        if machine.no_mininet:
            return TargetChoice("virtual", f"Mininet cannot run here: {machine.no_mininet}")
        if machine.has_bmv2:
            return TargetChoice("bmv2", f"{EXECUTABLE} is on PATH, and Mininet can run")
        return TargetChoice("native", f"Mininet can run, and {EXECUTABLE} is not on PATH")
    if machine.no_mininet:
        raise TargetError(f"target {wanted}: Mininet cannot run here: {machine.no_mininet}")
    if wanted == "bmv2" and not machine.has_bmv2:
        raise TargetError(f"target bmv2: {MISSING}")
    return TargetChoice(wanted, "as requested")
