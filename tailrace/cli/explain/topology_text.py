# SPDX-License-Identifier: Apache-2.0
"""A topology as tables for people, and as JSON."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence

from tailrace.cli import output
from tailrace.cli.options import OutputFormat, View
from tailrace.cli.output import TABLES
from tailrace.spec import SpecError
from tailrace.spec.units import format_rate, format_time
from tailrace.tables.listing import Column, Listing, Row
from tailrace.topology import Host, Link, Topology


def as_json(topology: Topology, parts: Sequence[str]) -> str:
    """One object: kind and spec of the topology, and a list of each of its parts, with times in ns and rates
    in bits/s. Optional values are left out if the topology does not set them.
    """
    summary: dict[str, object] = {"kind": topology.kind, "spec": topology.spec}
    for part in parts:
        items = (dataclasses.asdict(item) for item in getattr(topology, part))
        summary[part] = [
            {key: value for key, value in item.items() if value not in (None, ())} for item in items
        ]
    if "switches" in summary:
        summary["prefixes"] = {
            switch: [str(prefix) for prefix in topology.prefixes_of(switch)] for switch in topology.leaves
        }
    return json.dumps(summary, indent=2) + "\n"


def show(topology: Topology, parts: Sequence[str], view: View) -> None:
    """Prints one table per part, below a line with the number of rows; or one JSON object.

    Raises:
        SpecError: several parts in a format for a single part, or an unknown column.
    """
    if view.format is OutputFormat.JSON:
        if view.columns or view.sort_by:
            raise SpecError("--columns and --sort-by go with tables; JSON has everything")
        sys.stdout.write(as_json(topology, parts))
        return
    if len(parts) > 1 and view != View(view.format):
        raise SpecError("--columns and --sort-by go with one part: --show switches, hosts or links")
    if len(parts) > 1 and view.format not in TABLES:
        raise SpecError(f"-o {view.format.value} goes with one part: --show switches, hosts or links")
    for number, part in enumerate(parts):
        rows = tuple(_MAKERS[part](topology))
        columns = tuple(Column(name, rank=_RANKS.get(name, 0)) for name in rows[0]) if rows else ()
        if number:
            sys.stdout.write("\n")
        title = f"{len(rows)} {part}" if view.format in TABLES else ""
        output.show(Listing(part, columns, rows, title=title), view)


def _switches(topology: Topology) -> Iterator[Row]:
    for switch in topology.switches:
        yield {
            "switch": switch.name,
            "id": switch.id,
            "role": switch.role,
            "group": switch.group if switch.group >= 0 else None,
            "prefixes": tuple(topology.prefixes_of(switch.name)),
            "ports": tuple(f"{port}:{peer.name}" for port, peer in topology.ports_of(switch.name).items()),
            "cpu_port": switch.cpu_port,
            "priority_queues": switch.priority_queues,
        }


def _hosts(topology: Topology) -> Iterator[Row]:
    for host in topology.hosts:
        yield {"host": host.name, **_link_row(host, "ip", "mac", "switch", "port")}


def _links(topology: Topology) -> Iterator[Row]:
    for link in topology.links:
        yield _link_row(link, "a", "a_port", "b", "b_port")


def _link_row(link: Host | Link, *names: str) -> Row:
    """The named fields of a link, or of a host with its link, and the link's rate and delay."""
    row = {name: getattr(link, name) for name in names}
    return row | {"rate": format_rate(link.rate_bps), "delay": format_time(link.delay_ns)}


_MAKERS = {"switches": _switches, "hosts": _hosts, "links": _links}
_RANKS = {"mac": 2, "group": 2, "id": 1}
"""Ranks of the columns that a narrow terminal may leave out, the highest rank first."""
