# SPDX-License-Identifier: Apache-2.0
"""What is told of a packet, as JSON has it. Times are picoseconds of the run's virtual time."""

from __future__ import annotations

import msgspec

from tailrace.switch.trace import Trace


class Passed(msgspec.Struct, frozen=True):
    """A packet that came to a port's queues later than another, and left them earlier."""

    packet: str
    priority: int
    queued_ps: int
    left_ps: int


class InQueue(msgspec.Struct, frozen=True):
    """The packet in a queue, which held so many packets and bytes when it came.

    It waited from `queued_ps` to `left_ps`, None: it never left. PFC held the queue for `paused_ps` of that.
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
    passed: tuple[Passed, ...]

    @property
    def waited_ps(self) -> int:
        return 0 if self.left_ps is None else self.left_ps - self.queued_ps


class Crossing(msgspec.Struct, frozen=True):
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

    `rounds`: how often it came to ingress again (recirculated or resubmitted), and `round_ps` the time that
    it spent so, in no queue. `dropped`: why, in the switch's words; `out` is None then. `noted`: what a
    Flowcut switch has stamped on it: `drained` where a flowcut begins whose last one ended in congestion,
    `moved` where the flow has left a withdrawn path.
    """

    switch: str
    port: int
    from_: str = msgspec.field(name="from")
    arrived_ps: int
    queues: tuple[InQueue, ...]
    rounds: int
    round_ps: int
    noted: tuple[str, ...]
    dropped: str | None
    dropped_ps: int | None
    out: Crossing | None
    trace: Trace | None


class Overtaker(msgspec.Struct, frozen=True):
    """A packet of the same flow that was sent later and delivered earlier."""

    psn: int
    again: bool
    sent_ps: int
    delivered_ps: int
    path: tuple[str, ...]


class AtSource(msgspec.Struct, frozen=True):
    """What the source's NIC has done for the flow from when it sent its transmission before this one (None:
    from the beginning) until it has sent this one, in the words of hosts.flows.observation.

    `drained_ns` includes pauses that switches asked for; `explored` and `reused` say of a NIC that steers how
    it has chosen the path of this transmission.
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
    """One sending of the packet; `delivered_ps` None: it did not come to its host whole.

    Where it came, `delivered_ps - first.sent_ps` is the sum of waits, rounds, transmissions and
    propagations.
    """

    again: bool
    sport: int
    source: AtSource | None
    first: Crossing
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


class Before(msgspec.Struct, frozen=True):
    """The transmission of the flow before the first one of this packet."""

    psn: int
    sent_ps: int
    sport: int
    path: tuple[str, ...]


class FlowPaused(msgspec.Struct, frozen=True):
    """A pause of the flow that came to its source before the packet was sent: Flowcut drains it."""

    op: str
    arrived_ps: int


class Answer(msgspec.Struct, frozen=True):
    """The first ACK that came to the source and acknowledges the packet: all up to its own PSN."""

    psn: int
    sent_ps: int
    arrived_ps: int


class Story(msgspec.Struct, frozen=True):
    """A packet's whole story."""

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
    before: Before | None
    pauses: tuple[FlowPaused, ...]
    transmissions: tuple[Transmission, ...]
    acknowledged: Answer | None
    untold: int
