# SPDX-License-Identifier: Apache-2.0
"""Base of the schemes whose switches run the program `spritz`: packets take bounded simple paths (loop-free
paths of bounded length; topology.paths.shapes).

NICs choose a path by its entropy value, EV (Spritz §III, §IV and the baselines of §V-A), or switches draw it
hop by hop. Packets take paths of many lengths and queues are bounded, so defaults follow from the longest
path (topology.timing; Spritz, Table II):

    frame          size of the experiment's packets plus the headers of Spritz; if unknown, that of Table II
    queue limit    one BDP of the longest path, also the base of RED
    RED            from 0.2 to 0.8 of the queue limit
    transport      dctcp (STEERABLE), which reports whether each packet arrived
    rto            retransmission timeout of a packet: RTO_MARGIN times the sum of the longest path's RTT
                   without queueing and the delay of a full queue at each of its switches. The paper gives no
                   value. The timeout does not double. If queues trim, only packets that vanish time out, and
                   a timeout does not change the window: ECN marks and NACKs show congestion, a timeout shows
                   a dead path
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated, Any, ClassVar

from tailrace.codec.numbers import TTL
from tailrace.hosts.options.nic import STEERABLE, NicConfig, SteeringConfig
from tailrace.hosts.options.transports import LOSS, PATH
from tailrace.p4rt.entities import P4Entity
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.target import Target
from tailrace.schemes.base import SchemeConfig, red_up_to
from tailrace.schemes.blocks.channels import MOST_CHANNELS
from tailrace.schemes.blocks.groups import plan_groups
from tailrace.schemes.errors import IntentError
from tailrace.schemes.resolved import EntryPlan, Resolved, SchemeContext, dead_ports, mtu_of
from tailrace.schemes.spritz.app import CLASS, MINIMAL_MODE, PROGRAM, RANDOM, STEERED, BoundedPlan, entities
from tailrace.schemes.spritz.endpoints import UNIFORM, EndpointPaths
from tailrace.schemes.watch import LinkEnd
from tailrace.spec import SpecError, keys
from tailrace.spec.constants import NS_BITS
from tailrace.topology import Topology
from tailrace.topology.paths.bounded import BoundedPaths
from tailrace.topology.paths.default_routes import minimal_next_hops
from tailrace.topology.paths.segments import PATH_FRAME_BYTES
from tailrace.topology.paths.shapes import shape_of
from tailrace.topology.paths.shortest import Down
from tailrace.topology.timing import ACK_BYTES, max_bdp_bytes, max_rtt_ns, slowest_bps

ALGORITHMS = ("scout", "spray", "ops", "ecmp", "flicr")
"""Algorithms by which NICs choose among paths: the two variants of Spritz, oblivious packet spraying (OPS), a
hash of the flow, and Flicr.
"""

SCOUT, SPRAY, OPS, FLOW_ECMP, FLICR = ALGORITHMS

SPRITZ_PROGRAM_KEYS = ("trim", "repair", "frame")
"""Keys that have a meaning only with the program `spritz`."""

FRAME_HEADER_BYTES = ACK_BYTES
"""Bytes of a frame besides its payload, as in Spritz, Table II; our frames have 6 bytes fewer."""

RTO_MARGIN = 1.5
_LEAST_FRAME_BYTES = 64


class BoundedConfig(SchemeConfig, frozen=True, kw_only=True):
    """A scheme that may use the program `spritz`. The keys below have a meaning only with that program.

    With `repair`, default routes avoid failed links; ECMP tables never do (Spritz §IV-C, §V-D).
    """

    trim: Annotated[
        bool | None,
        keys.flag("trim", "full queues trim packets to their headers instead of dropping them"),
    ] = None
    repair: Annotated[bool | None, keys.flag("repair", "default routes lead around failed links")] = None
    marks: Annotated[
        bool,
        keys.flag(
            "marks",
            "hosts' packets with DSCP 7 take the path of their UDP source port, even if switches choose",
        ),
    ] = False
    frame_bytes: Annotated[
        int | None,
        keys.size(
            "frame",
            "size of a full frame, for queue limits, timeouts and weights of paths",
            least=_LEAST_FRAME_BYTES,
            absent="from the MTU",
        ),
    ] = None

    @property
    def always_runs_spritz(self) -> bool:
        """Whether the scheme uses the program `spritz` in every topology."""
        return True

    def runs_spritz_on(self, topology: Topology) -> bool:  # noqa: ARG002 - some schemes use it
        """Whether the scheme uses the program `spritz` in this topology."""
        return True

    @property
    def steering(self) -> str:
        """The algorithm by which NICs choose paths, one of ALGORITHMS; empty: switches choose."""
        return ""

    @property
    def only_transport(self) -> str | None:
        """If NICs choose paths, the transport that reports whether each packet arrived; else None (any)."""
        return STEERABLE if self.steering else None

    @property
    def marks_queues(self) -> bool:
        return self.always_runs_spritz

    def trims_on(self, topology: Topology) -> bool:
        return self.trim is not False and self.runs_spritz_on(topology)

    def usual_transport(self, topology: Topology) -> str:
        return STEERABLE if self.runs_spritz_on(topology) else super().usual_transport(topology)

    def frame_bytes_on(self, topology: Topology, context: SchemeContext) -> int | None:
        return self.full_frame_bytes(context) if self.runs_spritz_on(topology) else None

    def full_frame_bytes(self, context: SchemeContext) -> int:
        """The size of a full frame with the program `spritz`."""
        if self.frame_bytes is not None:
            return self.frame_bytes
        return PATH_FRAME_BYTES if context.mtu_bytes is None else context.mtu_bytes + FRAME_HEADER_BYTES

    def check_on(self, topology: Topology) -> None:
        """Raises IntentError if EVs cannot name the topology's paths, or if the TTL is too small for them."""
        try:
            links = max(BoundedPaths(topology).max_links, shape_of(topology).cyclic_links)
        except SpecError as error:
            raise IntentError(f"scheme {self.name}: {error}") from None
        if links > TTL - 2:  # the last switch, too, needs a TTL above 1
            raise IntentError(
                f"scheme {self.name}: topology {topology.spec}: paths have up to {links} links between"
                f" switches, and a packet's TTL allows {TTL - 2}"
            )

    def resolve_on_spritz(
        self,
        topology: Topology,
        context: SchemeContext,
        kind: type[ResolvedBounded] | None = None,
        **more: Any,
    ) -> ResolvedBounded:
        """The scheme resolved for the program `spritz`; `more` has `mode` and further fields.

        Raises:
            IntentError: see `check_on`.
        """
        self.check_on(topology)
        frame = self.full_frame_bytes(context)
        bdp_bytes = max_bdp_bytes(topology, frame)
        limit_bytes = bdp_bytes if self.queue_limit_bytes is None else self.queue_limit_bytes
        return self.resolved(
            kind or ResolvedBounded,
            topology,
            context,
            **{
                "program": PROGRAM,
                "queue_limit_bytes": limit_bytes,
                "red": self.red or red_up_to(limit_bytes or bdp_bytes),
                "steering": self.steering,
                "trim": self.trim is not False,
                "repair": bool(self.repair),
                "marks": self.marks or context.marks,
                "frame_bytes": frame,
            }
            | more,
        )


class ResolvedBounded(Resolved, frozen=True, kw_only=True):
    """A scheme resolved for the program `spritz`.

    draw: the resolved key `draw` of `valiant` and `ugal-l` (dragonfly.declaration): each switch draws a hop
    mode: how switches choose the next hop, one of MODES
    marks: whether switches forward packets with the DSCP `STEERED` by their entropy value (EV) in every mode
    steering: the algorithm by which NICs choose paths, one of ALGORITHMS; empty: switches choose
    weights, scale: see EndpointPaths
    held_paths: number of paths to each destination among which a sender chooses; None: all
    """

    draw: ClassVar[str] = "hop"
    mode: str
    trim: bool
    repair: bool
    marks: bool
    steering: str
    weights: str = UNIFORM
    scale: float = 1.0
    held_paths: int | None = None

    @property
    def trims(self) -> bool:
        return self.trim

    def channels(self, topology: Topology) -> int:
        shape = shape_of(topology)
        if not shape.cyclic_links:
            return 0
        if self.mode == MINIMAL_MODE:
            links = shape.minimal.links
        elif self.mode == STEERED or (shape.detours and self.mode != RANDOM):
            # NICs keep to the paths of their lists, and a tag permits a second choice only once
            links = shape.longest.links
        else:
            links = shape.cyclic_links
        return max(links, MOST_CHANNELS) if self.repair else links

    def plans(
        self,
        topology: Topology,
        program: P4Program,
        target: Target,
        down: Down,
        suppressed: Collection[LinkEnd],
    ) -> Iterator[EntryPlan]:
        """See Resolved. ECMP groups contain all minimal next hops. In a Dragonfly minimal next hops depend on
        the ingress port; groups contain those for packets from hosts. With `repair` off, groups keep dead
        links, which senders must avoid (Spritz §V-D).
        """
        del suppressed
        down = down if self.repair else frozenset()
        paths = BoundedPaths(topology, down, self.frame_bytes)
        usual = minimal_next_hops(topology)
        current = minimal_next_hops(topology, down) if down else usual
        for switch in topology.switches:
            ports_down = dead_ports(topology, switch, down)
            groups = plan_groups(usual[switch.name], current[switch.name], ports_down)
            yield BoundedPlan(topology, switch, groups, program, target, self, paths, self.mode, self.marks)

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        assert isinstance(plan, BoundedPlan), "plans() makes BoundedPlans"
        return entities(plan)

    def nic(self, topology: Topology, context: SchemeContext, scale: float) -> NicConfig:  # noqa: ARG002
        rtt_ns = max_rtt_ns(topology, self.frame_bytes)
        rate_bps = slowest_bps(topology)
        switches = shape_of(topology).longest.links + 1
        # bytes * NS_BITS / (bits/s) is a time in ns
        queueing_ns = switches * self.queue_limit_bytes * NS_BITS // rate_bps
        return NicConfig(
            mtu_bytes=mtu_of(context),
            transport=context.transport,
            window_bytes=context.window_bytes,
            rto_ns=round(RTO_MARGIN * (rtt_ns + queueing_ns)),
            rto_backoff=0,  # the timeout does not double
            timeout=PATH if self.trim else LOSS,  # what a timeout indicates: a dead path, or a lost packet
            ack_delay_ns=rtt_ns,
            link_rate_bps=rate_bps,
            path_rtt_ns=rtt_ns,
            steering=self._steering(rtt_ns) if self.steering else None,
        )

    def _steering(self, rtt_ns: int) -> SteeringConfig:
        """How NICs choose paths."""
        return SteeringConfig(algorithm=self.steering, epoch_ns=rtt_ns)

    def paths(self, topology: Topology) -> EndpointPaths:
        """The EV lists of all endpoints.

        Raises:
            P4ProgramError: the program is missing.
        """
        paths = BoundedPaths(topology, frame_bytes=self.frame_bytes)
        return EndpointPaths(
            paths,
            weights=self.weights,
            scale=self.scale,
            coarse=self.mode == CLASS,
            most=self.held_paths,
            seed=self.hash_seed,
        )
