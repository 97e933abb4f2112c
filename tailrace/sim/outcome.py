# SPDX-License-Identifier: Apache-2.0
"""Progress and outcome of a run, for all targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec
from msgspec.structs import asdict

from tailrace.hosts.flows.flow import FlowRecord
from tailrace.hosts.frames.host import HostFrames
from tailrace.hosts.measured import Gaps, Learned
from tailrace.p4rt.events import Event
from tailrace.sim.job import Job
from tailrace.sim.timelines import NO_TIMELINES, Timelines

STOPPED = "stopped"
"""The phase of a run that waits at a breakpoint."""


class Progress(msgspec.Struct, frozen=True):
    """How far a run is: its phase, and how many of its `flows` are complete (`done`).

    `share` is the share of all flows' bytes that have arrived, 0 to 1. `share` and `virtual_ns` are None if
    the target cannot report them. `events` is the number of events that the simulator has processed. If
    `note`, a line about an event, is given, the other fields mean nothing.
    """

    phase: str
    done: int = 0
    flows: int = 0
    share: float | None = None
    virtual_ns: int | None = None
    events: int = 0
    note: str = ""


class PfcSeen(msgspec.Struct, frozen=True):
    """PFC of a run: `frames` that switches sent to pause (XOFF) or resume (XON) their peers, and the time
    `paused_ns` that their ports were paused.

    `pauses` counts the XOFF frames to switches and hosts, including repeated frames; `received` counts the
    PFC frames that switches received. `pause_share` is `paused_ns` divided by the run time of all ports
    together. `lost` counts lossless packets that switches dropped because a headroom or the buffer was full,
    `ignored` MAC control frames other than PFC. `headroom_most_bytes` is the most headroom that any port
    used, `buffer_most_bytes` the most memory that any switch used. `times_paused` counts pauses of ports,
    where a pause that further frames extend counts once; None: not counted. `storms` counts PFC storms (a
    port was paused for too long), `storm_dropped` the packets dropped because of storms.
    """

    frames: int
    pauses: int
    received: int
    paused_ns: int
    pause_share: float
    lost: int
    ignored: int
    headroom_most_bytes: int
    buffer_most_bytes: int
    times_paused: int | None = None
    storms: int = 0
    storm_dropped: int = 0

    @property
    def storm_note(self) -> str:
        """A line about the storms, for the user."""
        return (
            f"PFC storms (pauses held a port for too long): {self.storms};"
            f" packets dropped in them: {self.storm_dropped}"
        )

    def document(self) -> dict[str, int | float]:
        """The fields for JSON, with the mean duration of a pause, and without storms if there was none."""
        fields = {k: v for k, v in asdict(self).items() if v is not None}
        if self.times_paused:
            fields["mean_pause_ns"] = self.paused_ns / self.times_paused
        return fields if self.storms else {k: v for k, v in fields.items() if not k.startswith("storm")}


class DataSeen(msgspec.Struct, frozen=True):
    """Data packets that no host received. `dropped` counts packets lost with their payload, in a switch
    or through a fault. `trimmed` counts packets lost after a switch had cut off the payload. `under_way`
    counts packets that were in switches or on links when the run ended.
    """

    dropped: int
    trimmed: int
    under_way: int


class RankWork(msgspec.Struct, frozen=True):
    """The work of one rank (one of several processes that share the network) during the traffic.

    `cpu_s` is its CPU time, `waited_s` the real time spent waiting for messages of other ranks, `meetings`
    the number of message exchanges; `frames` is the number of frames sent to other ranks, `bytes` the total
    size of the messages sent.
    """

    cpu_s: float
    waited_s: float
    meetings: int
    frames: int
    bytes: int


class Outcome(msgspec.Struct, frozen=True):
    """What a run measured. A None or a missing counter means that this target cannot observe the value.

    `frames`: what each host sent and received besides flows, by its name; empty if no host sends such frames.
    `counters`: each switch's counters by name. `dropped`: all frames that switches dropped or faults lost;
    `data`: data packets that did not arrive. `overload_reasons`: why the machine could not keep up with a run
    in real time, a line each, so that its times are not reliable. `packet_hops`: packets that entered
    switches. `delays`: whether the target emulated the propagation delays of links. `trace_sha256`: hash of
    all frames that links delivered, with their times; `p4_sha256`: hash of the P4 program. `not_applied`:
    settings that the target did not apply, a line each. `gaps`: gaps between data packets of a flow, if NICs
    measured them. `learned`: the thresholds above which NICs stretch gaps (HF2T, hosts/gaps/hf2t.py). `nics`:
    how NICs ran: `compiled` or `interpreted`.
    `deadlock`: the queues of a PFC deadlock that ended the run: each waits for the next, and the last for the
    first. `traffic_s`: the part of the real time `wall_s` during which packets were sent. `by_rank`: the work
    of each rank during that time, if there were several ranks.
    """

    records: tuple[FlowRecord, ...]
    wall_s: float
    frames: Mapping[str, HostFrames] = msgspec.field(default_factory=dict)
    counters: Mapping[str, Mapping[str, int]] = msgspec.field(default_factory=dict)
    dropped: int | None = None
    data: DataSeen | None = None
    overload_reasons: tuple[str, ...] = ()
    virtual_ns: int | None = None
    packet_hops: int | None = None
    trace_sha256: str | None = None
    p4_sha256: str | None = None
    delays: bool = True
    not_applied: tuple[str, ...] = ()
    timelines: Timelines = NO_TIMELINES
    events: tuple[Event, ...] = ()
    pfc: PfcSeen | None = None
    deadlock: tuple[str, ...] = ()
    gaps: Gaps | None = None
    learned: tuple[Learned, ...] = ()
    nics: str | None = None
    traffic_s: float | None = None
    by_rank: tuple[RankWork, ...] = ()


Report = Callable[[Progress], None]


class Backend(Protocol):
    """Runs jobs one after the other."""

    def run(self, job: Job, report: Report) -> Outcome:
        """Run one job to its end and leave nothing behind, also when interrupted.

        Raises:
            SpecError: this target cannot do what the job asks for.
            RunError: the run failed.
        """
