# SPDX-License-Identifier: Apache-2.0
"""Completion of names on the command line, from the run file of the running network."""

from __future__ import annotations

from tailrace.words import SpecError


def complete_switch(incomplete: str) -> list[str]:
    """Names of switches that begin so; none where no network runs."""
    from tailrace.controller import runfile

    try:
        return [name for name in runfile.read().switches if name.startswith(incomplete)]
    except SpecError:
        return []


def complete_host(incomplete: str) -> list[str]:
    """Names of hosts that begin so; none where no network runs."""
    from tailrace.controller import runfile
    from tailrace.topology import parse_topology

    try:
        hosts = parse_topology(runfile.read().topology).hosts
    except SpecError:
        return []
    return [host.name for host in hosts if host.name.startswith(incomplete)]
