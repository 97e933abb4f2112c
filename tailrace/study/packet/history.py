# SPDX-License-Identifier: Apache-2.0
"""The history of a packet, in the shape of its JSON. Times are picoseconds of the run's virtual time."""

from __future__ import annotations

import msgspec

from tailrace.switch.trace import Trace


class QueueOvertaker(msgspec.Struct, frozen=True):
    """A packet that was enqueued at a port later than the packet of the history, and dequeued earlier."""

    packet: str
    priority: int
    queued_ps: int
    left_ps: int


class QueueWait(msgspec.Struct, frozen=True):
    """The packet in a queue, which had `packets` packets and `bytes` bytes when it was enqueued.

    It waited from `queued_ps` to `left_ps` (None: it never left); for `paused_ps` of this time PFC paused the
    queue. `passed_by` packets were enqueued later at that port and dequeued earlier; `passed` lists the first
    of them.
    """

    port: int
    priority: int
    packets: int
    bytes: int
    queued_ps: int
    left_ps: int | None
    paused_ps: int
    passed_by: int
    passed: tuple[QueueOvertaker, ...]

    @property
    def waited_ps(self) -> int:
        return 0 if self.left_ps is None else self.left_ps - self.queued_ps


class LinkTransit(msgspec.Struct, frozen=True):
    """The packet on a wire (one direction of a link), from the departure of its first bit to the arrival of
    its last bit.

    The transit takes `transmission_ps` + `propagation_ps`, which includes the latency of the next switch.
    `arrived_ps` is None if the packet was lost, or was still on the wire when the run ended; see `fate`.
    """

    to: str
    sent_ps: int
    length: int
    ecn: str
    fate: str
    arrived_ps: int | None = None
    transmission_ps: int | None = None
    propagation_ps: int | None = None


class Hop(msgspec.Struct, frozen=True):
    """The packet in a switch, from its arrival on.

    `rounds` is how often it was recirculated or resubmitted, and `round_ps` the time that this took outside
    queues. `dropped` is the switch's reason to drop the packet; `out` is None then. `noted` lists the flags
    that a Flowcut switch set in the packet's shim: `drained` if the packet starts a flowcut after a drain
    because of congestion, `moved` if the flow has left a withdrawn path.
    """

    switch: str
    port: int
    from_: str = msgspec.field(name="from")
    arrived_ps: int
    queues: tuple[QueueWait, ...]
    rounds: int
    round_ps: int
    noted: tuple[str, ...]
    dropped: str | None
    dropped_ps: int | None
    out: LinkTransit | None
    trace: Trace | None


class Overtaker(msgspec.Struct, frozen=True):
    """A packet of the same flow that was sent later and delivered earlier."""

    psn: int
    again: bool
    sent_ps: int
    delivered_ps: int
    path: tuple[str, ...]


class SourceActivity(msgspec.Struct, frozen=True):
    """Counters of the source's NIC for the flow since its previous transmission at `since_ps` (None: since
    the start); hosts.flows.observation describes them.

    `drained_ns` includes pauses that switches requested; `explored` and `reused` show how a NIC with path
    selection chose the path of this transmission.
    """

    since_ps: int | None
    drains: int
    drained_ns: int
    reroutes: int
    stretched: int
    stretched_ns: int
    timeouts: int
    congestion_notifications: int
    nacks: int
    explored: int
    reused: int
    blocked: int


class Transmission(msgspec.Struct, frozen=True):
    """A transmission of the packet; `again` marks a retransmission.

    `delivered_ps` is None if the packet was lost or trimmed. Otherwise `delivered_ps - first.sent_ps` is the
    sum of queueing, recirculation, transmission and propagation times.
    """

    again: bool
    sport: int
    source: SourceActivity | None
    first: LinkTransit
    hops: tuple[Hop, ...]
    end: str
    delivered_ps: int | None
    waited_ps: int
    paused_ps: int
    round_ps: int
    transmission_ps: int
    propagation_ps: int
    path: tuple[str, ...]
    overtaken_by: tuple[Overtaker, ...]


class PreviousTransmission(msgspec.Struct, frozen=True):
    """The transmission of the flow before the first one of this packet."""

    psn: int
    sent_ps: int
    sport: int
    path: tuple[str, ...]


class FlowPaused(msgspec.Struct, frozen=True):
    """A pause of the flow by Flowcut, to drain it, that arrived at the source before the packet was sent."""

    op: str
    arrived_ps: int


class Acknowledgement(msgspec.Struct, frozen=True):
    """The first ACK that arrived at the source and acknowledges the packet; ACKs are cumulative."""

    psn: int
    sent_ps: int
    arrived_ps: int


class PacketHistory(msgspec.Struct, frozen=True):
    """The history of a packet; `untold` counts overflows of switches' trace buffers, which lose events."""

    scheme: str
    topology: str
    seed: int
    trace_sha256: str
    flow: int
    src: str
    dst: str
    bytes: int
    packets: int
    psn: int
    before: PreviousTransmission | None
    pauses: tuple[FlowPaused, ...]
    transmissions: tuple[Transmission, ...]
    acknowledged: Acknowledgement | None
    untold: int
