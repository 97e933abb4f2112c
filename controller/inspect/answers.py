# SPDX-License-Identifier: Apache-2.0
"""The payloads by which our programs answer READ_FLOWS and READ_PORT: `bucket_t`, `flow_entry_t` and
`port_queues_t` of p4src/common/headers.p4. A test compares the widths here with those of the compiled
program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from controller.inspect.errors import InspectError

Layout = Mapping[str, int]
"""Width in bits of each field, in the order of the wire; all whole bytes."""

BUCKET: Layout = {"now_ticks": 48, "untracked_bytes": 32, "untracked_last_ticks": 48}
FLOW_ENTRY: Layout = {
    "src": 32,
    "dst": 32,
    "sport": 16,
    "dport": 16,
    "protocol": 8,
    "state": 8,
    "in_port": 16,
    "out_port": 16,
    "in_flight_bytes": 32,
    "last_data_ticks": 48,
    "rtt_avg": 16,
    "rtt_last": 16,
    "rtt_growth": 16,
    "left": 8,
    "samples": 8,
}
PORT_QUEUES: Layout = {"egress_queue_bytes": 32, "ingress_queue_bytes": 32}

_TICKS = 1 << BUCKET["now_ticks"]
_ONE = 1 << 8
"""1.0 in 8.8 fixed point."""


@dataclass(frozen=True, slots=True)
class FlowEntry:
    """A way of a bucket that holds a flow. RTTs are multiples of an idle one (Flowcut §II-B).

    `state` is a number of FlowState_t. `idle_ticks` have passed since the last data packet. `left` packets
    of the message follow, as the sender says; 0: not said. RTTs mean nothing before the first ACK
    (`samples` is 0).
    """

    way: int
    src: int
    dst: int
    sport: int
    dport: int
    protocol: int
    state: int
    in_port: int
    out_port: int
    in_flight_bytes: int
    idle_ticks: int
    rtt_avg: float
    rtt_last: float
    rtt_growth: float
    left: int
    samples: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of the flow table: its flows, and what is in flight of flows that found no way free."""

    flows: tuple[FlowEntry, ...]
    untracked_bytes: int
    untracked_idle_ticks: int


@dataclass(frozen=True, slots=True)
class Queues:
    """What waits in the switch for a port, and what came in by it."""

    egress_queue_bytes: int
    ingress_queue_bytes: int


def parse_bucket(payload: bytes, switch: str) -> Bucket:
    """Reads an answer to READ_FLOWS. Raises InspectError when it is none."""
    head, ways = _take(payload, BUCKET, switch), payload[size_bytes(BUCKET) :]
    if len(ways) % size_bytes(FLOW_ENTRY):
        raise InspectError(f"{switch}: an answer to READ_FLOWS of {len(payload)} bytes fits no bucket")
    now = head["now_ticks"]
    return Bucket(
        tuple(_flows(ways, now, switch)),
        head["untracked_bytes"],
        (now - head["untracked_last_ticks"]) % _TICKS,
    )


def parse_queues(payload: bytes, switch: str) -> Queues:
    """Reads an answer to READ_PORT. Raises InspectError when it is none."""
    return Queues(**_take(payload, PORT_QUEUES, switch))


def size_bytes(layout: Layout) -> int:
    """Length on the wire."""
    return sum(layout.values()) // 8


def _flows(ways: bytes, now_ticks: int, switch: str) -> Iterator[FlowEntry]:
    size = size_bytes(FLOW_ENTRY)
    for way, start in enumerate(range(0, len(ways), size)):
        found = _take(ways[start : start + size], FLOW_ENTRY, switch)
        if found["in_flight_bytes"] == 0:
            continue  # the way is free
        idle = (now_ticks - found.pop("last_data_ticks")) % _TICKS
        yield FlowEntry(
            way=way,
            idle_ticks=idle,
            rtt_avg=found.pop("rtt_avg") / _ONE,
            rtt_last=found.pop("rtt_last") / _ONE,
            rtt_growth=_signed(found.pop("rtt_growth"), FLOW_ENTRY["rtt_growth"]) / _ONE,
            **found,
        )


def _signed(number: int, width: int) -> int:
    """Two's complement of a width in bits."""
    return number - (1 << width) if number >> (width - 1) else number


def _take(data: bytes, layout: Layout, switch: str) -> dict[str, int]:
    """The fields at the beginning of some bytes."""
    if len(data) < size_bytes(layout):
        raise InspectError(f"{switch}: the switch's answer is cut off after {len(data)} bytes")
    fields, at = {}, 0
    for name, width in layout.items():
        fields[name] = int.from_bytes(data[at : at + width // 8], "big")
        at += width // 8
    return fields
