# SPDX-License-Identifier: Apache-2.0
"""The flows of a workload file. `experiments.workloads` maps its hosts to those of a topology."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FlowData:
    """A flow.

    line: its line in the file, from 1
    src, dst: a host's name or IPv4 address, or its number from 0
    size_bytes: at least 1
    start_ns: earliest start
    sport: UDP source port; None: drawn at random
    after: numbers (from 1, in order of the table) of flows that must be complete at the sender first
    after_ns: time from the completion of each flow of `after` to the start of this one; empty: 0
    """

    line: int
    src: str | int
    dst: str | int
    size_bytes: int
    start_ns: int = 0
    sport: int | None = None
    after: tuple[int, ...] = ()
    after_ns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FlowTable:
    """All flows, at least one.

    hosts: number of hosts that the file declares; 0: not declared
    by_node: host numbers count switches, too, as in HPCC's files
    names: for writers, the name of each host, by number
    """

    flows: tuple[FlowData, ...]
    hosts: int = 0
    by_node: bool = False
    names: tuple[str, ...] = ()
