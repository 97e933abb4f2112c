# SPDX-License-Identifier: Apache-2.0
"""Schemes resolved in a network: entries of switches, settings of NICs, reactions to digests."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

import msgspec
from finsy.p4entity import P4Entity

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options import dcqcn
from tailrace.hosts.options.hf2t_spec import Hf2tSpec
from tailrace.hosts.options.nic import MpRdmaNicConfig, NicConfig
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.target import Target
from tailrace.schemes.blocks.groups import Groups, excluding, plan_groups
from tailrace.schemes.watch import FormatTime, LinkEnd, Notify, Watcher
from tailrace.spec.units import format_time
from tailrace.topology import Switch, Topology, next_hops
from tailrace.topology.paths.restricted import with_restricted
from tailrace.topology.paths.shortest import Down
from tailrace.topology.timing import base_rtt_ns, bdp_bytes, full_frame_bytes

RTO_RTTS = 400
PAUSE_RTTS = 200
"""Of NICs: base round trips without any progress, and of a pause (Flowcut §IV-A)."""


class RedConfig(msgspec.Struct, frozen=True, kw_only=True):
    """ECN marking by RED: never below kmin, always from kmax on, up to pmax in between."""

    kmin_bytes: int
    kmax_bytes: int
    pmax_permille: int


class SchemeContext(msgspec.Struct, frozen=True, kw_only=True):
    """What decides defaults besides scheme and topology, where it is known.

    mtu_bytes: payload of a full packet
    window_bytes: what a flow may have under way; 0: no window
    room_bytes: what a queue needs for all that can be under way at once
    ack_ratio: ACKs per byte, over those of packets of the usual size, at least 1
    slowest: the share of its rate at which a link may run
    transport: its name; empty: unknown
    fastest_bps: the fastest link at full speed
    pause_bytes: of an ingress queue at which the PFC spec pauses its sender
    marks: flows choose paths of their own, so hosts may mark packets as such
    lossless: queues pause their senders (PFC)
    held_bytes: the most that waits in a switch, bounded by pauses
    steady: round trips grow with queues, not with what else a machine does that runs switches as programs
    """

    mtu_bytes: int | None = None
    window_bytes: int = 0
    room_bytes: int | None = None
    ack_ratio: float = 1.0
    slowest: float = 1.0
    transport: str = ""
    fastest_bps: int = dcqcn.RED_RATE_BPS
    pause_bytes: int | None = None
    marks: bool = False
    lossless: bool = False
    held_bytes: int | None = None
    steady: bool = True

    @property
    def frame_bytes(self) -> int:
        """A full frame, with all that is added to it."""
        return full_frame_bytes(self.mtu_bytes)


class DragonflyPaths(msgspec.Struct, frozen=True, kw_only=True):
    """How the switch of the source chooses among the paths of a Dragonfly.

    rule: one of PATHS, but not `shortest`
    grain: what keeps a path, one of GRAINS
    gap_ns: a pause of at least this begins a new flowlet
    minimal_share: share of minimal paths where the rule is `mixed`, a multiple of 1/256
    """

    rule: str
    grain: str
    gap_ns: int
    minimal_share: float = 0.5


class PathTable(Protocol):
    """The paths that NICs may choose among."""

    def of(self, source_ip: str, target_ip: str, /) -> PathList:
        """Those from one host to another one."""


class Resolved(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A scheme in a network: every parameter has a value.

    name: of the scheme
    program: stem of the P4 program that the switches run
    frame_bytes: of a full packet, with all that is added to it
    queue_limit_bytes: the program's own tail drop of data, for each egress queue; 0 is no limit
    red: None: queues do not mark
    hash_seed: distinguishes runs whose ECMP hashes should differ; 32 bits
    source_guard: a host's port sends with the addresses of its hosts only
    control_share: share of its link at which a host may send control packets; what is more goes with data. 0
        is no limit
    hf2t: what NICs do about gaps between packets; None: nothing
    """

    name: str
    program: str
    frame_bytes: int
    queue_limit_bytes: int
    red: RedConfig | None
    hash_seed: int
    source_guard: bool
    control_share: float
    hf2t: Hf2tSpec | None

    @property
    def trims(self) -> bool:
        """Whether what exceeds a queue's limit is cut to its headers, not dropped."""
        return False

    @property
    def dragonfly_paths(self) -> DragonflyPaths | None:
        """The choice among the paths of a Dragonfly; None where next hops are those of shortest paths."""
        return None

    @property
    def dense_groups(self) -> bool:
        """Whether a group has one slot for each live port, and not several that stay where they are when
        another port fails: for schemes that compare slots and remember little of them.
        """
        return False

    @property
    def short_groups(self) -> bool:
        """Whether switches take a value modulo a group's size and do nothing else with slots, so that a group
        without dead ports needs only one for each port (schemes.blocks.groups).
        """
        return False

    @property
    def recirculates(self) -> bool:
        """Whether data packets wait by recirculation, at the rate of a link."""
        return False

    @property
    def flowlet_gap_ns(self) -> int | None:
        """The pause that begins a new flowlet, where that may change the path of a flow."""
        return None

    @property
    def pauses_at_bytes(self) -> int | None:
        """Where PFC must pause, for a scheme that cannot be without; None: it can."""
        return None

    def channels(self, topology: Topology) -> int:  # noqa: ARG002 - of some schemes it depends
        """Lossless priorities that a packet needs which takes the next one at each switch, so that switches
        do not wait for each other in a circle under PFC: as many as the longest path has links between
        switches. 0: its switches have no such channels, or no circle is possible.
        """
        return 0

    def at(self, topology: Topology, down: Down) -> Resolved:  # noqa: ARG002 - few schemes change
        """The same while the links in `down` are dead."""
        return self

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        """What a switch holds beside what all do, in the order in which it is to be written.

        Raises:
            IntentError: a value does not fit the program.
        """
        raise NotImplementedError

    def plans(
        self,
        topology: Topology,
        program: P4Program,
        target: Target,
        down: Down,
        suppressed: Collection[LinkEnd],
    ) -> Iterator[EntryPlan]:
        """What the entries of each switch follow from: groups of next hops on shortest paths.

        Args:
            down: dead links, by (switch, port) of either end.
            suppressed: (switch, port) that the switch itself leaves out of its next hops where it has others.
        """
        shortest = next_hops(topology)
        usual = with_restricted(topology, shortest)
        current = with_restricted(topology, next_hops(topology, down), shortest) if down else usual
        for switch in topology.switches:
            own_suppressed = frozenset(port for name, port in suppressed if name == switch.name)
            groups = plan_groups(
                usual[switch.name],
                excluding(current[switch.name], own_suppressed),
                dead_ports(topology, switch, down) | own_suppressed,
                dense=self.dense_groups,
                short=self.short_groups,
            )
            yield EntryPlan(topology, switch, groups, program, target, self)

    def nic(self, topology: Topology, context: SchemeContext, scale: float) -> NicConfig:  # noqa: ARG002
        """The settings of every NIC, but for those of the transport itself.

        Args:
            topology: at its time scale.
            around: transport, window and packets.
            scale: the time scale, for settings that are at full speed.
        """
        rtt_ns = base_rtt_ns(topology, self.frame_bytes)
        return NicConfig(
            mtu_bytes=mtu_of(context),
            transport=context.transport,
            window_bytes=context.window_bytes,
            rto_ns=RTO_RTTS * rtt_ns,
            ack_delay_ns=rtt_ns,
            pause_timeout_ns=PAUSE_RTTS * rtt_ns,
            # MP-RDMA begins with one BDP (NSDI'18 §3); a larger burst collapses at once
            mp_rdma=MpRdmaNicConfig(
                initial_bytes=min(context.window_bytes, bdp_bytes(topology, self.frame_bytes))
            ),
            link_rate_bps=min(host.rate_bps for host in topology.hosts),
        )

    def watch(
        self,
        topology: Topology,
        target: Target,  # noqa: ARG002
        notify: Notify,
        time_text: FormatTime = format_time,
    ) -> Watcher:
        """What a controller does about digests."""
        return Watcher(topology, notify, time_text)

    def paths(self, topology: Topology) -> PathTable | None:  # noqa: ARG002
        """The paths that NICs choose among; None where switches choose."""
        return None


@dataclass(frozen=True, slots=True)
class EntryPlan:
    """All that the entries of one switch follow from."""

    topology: Topology
    switch: Switch
    groups: Groups
    program: P4Program
    target: Target
    config: Resolved


def mtu_of(context: SchemeContext) -> int:
    """The payload of a full packet, where NICs send any."""
    assert context.mtu_bytes is not None, "nobody says how large packets are"
    return context.mtu_bytes


def dead_ports(topology: Topology, switch: Switch, down: Down) -> frozenset[int]:
    """The dead ports of a switch."""
    return frozenset(
        port
        for port, peer in topology.ports_of(switch.name).items()
        if (switch.name, port) in down or (peer.name, peer.port) in down
    )
