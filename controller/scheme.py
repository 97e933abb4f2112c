# SPDX-License-Identifier: Apache-2.0
"""Schemes and their parameters, as given; what is None depends on the topology: see controller.defaults."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from spec import Options, SpecError, Words, parse

GROWTH_OFF = math.inf
"""The growth threshold that nothing reaches."""

VARIANTS = ("full", "ingress", "nic")
PATHS = ("shortest", "minimal", "valiant", "ugal-l", "mixed")
"""Where paths come from. All but `shortest` are of a Dragonfly; `mixed` is minimal or Valiant's by a coin."""

SHORTEST, MIXED, UGAL_L = "shortest", "mixed", "ugal-l"
GRAINS = ("packet", "flow", "flowlet")
FIRST_PATHS = ("ecmp", "least-loaded")

DEFAULT_VARIANT = "full"
DEFAULT_FIRST_PATH = "ecmp"
DEFAULT_RTT = 4.0
DEFAULT_ALPHA = 0.5
DEFAULT_SLOWEST = 0.1
"""As slow as a failed link in Flowcut §III-B3."""

DEFAULT_SHARE = 0.5

ALPHA_STEPS = 256
"""alpha is a multiple of 1/256 (P4: 8 bits after the point)."""

SHARE_STEPS = 256
"""So is the share of minimal paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedConfig:
    """ECN marking by RED: never below kmin, always from kmax on, up to pmax in between."""

    kmin_bytes: int
    kmax_bytes: int
    pmax_permille: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DragonflyPaths:
    """How the switch of the source chooses among the paths of a Dragonfly.

    rule: one of PATHS, but not `shortest`
    grain: what keeps a path, one of GRAINS
    gap_ns: a pause of at least this begins a new flowlet
    minimal_share: share of minimal paths where the rule is `mixed`, a multiple of 1/256
    """

    rule: str
    grain: str
    gap_ns: int | None = None
    minimal_share: float = DEFAULT_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemeConfig:
    """What all schemes share. `program` is the stem of the P4 program that runs on the switches.

    queue_limit_bytes: the program's own tail drop of data, for each egress queue; 0 is no limit
    hash_seed: distinguishes runs whose ECMP hashes should differ; 32 bits
    """

    name: ClassVar[str]
    queue_limit_bytes: int | None = None
    red: RedConfig | None = None
    hash_seed: int = 0

    @property
    def program(self) -> str:
        """The P4 program that the switches run. It may depend on the topology: see `defaults.resolve`."""
        return self.name

    @property
    def dragonfly_paths(self) -> DragonflyPaths | None:
        """The choice among the paths of a Dragonfly; None where next hops are those of shortest paths."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class EcmpConfig(SchemeConfig):
    """A hash of the 5-tuple chooses the next hop."""

    name: ClassVar[str] = "ecmp"


@dataclass(frozen=True, slots=True, kw_only=True)
class SprayConfig(SchemeConfig):
    """Every packet goes to a random next hop."""

    name: ClassVar[str] = "spray"


@dataclass(frozen=True, slots=True, kw_only=True)
class MpRdmaConfig(SchemeConfig):
    """ECMP with ECN marking, under MP-RDMA in the NICs, whose paths are UDP source ports."""

    name: ClassVar[str] = "mp-rdma"

    @property
    def program(self) -> str:
        """All that is special is in the NICs."""
        return EcmpConfig.name


@dataclass(frozen=True, slots=True, kw_only=True)
class LetflowConfig(SchemeConfig):
    """A flow takes a random next hop after every pause of at least `gap_ns`.

    path: one of PATHS; None: `ugal-l` in a Dragonfly, else `shortest`
    minimal_share: see DragonflyPaths
    """

    name: ClassVar[str] = "letflow"
    gap_ns: int | None = None
    path: str | None = None
    minimal_share: float = DEFAULT_SHARE

    @property
    def program(self) -> str:
        """In a Dragonfly its routing program knows flowlets."""
        return self.name if self.dragonfly_paths is None else DRAGONFLY

    @property
    def dragonfly_paths(self) -> DragonflyPaths | None:
        """See SchemeConfig."""
        if self.path in (None, SHORTEST):
            return None
        return DragonflyPaths(
            rule=self.path, grain="flowlet", gap_ns=self.gap_ns, minimal_share=self.minimal_share
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedConfig(SchemeConfig):
    """Routing of a Dragonfly (Flowcut §III-C4): `minimal`, `valiant` or `ugal-l`, which is also the rule.

    grain: what keeps a path, one of GRAINS
    gap_ns: where that is a flowlet, a pause of at least this begins a new one
    """

    grain: str
    gap_ns: int | None = None

    @property
    def program(self) -> str:
        """One program for all of them."""
        return DRAGONFLY

    @property
    def dragonfly_paths(self) -> DragonflyPaths | None:
        """See SchemeConfig."""
        return DragonflyPaths(rule=self.name, grain=self.grain, gap_ns=self.gap_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimalConfig(RoutedConfig):
    """A minimal path: at most one link to another group."""

    name: ClassVar[str] = "minimal"
    grain: str = "flow"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValiantConfig(RoutedConfig):
    """Always through a random third group."""

    name: ClassVar[str] = "valiant"
    grain: str = "packet"


@dataclass(frozen=True, slots=True, kw_only=True)
class UgalLConfig(RoutedConfig):
    """A minimal path or one through a third group, by the queues of the first switch."""

    name: ClassVar[str] = UGAL_L
    grain: str = "packet"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowcutConfig(SchemeConfig):
    """Flowcut (§II). Thresholds are of the normalised RTT, which is 1 on an idle path.

    variant: `full` (state at every switch), `ingress` (at the first one) or `nic` (at the hosts; ecmp
        switches)
    buckets: buckets of the flow table, a power of two; None is all that the program has
    age_ns: entries whose flow was silent for so long are deleted, for nothing of it can still be on its way
    rtt_threshold: drain above this average (§III-C1: 3 to 5 are good, 4 is what the paper uses)
    growth_threshold: drain above this average growth between two ACKs; GROWTH_OFF is never
    alpha: weight of the newest sample in both averages, a multiple of 1/256
    min_left_packets: drain only if so many packets of the message are left (§IV-C); 0 is always
    resume_bytes: resume early, once so few bytes are in flight (§IV-C); 0 keeps the order
    credit_bytes: what a source may still send after XOFF; 0 is a plain XOFF
    first_path: `ecmp` or `least-loaded`, for the packets before the first ACK (§II-A)
    slowest_fraction: a link may run as slowly as this share of its rate; enters age_ns
    path: one of PATHS; None: in a Dragonfly `ugal-l`, or `mixed` for the `nic` variant, else `shortest`
    minimal_share: see DragonflyPaths
    """

    name: ClassVar[str] = "flowcut"
    variant: str = DEFAULT_VARIANT
    buckets: int | None = None
    age_ns: int | None = None
    rtt_threshold: float = DEFAULT_RTT
    growth_threshold: float | None = None
    alpha: float = DEFAULT_ALPHA
    min_left_packets: int | None = None
    resume_bytes: int = 0
    credit_bytes: int = 0
    first_path: str = DEFAULT_FIRST_PATH
    slowest_fraction: float = DEFAULT_SLOWEST
    path: str | None = None
    minimal_share: float = DEFAULT_SHARE

    @property
    def program(self) -> str:
        """The NIC variant runs over switches that know nothing of it."""
        if self.variant == "nic":
            return EcmpConfig.name if self.dragonfly_paths is None else DRAGONFLY
        return self.name if self.dragonfly_paths is None else FLOWCUT_DRAGONFLY

    @property
    def dragonfly_paths(self) -> DragonflyPaths | None:
        """See SchemeConfig.

        In the `nic` variant a path may change only with the UDP source port, so it follows from a hash; or
        UGAL-L chooses it for what the switch calls a flowlet, which ends when nothing of it can be in flight.
        """
        if self.path in (None, SHORTEST):
            return None
        grain = "flowlet" if self.variant == "nic" and self.path == UGAL_L else "flow"
        return DragonflyPaths(
            rule=self.path, grain=grain, gap_ns=self.age_ns, minimal_share=self.minimal_share
        )


DRAGONFLY, FLOWCUT_DRAGONFLY = "dragonfly", "flowcut_dragonfly"
"""Programs of Dragonflies."""

_COMMON = ("queue", "kmin", "kmax", "pmax", "seed")
_PATH = ("path", "share")
_FLOWCUT = (
    "variant",
    "buckets",
    "age",
    "rtt",
    "growth",
    "alpha",
    "left",
    "resume",
    "credit",
    "first",
    "slowest",
)  # fmt: skip


def _common(options: Options) -> dict[str, Any]:
    found: dict[str, Any] = {"hash_seed": options.integer("seed", 0, least=0, most=(1 << 32) - 1)}
    if "queue" in options:
        found["queue_limit_bytes"] = options.size_bytes("queue")
    if "kmax" in options:
        kmax = options.size_bytes("kmax", least=1)
        kmin = options.size_bytes("kmin", kmax)
        if kmin > kmax:
            raise options.error("kmin", "at most kmax")
        permille = round(1000 * options.number("pmax", 1.0, least=0, most=1))
        found["red"] = RedConfig(kmin_bytes=kmin, kmax_bytes=kmax, pmax_permille=permille)
    elif "kmin" in options or "pmax" in options:
        raise options.error("kmax", "given where kmin or pmax is")
    return found


def _plain(make: type[EcmpConfig | SprayConfig | MpRdmaConfig]) -> Callable[[Words], SchemeConfig]:
    return lambda words: make(**_common(Options(words, _COMMON)))


def _share(options: Options, key: str, default: float, steps: int, least: float = 0) -> float:
    """A number from `least` to 1, rounded to what the switch can hold."""
    return float(Fraction(round(options.number(key, default, least=least, most=1) * steps), steps))


def _path(options: Options) -> dict[str, Any]:
    path = options.choice("path", PATHS, SHORTEST) if "path" in options else None
    if "share" in options and path not in (None, MIXED):
        raise options.error("share", f"given only where path is {MIXED}")
    return {"path": path, "minimal_share": _share(options, "share", DEFAULT_SHARE, SHARE_STEPS)}


def _gap_ns(options: Options) -> int | None:
    return options.time_ns("gap", least=1) if "gap" in options else None


def _letflow(words: Words) -> LetflowConfig:
    options = Options(words, ("gap", *_PATH, *_COMMON))
    return LetflowConfig(gap_ns=_gap_ns(options), **_path(options), **_common(options))


def _routed(make: type[RoutedConfig], default: str, *more: str) -> Callable[[Words], SchemeConfig]:
    """`default` and `more`: what can keep a path."""

    def read(words: Words) -> SchemeConfig:
        options = Options(words, ("per", "gap", *_COMMON))
        grain = options.choice("per", (default, *more), default)
        if "gap" in options and grain != "flowlet":
            raise options.error("gap", "given only where per=flowlet is")
        return make(grain=grain, gap_ns=_gap_ns(options), **_common(options))

    return read


def _flowcut(words: Words) -> FlowcutConfig:
    options = Options(words, (*_FLOWCUT, *_PATH, *_COMMON))
    found = _common(options) | _path(options)
    if "buckets" in options:
        buckets = options.integer("buckets", least=1)
        if buckets & (buckets - 1):
            raise options.error("buckets", "a power of two")
        found["buckets"] = buckets
    if "age" in options:
        found["age_ns"] = options.time_ns("age", least=1)
    if "left" in options:
        found["min_left_packets"] = options.integer("left", least=0)
    if words.options.get("growth") == "off":
        found["growth_threshold"] = GROWTH_OFF
    elif "growth" in options:
        found["growth_threshold"] = options.number("growth", least=0)
    slowest = options.number("slowest", DEFAULT_SLOWEST, most=1)
    if slowest <= 0:
        raise options.error("slowest", "more than 0")
    return FlowcutConfig(
        variant=options.choice("variant", VARIANTS, DEFAULT_VARIANT),
        rtt_threshold=options.number("rtt", DEFAULT_RTT, least=1),
        alpha=_share(options, "alpha", DEFAULT_ALPHA, ALPHA_STEPS, least=1 / ALPHA_STEPS),
        resume_bytes=options.size_bytes("resume", 0),
        credit_bytes=options.size_bytes("credit", 0),
        first_path=options.choice("first", FIRST_PATHS, DEFAULT_FIRST_PATH),
        slowest_fraction=slowest,
        **found,
    )


_SCHEMES: dict[str, Callable[[Words], SchemeConfig]] = {
    "ecmp": _plain(EcmpConfig),
    "spray": _plain(SprayConfig),
    "letflow": _letflow,
    "flowcut": _flowcut,
    "minimal": _routed(MinimalConfig, "flow", "packet", "flowlet"),
    "valiant": _routed(ValiantConfig, "packet", "flow", "flowlet"),
    UGAL_L: _routed(UgalLConfig, "packet", "flowlet"),
    "mp-rdma": _plain(MpRdmaConfig),
}


def parse_scheme(text: str) -> SchemeConfig:
    """The scheme that words such as flowcut:variant=ingress,buckets=64 describe.

    Raises:
        SpecError: unknown name, or bad option.
    """
    words = parse(text, "scheme")
    make = _SCHEMES.get(words.name)
    if make is None:
        raise SpecError(f"scheme {words.name!r} is not known; expected {', '.join(_SCHEMES)}")
    return make(words)
