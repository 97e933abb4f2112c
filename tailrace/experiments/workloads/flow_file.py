# SPDX-License-Identifier: Apache-2.0
"""The flows of a file, in any workload format of `tailrace.formats`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.experiments.workloads.ports import SourcePorts
from tailrace.experiments.workloads.transfer import Transfer
from tailrace.topology import Host, Topology

if TYPE_CHECKING:  # a run whose workload is no file does not load the formats
    from tailrace.formats.flow_table import FlowData, FlowTable
    from tailrace.formats.registry import Source


@dataclass(frozen=True, slots=True)
class FileFlows:
    """The flows of a file; `source` names it in messages. A Pattern."""

    source: Source
    table: FlowTable

    def transfers(self, topology: Topology, _rng: random.Random) -> Iterator[Transfer]:
        """See Pattern; raises FileError if the topology has no such host, or a host sends to itself."""
        for flow, src, dst in self._resolved(topology):
            yield Transfer(
                src,
                dst,
                flow.size_bytes,
                flow.start_ns,
                flow.after,
                flow.sport,
                steering=flow.steering,
                after_ns=flow.after_ns,
                after_count=flow.after_count,
            )

    def reserve(self, topology: Topology, ports: SourcePorts) -> None:
        """Reserves the ports that the file names, so that no other flow of the same hosts draws them."""
        for flow, src, dst in self._resolved(topology):
            if flow.sport is not None:
                ports.reserve(src, dst, flow.sport)

    def _resolved(self, topology: Topology) -> Iterator[tuple[FlowData, Host, Host]]:
        """Each flow with its sender and receiver."""
        table = self.table
        if table.hosts > len(topology.hosts):
            raise self.source.error("", f"for {table.hosts} hosts; the topology has {len(topology.hosts)}")
        hosts: dict[str | int, Host] = {key: host for host in topology.hosts for key in (host.name, host.ip)}
        for position, host in enumerate(topology.hosts):
            hosts[host.id - 1 if table.by_node else position] = host
        example = f"expected a name such as {topology.hosts[0].name}, or a number from 0"
        for flow in table.flows:
            for end in (flow.src, flow.dst):
                if end not in hosts:
                    raise self.source.error(flow.line, f"the topology has no host {end!r}; {example}")
            if hosts[flow.src] is hosts[flow.dst]:
                raise self.source.error(flow.line, f"{flow.src} sends to itself")
            yield flow, hosts[flow.src], hosts[flow.dst]


def read_flows(path: Path) -> FileFlows:
    """The flows of a workload file; raises FileError if it cannot be read, or is not as expected."""
    from tailrace.formats.registry import Kind, read_file

    return FileFlows(*read_file(path, Kind.WORKLOAD))
