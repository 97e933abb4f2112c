# SPDX-License-Identifier: Apache-2.0
"""A hash of the code that decides what a run gives: NICs, native switch, networks, controller, workloads.

All sources of the package count but those named here, each with its reason, so that what is new counts until
somebody says why not. The compiled P4 programs are no part of it: a task's key has that of its own scheme.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping

from tailrace.toolchain.artifacts import PACKAGE

NOT_LOADED: Mapping[str, str] = {
    "api": "offers to Python what others do",
    "bmv2": "asks BMv2, which runs in real time",
    "cli": "reads options and shows results",
    "controller/inspect": "looks into running switches",
    "controller/listing": "shows what switches hold",
    "controller/runfile.py": "tells of running networks",
    "experiments/backends/target.py": "chooses a target",
    "experiments/backends/virtual/mpi.py": "joins processes that share a network; tasks have one",
    "experiments/backends/virtual/rank.py": "one of processes that share a network; tasks have one",
    "experiments/backends/virtual/stop.py": "serves switches to whoever looks at them",
    "experiments/extend.py": "offers to plug-ins what others do",
    "experiments/figures": "draws results",
    "experiments/packet": "repeats runs, to look at a packet",
    "experiments/paper/claims": "judges results",
    "experiments/paper/document.py": "holds what came of a figure",
    "experiments/paper/files": "words, which the key has by themselves",
    "experiments/paper/grid.py": "makes tasks of words",
    "experiments/paper/harness.py": "puts runs together to figures",
    "experiments/paper/measure/endpoints.py": "needs no run",
    "experiments/paper/measure/gap_curves.py": "draws what runs counted",
    "experiments/paper/measure/memory.py": "needs no run",
    "experiments/paper/measure/sizes.py": "draws what runs measured",
    "experiments/paper/model.py": "reads words, which the key has by themselves",
    "experiments/paper/show": "shows results",
    "experiments/paper/tune.py": "chooses among results",
    "experiments/plan/experiment_file.py": "reads words, which the key has by themselves",
    "experiments/presets": "words, which the key has by themselves",
    "experiments/report": "shows results",
    "experiments/results/comparison.py": "puts results beside each other",
    "experiments/results/table.py": "shows results",
    "experiments/run/command.py": "prints command lines",
    "experiments/run/compare.py": "puts results beside each other",
    "experiments/run/pool.py": "hands out tasks",
    "experiments/run/prepare.py": "tells what will run",
    "experiments/run/processes.py": "runs tasks in other processes",
    "experiments/run/progress.py": "shows how far a run is",
    "experiments/run/signals.py": "ends runs",
    "experiments/run/sweep.py": "makes tasks of words",
    "experiments/store/find.py": "looks for runs by words",
    "experiments/store/stand.py": "says which stored runs stand for tasks",
    "experiments/store/store.py": "reads and writes lines",
    "hosts/build.py": "compiles NICs, of the sources that count",
    "hosts/build_setup.py": "compiles NICs, of the sources that count",
    "hosts/driver": "drives NICs in real time",
    "mininet": "runs networks in real time",
    "native/server/server.py": "serves a switch by gRPC",
    "native/switchd": "one switch in real time",
    "native/trace/following.py": "looks at packets of runs that are repeated",
    "native/virtual/serve.py": "serves switches by gRPC",
    "p4rt/connection.py": "talks gRPC",
    "p4rt/view.py": "shows what switches hold",
    "toolchain/debian.py": "finds Debian's packages",
    "toolchain/supervisor.py": "runs the C compiler",
}
"""Folders and files, from the package's on, of which no run in virtual time loads anything (a test sees to
that): what is not loaded changes nothing."""

HARMLESS: Mapping[str, str] = {
    "experiments/backends/mininet.py": "runs networks in real time",
    "experiments/results/staging.py": "moves files",
    "experiments/run/code_hash.py": "names what counts",
    "experiments/run/machine.py": "says what a run cost",
}
"""The same of what is loaded by a run in virtual time, and why it changes nothing."""

_SUFFIXES = (".py", ".c", ".h", ".toml")


def counts(name: str) -> bool:
    """Whether a file, by its path within the package, is part of the hash."""
    return name.endswith(_SUFFIXES) and not any(
        name == left or name.startswith(f"{left}/") for left in (*NOT_LOADED, *HARMLESS)
    )


FROZEN = "83adcfbf2e653e5c1a1bc6a70d9401f0c42edd51b09bf08839212270d7cf0a3f"
"""`sources_sha256` before files moved and names changed. Stored runs (docs/results) keep their keys by it
until they are migrated in one step; recorded traces show that runs are the same. Samples of stored runs are
run again as ever (store/stand.py)."""


def code_sha256() -> str:
    """What keys of tasks have of the code; 64 hexadecimal digits."""
    return FROZEN


@functools.cache
def sources_sha256() -> str:
    """64 hexadecimal digits; a change of any of the sources that count changes them."""
    digest = hashlib.sha256()
    # each room by itself: some are links, which a search does not follow
    for room in sorted(path for path in PACKAGE.iterdir() if path.name != "__pycache__"):
        for path in [room] if room.is_file() else sorted(room.rglob("*")):
            name = path.relative_to(PACKAGE).as_posix()
            if counts(name):
                digest.update(f"{name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
