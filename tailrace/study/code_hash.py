# SPDX-License-Identifier: Apache-2.0
"""A hash of the code that decides what a run gives: NICs, native switch, networks, controller, workloads.

All sources of the package count but those named here, each with its reason, so that what is new counts until
somebody says why not. The compiled P4 programs are no part of it: a task's key has that of its own scheme.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping

from tailrace.cbuild.artifacts import PACKAGE

NOT_LOADED: Mapping[str, str] = {
    "api": "offers to Python what others do",
    "bmv2": "asks BMv2, which runs in real time",
    "cli": "reads options and shows results",
    "controller/inspect": "looks into running switches",
    "tables/compare.py": "shows rows of values",
    "tables/listing.py": "shows rows of values",
    "tables/rates.py": "shows rows of values",
    "tables/table.py": "shows rows of values",
    "tables/cell_text.py": "shows rows of values",
    "tables/row_filter.py": "shows rows of values",
    "controller/runfile.py": "lists running networks",
    "emulation/debian.py": "finds Debian's packages",
    "emulation/target.py": "chooses a target",
    "sim/mpi.py": "joins processes that share a network; tasks have one",
    "sim/rank.py": "one of processes that share a network; tasks have one",
    "sim/pause.py": "serves switches to whoever looks at them",
    "api/extend.py": "offers to plug-ins what others do",
    "report/figures": "draws results",
    "study/packet": "repeats runs, to look at a packet",
    "papers/claims": "judges results",
    "papers/document.py": "holds what came of a figure",
    "papers/files": "words, which the key has by themselves",
    "papers/grid.py": "makes tasks of words",
    "papers/harness.py": "puts runs together to figures",
    "papers/measure/endpoints.py": "needs no run",
    "papers/measure/gap_curves.py": "draws what runs counted",
    "papers/measure/memory.py": "needs no run",
    "papers/measure/sizes.py": "draws what runs measured",
    "papers/model.py": "reads words, which the key has by themselves",
    "report/paper": "shows results",
    "papers/tune.py": "chooses among results",
    "experiments/plan/experiment_file.py": "reads words, which the key has by themselves",
    "experiments/presets": "words, which the key has by themselves",
    "report": "shows results",
    "results/results.py": "puts results beside each other",
    "results/table.py": "shows results",
    "experiments/plan/axes.py": "makes tasks of words",
    "experiments/plan/command.py": "prints command lines",
    "study/compare.py": "puts results beside each other",
    "study/pool.py": "hands out tasks",
    "study/prepare.py": "reports what will run",
    "study/processes.py": "runs tasks in other processes",
    "study/progress.py": "shows how far a run is",
    "study/signals.py": "ends runs",
    "study/sweep.py": "makes tasks of words",
    "study/store/find.py": "looks for runs by words",
    "study/store/reuse.py": "takes stored runs instead of new ones",
    "study/store/store.py": "reads and writes lines",
    "hosts/build.py": "compiles NICs, of the sources that count",
    "hosts/build_setup.py": "compiles NICs, of the sources that count",
    "hosts/driver": "drives NICs in real time",
    "mininet": "runs networks in real time",
    "switch/p4runtime/server.py": "serves a switch by gRPC",
    "switch/daemon": "one switch in real time",
    "switch/trace/tracking.py": "looks at packets of runs that are repeated",
    "sim/network/serve.py": "serves switches by gRPC",
    "p4rt/connection.py": "talks gRPC",
    "cbuild/supervisor.py": "runs the C compiler",
}
"""Folders and files, from the package's on, of which no run in virtual time loads anything (a test sees to
that): what is not loaded changes nothing."""

HARMLESS: Mapping[str, str] = {
    "emulation/mininet.py": "runs networks in real time",
    "results/atomic_folder.py": "moves files",
    "study/code_hash.py": "names what counts",
    "study/machine.py": "says what a run cost",
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
until they are migrated in one step; recorded traces show that runs are the same."""


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
