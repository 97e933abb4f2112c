# SPDX-License-Identifier: Apache-2.0
"""Flowcut (§II): a flow keeps its path while any of its packets is in flight. Thresholds apply to the
normalised RTT, which is 1 on an idle path. Defaults of keys, and further parameters:

    growth    growth of the RTT if a queue grows by GROWTH_FRAMES frames per ACK (assumption; the paper gives
              no value; docs/schemes/flowcut-details.md compares others)
    left      packets that a message must have left for a drain: one BDP in full frames, the cost of a drain,
              but at most MOST_LEFT (assumption; §IV-C has no value)
    age       see `age_ns`
    pauses    a source disobeys if, after it was asked to stop a flow, it sends more than its credit plus
              OBEY_BDPS bandwidth-delay products. The switch then pauses it with PFC, for PAUSE_RTTS base RTTs
              at a time. In a lossless network this must not shorten other PFC pauses: there the duration is
              the longest that PFC permits
    path      in a Dragonfly UGAL-L, as in §II-A; with variant=nic a hash chooses minimal or Valiant paths,
              because switches keep no state; elsewhere shortest paths
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from typing import Annotated, Any, ClassVar

from msgspec.structs import replace

from tailrace.hosts.options.nic import FlowcutNicConfig, NicConfig
from tailrace.p4rt.entities import P4Entity
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.target import Target
from tailrace.schemes.base import SchemeConfig, scheme
from tailrace.schemes.blocks.entries import common_entries
from tailrace.schemes.dragonfly import app as routing
from tailrace.schemes.dragonfly.paths import (
    DEFAULT_SHARE,
    MIXED,
    PATH,
    SHARE,
    SHORTEST,
    UGAL_L,
    check_share,
    paths_on,
    require_dragonfly,
    stepped,
)
from tailrace.schemes.ecmp import EcmpConfig
from tailrace.schemes.errors import IntentError
from tailrace.schemes.flowcut import app
from tailrace.schemes.resolved import DragonflyPaths, EntryPlan, SchemeContext
from tailrace.schemes.watch import LinkEnd
from tailrace.spec import Spec, keys
from tailrace.spec.constants import MAX_QUANTA, NS_BITS, NS_PER_S, QUANTUM_BITS
from tailrace.spec.errors import ExpectedError
from tailrace.topology import Topology, max_switches_on_path
from tailrace.topology.paths.dragonfly import DETOUR_SWITCHES, MINIMAL_SWITCHES
from tailrace.topology.paths.shortest import Down
from tailrace.topology.timing import (
    base_rtt_ns,
    bdp_bytes,
    propagation_ns,
    sending_ns,
    slowest_bps,
)

FULL, INGRESS, NIC = VARIANTS = ("full", "ingress", "nic")
FIRST_PATHS = ("least-loaded", "ecmp")

GROWTH_FRAMES = 5

OBEY_BDPS = 2
PAUSE_RTTS = 2

GROWTH_OFF = 1e9
"""A growth threshold that is never reached."""

ALL_BUCKETS = 0
"""The value that means all buckets that the program has."""

DEFAULT_SLOWEST = 0.1
"""The rate of a degraded link in Flowcut §III-B3, divided by its normal rate."""

MOST_LEFT = 127
"""The largest count of remaining packets that a sender can put into a packet (7 bits of the BTH)."""

_AGE_MARGIN = 2


def _parse_buckets(text: str) -> int:
    buckets = keys.parse_integer(text, least=1)
    if buckets & (buckets - 1):
        raise ExpectedError("a power of two")
    return buckets


def _parse_growth(text: str) -> float:
    return GROWTH_OFF if text == "off" else keys.parse_number(text, least=0)


_DRAIN_SECTION = "Flowcut §II-B, §III-C1"
_FEW_PACKETS_SECTION = "Flowcut §IV-C"

_BUCKETS = keys.Key(
    "buckets",
    "number of buckets of the flow table, with four entries each",
    "power of two",
    _parse_buckets,
    lambda value: str(value) if value else "all",
)
_GROWTH = keys.Key(
    "growth",
    "growth of the average RTT above which a flow is drained, in idle RTTs per ACK",
    "number or off",
    _parse_growth,
    lambda value: "off" if value >= GROWTH_OFF else f"{value:g}",
    section=_DRAIN_SECTION,
)


@scheme
class FlowcutConfig(SchemeConfig, frozen=True, kw_only=True):
    """Flowcut with state at every switch, at the first one, or in the NICs over switches with plain ECMP.

    rtt_threshold: 3 to 5 are good; the paper uses 4 (§III-C1)
    slowest_fraction: lowest expected rate of a link, as a share of its normal rate; used to compute the age
    """

    name: ClassVar[str] = "flowcut"
    title: ClassVar[str] = "Flowcut"
    about: ClassVar[str] = "a flow keeps its path while any of its packets is in flight"
    counters: ClassVar[tuple[str, ...]] = ("flowcut_", "xoff_", "xon_", "class_pauses_", "acks_")
    variant: Annotated[
        str,
        keys.choice(
            "variant",
            "flow state in every switch, in the first switch, or in the NICs",
            VARIANTS,
            section="Flowcut §II",
        ),
    ] = FULL
    buckets: Annotated[int, _BUCKETS] = ALL_BUCKETS
    age_ns: Annotated[
        int | None, keys.time("age", "idle time after which an entry of the flow table is deleted", least=1)
    ] = None
    rtt_threshold: Annotated[
        float,
        keys.number(
            "rtt",
            "average RTT above which a flow is drained, in multiples of the idle RTT (see baseline)",
            least=1,
            section=_DRAIN_SECTION,
        ),
    ] = 4.0
    growth_threshold: Annotated[float | None, _GROWTH] = None
    alpha: Annotated[
        float,
        stepped(
            "alpha",
            "weight of the newest ACK in the averages of the RTT and of its growth",
            f"multiple of 1/{app.ALPHA_STEPS}",
            app.ALPHA_STEPS,
            least=1 / app.ALPHA_STEPS,
        ),
    ] = 0.5
    min_left_packets: Annotated[
        int | None,
        keys.integer(
            "left",
            "a flow is drained only if its message has at least this many packets left; 0: always",
            least=0,
            values="packets",
            section=_FEW_PACKETS_SECTION,
        ),
    ] = None
    resume_bytes: Annotated[
        int,
        keys.size(
            "resume",
            "bytes in flight at which a drained flow resumes; 0: packets stay in order",
            section=_FEW_PACKETS_SECTION,
        ),
    ] = 0
    credit_bytes: Annotated[
        int,
        keys.size(
            "credit", "bytes that a source may still send after an XOFF, which pauses its flow; 0: none"
        ),
    ] = 0
    move: Annotated[
        bool, keys.flag("move", "a drained flow takes a new path; off: it resumes on its path (variant=nic)")
    ] = True
    pause: Annotated[
        str,
        keys.choice(
            "pause",
            "what a drain pauses: the flow (if its source does not obey, its PFC class), or always the class",
            app.PAUSES,
            section="Flowcut §II-B",
        ),
    ] = app.FLOW
    first_path: Annotated[
        str,
        keys.choice(
            "first",
            "path selection for packets before the flow's first ACK",
            FIRST_PATHS,
            section="Flowcut §II-A",
        ),
    ] = FIRST_PATHS[0]
    baseline: Annotated[
        str,
        keys.choice(
            "baseline",
            "idle RTT: the minimum observed for the number of hops, or computed from the topology",
            app.BASELINES,
            section="Flowcut §II-B",
        ),
    ] = app.OBSERVED
    slowest_fraction: Annotated[
        float,
        keys.number(
            "slowest",
            "lowest expected rate of a link, as a share of its normal rate; for the default of age",
            above=0,
            most=1,
            section="Flowcut §III-B3",
        ),
    ] = DEFAULT_SLOWEST
    path: Annotated[str | None, PATH] = None
    minimal_share: Annotated[float, SHARE] = DEFAULT_SHARE

    @property
    def acks_per_packet(self) -> int:
        """NICs with Flowcut send a transport ACK and a Flowcut ACK for each packet."""
        return 2 if self.variant == NIC else 1

    def checked(self, spec: Spec) -> FlowcutConfig:
        check_share(spec, self.path)
        # refuse(keys, option): the keys need the option, so they must not be given without it
        if self.pause == app.CLASS and self.variant == NIC:
            spec.refuse(("pause",), f"variant={FULL} or variant={INGRESS}")
        if not self.move and self.variant != NIC:
            spec.refuse(("move",), f"variant={NIC}")
        if self.pause == app.CLASS and self.credit_bytes:
            spec.refuse(("credit",), f"pause={app.FLOW}")
        return self

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedFlowcut:
        in_nics = self.variant == NIC
        if context.lossless and self.pause == app.CLASS:
            raise IntentError(
                "scheme flowcut: pause=class cannot be used with PFC, whose pauses it would end early"
            )
        # the key `path`, or the default: in a Dragonfly the third argument, elsewhere shortest paths
        path = paths_on(topology, self.path, MIXED if in_nics else UGAL_L)
        common = self.common(topology, context)
        slowest = min(self.slowest_fraction, context.slowest)
        left, given_age_ns, frame_bytes = self.min_left_packets, self.age_ns, context.frame_bytes
        more: dict[str, Any] = {
            "program": _program(path, in_nics=in_nics),
            "path": path,
            "slowest_fraction": slowest,
            "age_given": given_age_ns is not None,
        }
        if self.growth_threshold is None and not context.steady:
            # DEVIATION: RTTs through BMv2 vary with its CPU load, by more than with queues
            more["growth_threshold"] = GROWTH_OFF
        elif self.growth_threshold is None:
            frames_ns = GROWTH_FRAMES * sending_ns(frame_bytes, slowest_bps(topology))
            more["growth_threshold"] = frames_ns / base_rtt_ns(topology, frame_bytes)
        # with PFC a queue may hold all bytes in flight, but pauses keep it much shorter
        bounds = [held for held in (common["queue_limit_bytes"], context.held_bytes) if held]
        held = more["held_bytes"] = min(bounds, default=0)
        more["age_ns"] = (
            age_ns(topology, frame_bytes, held, slowest, path) if given_age_ns is None else given_age_ns
        )
        bdp = bdp_bytes(topology, frame_bytes)
        more["min_left_packets"] = min(-(-bdp // frame_bytes), MOST_LEFT) if left is None else left
        more["obey_bytes"] = self.credit_bytes + OBEY_BDPS * bdp
        more["pause_quanta"] = MAX_QUANTA if context.lossless else _quanta(topology, frame_bytes)
        resolved = self.resolved(
            ResolvedFlowcutNic if in_nics else ResolvedFlowcut, topology, context, **more
        )
        require_dragonfly(topology, self.name, resolved.dragonfly_paths)
        return resolved


def _quanta(topology: Topology, frame_bytes: int) -> int:
    """PAUSE_RTTS base RTTs in quanta of the fastest host's link, at most MAX_QUANTA, the limit of PFC."""
    bits = PAUSE_RTTS * base_rtt_ns(topology, frame_bytes) * max(host.rate_bps for host in topology.hosts)
    return min(MAX_QUANTA, -(-bits // (QUANTUM_BITS * NS_PER_S)))


def _program(path: str, *, in_nics: bool) -> str:
    """The P4 program; Flowcut in NICs uses the program of another scheme."""
    if in_nics:
        return EcmpConfig.name if path == SHORTEST else routing.PROGRAM
    return FlowcutConfig.name if path == SHORTEST else app.DRAGONFLY_PROGRAM


class ResolvedFlowcut(app.FlowcutSettings, frozen=True, kw_only=True):
    """Flowcut in the switches of a network."""

    @property
    def dragonfly_paths(self) -> DragonflyPaths | None:
        return None if self.path == SHORTEST else self._paths("flow")

    def _paths(self, grain: str) -> DragonflyPaths:
        return DragonflyPaths(
            rule=self.path, grain=grain, gap_ns=self.age_ns, minimal_share=self.minimal_share
        )

    def at(self, topology: Topology, down: Down) -> ResolvedFlowcut:
        """See Resolved: while paths are longer, entries are kept longer."""
        if self.age_given or not down:
            return self
        age = age_ns(topology, self.frame_bytes, self.held_bytes, self.slowest_fraction, self.path, down)
        return replace(self, age_ns=age)

    def plans(
        self,
        topology: Topology,
        program: P4Program,
        target: Target,
        down: Down,
        suppressed: Collection[LinkEnd],
    ) -> Iterator[EntryPlan]:
        """See Resolved.

        Raises:
            IntentError: a path has more switches than a packet has fields for the timestamps of switches.
        """
        capacity = program.constant("stamps")
        # the last switch of a path returns the ACK and adds no timestamp
        stamping = max_switches(topology, self.path) - 1
        if self.variant == FULL and stamping > capacity:
            raise IntentError(
                f"scheme flowcut: variant full stamps packets at {stamping} switches of a path in"
                f" {topology.spec}, a packet has fields for {capacity}"
            )
        return super().plans(topology, program, target, down, suppressed)

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        return app.entities(plan, self)


class ResolvedFlowcutNic(ResolvedFlowcut, frozen=True, kw_only=True):
    """Flowcut in NICs.

    The path may change only when the NIC changes the UDP source port, so switches choose the path by a hash.
    With path=ugal-l they choose it for each flowlet, after a gap that is so long that no packet of the flow
    can be in flight.
    """

    @property
    def dragonfly_paths(self) -> DragonflyPaths | None:
        return None if self.path == SHORTEST else self._paths("flowlet" if self.path == UGAL_L else "flow")

    def plans(
        self,
        topology: Topology,
        program: P4Program,
        target: Target,
        down: Down,
        suppressed: Collection[LinkEnd],
    ) -> Iterator[EntryPlan]:
        # without the check of ResolvedFlowcut: switches add no timestamps
        return routing.MayDetour.plans(self, topology, program, target, down, suppressed)

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        paths = self.dragonfly_paths
        return common_entries(plan) if paths is None else routing.entities(plan, paths)

    def nic(self, topology: Topology, context: SchemeContext, scale: float) -> NicConfig:
        config = super().nic(topology, context, scale)
        growth = self.growth_threshold
        flowcut = FlowcutNicConfig(
            rtt_threshold=self.rtt_threshold,
            growth_threshold=None if growth >= GROWTH_OFF else growth,
            alpha=self.alpha,
            ns_per_byte=NS_BITS / config.link_rate_bps,  # NS_BITS / (bits/s) is the time of a byte in ns
            age_ns=self.age_ns,
            min_left=self.min_left_packets,
            resume_bytes=self.resume_bytes,
            base_rtts_ns=app.base_rtts_ns(topology, self.frame_bytes)
            if self.baseline == app.TOPOLOGY
            else (),
            move=self.move,
        )
        return dataclasses.replace(config, flowcut_nic=flowcut)


def max_switches(topology: Topology, path: str, down: Down = frozenset()) -> int:
    """The most switches on a path that a packet may take, also if it was sent before links went down."""
    shortest = max(max_switches_on_path(topology), max_switches_on_path(topology, down))
    if path == SHORTEST:
        return shortest
    if path == "minimal":
        return max(shortest, MINIMAL_SWITCHES)
    # a detour has one link within a group and one between groups, then a path like that of a host's packet
    return DETOUR_SWITCHES - MINIMAL_SWITCHES + max(shortest, MINIMAL_SWITCHES)


def age_ns(
    topology: Topology,
    frame_bytes: int,
    held_bytes: int,
    slowest_fraction: float,
    path: str = SHORTEST,
    down: Down = frozenset(),
) -> int:
    """The longest time in ns that a packet and then its ACK can be in flight between first and last switch.

        age = 2 * (n * (held + frame) / slow + n * 2 * frame / slow + 2 * propagation)

    where n is `max_switches`, `held` the queue limit (with PFC, if less, the bytes that a switch stores
    before it pauses all its senders), and `slow` the rate of the slowest link times `slowest_fraction`. A
    data packet may wait behind `held` bytes at every switch, including the last one, because the ACK is
    generated when the packet leaves that switch. An ACK has priority over data, but waits for the frame that
    is being sent; the ACK's transmission is counted as that of a full frame. The factor of 2 is for ACKs
    behind ACKs, and for paused links.

    Raises:
        IntentError: queues have no limit, so no such time exists.
    """
    if held_bytes == 0:
        raise IntentError(
            "scheme flowcut: age must be given with queue=0, which leaves queues without a limit"
        )
    switches = max_switches(topology, path, down)
    slow_bps = max(1, int(slowest_bps(topology) * slowest_fraction))
    data_ns = switches * sending_ns(held_bytes + frame_bytes, slow_bps)
    ack_ns = switches * sending_ns(2 * frame_bytes, slow_bps)
    return _AGE_MARGIN * (data_ns + ack_ns + 2 * propagation_ns(topology, switches))
