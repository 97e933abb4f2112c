# SPDX-License-Identifier: Apache-2.0
"""Schemes resolved for a network: entries of switches, settings of NICs, reactions to digests."""

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
from tailrace.p4rt import programs
from tailrace.p4rt.intent import SwitchIntent
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
"""The retransmission timeout of NICs, in base RTTs."""

PAUSE_RTTS = 200
"""The time after which a NIC ends a pause of a flow (Flowcut §IV-A), in base RTTs."""


class RedConfig(msgspec.Struct, frozen=True, kw_only=True):
    """ECN marking by RED: a queue below kmin marks no packet, a queue of at least kmax marks every packet. In
    between the marking probability grows up to pmax.
    """

    kmin_bytes: int
    kmax_bytes: int
    pmax_permille: int


class SchemeContext(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an experiment on which defaults depend, besides scheme and topology; None: unknown.

    mtu_bytes: payload of a full packet
    window_bytes: bytes that a flow may have in flight; 0: no window
    room_bytes: queue size that suffices for all bytes that can be in flight at once
    ack_ratio: ACKs per byte of data, divided by the ACKs per byte with packets of the usual size; at least 1
    slowest: the smallest factor by which a fault of the experiment multiplies a link's rate; 1: no such fault
    transport: name of the transport; empty: unknown
    fastest_bps: rate of the fastest link, before a run is slowed down by its time scale
    pause_bytes: threshold of the PFC spec: length of an ingress queue at which a switch pauses the sender
    marks: whether packets of some flows have the DSCP with which switches forward by entropy value (EV), the
        UDP source port as the number of a path
    lossless: whether queues pause their senders (PFC)
    held_bytes: the most bytes that can wait in a switch before it has paused all its senders (PFC)
    steady: whether RTTs depend on queues only; False: also on the CPU load, as with switches in real time
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
        """Size of a full frame, with all headers and trailers."""
        return full_frame_bytes(self.mtu_bytes)


class DragonflyPaths(msgspec.Struct, frozen=True, kw_only=True):
    """How the first switch chooses among the paths of a Dragonfly.

    rule: one of dragonfly.paths.PATHS, but not `shortest`
    grain: unit of traffic that stays on one path, one of dragonfly.paths.GRAINS
    gap_ns: idle time after which a new flowlet begins
    minimal_share: share of minimal paths with rule `mixed`, a multiple of 1/256
    """

    rule: str
    grain: str
    gap_ns: int
    minimal_share: float = 0.5


class PathTable(Protocol):
    """The paths that NICs may choose among."""

    def of(self, source_ip: str, target_ip: str, /) -> PathList:
        """The paths from one host to another."""


class Resolved(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A scheme resolved for a network: every parameter has a value.

    name: the scheme's name
    program: name of the P4 program that the switches run
    frame_bytes: size of a full frame, with all headers and trailers
    queue_limit_bytes: limit of each egress queue at which the program drops data; 0: no limit
    red: RED of the queues; None: queues do not mark
    hash_seed: seed of the ECMP hashes; 32 bits
    source_guard: whether a host's port accepts only packets with the addresses of its hosts
    control_share: share of its link that a host may use for control packets, which have priority; excess
        control packets are treated as data. 0: no limit
    hf2t: how NICs stretch gaps between packets (HF2T, host-based flowlet fine-tuning); None: they do not
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
        """Whether packets beyond a queue's limit are cut to their headers instead of dropped."""
        return False

    @property
    def dragonfly_paths(self) -> DragonflyPaths | None:
        """How paths of a Dragonfly are chosen; None if packets take shortest paths."""
        return None

    @property
    def dense_groups(self) -> bool:
        """Whether a next-hop group has exactly one slot for each live port, for schemes that compare the
        ports of slots. Otherwise a port has several slots, and a slot keeps its port when another port fails.
        """
        return False

    @property
    def compact_groups(self) -> bool:
        """Whether switches only pick slot = v mod size (v: hash or random number), so that a group without
        dead ports needs only one slot per port (schemes.blocks.groups).
        """
        return False

    @property
    def recirculates(self) -> bool:
        """Whether data packets may wait by recirculating; recirculation has the rate of a link."""
        return False

    @property
    def flowlet_gap_ns(self) -> int | None:
        """Idle time after which a flow may change its path; None: the scheme has no flowlets."""
        return None

    @property
    def pauses_at_bytes(self) -> int | None:
        """Queue length at which PFC must pause, if the scheme needs PFC; None: the scheme needs no PFC."""
        return None

    @property
    def is_foreign(self) -> bool:
        """Whether switches run programs of the user's, with their entries and nothing else
        (schemes.program).
        """
        return False

    def programs(self, topology: Topology) -> dict[str, P4Program]:
        """The program of each switch, by the switch's name.

        Raises:
            P4ProgramError: a program is missing or invalid.
        """
        return dict.fromkeys((switch.name for switch in topology.switches), programs.load(self.program))

    def intents(self) -> Iterator[SwitchIntent]:
        """The intents of all switches if `is_foreign`."""
        raise NotImplementedError

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines for the user about settings that the scheme cannot apply on any target."""
        return ()

    def channels(self, topology: Topology) -> int:  # noqa: ARG002 - some schemes use it
        """The number of virtual channels. Channels are lossless priorities: at each switch a packet takes the
        next priority, so that PFC cannot deadlock. A network needs as many channels as its longest path has
        links between switches. 0: the program has no channels, or no deadlock is possible.
        """
        return 0

    def at(self, topology: Topology, down: Down) -> Resolved:  # noqa: ARG002 - few schemes change
        """The scheme with the values that it has while the links in `down` are dead."""
        return self

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        """The entries of a switch, in the order of writing, except those that intent.py adds for all schemes.

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
        """The data from which the entries of each switch are made, with groups of next hops on shortest
        paths.

        Args:
            topology: the network.
            program: the P4 program of the switches.
            target: properties of the switches that run the program.
            down: dead links, by (switch, port) of either end.
            suppressed: (switch, port) that the switch does not use as a next hop if it has others.
        """
        # a host may be restricted to some of the next hops, which the key `restricted` of topologies sets.
        # With dead links, such a host keeps those of its next hops in `shortest` that are left
        shortest = next_hops(topology)
        usual = with_restricted(topology, shortest)
        current = with_restricted(topology, next_hops(topology, down), shortest) if down else usual
        for switch in topology.switches:
            suppressed_ports = frozenset(port for name, port in suppressed if name == switch.name)
            groups = plan_groups(
                usual[switch.name],
                excluding(current[switch.name], suppressed_ports),
                dead_ports(topology, switch, down) | suppressed_ports,
                dense=self.dense_groups,
                compact=self.compact_groups,
            )
            yield EntryPlan(topology, switch, groups, program, target, self)

    def nic(self, topology: Topology, context: SchemeContext, scale: float) -> NicConfig:  # noqa: ARG002
        """The settings of every NIC, except those of the transport itself.

        Args:
            topology: the network, with rates and delays at the time scale.
            context: transport, window and packets.
            scale: the time scale, the factor by which the run is slower than stated; for settings that do not
                include it yet.
        """
        rtt_ns = base_rtt_ns(topology, self.frame_bytes)
        return NicConfig(
            mtu_bytes=mtu_of(context),
            transport=context.transport,
            window_bytes=context.window_bytes,
            rto_ns=RTO_RTTS * rtt_ns,
            ack_delay_ns=rtt_ns,  # the longest delay of an ACK for several packets
            pause_timeout_ns=PAUSE_RTTS * rtt_ns,
            # MP-RDMA begins with one BDP (NSDI'18 §3); a larger first burst causes congestion collapse
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
        """The object with which a controller reacts to digests."""
        return Watcher(topology, notify, time_text)

    def paths(self, topology: Topology) -> PathTable | None:  # noqa: ARG002
        """The paths that NICs choose among; None if switches choose."""
        return None


@dataclass(frozen=True, slots=True)
class EntryPlan:
    """The data from which the entries of one switch are made."""

    topology: Topology
    switch: Switch
    groups: Groups
    program: P4Program
    target: Target
    config: Resolved


def mtu_of(context: SchemeContext) -> int:
    """The payload of a full packet in bytes; the context must contain it."""
    assert context.mtu_bytes is not None, "the MTU is not known"
    return context.mtu_bytes


def dead_ports(topology: Topology, switch: Switch, down: Down) -> frozenset[int]:
    """The ports of a switch whose links are in `down`."""
    return frozenset(
        port
        for port, peer in topology.ports_of(switch.name).items()
        if (switch.name, port) in down or (peer.name, peer.port) in down
    )
