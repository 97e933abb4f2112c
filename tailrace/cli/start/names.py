# SPDX-License-Identifier: Apache-2.0
"""Names of what specs name, and their keys, for completion: remembered, since asking what registers them
would import most of the program at every press of the tabulator.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tailrace.cbuild.artifacts import ROOT

if TYPE_CHECKING:
    from tailrace.spec.registry import Registry

Names = dict[str, list[str]]

_REGISTRIES = {
    "scheme": "schemes.registry:SCHEMES",
    "topology": "topology.parse:FAMILIES",
    "workload": "experiments.workloads.workload:WORKLOADS",
    "fault": "experiments.faults.parse:FAULTS",
    "transport": "hosts.options.transports:TRANSPORTS",
}
"""Where the names of each kind of specs are registered."""

_PLUGINS = "TAILRACE_PLUGINS"
"""spec.plugins.VARIABLE, whose import would take as long as all the rest."""


def registry_of(kind: str) -> Registry[Any]:
    """What is registered of a kind of specs."""
    module, name = _REGISTRIES[kind].split(":")
    registry: Registry[Any] = getattr(importlib.import_module(f"tailrace.{module}"), name)
    return registry


def names_of(kind: str) -> Names:
    """All names of a kind of specs, in order, with the keys of each."""
    module = f"tailrace.{_REGISTRIES[kind].partition(':')[0]}"
    if module in sys.modules or os.environ.get(_PLUGINS):
        return _registered(kind)
    from tailrace.cbuild.memoized import memoized

    names: Names = json.loads(memoized("names", _state(kind), lambda: json.dumps(_registered(kind)).encode()))
    return names


def _registered(kind: str) -> Names:
    registry = registry_of(kind)
    return {name: [key.name for key in registry.keys(name)] for name in registry.names}


def _state(kind: str) -> Iterator[str]:
    """Changes with our sources and, by the folders of the search path, with what is installed."""
    yield from (kind, sys.version)
    for path in [*_sources(str(ROOT / "tailrace")), *sys.path]:
        with contextlib.suppress(OSError):
            status = os.stat(path)  # noqa: PTH116
            yield f"{path} {status.st_mtime_ns} {status.st_size}"


def _sources(folder: str) -> Iterator[str]:
    for where, _, files in os.walk(folder, followlinks=True):
        yield from (f"{where}/{name}" for name in files if name.endswith(".py"))
