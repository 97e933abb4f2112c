# SPDX-License-Identifier: Apache-2.0
"""Completion on the command line: names in the running network, in registries, of columns and of files.

A running network has a run file (controller.runfile), which names its switches and its topology.

Registered names (schemes, workloads, …) and their keys are cached: listing them imports most of the program.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailrace.cbuild.artifacts import ROOT

if TYPE_CHECKING:
    from tailrace.spec.registry import Registry

Completer = Callable[[str], Collection[str]]
"""Returns the possible completions of an incomplete argument."""

Names = dict[str, list[str]]

_REGISTRIES = {
    "scheme": "schemes.registry:SCHEMES",
    "topology": "topology.parse:FAMILIES",
    "workload": "experiments.workloads.workload:WORKLOADS",
    "fault": "experiments.faults.parse:FAULTS",
    "transport": "hosts.options.transports:TRANSPORTS",
}
"""By kind of spec, the registry of its names: module and variable."""

_PLUGINS = "TAILRACE_PLUGINS"
"""spec.plugins.VARIABLE; importing it would take as long as the rest of a completion."""

KINDS = {
    "schemes": "scheme",
    "topologies": "topology",
    "workloads": "workload",
    "faults": "fault",
    "transports": "transport",
}
"""By command that lists registered names, the kind of spec that it lists."""


# ---- names of specs ----


def registry_of(kind: str) -> Registry[Any]:
    """The registry of a kind of spec."""
    module, name = _REGISTRIES[kind].split(":")
    registry: Registry[Any] = getattr(importlib.import_module(f"tailrace.{module}"), name)
    return registry


def names_of(kind: str) -> Names:
    """All names of a kind of spec, in order, with the keys of each."""
    module = f"tailrace.{_REGISTRIES[kind].partition(':')[0]}"
    if module in sys.modules or os.environ.get(_PLUGINS):
        return _registered(kind)
    from tailrace.cbuild.memoized import memoized

    # memoized: a cache on disk; the result is computed again if `_state` differs
    names: Names = json.loads(memoized("names", _state(kind), lambda: json.dumps(_registered(kind)).encode()))
    return names


def _registered(kind: str) -> Names:
    registry = registry_of(kind)
    return {name: [key.name for key in registry.keys(name)] for name in registry.names}


def _state(kind: str) -> Iterator[str]:
    """The cache key: it changes with our sources and, by the folders of sys.path, with installed packages."""
    yield from (kind, sys.version)
    for path in [*_sources(str(ROOT / "tailrace")), *sys.path]:
        with contextlib.suppress(OSError):
            status = os.stat(path)  # noqa: PTH116
            yield f"{path} {status.st_mtime_ns} {status.st_size}"


def _sources(folder: str) -> Iterator[str]:
    for where, _, files in os.walk(folder, followlinks=True):
        yield from (f"{where}/{name}" for name in files if name.endswith(".py"))


# ---- completers ----


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def complete_switch(incomplete: str) -> list[str]:
    """Names of switches; empty if no network runs."""
    from tailrace.controller import runfile
    from tailrace.spec import SpecError

    try:
        return _beginning(runfile.read().switches, incomplete)
    except SpecError:
        return []


def complete_host(incomplete: str) -> list[str]:
    """Names of hosts; empty if no network runs."""
    from tailrace.controller import runfile
    from tailrace.spec import SpecError
    from tailrace.topology import parse_topology

    try:
        return _beginning((host.name for host in parse_topology(runfile.read().topology).hosts), incomplete)
    except SpecError:
        return []


def complete_column(module: str) -> Completer:
    """Completes the COLUMNS of a module, also after a minus (descending order)."""

    def complete(incomplete: str) -> list[str]:
        minus = "-" if incomplete.startswith("-") else ""
        columns = importlib.import_module(f"tailrace.{module}").COLUMNS
        return _beginning((minus + column.name for column in columns), incomplete)

    return complete


def complete_columns(module: str) -> Completer:
    """Completes the COLUMNS of a module after the last comma."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in complete_column(module)(last)]

    return complete


def complete_specs(kind: str, *, files: bool = False) -> Completer:
    """Completes names of a kind of spec, keys after the colon, and files if a file may be given instead."""

    def complete(incomplete: str) -> list[str]:
        cut = max(incomplete.rfind(","), incomplete.rfind(":")) + 1
        before, last = incomplete[:cut], incomplete[cut:]
        known = names_of(kind)
        names = [] if before.endswith(":") else list(known)
        # the name whose keys are wanted precedes the last colon
        name = before.rpartition(":")[0].rpartition(",")[2]
        names += [f"{key}=" for key in known.get(name, ())]
        matching = [before + each for each in _beginning(names, last)]
        return matching + (complete_file(incomplete) if files else [])

    return complete


def complete_names(kind: str) -> Completer:
    """Completes names of a kind of spec."""
    return lambda incomplete: _beginning(names_of(kind), incomplete)


def complete_experiment(incomplete: str) -> list[str]:
    """Presets and experiment files."""
    from tailrace.experiments.plan.experiment_file import PRESETS

    presets = sorted(path.stem for path in PRESETS.glob("*.toml"))
    return _beginning(presets, incomplete) + complete_file(incomplete, ".toml")


def complete_paper(incomplete: str) -> list[str]:
    """Papers, and after the last comma their figures and tables."""
    from tailrace.papers.model import names, paper_of

    before, comma, last = incomplete.rpartition(",")
    papers = () if comma else ("list", "all", *dict.fromkeys(map(paper_of, names())))
    return [f"{before}{comma}{name}" for name in _beginning((*papers, *names()), last)]


def one_of(*names: str) -> Completer:
    """Completes a fixed list of names."""
    return lambda incomplete: _beginning(names, incomplete)


def complete_file(incomplete: str, ending: str = "") -> list[str]:
    """Files that end in `ending`, and folders."""
    folder, slash, last = incomplete.rpartition("/")
    try:
        paths = sorted(Path(folder + slash or ".").iterdir())
    except OSError:
        return []
    names = (path.name + "/" if path.is_dir() else path.name for path in paths)
    return [
        f"{folder}{slash}{name}"
        for name in _beginning(names, last)
        if name.endswith(("/", ending)) and (last or not name.startswith("."))
    ]
