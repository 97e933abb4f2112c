# SPDX-License-Identifier: Apache-2.0
"""The flows of a workload file; experiments.workloads.flow_file maps its hosts to those of a topology."""

from __future__ import annotations

from dataclasses import dataclass

MOST_WAITS = 20_000_000
"""Limit on the flows for which flows wait, over all flows of a file."""


@dataclass(frozen=True, slots=True)
class FlowData:
    """A flow, at a line of the file.

    src, dst: a host's name or IPv4 address, or its number from 0
    sport: UDP source port; None: drawn at random
    after, after_ns, steering, after_count: as in hosts.flows.flow.FlowSpec; flows are numbered from 1
    """

    line: int
    src: str | int
    dst: str | int
    size_bytes: int
    start_ns: int = 0
    sport: int | None = None
    after: tuple[int, ...] = ()
    after_ns: tuple[int, ...] = ()
    steering: str = ""
    after_count: int = 0


@dataclass(frozen=True, slots=True)
class FlowTable:
    """All flows, at least one.

    hosts: number of hosts that the file declares; 0: not declared
    by_node: host numbers count switches, too, as in HPCC's files
    names: for writers, the name of each host
    """

    flows: tuple[FlowData, ...]
    hosts: int = 0
    by_node: bool = False
    names: tuple[str, ...] = ()
