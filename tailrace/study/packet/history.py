# SPDX-License-Identifier: Apache-2.0
"""The history of a packet, as JSON has it. Times are picoseconds of the run's virtual time."""

from __future__ import annotations

import msgspec

from tailrace.switch.trace import Trace


class QueueOvertaker(msgspec.Struct, frozen=True):
    """A packet that was enqueued at a port later than another and dequeued earlier."""

    packet: str
    priority: int
    queued_ps: int
    left_ps: int


class QueueWait(msgspec.Struct, frozen=True):
    """The packet in a queue, which had so many packets and bytes when it was enqueued.

    It waited from `queued_ps` to `left_ps`, None: it never left. PFC paused it for `paused_ps` of that.
    `passed_by` packets came later to a queue of that port and left earlier; `passed` has the first of them.
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
    """The packet on a wire, from its first bit's departure to its last one's arrival.

    That takes `transmission_ps` and `propagation_ps`, the latency of the switch at its end included.
    `arrived_ps` None: it was lost, or was under way when the run ended, as `fate` says.
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

    `rounds`: how often it was recirculated or resubmitted, and `round_ps` the time of that outside queues.
    `dropped`: the switch's reason; `out` is None then. `noted`: the flags that a Flowcut switch set in its
    shim: `drained` where a flowcut begins whose last one ended in congestion, `moved` where the flow has left
    a withdrawn path.
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
    """Counts of the source's NIC for the flow from its previous transmission (None: from the beginning) until
    this one, with the names of hosts.flows.observation.

    `drained_ns` includes pauses that switches asked for; `explored` and `reused` say how a NIC with path
    selection has chosen the path of this transmission.
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
    """A transmission of the packet; `delivered_ps` None: it was lost or trimmed.

    Otherwise `delivered_ps - first.sent_ps` is the sum of waits, rounds, transmissions and propagations.
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
    """A pause of the flow that arrived at its source before the packet was sent: Flowcut drains it."""

    op: str
    arrived_ps: int


class Acknowledgement(msgspec.Struct, frozen=True):
    """The first ACK at the source that acknowledges the packet: all up to the ACK's PSN."""

    psn: int
    sent_ps: int
    arrived_ps: int


class PacketHistory(msgspec.Struct, frozen=True):
    """The history of a packet; `untold`: how often a switch's trace buffer overflowed."""

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
