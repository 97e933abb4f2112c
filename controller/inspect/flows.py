# SPDX-License-Identifier: Apache-2.0
"""The flows of Flowcut's table, read by in-band queries (`controller.inband.query`): one query for each
occupied bucket. Two registers show which buckets are occupied. A bucket of this hash table has several ways
(slots), each for one flow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address

from tailrace.controller.inband.query import QueryClient, query_all, require_op
from tailrace.controller.inband.responses import RTT_ONE, Bucket, FlowFields, parse_bucket
from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.controller.inspect.registers import register_cells
from tailrace.controller.inspect.tables import read_tables
from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.errors import UnsupportedError
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.values import SwitchPort, Value
from tailrace.tables.listing import Column, Listing, Row, in_order

# key: rows are sorted by these columns, which identify a row; rank: columns of the highest rank are hidden
# first if the terminal is too narrow
COLUMNS = (
    Column("switch", key=True),
    Column("src", key=True, rank=7),
    Column("sport", key=True, rank=3),
    Column("dst", key=True, rank=7),
    Column("dport", key=True, rank=8),
    Column("protocol", key=True, rank=8),
    Column("from"),  # the host with the address `src`
    Column("to"),
    Column("state"),
    Column("in_port", rank=5),
    Column("out_port"),
    Column("in_flight_bytes"),
    Column("rtt_avg", rank=1),
    Column("rtt_last", rank=6),
    Column("rtt_growth", rank=5),
    Column("samples", rank=6),
    Column("left", rank=4),  # packets of the message still to come, according to the sender
    Column("idle_ns", is_time=True, rank=2),
    Column("idle_ticks", rank=2),
    Column("bucket", key=True, rank=9),
    Column("way", key=True, rank=9),
)
UNTRACKED = "UNTRACKED"
"""State of a row for all flows that found no free way in a bucket: the row has the sum of their bytes in
flight."""

AGED = "AGED"
"""State of an entry that was idle beyond the age limit: its packets count as lost, and another flow may
replace it."""

_CONFIG, _MASK, _AGE, _OP = "flowcut_config", "bucket_mask", "age_ticks", "READ_FLOWS"
_IN_FLIGHT, _UNTRACKED = "flow_in_flight_bytes", "untracked_bytes"
"""Registers of bytes in flight (flowcut/table.p4): with a cell for each way; and with a cell for each bucket,
for its flows without a way."""

_PROTOCOLS = {6: "tcp", 17: "udp"}
_HOSTS = {"src": "from", "dst": "to"}
"""Columns of addresses, and the columns of their hosts' names."""

_PORTS, _RTTS = ("in_port", "out_port"), ("rtt_avg", "rtt_last", "rtt_growth")


def keeps_flows(program: ProgramNames | P4Program) -> bool:
    """Whether a program has a flow table that can be read."""
    return program.has_table(_CONFIG)


def read_flows(node: InspectedSwitch, queries: QueryClient) -> Listing:
    """Flows that the switch tracks now.

    Raises:
        UnsupportedError: the program keeps no flow table.
        SwitchError: the switch cannot be read.
    """
    if not keeps_flows(node.program):
        raise UnsupportedError(node.name, f"{node.title} has no flow table")
    require_op(node.program, node.name, node.title, _OP)
    buckets, age_ticks = _config(node)
    responses = query_all(queries, node.name, _OP, _occupied(node, queries, buckets))
    rows = [
        row
        for index, data in responses.items()
        for row in _rows(node, index, parse_bucket(data, node.name), age_ticks)
    ]
    return Listing("flows", COLUMNS, in_order(COLUMNS, rows))


def _occupied(node: InspectedSwitch, queries: QueryClient, buckets: int) -> Sequence[int]:
    """The occupied buckets; all buckets if the registers cannot be read.

    To query every bucket of six BMv2 switches takes six seconds of CPU time, which traffic and link probes
    then lack.
    """
    in_flight, untracked = (
        queries.cells(node.name, name) or register_cells(node, name) for name in (_IN_FLIGHT, _UNTRACKED)
    )
    if not in_flight or not untracked:
        return range(buckets)
    flows_per_bucket = len(in_flight) // len(untracked)
    return [
        bucket
        for bucket in range(min(buckets, len(untracked)))
        if untracked[bucket] or any(in_flight[bucket * flows_per_bucket : (bucket + 1) * flows_per_bucket])
    ]


def _config(node: InspectedSwitch) -> tuple[int, int]:
    """The number of buckets in use, and the age limit of entries in ticks, from the configuration table."""
    for row in read_tables(node, frozenset({_CONFIG})).rows:
        params = row["params"]
        limits = [params.get(name) for name in (_MASK, _AGE)] if isinstance(params, dict) else []
        match limits:
            case [int(mask), int(age_ticks)]:
                return mask + 1, age_ticks
    raise UnsupportedError(node.name, f"{_CONFIG} has no entry with {_MASK} and {_AGE}")


def _rows(node: InspectedSwitch, index: int, bucket: Bucket, age_ticks: int) -> Iterator[Row]:
    for flow in bucket.flows:
        row = _flow_row(node, index, flow)
        yield {**row, "state": AGED} if flow["idle_ticks"] > age_ticks else row
    if bucket.untracked_bytes:
        yield {
            **dict.fromkeys(column.name for column in COLUMNS),
            "switch": node.name,
            "bucket": index,
            "state": AGED if bucket.untracked_idle_ticks > age_ticks else UNTRACKED,
            "in_flight_bytes": bucket.untracked_bytes,
            **_idle(node, bucket.untracked_idle_ticks),
        }


def _flow_row(node: InspectedSwitch, index: int, flow: FlowFields) -> Row:
    row: dict[str, Value] = {**flow, "switch": node.name, "bucket": index, "left": flow["left"] or None}
    for name, host in _HOSTS.items():
        address = IPv4Address(flow[name])
        row |= {name: address, host: node.hosts.get(str(address))}
    row |= {name: SwitchPort(flow[name], node.peer_of(flow[name])) for name in _PORTS}
    row |= {name: flow[name] / RTT_ONE if flow["samples"] else None for name in _RTTS}
    row["protocol"] = _PROTOCOLS.get(flow["protocol"], str(flow["protocol"]))
    row["state"] = node.program.enum("FlowState_t").get(flow["state"], str(flow["state"]))
    return row | _idle(node, flow["idle_ticks"])


def _idle(node: InspectedSwitch, ticks: int) -> dict[str, int | None]:
    """Time since the last data packet: in ns if the length of a tick is known."""
    if node.tick_ns is None:
        return {"idle_ns": None, "idle_ticks": ticks}
    return {"idle_ns": ticks * node.tick_ns, "idle_ticks": None}
