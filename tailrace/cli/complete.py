# SPDX-License-Identifier: Apache-2.0
"""Completion on the command line: names of the running network, of registries, columns and files."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import typer

from tailrace.cli.start.names import names_of

_COLUMNS = {
    **dict.fromkeys(("run", "compare", "sweep"), "results.table"),
    "paper": "cli.paper_command",
    "results": "cli.store.results_command",
    **{name: f"controller.inspect.{name}" for name in ("tables", "groups", "counters", "registers", "paths")},
    **{name: f"controller.inspect.{name}" for name in ("flows", "queues")},
    **dict.fromkeys(("topologies", "workloads", "faults", "transports"), "cli.declared"),
    "diff": "controller.inspect.differences",
    "schemes": "cli.scheme_text",
}
"""The module whose COLUMNS a command shows."""

KINDS = {
    "schemes": "scheme",
    "topologies": "topology",
    "workloads": "workload",
    "faults": "fault",
    "transports": "transport",
}
"""What the commands that explain specs explain."""

Completer = Callable[[str], list[str]]


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def complete_switch(incomplete: str) -> list[str]:
    """Names of switches that begin so; none where no network runs."""
    from tailrace.controller import runfile
    from tailrace.spec import SpecError

    try:
        return _beginning(runfile.read().switches, incomplete)
    except SpecError:
        return []


def complete_host(incomplete: str) -> list[str]:
    """Names of hosts that begin so; none where no network runs."""
    from tailrace.controller import runfile
    from tailrace.spec import SpecError
    from tailrace.topology import parse_topology

    try:
        return _beginning((host.name for host in parse_topology(runfile.read().topology).hosts), incomplete)
    except SpecError:
        return []


def complete_column(context: typer.Context, incomplete: str) -> list[str]:
    """Columns of a command; behind a minus, too."""
    module = _COLUMNS.get(context.info_name or "")
    if module is None:
        return []
    minus = "-" if incomplete.startswith("-") else ""
    columns = importlib.import_module(f"tailrace.{module}").COLUMNS
    return _beginning((minus + column.name for column in columns), incomplete)


def complete_columns(context: typer.Context, incomplete: str) -> list[str]:
    """The same behind the last comma."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_column(context, last)]


def complete_specs(kind: str, ending: str = "") -> Completer:
    """Names of a kind of specs, then keys behind the colon; files that end so, too."""

    def complete(incomplete: str) -> list[str]:
        cut = max(incomplete.rfind(","), incomplete.rfind(":")) + 1
        before, last = incomplete[:cut], incomplete[cut:]
        known = names_of(kind)
        names = [] if before.endswith(":") else list(known)
        # what has options stands before the last colon
        name = before.rpartition(":")[0].rpartition(",")[2]
        names += [f"{key}=" for key in known.get(name, ())]
        matching = [before + each for each in _beginning(names, last)]
        return matching + (list(_files(incomplete, ending)) if ending else [])

    return complete


def complete_declared(context: typer.Context, incomplete: str) -> list[str]:
    """Names of what the command explains."""
    return _beginning(names_of(KINDS[context.info_name or ""]), incomplete)


def complete_experiment(incomplete: str) -> list[str]:
    """Presets, and files of experiments."""
    from tailrace.experiments.plan.experiment_file import PRESETS

    presets = sorted(path.stem for path in PRESETS.glob("*.toml"))
    return _beginning(presets, incomplete) + list(_files(incomplete, ".toml"))


def complete_paper(incomplete: str) -> list[str]:
    """Papers, and figures and tables of papers behind the last comma."""
    from tailrace.papers.model import names, paper_of

    before, comma, last = incomplete.rpartition(",")
    papers = () if comma else ("list", "all", *dict.fromkeys(map(paper_of, names())))
    return [f"{before}{comma}{name}" for name in _beginning((*papers, *names()), last)]


def complete_transport(incomplete: str) -> list[str]:
    """Transports that begin so."""
    return _beginning(names_of("transport"), incomplete)


def one_of(*names: str) -> Completer:
    """Names that are known beforehand."""
    return lambda incomplete: _beginning(names, incomplete)


def _files(incomplete: str, ending: str) -> Iterator[str]:
    """Files that begin so and end in `ending`, and folders."""
    folder, slash, last = incomplete.rpartition("/")
    try:
        paths = sorted(Path(folder + slash or ".").iterdir())
    except OSError:
        return
    for path in paths:
        if path.name.startswith(last) and (last or not path.name.startswith(".")):
            if path.is_dir():
                yield f"{folder}{slash}{path.name}/"
            elif path.name.endswith(ending):
                yield f"{folder}{slash}{path.name}"
