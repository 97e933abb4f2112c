# SPDX-License-Identifier: Apache-2.0
"""RLB over one of four path selectors (RLB §III, §IV), and the words for it. What is None follows from the
topology: see schemes.rlb.defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from tailrace.schemes.base import COMMON, SchemeConfig, common_options, gap_ns
from tailrace.schemes.selectors import (
    DEFAULT_CELL_BYTES,
    DrillConfig,
    HermesConfig,
    LetflowConfig,
    PrestoConfig,
    cell_bytes,
)
from tailrace.words import Options, Words

PRESTO, LETFLOW = PrestoConfig.name, LetflowConfig.name
DRILL, HERMES = DrillConfig.name, HermesConfig.name
VARIANTS = (PRESTO, LETFLOW, DRILL, HERMES)
NO_LIMIT, FIXED, DYNAMIC = "none", "fixed", "dynamic"
LIMITS = (NO_LIMIT, FIXED, DYNAMIC)

DEFAULT_VARIANT = DRILL
DEFAULT_LIMIT = DYNAMIC
DEFAULT_FLOWS = 15
"""The paper's default degree of incast (§VI-B.3)."""

DEFAULT_MOST = 8
DEFAULT_FAULT = 4
"""Assumptions: the paper gives no numbers of recirculations."""

MOST_COUNTED = 255
"""Recirculations that a packet can count (P4: 8 bits); `none` ends here, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RlbConfig(SchemeConfig):
    """A selector whose choices are refused where PFC is about to pause the path.

    variant: the selector, one of VARIANTS
    pause_bytes: Q_PFC, at which PFC pauses the sender of an ingress port
    warn_bytes: Q_th, below which nothing is predicted
    dt_ns: the time over which the growth of an ingress queue is measured
    flows: n of the incast n:1 that the bounds of Q_th are for (§III-B.3)
    margin_ns: a pause that is so near is warned of
    valid_ns: a warning that is not renewed is forgotten after so long
    probe_ns: each path from leaf to leaf is measured once in so long (§V)
    keep_ns: an RTT or t_rc that is older is not known any more
    stay_ns: not in the paper: a flow that was moved to another path stays there until it is idle for longer;
        0: Algorithm 1 decides for each packet
    limit: of recirculations, one of LIMITS; `dynamic` is the paper's RLB*
    most: recirculations of one packet, at most
    fault: Rc_avg above which something is taken to have failed (Algorithm 2); 0: not looked for
    fault_ns: the shortest time over which Rc_avg is taken
    hold_ns: a path that was found faulty is left out for so long the first time (schemes.rlb.failures)
    cell_bytes: of `presto`
    gap_ns: of `letflow`
    """

    name: ClassVar[str] = "rlb"
    variant: str = DEFAULT_VARIANT
    pause_bytes: int | None = None
    warn_bytes: int | None = None
    dt_ns: int | None = None
    flows: int = DEFAULT_FLOWS
    margin_ns: int | None = None
    valid_ns: int | None = None
    probe_ns: int | None = None
    keep_ns: int | None = None
    stay_ns: int = 0
    limit: str = DEFAULT_LIMIT
    most: int = DEFAULT_MOST
    fault: int = DEFAULT_FAULT
    fault_ns: int | None = None
    hold_ns: int | None = None
    cell_bytes: int = DEFAULT_CELL_BYTES
    gap_ns: int | None = None

    @property
    def program(self) -> str:
        """One program a selector."""
        return f"{self.name}_{self.variant}"

    @property
    def dense_groups(self) -> bool:
        """Algorithm 1 goes from slot to slot, and each is to be another port."""
        return True

    @property
    def follows_tags(self) -> bool:
        """See SchemeConfig."""
        return self.variant == HERMES

    @property
    def flowlet_gap_ns(self) -> int | None:
        """See SchemeConfig."""
        return self.gap_ns if self.variant == LETFLOW else None

    @property
    def recirculates(self) -> bool:
        """Algorithm 1 l. 6."""
        return True


_KEYS = (
    *("variant", "pfc", "qth", "dt", "flows", "margin", "valid"),
    *("probe", "age", "stay", "limit", "most", "fault", "interval", "hold"),
    *("cell", "gap"),
)
_TIMES = {
    "dt": "dt_ns",
    "margin": "margin_ns",
    "valid": "valid_ns",
    "probe": "probe_ns",
    "age": "keep_ns",
    "interval": "fault_ns",
    "hold": "hold_ns",
}
_SIZES = {"pfc": "pause_bytes", "qth": "warn_bytes"}


def rlb(words: Words) -> SchemeConfig:
    """rlb:variant=drill,pfc=256KB,qth=64KB,dt=2us,limit=dynamic and so on.

    Raises:
        SpecError: an unknown key, or a bad value.
    """
    options = Options(words, (*_KEYS, *COMMON))
    variant = options.choice("variant", VARIANTS, DEFAULT_VARIANT)
    for key, owner in (("cell", PRESTO), ("gap", LETFLOW)):
        if key in options and variant != owner:
            raise options.error(key, f"given only where variant is {owner}")
    limit = options.choice("limit", LIMITS, DEFAULT_LIMIT)
    if "most" in options and limit == NO_LIMIT:
        raise options.error("most", f"given only where limit is not {NO_LIMIT}")
    most = MOST_COUNTED if limit == NO_LIMIT else DEFAULT_MOST
    fault = options.integer("fault", DEFAULT_FAULT, least=0, most=MOST_COUNTED)
    for key in ("interval", "hold"):
        if key in options and not fault:
            raise options.error(key, "given only where fault is not 0")
    found = common_options(options)
    found |= {field: options.time_ns(key, least=1) for key, field in _TIMES.items() if key in options}
    found |= {field: options.size_bytes(key, least=1) for key, field in _SIZES.items() if key in options}
    return RlbConfig(
        variant=variant,
        stay_ns=options.time_ns("stay", 0),
        flows=options.integer("flows", DEFAULT_FLOWS, least=1),
        limit=limit,
        most=options.integer("most", most, least=0, most=MOST_COUNTED),
        fault=fault,
        cell_bytes=cell_bytes(options),
        gap_ns=gap_ns(options),
        **found,
    )


READERS: dict[str, Callable[[Words], SchemeConfig]] = {RlbConfig.name: rlb}
"""Readers of the words of this scheme."""
