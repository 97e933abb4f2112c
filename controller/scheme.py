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
class RedConfig:
    """ECN marking by RED: never below kmin, always from kmax on, up to pmax in between."""

    kmin_bytes: int
    kmax_bytes: int
    pmax_permille: int


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
        """The P4 program that the switches run."""
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class EcmpConfig(SchemeConfig):
    """A hash of the 5-tuple chooses the next hop."""

    name: ClassVar[str] = "ecmp"


@dataclass(frozen=True, slots=True, kw_only=True)
class SprayConfig(SchemeConfig):
    """Every packet goes to a random next hop."""

    name: ClassVar[str] = "spray"


@dataclass(frozen=True, slots=True, kw_only=True)
class LetflowConfig(SchemeConfig):
    """A flow takes a random next hop after every pause of at least `gap_ns`."""

    name: ClassVar[str] = "letflow"
    gap_ns: int | None = None


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

    @property
    def program(self) -> str:
        """The NIC variant runs over switches that know nothing of it."""
        return "ecmp" if self.variant == "nic" else "flowcut"


_COMMON = ("queue", "kmin", "kmax", "pmax", "seed")
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


def _plain(make: type[EcmpConfig] | type[SprayConfig]) -> Callable[[Words], SchemeConfig]:
    return lambda words: make(**_common(Options(words, _COMMON)))


def _letflow(words: Words) -> LetflowConfig:
    options = Options(words, ("gap", *_COMMON))
    gap_ns = options.time_ns("gap", least=1) if "gap" in options else None
    return LetflowConfig(gap_ns=gap_ns, **_common(options))


def _flowcut(words: Words) -> FlowcutConfig:
    options = Options(words, (*_FLOWCUT, *_COMMON))
    found = _common(options)
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
    alpha = options.number("alpha", DEFAULT_ALPHA, least=1 / ALPHA_STEPS, most=1)
    slowest = options.number("slowest", DEFAULT_SLOWEST, most=1)
    if slowest <= 0:
        raise options.error("slowest", "more than 0")
    return FlowcutConfig(
        variant=options.choice("variant", VARIANTS, DEFAULT_VARIANT),
        rtt_threshold=options.number("rtt", DEFAULT_RTT, least=1),
        alpha=float(Fraction(round(alpha * ALPHA_STEPS), ALPHA_STEPS)),
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
