# SPDX-License-Identifier: Apache-2.0
"""Response payloads of the in-band queries READ_FLOWS, READ_PORT, READ_PATH and READ_RLB_PORT: `bucket_t`,
`flow_entry_t`, `port_queues_t`, `path_state_t` and `rlb_port_t` of p4src/common/headers.p4. A test compares
the widths here with those of the compiled program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tailrace.p4rt.errors import SwitchError

Layout = Mapping[str, int]
"""Width in bits of each field, in the order of the packet; all are multiples of 8."""

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
# warned_until_ticks: end of the warning for this path, that is, for one port and destination leaf;
# port_warned_until_ticks: end of a warning for the port and all leaves. The later one counts.
PATH_STATE: Layout = {
    "now_ticks": 48,
    "warned_until_ticks": 48,
    "port_warned_until_ticks": 48,
    "rtt_seen_ticks": 48,
    "rtt_ticks": 32,
}
RLB_PORT: Layout = {
    "now_ticks": 48,
    "own_warning_ticks": 48,
    "recirculation_seen_ticks": 48,
    "recirculation_ticks": 32,
    "recirculating": 16,
}

REASON_OF = {"READ_FLOWS": "FLOWS", "READ_PORT": "PORT", "READ_PATH": "PATH", "READ_RLB_PORT": "RLB_PORT"}
"""Read operations of PacketOutOp_t, and the PacketInReason_t of the response to each."""

_TICKS = 1 << BUCKET["now_ticks"]
RTT_ONE = 1 << 8
"""1.0 in 8.8 fixed point."""


FlowFields = Mapping[str, int]
"""A flow in one of the ways (slots) of a bucket: the fields of FLOW_ENTRY, and `way`, the way's index.

`idle_ticks`, in place of last_data_ticks, is the time since the last data packet. RTTs are multiples of the
RTT in an idle network (Flowcut §II-B), in units of 1/RTT_ONE; invalid before the first ACK (`samples` is 0).
`rtt_growth` is the moving average of the difference between the RTTs of consecutive ACKs: signed, in the
same units (§III-C1). `state` is a value of FlowState_t. `left`: packets of the message still to come,
according to the sender; 0: unknown.
"""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of the flow table: its flows, and the bytes in flight of flows that found no free way."""

    flows: tuple[FlowFields, ...]
    untracked_bytes: int
    untracked_idle_ticks: int


@dataclass(frozen=True, slots=True)
class PathState:
    """The state of a path in an RLB switch, by uplink and destination leaf (RLB §III-B).

    warned_ticks: remaining time of the path's warning; 0: no warning
    rtt_ticks, rtt_age_ticks: the newest RTT of the path, and the time since its measurement; None: never
        measured
    """

    warned_ticks: int
    rtt_ticks: int | None
    rtt_age_ticks: int | None


@dataclass(frozen=True, slots=True)
class RlbPort:
    """A port of an RLB switch, and figures of the whole switch.

    warned_ago_ticks: time since the switch last warned of a pause of this port; None: it has sent no warning,
        or has withdrawn the last one. The last warning may have expired since
    recirculation_ticks: the newest delay of a recirculation in the switch; None: no recirculation yet
    recirculating: packets that the switch is recirculating now
    """

    warned_ago_ticks: int | None
    recirculation_ticks: int | None
    recirculating: int


def parse_bucket(payload: bytes, switch: str) -> Bucket:
    """Parses a response to READ_FLOWS. Raises SwitchError if it is invalid."""
    head, flows = _take(payload, BUCKET, switch), payload[size_bytes(BUCKET) :]
    if len(flows) % size_bytes(FLOW_ENTRY):
        raise SwitchError(switch, f"a response to READ_FLOWS of {len(payload)} bytes is no bucket")
    now = head["now_ticks"]
    return Bucket(
        tuple(_flows(flows, now, switch)),
        head["untracked_bytes"],
        (now - head["untracked_last_ticks"]) % _TICKS,
    )


def parse_queues(payload: bytes, switch: str) -> dict[str, int]:
    """Parses a response to READ_PORT: bytes that wait to leave by a port, and bytes that came in by it.

    Raises:
        SwitchError: the response is invalid.
    """
    return _take(payload, PORT_QUEUES, switch)


def parse_path(payload: bytes, switch: str) -> PathState:
    """Parses a response to READ_PATH. Raises SwitchError if it is invalid."""
    fields = _take(payload, PATH_STATE, switch)
    now, rtt = fields["now_ticks"], fields["rtt_ticks"] or None
    until = max(fields["warned_until_ticks"], fields["port_warned_until_ticks"])
    age = None if rtt is None else (now - fields["rtt_seen_ticks"]) % _TICKS
    return PathState(max(0, until - now), rtt, age)


def parse_rlb_port(payload: bytes, switch: str) -> RlbPort:
    """Parses a response to READ_RLB_PORT. Raises SwitchError if it is invalid."""
    fields = _take(payload, RLB_PORT, switch)
    warned = fields["own_warning_ticks"]
    return RlbPort(
        (fields["now_ticks"] - warned) % _TICKS if warned else None,
        fields["recirculation_ticks"] if fields["recirculation_seen_ticks"] else None,
        fields["recirculating"],
    )


def size_bytes(layout: Layout) -> int:
    """Length of a payload on the wire."""
    return sum(layout.values()) // 8


def _flows(payload: bytes, now_ticks: int, switch: str) -> Iterator[FlowFields]:
    size = size_bytes(FLOW_ENTRY)
    for way, start in enumerate(range(0, len(payload), size)):
        fields = _take(payload[start : start + size], FLOW_ENTRY, switch)
        if fields["in_flight_bytes"] == 0:
            continue  # the way is free
        fields["idle_ticks"] = (now_ticks - fields.pop("last_data_ticks")) % _TICKS
        fields["rtt_growth"] = _signed(fields["rtt_growth"], FLOW_ENTRY["rtt_growth"])
        yield fields | {"way": way}


def _signed(number: int, width: int) -> int:
    """The signed value of a number of `width` bits in two's complement."""
    return number - (1 << width) if number >> (width - 1) else number


def _take(data: bytes, layout: Layout, switch: str) -> dict[str, int]:
    """The fields at the beginning of `data`."""
    if len(data) < size_bytes(layout):
        raise SwitchError(switch, f"the switch's answer is cut off after {len(data)} bytes")
    fields, offset = {}, 0
    for name, width in layout.items():
        fields[name] = int.from_bytes(data[offset : offset + width // 8], "big")
        offset += width // 8
    return fields
