# SPDX-License-Identifier: Apache-2.0
"""The base of every scheme: its keys as they are written, and their values resolved for a network.

Each scheme is declared in a file or folder beside this file. A struct contains its keys (spec.keys) as the
user gave them; `@scheme` registers this struct. Its method `resolve` returns a struct of another class, in
which every value is set. That class makes the entries of the switches and the configuration of the NICs.
Defaults of values that all schemes have:

    queue limit   the queue size with which the experiment loses no packet (SchemeContext.room_bytes); else
                  QUEUE_BDPS bandwidth-delay products, at least MIN_QUEUE_FRAMES full frames
    RED           random early detection, which sets ECN marks: with the transport dcqcn as in the deployment
                  of its paper; with other transports whose window ECN marks control, and for schemes whose
                  NICs use marks, from 1/5 to 4/5 of a BDP (assumption); else off
    control       CONTROL_SHARE of a host's link for control packets; more if small packets cause more ACKs
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

from tailrace.hosts.options import dcqcn
from tailrace.hosts.options.hf2t_spec import Hf2tSpec
from tailrace.hosts.options.transport import TRANSPORTS
from tailrace.hosts.options.transports import Dcqcn, GoBackN
from tailrace.p4rt import programs
from tailrace.schemes.resolved import RedConfig, Resolved, SchemeContext
from tailrace.spec import Spec, SpecError, keys
from tailrace.spec.plugins import given_by
from tailrace.spec.registry import Registry
from tailrace.topology import Topology
from tailrace.topology.timing import bdp_bytes

BY_TOPOLOGY = "from the topology"
"""Shown in listings as the default of a key whose default depends on the topology."""

CONTROL_SHARE = 0.07
"""The share of its link that a host needs for control packets: an ACK of 62 bytes for each packet of 1082
bytes, the default in experiments, and a fifth more (assumption).
"""

QUEUE_BDPS = 2
"""Limit of a queue without PFC, in BDPs. Assumption: a switch with little memory, 0.3 MB a port at 100 Gb/s
and an RTT of 12 us. A single flow needs one BDP to keep its link busy after a loss."""

MIN_QUEUE_FRAMES = 64
_RED_FIFTHS = (1, 4)
"""kmin and kmax of RED, in fifths of a queue's size."""


def red_up_to(size_bytes: int) -> RedConfig:
    """RED that marks from a fifth of a queue of this size to four fifths of it."""
    kmin, kmax = (max(1, size_bytes * fifths // 5) for fifths in _RED_FIFTHS)
    return RedConfig(kmin_bytes=kmin, kmax_bytes=kmax, pmax_permille=1000)


def usual_limit_bytes(topology: Topology, frame_bytes: int) -> int:
    """The limit of an egress queue without PFC, in bytes, for full frames of `frame_bytes`."""
    return max(QUEUE_BDPS * bdp_bytes(topology, frame_bytes), MIN_QUEUE_FRAMES * frame_bytes)


class Common(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of every scheme, besides those of HF2T (NICs stretch gaps between packets)."""

    queue: Annotated[
        int | None, keys.size("queue", "limit of each egress queue, above which data is dropped; 0: no limit")
    ] = None
    kmin: Annotated[
        int | None, keys.size("kmin", "queue size at which ECN marking by RED begins; needs kmax")
    ] = None
    kmax: Annotated[
        int | None, keys.size("kmax", "queue size at and above which every packet is marked", least=1)
    ] = None
    pmax: Annotated[
        float | None, keys.number("pmax", "marking probability just below kmax", least=0, most=1)
    ] = None
    seed: Annotated[
        int,
        keys.integer(
            "seed",
            "seed of the switches' hash functions",
            least=0,
            most=(1 << 32) - 1,
            values="32-bit number",
        ),
    ] = 0
    guard: Annotated[bool, keys.flag("guard", "drop packets from hosts with a spoofed source address")] = True
    control: Annotated[
        float | None,
        keys.number(
            "control",
            "limit of control packets from a host, as a share of its link's rate; 0: no limit",
            least=0,
            most=1,
            absent="0.07; more with small packets or two ACKs per packet",
        ),
    ] = None

    def __post_init__(self) -> None:
        """Raises SpecError if keys contradict each other."""
        if self.kmax is None and (self.kmin is not None or self.pmax is not None):
            raise SpecError("kmin and pmax need kmax")
        if self.kmax is not None and self.kmin is not None and self.kmin > self.kmax:
            raise SpecError("kmin must be at most kmax")

    @property
    def red(self) -> RedConfig | None:
        """The RED configuration that the keys give; None if they give none."""
        if self.kmax is None:
            return None
        kmin = self.kmax if self.kmin is None else self.kmin
        permille = round(1000 * (1.0 if self.pmax is None else self.pmax))
        return RedConfig(kmin_bytes=kmin, kmax_bytes=self.kmax, pmax_permille=permille)


R = TypeVar("R", bound=Resolved)


class SchemeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A scheme as it was given; a value that is None is resolved from the network. Its keys are the annotated
    fields, and those of Common and Hf2tSpec.

    about: one line on what the scheme does
    title: the name as its authors write it, in figures; empty: the name in upper case
    counters: prefixes of the names of its programs' special counters, whose sums a run's summary has
    by_source_port: whether switches hash the UDP source port, and keep no state that requires the order of a
        flow, so that NICs may change the port at any packet
    made_for: the transports of its paper, or that accept the order in which packets arrive; empty: any
    """

    name: ClassVar[str]
    about: ClassVar[str]
    title: ClassVar[str] = ""
    counters: ClassVar[tuple[str, ...]] = ()
    by_source_port: ClassVar[bool] = False
    made_for: ClassVar[tuple[str, ...]] = ()
    queue_limit_bytes: int | None = None
    red: RedConfig | None = None
    hash_seed: int = 0
    hf2t: Hf2tSpec | None = None
    source_guard: bool = True
    control_share: float | None = None

    @property
    def only_transport(self) -> str | None:
        """The name of the only transport that the scheme works over; None: any transport."""
        return None

    @property
    def brings_transport(self) -> bool:
        """Whether the scheme implies its transport, so that an experiment need not name it."""
        return False

    @property
    def marks_queues(self) -> bool:
        """Whether queues mark packets (ECN) by default, because NICs use the marks."""
        return False

    @property
    def limits_queues(self) -> bool:
        """Whether queues have a limit of their own, so that there is no PFC unless it is requested."""
        return self.queue_limit_bytes is not None

    @property
    def predicts_pauses(self) -> bool:
        """Whether the scheme reacts to pauses of PFC, so that it needs PFC."""
        return False

    def trims_on(self, topology: Topology) -> bool:  # noqa: ARG002 - some schemes use it
        """Whether queues trim packets to their headers in this topology, so that they need no PFC."""
        return False

    @property
    def acks_per_packet(self) -> int:
        """ACKs of all kinds that a data packet causes."""
        return 1

    def usual_transport(self, topology: Topology) -> str:  # noqa: ARG002 - some schemes use it
        """The default transport."""
        return self.only_transport or GoBackN.name

    def frame_bytes_on(self, topology: Topology, context: SchemeContext) -> int | None:  # noqa: ARG002
        """The size of a full frame, for schemes whose packets take paths of many lengths: their windows
        depend on it. None for other schemes.
        """
        return None

    def checked(self, spec: Spec) -> SchemeConfig:  # noqa: ARG002
        """The scheme, after checking that its keys are consistent.

        Raises:
            SpecError: the keys are inconsistent.
        """
        return self

    def files(self, topology: Topology) -> tuple[Path, ...]:  # noqa: ARG002 - few schemes have files
        """The files that the keys name, or that topology.json names for this scheme.

        Raises:
            SpecError: it is not clear which files they are.
        """
        return ()

    def resolve(self, topology: Topology, context: SchemeContext) -> Resolved:
        """The scheme with all values set for a network.

        Raises:
            IntentError: a parameter has no default for this network, or the scheme does not support it.
        """
        raise NotImplementedError

    def resolved(self, kind: type[R], topology: Topology, context: SchemeContext, **more: Any) -> R:
        """A resolved scheme of the class `kind`: its fields get the values of `more`, the common values, and
        this struct's values of the same name.
        """
        values = self.common(topology, context) | more
        fields = {name: getattr(self, name, None) for name in kind.__struct_fields__ if name not in values}
        return kind(**values, **{name: value for name, value in fields.items() if value is not None})

    def common(self, topology: Topology, context: SchemeContext) -> dict[str, Any]:
        """The resolved values that all schemes have, except the program."""
        return {
            "name": self.name,
            "frame_bytes": context.frame_bytes,
            "queue_limit_bytes": self._limit_bytes(topology, context),
            "red": self._marking(topology, context),
            "hash_seed": self.hash_seed,
            "source_guard": self.source_guard,
            "control_share": self._control(context),
            "hf2t": self.hf2t,
        }

    def _limit_bytes(self, topology: Topology, context: SchemeContext) -> int:
        for known in (self.queue_limit_bytes, context.room_bytes):
            if known is not None:
                return known
        return usual_limit_bytes(topology, context.frame_bytes)

    def _marking(self, topology: Topology, context: SchemeContext) -> RedConfig | None:
        if self.red is not None:
            return self.red
        if context.transport == Dcqcn.name:
            # DCQCN's paper gives thresholds for RED_RATE_BPS; they grow with the link's rate
            kmin, kmax = (
                max(1, size * context.fastest_bps // dcqcn.RED_RATE_BPS) for size in dcqcn.RED_BYTES
            )
            return RedConfig(kmin_bytes=kmin, kmax_bytes=kmax, pmax_permille=dcqcn.RED_PERMILLE)
        # led_by_marks of a transport: whether ECN marks control its window
        led_by_marks = bool(context.transport) and TRANSPORTS.entry(context.transport).struct.led_by_marks
        marks = self.marks_queues or led_by_marks
        return red_up_to(bdp_bytes(topology, context.frame_bytes)) if marks else None

    def _control(self, context: SchemeContext) -> float:
        if self.control_share is not None:
            return self.control_share
        share = self.acks_per_packet * CONTROL_SHARE
        # ack_ratio: ACKs per byte of data, relative to packets of the usual size
        return share if context.ack_ratio <= 1 else min(1.0, round(share * context.ack_ratio, 3))


S = TypeVar("S", bound=type[SchemeConfig])

# also: structs of further keys of each scheme; methods: required methods, with their numbers of arguments
SCHEMES: Registry[SchemeConfig] = Registry("scheme", also=(Common, Hf2tSpec), methods={"resolve": 2})


def scheme(kind: S) -> S:
    """Registers a scheme; a decorator of the struct of its keys."""
    return SCHEMES.register(kind.name, kind.about)(kind)


def resolve(config: SchemeConfig, topology: Topology, context: SchemeContext | None = None) -> Resolved:
    """Resolves a scheme for a network.

    Raises:
        IntentError: a parameter has no default for this network, or the scheme does not support it.
        SpecError: a topology file sets another CPU port or number of priority queues for a switch than its
            program was compiled for.
    """
    # given_by checks the type of the value if the scheme is defined by a plug-in
    resolved: Resolved = given_by(
        config, config.resolve(topology, context or SchemeContext()), Resolved, "resolve"
    )
    for switch in () if resolved.is_foreign else topology.switches:
        for key in ("cpu_port", "priority_queues"):
            value = getattr(switch, key)
            compiled = value if value is None else programs.load(resolved.program).constant(key)
            if value != compiled:
                expected = f"the program {resolved.program} is compiled for {compiled}; leave it out"
                raise SpecError(f"{topology.kind}: switches.{switch.name}.{key}: {value}, but {expected}")
    return resolved
