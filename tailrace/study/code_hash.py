# SPDX-License-Identifier: Apache-2.0
"""A hash of the code that determines a run's result: NICs, native switch, networks, controller, workloads.

The hash covers all sources of the package except those listed here, each with the reason, so that a new file
is covered by default. The hash does not cover compiled P4 programs: a task's key includes the program of its
scheme.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping

from tailrace.cbuild.artifacts import PACKAGE

NOT_LOADED: Mapping[str, str] = {
    "api": "offers functions of other modules to Python programs",
    "bmv2": "queries BMv2, which runs in real time",
    "cli": "reads options and shows results",
    "labs": "checks answers",
    "controller/inspect": "inspects running switches",
    "tables/compare.py": "shows rows of values",
    "tables/listing.py": "shows rows of values",
    "tables/rates.py": "shows rows of values",
    "tables/table.py": "shows rows of values",
    "tables/cell_text.py": "shows rows of values",
    "tables/row_filter.py": "shows rows of values",
    "controller/runfile.py": "lists running networks",
    "emulation/mininet.py": "runs networks in real time",
    "emulation/target.py": "chooses a target, and finds Mininet",
    "sim/mpi.py": "joins processes that share a network; a task has one process",
    "sim/rank.py": "one of processes that share a network; a task has one process",
    "sim/pause.py": "serves switches of a paused run to other programs",
    "study/packet": "repeats runs, to look at a packet",
    "papers": "makes tasks from specs, which the key includes directly, and judges results",
    "experiments/plan/experiment_file.py": "reads specs, which the key includes directly",
    "experiments/presets": "specs, which the key includes directly",
    "report": "shows results",
    "viewer": "shows results",
    "results/results.py": "collects results",
    "results/table.py": "shows results",
    "experiments/plan/axes.py": "makes tasks from specs",
    "experiments/plan/command.py": "prints command lines",
    "study/cluster.py": "distributes tasks",
    "study/grids.py": "makes tasks from specs",
    "study/pool.py": "distributes tasks",
    "study/prepare.py": "reports what will run",
    "study/processes.py": "runs tasks in other processes",
    "study/progress.py": "shows the progress of a run",
    "study/signals.py": "ends runs",
    "study/store": "stores results, and takes stored runs instead of new ones",
    "hosts/build.py": "compiles NICs from sources that the hash covers",
    "hosts/build_setup.py": "compiles NICs from sources that the hash covers",
    "hosts/driver": "drives NICs in real time",
    "mininet": "runs networks in real time",
    "switch/p4runtime/server.py": "serves a switch by gRPC",
    "switch/daemon": "one switch in real time",
    "switch/trace/tracking.py": "observes packets in repeated runs",
    "sim/network/serve.py": "serves switches by gRPC",
    "p4rt/connection.py": "opens gRPC connections",
    "cbuild/supervisor.py": "runs the C compiler",
}
"""Folders and files, by path within the package, that no run in virtual time loads (a test checks that), so
they cannot change its result."""

HARMLESS: Mapping[str, str] = {
    "results/atomic_folder.py": "moves files",
    "spec/version.py": "names the version",
    "study/code_hash.py": "lists what the hash covers",
    "study/machine.py": "measures CPU time and memory of a run",
}
"""Files that a run in virtual time loads, and why they cannot change its result."""

_SUFFIXES = (".py", ".c", ".h", ".toml")


def is_hashed(name: str) -> bool:
    """Whether a file, by its path within the package, is part of the hash."""
    return name.endswith(_SUFFIXES) and not any(
        name == path or name.startswith(f"{path}/") for path in (*NOT_LOADED, *HARMLESS)
    )


@functools.cache
def code_sha256() -> str:
    """The hash of all sources that `is_hashed` selects; it identifies stored runs. 64 hexadecimal digits."""
    digest = hashlib.sha256()
    # each folder by itself: some are symbolic links, which rglob does not follow
    for folder in sorted(path for path in PACKAGE.iterdir() if path.name != "__pycache__"):
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*")):
            name = path.relative_to(PACKAGE).as_posix()
            if is_hashed(name):
                digest.update(f"{name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
