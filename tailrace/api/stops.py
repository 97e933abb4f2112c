# SPDX-License-Identifier: Apache-2.0
"""Where a run in virtual time pauses: at a time such as 50us, or when a condition such as `queue>100KB` first
holds.

A condition is a row filter (tables/row_filter.py) on a row for each port of each switch and a row for each
flow, with the values at that time. It holds if some row passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tailrace.hosts.flows.observation import merge
from tailrace.hosts.nic.nic import Nic
from tailrace.p4rt.values import SwitchPort, text_of
from tailrace.sim.network import Network
from tailrace.sim.run import Condition
from tailrace.spec import SpecError
from tailrace.spec.constants import PRIORITIES
from tailrace.spec.units import parse_time_ns
from tailrace.tables.listing import Column, Listing, Row
from tailrace.tables.row_filter import RowFilter

_Rows = Callable[[Network, Sequence[Nic]], Iterator[Row]]


def _ports(network: Network, _nics: Sequence[Nic]) -> Iterator[Row]:
    """`queue`: the bytes that wait in all queues of a port."""
    for item in network.switches:
        switch = network.switch(item.name)
        for number, peer in network.topology.ports_of(item.name).items():
            queued = sum(switch.queue_depth(number, priority)[1] for priority in range(PRIORITIES))
            yield {"switch": item.name, "port": SwitchPort(number, peer.name), "queue": queued}


_COUNTS = {
    "drain": "drains",
    "path_change": "path_changes",
    "out_of_order": "out_of_order",
    "retransmission": "retransmitted",
    "timeout": "timeouts",
}
"""Columns of flows, how often that has happened so far, with the fields of FlowRecord."""


def _flows(network: Network, nics: Sequence[Nic]) -> Iterator[Row]:
    names = {host.ip: host.name for host in network.topology.hosts}
    for flow in merge(seen for nic in nics for seen in nic.records()):
        counts = {name: getattr(flow, field) for name, field in _COUNTS.items()}
        yield {"flow": flow.id, "src": names[flow.src], "dst": names[flow.dst], **counts}


SAMPLES: Mapping[_Rows, Row] = {
    _ports: {"switch": "", "port": SwitchPort(0, ""), "queue": 0},
    _flows: {"flow": 0, "src": "", "dst": "", **dict.fromkeys(_COUNTS, 0)},
}
"""For each source of rows a row with all its columns, with which conditions are checked before a run."""

_COLUMNS = tuple(Column(name) for row in SAMPLES.values() for name in row)
_LISTING = Listing("rows", _COLUMNS, tuple(SAMPLES.values()))


def parse_stops(texts: Sequence[str]) -> tuple[list[int], list[Condition]]:
    """The times in ns, without time scale, and the conditions, which begin with a letter or a parenthesis.

    Raises:
        SpecError: a text is neither.
    """
    is_condition = {text: text[:1].isalpha() or text[:1] == "(" for text in texts}
    try:
        times_ns = {parse_time_ns(text) for text in texts if not is_condition[text]}
        return sorted(times_ns), [_condition(text) for text in is_condition if is_condition[text]]
    except SpecError as error:
        raise SpecError(f"--stop-at: {str(error).removeprefix('--where, ')}") from error


def _condition(text: str) -> Condition:
    where = RowFilter(text)
    where.apply(_LISTING)
    sources = [rows for rows, sample in SAMPLES.items() if not where.names.isdisjoint(sample)]

    def holds(network: Network, nics: Sequence[Nic]) -> str:
        for rows in sources:
            passing = where.apply(_LISTING.replace_rows(rows(network, nics))).rows
            if passing:
                shown = {name: value for name, value in passing[0].items() if value or name not in _COUNTS}
                return ", ".join(f"{name} {text_of(value)}" for name, value in shown.items())
        return ""

    return Condition(text, holds)
