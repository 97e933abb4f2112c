# SPDX-License-Identifier: Apache-2.0
"""What every scheme is: keys as they are written, and what they come to in a network.

A scheme declares itself in one file or folder of this one. A struct holds its keys (words.keys) as they were
given; `resolve` makes another struct of it, in which nothing is open any more, and which says what the
switches of a network hold and what NICs are to do. `@scheme` registers it.

    queue limit   as given; else room for all that is under way where that is known (Around); else one BDP of
                  each host of the fullest leaf, for all of them may send to one port with a window of one BDP
                  each, at least 64 full frames (assumption)
    RED           as given; else what the transport wants; else, where NICs go by ECN marks, from a fifth of
                  a BDP to four fifths of one (assumption)
    control       as given; else CONTROL_SHARE, and more where packets are small and so bring more answers
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol, TypeVar

import msgspec
from finsy.p4entity import P4Entity

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options import dcqcn
from tailrace.hosts.options.hf2t_words import Hf2tWords
from tailrace.hosts.options.nic import DCQCN, TRANSPORTS, MpRdmaConfig, NicConfig
from tailrace.p4rt.programs import Program
from tailrace.p4rt.target import Target
from tailrace.schemes.blocks.groups import Groups, plan_groups, without
from tailrace.schemes.watch import End, Tell, Watcher, When
from tailrace.topology import Switch, Topology, next_hops
from tailrace.topology.paths.restricted import with_restricted
from tailrace.topology.paths.shortest import Down
from tailrace.topology.timing import FULL_FRAME_BYTES, base_rtt_ns, bdp_bytes
from tailrace.words import Options, SpecError, keys
from tailrace.words.registry import Registry
from tailrace.words.units import format_time

BY_TOPOLOGY = "by topology"
"""What a listing has for a default that follows from the topology."""

CONTROL_SHARE = 0.07
"""The share of its link that a host needs for control packets: an ACK of 62 bytes for each packet of 1082
that the link can bring, which is what experiments have by default, and a fifth more (assumption).
"""

MIN_QUEUE_FRAMES = 64
_RED_FIFTHS = (1, 4)

RTO_RTTS = 400
PAUSE_RTTS = 200
"""Of NICs: base round trips without any progress, and of a pause (Flowcut §IV-A)."""


class RedConfig(msgspec.Struct, frozen=True, kw_only=True):
    """ECN marking by RED: never below kmin, always from kmax on, up to pmax in between."""

    kmin_bytes: int
    kmax_bytes: int
    pmax_permille: int


def red_up_to(size_bytes: int) -> RedConfig:
    """Marking from a fifth of a queue to four fifths of it."""
    kmin, kmax = (max(1, size_bytes * fifths // 5) for fifths in _RED_FIFTHS)
    return RedConfig(kmin_bytes=kmin, kmax_bytes=kmax, pmax_permille=1000)


class Common(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of every scheme; beside them those of HF2T."""

    queue: Annotated[
        int | None,
        keys.size("queue", "tail drop of data, for each egress queue; 0: no limit", absent=BY_TOPOLOGY),
    ] = None
    kmin: Annotated[int | None, keys.size("kmin", "ECN marking by RED begins here; goes with kmax")] = None
    kmax: Annotated[int | None, keys.size("kmax", "from here on every packet is marked", least=1)] = None
    pmax: Annotated[
        float | None, keys.number("pmax", "share of packets marked just below kmax", least=0, most=1)
    ] = None
    seed: Annotated[
        int,
        keys.integer(
            "seed",
            "makes the switches' hashes differ from run to run",
            least=0,
            most=(1 << 32) - 1,
            values="32-bit number",
        ),
    ] = 0
    guard: Annotated[bool, keys.flag("guard", "hosts send with their own addresses only")] = True
    control: Annotated[
        float | None,
        keys.number(
            "control",
            "share of a host's link for control packets; 0: no limit",
            least=0,
            most=1,
            absent="by variant",
        ),
    ] = None

    def __post_init__(self) -> None:
        """Raises SpecError where keys do not go together."""
        if self.kmax is None and (self.kmin is not None or self.pmax is not None):
            raise SpecError("kmax must be given where kmin or pmax is")
        if self.kmax is not None and self.kmin is not None and self.kmin > self.kmax:
            raise SpecError("kmin must be at most kmax")

    @property
    def red(self) -> RedConfig | None:
        """Marking as it was given; None: it was not."""
        if self.kmax is None:
            return None
        kmin = self.kmax if self.kmin is None else self.kmin
        permille = round(1000 * (1.0 if self.pmax is None else self.pmax))
        return RedConfig(kmin_bytes=kmin, kmax_bytes=self.kmax, pmax_permille=permille)


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """What beside scheme and topology decides defaults, where that is known.

    mtu_bytes: payload of a full packet
    window_bytes: what a flow may have under way; 0: no window
    room_bytes: what a queue needs for all that can be under way at once
    answers: so many times as many answers as packets of the usual size bring, at least 1
    slowest: the share of its rate at which a link may run
    transport: its name; empty: nobody says
    fastest_bps: the fastest link at full speed
    pause_bytes: of an ingress queue at which the words for PFC pause its sender
    marks: flows choose paths of their own, so hosts may mark packets as such
    """

    mtu_bytes: int | None = None
    window_bytes: int = 0
    room_bytes: int | None = None
    answers: float = 1.0
    slowest: float = 1.0
    transport: str = ""
    fastest_bps: int = dcqcn.RED_RATE_BPS
    pause_bytes: int | None = None
    marks: bool = False


NOTHING_KNOWN = Around()


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
    queue_limit_bytes: the program's own tail drop of data, for each egress queue; 0 is no limit
    red: None: queues do not mark
    hash_seed: distinguishes runs whose ECMP hashes should differ; 32 bits
    source_guard: a host's port sends with the addresses of its hosts only
    control_share: share of its link at which a host may send control packets; what is more goes with data. 0
        is no limit
    hf2t: what NICs do about gaps between packets; None: nothing
    kernel_tcp: it asks nothing of NICs, so flows can be TCP connections of the hosts' kernel
    """

    name: str
    program: str
    queue_limit_bytes: int
    red: RedConfig | None
    hash_seed: int
    source_guard: bool
    control_share: float
    hf2t: Hf2tWords | None
    kernel_tcp: bool = False

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
    def recirculates(self) -> bool:
        """Whether data packets wait by going round in the switch, at the rate of a link."""
        return False

    @property
    def flowlet_gap_ns(self) -> int | None:
        """The pause that begins a new flowlet, where that may change the path of a flow."""
        return None

    @property
    def pauses_at_bytes(self) -> int | None:
        """Where PFC must pause, for a scheme that cannot be without; None: it can."""
        return None

    def at(self, topology: Topology, down: Down) -> Resolved:  # noqa: ARG002 - few schemes change
        """The same while the links in `down` are dead."""
        return self

    def entities(self, plan: Plan) -> Iterator[P4Entity]:
        """What a switch holds beside what all do, in the order in which it is to be written.

        Raises:
            IntentError: a value does not fit the program.
        """
        raise NotImplementedError

    def plans(
        self, topology: Topology, program: Program, target: Target, down: Down, out: Collection[End]
    ) -> Iterator[Plan]:
        """What the entries of each switch follow from: groups of next hops on shortest paths.

        Args:
            down: dead links, by (switch, port) of either end.
            out: (switch, port) that the switch itself leaves out of its next hops where it has others.
        """
        shortest = next_hops(topology)
        usual = with_restricted(topology, shortest)
        current = with_restricted(topology, next_hops(topology, down), shortest) if down else usual
        for switch in topology.switches:
            own_out = frozenset(port for name, port in out if name == switch.name)
            groups = plan_groups(
                usual[switch.name],
                without(current[switch.name], own_out),
                own_down(topology, switch, down) | own_out,
                dense=self.dense_groups,
            )
            yield Plan(topology, switch, groups, program, target, self)

    def nic(self, topology: Topology, around: Around, scale: float) -> NicConfig:  # noqa: ARG002
        """The settings of every NIC, but for those of the transport itself.

        Args:
            topology: at its time scale.
            around: transport, window and packets.
            scale: the time scale, for settings that are at full speed.
        """
        rtt_ns = base_rtt_ns(topology)
        return NicConfig(
            mtu_bytes=mtu_of(around),
            transport=around.transport,
            window_bytes=around.window_bytes,
            rto_ns=RTO_RTTS * rtt_ns,
            ack_delay_ns=rtt_ns,
            pause_timeout_ns=PAUSE_RTTS * rtt_ns,
            # MP-RDMA begins with one BDP (NSDI'18 §3); a larger burst collapses at once
            mp_rdma=MpRdmaConfig(initial_bytes=min(around.window_bytes, bdp_bytes(topology))),
            link_rate_bps=min(host.rate_bps for host in topology.hosts),
        )

    def watch(
        self,
        topology: Topology,
        target: Target,  # noqa: ARG002
        tell: Tell,
        when: When = format_time,
    ) -> Watcher:
        """What a controller does about digests."""
        return Watcher(topology, tell, when)

    def paths(self, topology: Topology) -> PathTable | None:  # noqa: ARG002
        """The paths that NICs choose among; None where switches choose."""
        return None


@dataclass(frozen=True, slots=True)
class Plan:
    """All that the entries of one switch follow from."""

    topology: Topology
    switch: Switch
    groups: Groups
    program: Program
    target: Target
    config: Resolved


R = TypeVar("R", bound=Resolved)


class SchemeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A scheme as it was given; what is None follows from the network. Its keys are those of the fields with
    a note, and those of Common and Hf2tWords, which `common` takes over.

    about: one line on what it does
    kernel_tcp: it asks nothing of NICs, so flows can be TCP connections of the hosts' kernel
    """

    name: ClassVar[str]
    about: ClassVar[str]
    kernel_tcp: ClassVar[bool] = False
    queue_limit_bytes: int | None = None
    red: RedConfig | None = None
    hash_seed: int = 0
    hf2t: Hf2tWords | None = None
    source_guard: bool = True
    control_share: float | None = None

    @property
    def only_transport(self) -> str | None:
        """The name of the only transport that it works over; None: it leaves that to others."""
        return None

    @property
    def brings_transport(self) -> bool:
        """Whether it is nothing without its transport, so that nobody need ask for that."""
        return False

    @property
    def marks_queues(self) -> bool:
        """Whether NICs go by ECN marks, so that queues mark where nothing else is said."""
        return False

    @property
    def answers_each(self) -> int:
        """How often a packet is answered."""
        return 1

    def usual_transport(self, topology: Topology) -> str:  # noqa: ARG002 - of some schemes it depends
        """The transport where nobody says another."""
        return self.only_transport or TRANSPORTS[0]

    def frame_bytes_on(self, topology: Topology, around: Around) -> int | None:  # noqa: ARG002
        """A full frame, where packets take paths of many lengths, by which windows are reckoned then; None:
        they do not.
        """
        return None

    def checked(self, options: Options) -> SchemeConfig:  # noqa: ARG002
        """The same, when keys go together.

        Raises:
            SpecError: they do not.
        """
        return self

    def resolve(self, topology: Topology, around: Around) -> Resolved:
        """What it is in a network.

        Raises:
            IntentError: a parameter has no default there, or the network is none for it.
        """
        raise NotImplementedError

    def filled(self, kind: type[R], topology: Topology, around: Around, **more: Any) -> R:
        """The resolved scheme: what all schemes have, what is here under the same name, and `more`."""
        values = self.common(topology, around) | more
        own = {name: getattr(self, name, None) for name in kind.__struct_fields__ if name not in values}
        return kind(**values, **{name: value for name, value in own.items() if value is not None})

    def common(self, topology: Topology, around: Around) -> dict[str, Any]:
        """The values that all schemes have, but for the program."""
        return {
            "name": self.name,
            "queue_limit_bytes": self._limit_bytes(topology, around),
            "red": self._marking(topology, around),
            "hash_seed": self.hash_seed,
            "source_guard": self.source_guard,
            "control_share": self._control(around),
            "hf2t": self.hf2t,
        }

    def _limit_bytes(self, topology: Topology, around: Around) -> int:
        for known in (self.queue_limit_bytes, around.room_bytes):
            if known is not None:
                return known
        fullest = max(len(topology.hosts_of(leaf)) for leaf in topology.leaves)
        return max(fullest * bdp_bytes(topology), MIN_QUEUE_FRAMES * FULL_FRAME_BYTES)

    def _marking(self, topology: Topology, around: Around) -> RedConfig | None:
        if self.red is not None:
            return self.red
        if around.transport == DCQCN:
            kmin, kmax = (max(1, size * around.fastest_bps // dcqcn.RED_RATE_BPS) for size in dcqcn.RED_BYTES)
            return RedConfig(kmin_bytes=kmin, kmax_bytes=kmax, pmax_permille=dcqcn.RED_PERMILLE)
        return red_up_to(bdp_bytes(topology)) if self.marks_queues else None

    def _control(self, around: Around) -> float:
        if self.control_share is not None:
            return self.control_share
        share = self.answers_each * CONTROL_SHARE
        return share if around.answers <= 1 else min(1.0, round(share * around.answers, 3))


S = TypeVar("S", bound=type[SchemeConfig])

SCHEMES: Registry[SchemeConfig] = Registry("scheme", also=(Common, Hf2tWords))


def scheme(kind: S) -> S:
    """Registers a scheme; a decorator of the struct of its keys."""
    return SCHEMES.register(kind.name, kind.about)(kind)


def resolve(config: SchemeConfig, topology: Topology, around: Around = NOTHING_KNOWN) -> Resolved:
    """What a scheme is in a network.

    Raises:
        IntentError: a parameter has no default there, or the network is none for it.
    """
    return config.resolve(topology, around)


def mtu_of(around: Around) -> int:
    """The payload of a full packet, where NICs send any."""
    assert around.mtu_bytes is not None, "nobody says how large packets are"
    return around.mtu_bytes


def own_down(topology: Topology, switch: Switch, down: Down) -> frozenset[int]:
    """The dead ports of a switch."""
    return frozenset(
        port
        for port, peer in topology.ports_of(switch.name).items()
        if (switch.name, port) in down or (peer.name, peer.port) in down
    )
