# SPDX-License-Identifier: Apache-2.0
"""Chooses the target of an experiment: BMv2 or the native switch under Mininet, or virtual time."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from tailrace.bmv2.process import EXECUTABLE, MISSING
from tailrace.emulation.debian import add_mininet_path
from tailrace.sim.errors import TargetError

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
