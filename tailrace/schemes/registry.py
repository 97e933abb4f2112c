# SPDX-License-Identifier: Apache-2.0
"""Schemes and their parameters, as given; what is None depends on the topology: see schemes.defaults."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from tailrace.schemes.base import (
    COMMON,
    DEFAULT_SHARE,
    DragonflyPaths,
    RedConfig,
    SchemeConfig,
    common_options,
)
from tailrace.schemes.dragonfly.paths import PATH_KEYS, SHORTEST, UGAL_L, path_options, share
from tailrace.schemes.rlb.declaration import READERS as RLB_READERS
from tailrace.schemes.rlb.declaration import RlbConfig
from tailrace.schemes.selectors import READERS as SELECTOR_READERS
from tailrace.schemes.selectors import DrillConfig, HermesConfig, LetflowConfig, PrestoConfig
from tailrace.schemes.spritz.declaration import (
    DRAGONFLY,
    READERS,
    BoundedConfig,
    EcmpConfig,
    FlicrConfig,
    MinimalConfig,
    OpsConfig,
    RoutedConfig,
    SpritzConfig,
    SteeredConfig,
    UgalLConfig,
    ValiantConfig,
)
from tailrace.words import Options, SpecError, Words, parse

__all__ = [
    "BoundedConfig",
    "DragonflyPaths",
    "DrillConfig",
    "EcmpConfig",
    "FlicrConfig",
    "FlowcutConfig",
    "HermesConfig",
    "LetflowConfig",
    "MinimalConfig",
    "MpRdmaConfig",
    "OpsConfig",
    "PrestoConfig",
    "RedConfig",
    "RlbConfig",
    "RoutedConfig",
    "SchemeConfig",
    "SprayConfig",
    "SpritzConfig",
    "SteeredConfig",
    "UgalLConfig",
    "ValiantConfig",
    "parse_scheme",
]

GROWTH_OFF = math.inf
"""The growth threshold that nothing reaches."""

VARIANTS = ("full", "ingress", "nic")
FIRST_PATHS = ("ecmp", "least-loaded")

DEFAULT_VARIANT = "full"
DEFAULT_FIRST_PATH = "ecmp"
DEFAULT_RTT = 4.0
DEFAULT_ALPHA = 0.5
DEFAULT_SLOWEST = 0.1
"""As slow as a failed link in Flowcut §III-B3."""

ALPHA_STEPS = 256
"""alpha is a multiple of 1/256 (P4: 8 bits after the point)."""


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


FLOWCUT_DRAGONFLY = "flowcut_dragonfly"
"""Flowcut's program in a Dragonfly."""

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


def _plain(make: type[SprayConfig | MpRdmaConfig]) -> Callable[[Words], SchemeConfig]:
    return lambda words: make(**common_options(Options(words, COMMON)))


def _flowcut(words: Words) -> FlowcutConfig:
    options = Options(words, (*_FLOWCUT, *PATH_KEYS, *COMMON))
    found = common_options(options) | path_options(options)
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
        alpha=share(options, "alpha", DEFAULT_ALPHA, ALPHA_STEPS, least=1 / ALPHA_STEPS),
        resume_bytes=options.size_bytes("resume", 0),
        credit_bytes=options.size_bytes("credit", 0),
        first_path=options.choice("first", FIRST_PATHS, DEFAULT_FIRST_PATH),
        slowest_fraction=slowest,
        **found,
    )


_OWN: dict[str, Callable[[Words], SchemeConfig]] = {
    "spray": _plain(SprayConfig),
    "flowcut": _flowcut,
    "mp-rdma": _plain(MpRdmaConfig),
}
_ORDER = (
    *("ecmp", "spray", "letflow", "flowcut"),
    *("presto", "drill", "hermes", "rlb"),
    *("minimal", "valiant", "ugal-l", "mp-rdma"),
    *("spritz", "ops", "flicr"),
)
_SCHEMES = {name: (_OWN | READERS | SELECTOR_READERS | RLB_READERS)[name] for name in _ORDER}


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
