# SPDX-License-Identifier: Apache-2.0
"""What every scheme is: keys as they are written, and what they come to in a network.

A scheme declares itself in one file or folder of this one. A struct holds its keys (spec.keys) as they were
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

from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

from tailrace.hosts.options import dcqcn
from tailrace.hosts.options.hf2t_spec import Hf2tSpec
from tailrace.hosts.options.transports import Dcqcn, GoBackN
from tailrace.p4rt import programs
from tailrace.schemes.resolved import RedConfig, Resolved, SchemeContext
from tailrace.spec import Spec, SpecError, keys
from tailrace.spec.plugins import given_by
from tailrace.spec.registry import Registry
from tailrace.topology import Topology
from tailrace.topology.timing import bdp_bytes

BY_TOPOLOGY = "by topology"
"""What a listing has for a default that follows from the topology."""

CONTROL_SHARE = 0.07
"""The share of its link that a host needs for control packets: an ACK of 62 bytes for each packet of 1082
that the link can bring, which is what experiments have by default, and a fifth more (assumption).
"""

MIN_QUEUE_FRAMES = 64
_RED_FIFTHS = (1, 4)


def red_up_to(size_bytes: int) -> RedConfig:
    """Marking from a fifth of a queue to four fifths of it."""
    kmin, kmax = (max(1, size_bytes * fifths // 5) for fifths in _RED_FIFTHS)
    return RedConfig(kmin_bytes=kmin, kmax_bytes=kmax, pmax_permille=1000)


class Common(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of every scheme; beside them those of HF2T."""

    queue: Annotated[
        int | None, keys.size("queue", "tail drop of data, for each egress queue; 0: no limit")
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


R = TypeVar("R", bound=Resolved)


class SchemeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A scheme as it was given; what is None follows from the network. Its keys are those of the fields with
    a note, and those of Common and Hf2tWords, which `common` takes over.

    about: one line on what it does
    counters: what the names of its programs' own counters begin with; a summary tells their sums
    """

    name: ClassVar[str]
    about: ClassVar[str]
    counters: ClassVar[tuple[str, ...]] = ()
    queue_limit_bytes: int | None = None
    red: RedConfig | None = None
    hash_seed: int = 0
    hf2t: Hf2tSpec | None = None
    source_guard: bool = True
    control_share: float | None = None

    @property
    def only_transport(self) -> str | None:
        """The name of the only transport that it works over; None: any transport."""
        return None

    @property
    def brings_transport(self) -> bool:
        """Whether it implies its transport, so that an experiment need not name it."""
        return False

    @property
    def marks_queues(self) -> bool:
        """Whether NICs use ECN marks, so that queues mark by default."""
        return False

    @property
    def acks_per_packet(self) -> int:
        """ACKs of all kinds for a packet."""
        return 1

    def usual_transport(self, topology: Topology) -> str:  # noqa: ARG002 - of some schemes it depends
        """The default transport."""
        return self.only_transport or GoBackN.name

    def frame_bytes_on(self, topology: Topology, context: SchemeContext) -> int | None:  # noqa: ARG002
        """A full frame, where packets take paths of many lengths, which then decides windows; None:
        they do not.
        """
        return None

    def checked(self, spec: Spec) -> SchemeConfig:  # noqa: ARG002
        """The same, when keys go together.

        Raises:
            SpecError: they do not.
        """
        return self

    def resolve(self, topology: Topology, context: SchemeContext) -> Resolved:
        """The scheme in a network.

        Raises:
            IntentError: a parameter has no default there, or the network is none for it.
        """
        raise NotImplementedError

    def resolved(self, kind: type[R], topology: Topology, context: SchemeContext, **more: Any) -> R:
        """The resolved scheme: common values, fields of the same name here, and `more`."""
        values = self.common(topology, context) | more
        fields = {name: getattr(self, name, None) for name in kind.__struct_fields__ if name not in values}
        return kind(**values, **{name: value for name, value in fields.items() if value is not None})

    def common(self, topology: Topology, context: SchemeContext) -> dict[str, Any]:
        """The values that all schemes have, but for the program."""
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
        fullest = max(len(topology.hosts_of(leaf)) for leaf in topology.leaves)
        return max(fullest * bdp_bytes(topology, context.frame_bytes), MIN_QUEUE_FRAMES * context.frame_bytes)

    def _marking(self, topology: Topology, context: SchemeContext) -> RedConfig | None:
        if self.red is not None:
            return self.red
        if context.transport == Dcqcn.name:
            kmin, kmax = (
                max(1, size * context.fastest_bps // dcqcn.RED_RATE_BPS) for size in dcqcn.RED_BYTES
            )
            return RedConfig(kmin_bytes=kmin, kmax_bytes=kmax, pmax_permille=dcqcn.RED_PERMILLE)
        return red_up_to(bdp_bytes(topology, context.frame_bytes)) if self.marks_queues else None

    def _control(self, context: SchemeContext) -> float:
        if self.control_share is not None:
            return self.control_share
        share = self.acks_per_packet * CONTROL_SHARE
        return share if context.ack_ratio <= 1 else min(1.0, round(share * context.ack_ratio, 3))


S = TypeVar("S", bound=type[SchemeConfig])

SCHEMES: Registry[SchemeConfig] = Registry("scheme", also=(Common, Hf2tSpec), methods={"resolve": 2})


def scheme(kind: S) -> S:
    """Registers a scheme; a decorator of the struct of its keys."""
    return SCHEMES.register(kind.name, kind.about)(kind)


def resolve(config: SchemeConfig, topology: Topology, context: SchemeContext | None = None) -> Resolved:
    """Resolves a scheme in a network.

    Raises:
        IntentError: a parameter has no default there, or the network is none for it.
        SpecError: a file gives a switch another CPU port or other queues than the program is compiled for.
    """
    resolved: Resolved = given_by(
        config, config.resolve(topology, context or SchemeContext()), Resolved, "resolve"
    )
    for switch in topology.switches:
        for key in ("cpu_port", "priority_queues"):
            value = getattr(switch, key)
            compiled = value if value is None else programs.load(resolved.program).constant(key)
            if value != compiled:
                expected = f"the program {resolved.program} is compiled for {compiled}; leave it out"
                raise SpecError(f"{topology.kind}: switches.{switch.name}.{key}: {value}, but {expected}")
    return resolved
