# SPDX-License-Identifier: Apache-2.0
"""What the configurations of all schemes share, and the words for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tailrace.hosts.options.hf2t_words import KEYS as HF2T_KEYS
from tailrace.hosts.options.hf2t_words import Hf2tWords, hf2t_options
from tailrace.words import Options

DEFAULT_SHARE = 0.5

COMMON = ("queue", "kmin", "kmax", "pmax", "seed", "guard", "control", *HF2T_KEYS)
"""Keys of every scheme."""


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
    hf2t: what NICs do about gaps between packets; None: nothing
    source_guard: a host's port sends with the addresses of its hosts only
    control_share: share of its link at which a host may send control packets; what is more goes with data. 0
        is no limit
    """

    name: ClassVar[str]
    queue_limit_bytes: int | None = None
    red: RedConfig | None = None
    hash_seed: int = 0
    hf2t: Hf2tWords | None = None
    source_guard: bool = True
    control_share: float | None = None

    @property
    def program(self) -> str:
        """The P4 program that the switches run. It may depend on the topology: see `defaults.resolve`."""
        return self.name

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
    def follows_tags(self) -> bool:
        """Whether the leaf of a sender goes by the path tag that the NIC chose, as Hermes has it."""
        return False

    @property
    def flowlet_gap_ns(self) -> int | None:
        """The pause that begins a new flowlet, where that may change the path of a flow."""
        return None

    @property
    def steering(self) -> str:
        """The algorithm by which NICs choose among bounded simple paths, one of ALGORITHMS; empty: none."""
        return ""


def common_options(options: Options, *, hf2t: bool = False) -> dict[str, Any]:
    """The fields of SchemeConfig.

    Args:
        options: of any scheme.
        hf2t: other words have asked for HF2T.

    Raises:
        SpecError: a bad value.
    """
    found: dict[str, Any] = {"hash_seed": options.integer("seed", 0, least=0, most=(1 << 32) - 1)}
    found["hf2t"] = hf2t_options(options, on=hf2t)
    found["source_guard"] = options.flag("guard", default=True)
    if "control" in options:
        found["control_share"] = options.number("control", least=0, most=1)
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


def gap_ns(options: Options) -> int | None:
    """The pause that begins a new flowlet, where it is given."""
    return options.time_ns("gap", least=1) if "gap" in options else None
