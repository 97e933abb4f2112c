# SPDX-License-Identifier: Apache-2.0
"""The flows of a file, in any workload format of `tailrace.formats`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.experiments.workloads.ports import SourcePorts
from tailrace.experiments.workloads.transfer import Transfer
from tailrace.topology import Host, Topology

if TYPE_CHECKING:  # a run whose workload is no file does not load the formats
    from tailrace.formats.flow_table import FlowData, FlowTable
    from tailrace.formats.registry import FormatError, Origin


@dataclass(frozen=True, slots=True)
class FileFlows:
    """The flows of a file; `origin` names it in messages. A Pattern."""

    origin: Origin
    table: FlowTable

    def transfers(self, topology: Topology, _rng: random.Random) -> Iterator[Transfer]:
        """See Pattern.

        Raises:
            FileError: the topology has no such host, or a host sends to itself.
        """
        for flow, (sender, receiver) in zip(self.table.flows, self._ends(topology), strict=True):
            yield Transfer(
                sender,
                receiver,
                flow.size_bytes,
                flow.start_ns,
                flow.after,
                flow.sport,
                after_ns=flow.after_ns,
            )

    def reserve(self, topology: Topology, ports: SourcePorts) -> None:
        """Reserves the ports that the file names, so that no other flow of the same hosts draws them."""
        for flow, (sender, receiver) in zip(self.table.flows, self._ends(topology), strict=True):
            if flow.sport is not None:
                ports.reserve(sender, receiver, flow.sport)

    def _ends(self, topology: Topology) -> list[tuple[Host, Host]]:
        """Sender and receiver of each flow."""
        if self.table.hosts > len(topology.hosts):
            problem = f"it is for {self.table.hosts} hosts, and the topology has {len(topology.hosts)}"
            raise self.origin.error("", problem)
        hosts: dict[str | int, Host] = {key: host for host in topology.hosts for key in (host.name, host.ip)}
        for position, host in enumerate(topology.hosts):
            hosts[host.id - 1 if self.table.by_node else position] = host
        return [self._endpoints(flow, hosts) for flow in self.table.flows]

    def _endpoints(self, flow: FlowData, hosts: Mapping[str | int, Host]) -> tuple[Host, Host]:
        for end in (flow.src, flow.dst):
            if end not in hosts:
                example = (
                    f"expected a name such as {next(iter(hosts))}"
                    if isinstance(end, str)
                    else "numbers count from 0"
                )
                raise self._error(flow, f"the topology has no host {end!r}; {example}")
        if hosts[flow.src] is hosts[flow.dst]:
            raise self._error(flow, f"{flow.src} sends to itself")
        return hosts[flow.src], hosts[flow.dst]

    def _error(self, flow: FlowData, problem: str) -> FormatError:
        return self.origin.error(flow.line, problem)


def read_flows(path: Path) -> FileFlows:
    """The flows of a workload file, at least one.

    Raises:
        FileError: the file cannot be read, or is not as expected.
    """
    from tailrace.formats.registry import Kind, read_file

    return FileFlows(*read_file(path, Kind.WORKLOAD))
