# SPDX-License-Identifier: Apache-2.0
"""Progress and outcome of a run, for all targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Protocol

from tailrace.hosts.flows.flow import FlowRecord
from tailrace.hosts.measured import Gaps, Learned
from tailrace.p4rt.events import Event
from tailrace.sim.job import Job
from tailrace.sim.timelines import NO_TIMELINES, Timelines


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: what it is doing, and how many of its flows are complete.

    `share` is that of all flows' bytes that have arrived, 0 to 1; None, and `virtual_ns` None, where nobody
    knows. Where there is a `note`, a line about something that happened, nothing else counts.
    """

    phase: str
    done: int = 0
    flows: int = 0
    share: float | None = None
    virtual_ns: int | None = None
    events: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class PfcSeen:
    """PFC of a run: frames that switches sent to pause or to go on, and how long their ports stood paused.

    `pauses` are those of them that paused, repeated ones too, whether a switch or a host. `pause_share` is
    `paused_ns` over the time that all ports had together. `lost` counts packets that switches dropped because
    a headroom or their buffer was full, and `ignored` control frames that are no PFC. Of all ports the one
    that used most of its headroom used `headroom_most_bytes`; of all switches the one whose memory was
    fullest held `buffer_most_bytes`. Ports were paused in `times_paused` stretches, a pause and what prolongs
    it; None where they are not counted. Pauses held ports for too long `storms` times, and `storm_dropped`
    packets were dropped for that.
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
        """A line of the storms."""
        return (
            f"PFC storms: {self.storms}, in which pauses held a port for too long;"
            f" packets dropped for that: {self.storm_dropped}"
        )

    def document(self) -> dict[str, int | float]:
        """The same in JSON; without storms, if there was none, and with the mean length of a pause."""
        fields = {k: v for k, v in asdict(self).items() if v is not None}
        if self.times_paused:
            fields["mean_pause_ns"] = self.paused_ns / self.times_paused
        return fields if self.storms else {k: v for k, v in fields.items() if not k.startswith("storm")}


@dataclass(frozen=True, slots=True)
class DataSeen:
    """Data packets that no host has got: `dropped` by switches or lost to faults, whole or `trimmed`, whose
    payload a switch had cut off before; and `under_way` when the run ended.
    """

    dropped: int
    trimmed: int
    under_way: int


@dataclass(frozen=True, slots=True)
class RankWork:
    """The work of one of several ranks during the traffic.

    `cpu_s` is its CPU time, `waited_s` the real time spent waiting for messages of its peers, `meetings` the
    number of exchanges; `frames` is the number of frames sent to peers, `bytes` the size of its messages.
    """

    cpu_s: float
    waited_s: float
    meetings: int
    frames: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run measured. None, or a missing counter, is what this target cannot observe.

    `counters` holds each switch's own counters by name; `dropped` counts frames that switches dropped or
    faults took, of any kind, and `data` says what of them carried data. `packet_hops` counts packets that
    switches took in. `delays` says whether the links' propagation delays were there, and `not_applied` what
    the target did not apply of what was asked, a line each. `gaps` are those between data packets of a flow,
    where NICs measured them, and `learned` is what NICs have learnt that stretch gaps. `nics` says
    how they ran: `compiled` or `interpreted`. `deadlock` names queues, each of which waited for the next one
    and the last for the first, when the run was ended for that. `traffic_s` is that part of the real time
    `wall_s` in which packets went. `by_rank` says what each process did then that ran the network, where
    there were ranks.
    """

    records: tuple[FlowRecord, ...]
    wall_s: float
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
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
