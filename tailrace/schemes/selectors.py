# SPDX-License-Identifier: Apache-2.0
"""Presto, LetFlow, DRILL and Hermes, which RLB builds on (RLB §II-A.3, §VI-A)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from tailrace.hosts.options.hf2t_words import HF2T
from tailrace.schemes.base import COMMON, DEFAULT_SHARE, DragonflyPaths, SchemeConfig, common_options, gap_ns
from tailrace.schemes.dragonfly.paths import PATH_KEYS, SHORTEST, path_options
from tailrace.schemes.spritz.declaration import DRAGONFLY
from tailrace.words import Options, Words

DEFAULT_CELL_BYTES = 64 * 1024
"""RLB §VI-A."""

PLAIN = "plain"
LETFLOW_VARIANTS = (PLAIN, HF2T)
"""LetFlow alone, or with NICs that make flowlets: the same as the key `hf2t`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrestoConfig(SchemeConfig):
    """Cells of so many bytes of a flow go to the next hops in turn.

    cell_bytes: in bytes of frames as hosts send them
    """

    name: ClassVar[str] = "presto"
    cell_bytes: int = DEFAULT_CELL_BYTES


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
    def variant(self) -> str:
        """One of LETFLOW_VARIANTS."""
        return PLAIN if self.hf2t is None else HF2T

    @property
    def flowlet_gap_ns(self) -> int | None:
        """See SchemeConfig."""
        return self.gap_ns

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
class DrillConfig(SchemeConfig):
    """DRILL(2,1): every packet goes to the least loaded of two random next hops and the last one that was."""

    name: ClassVar[str] = "drill"

    @property
    def dense_groups(self) -> bool:
        """Two samples are to be two ports."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class HermesConfig(SchemeConfig):
    """The NIC chooses the path; the first switch follows the UDP source port. NICs want ECN marks for it."""

    name: ClassVar[str] = "hermes"

    @property
    def follows_tags(self) -> bool:
        """See SchemeConfig."""
        return True


def cell_bytes(options: Options) -> int:
    """The size of a flowcell, of the key `cell`.

    Raises:
        SpecError: a bad value.
    """
    return options.size_bytes("cell", DEFAULT_CELL_BYTES, least=1)


def presto(words: Words) -> SchemeConfig:
    """presto:cell=."""
    options = Options(words, ("cell", *COMMON))
    return PrestoConfig(cell_bytes=cell_bytes(options), **common_options(options))


def letflow(words: Words) -> SchemeConfig:
    """letflow:variant=,gap=,path=,share=.

    Raises:
        SpecError: a bad value.
    """
    options = Options(words, ("variant", "gap", *PATH_KEYS, *COMMON))
    wanted = options.choice("variant", LETFLOW_VARIANTS) if "variant" in options else None
    common = common_options(options, hf2t=wanted == HF2T)
    config = LetflowConfig(gap_ns=gap_ns(options), **path_options(options), **common)
    if wanted not in (None, config.variant):
        raise options.error("variant", f"{config.variant} where {HF2T}={options.text(HF2T)}")
    return config


def drill(words: Words) -> SchemeConfig:
    """Drill has no words of its own."""
    return DrillConfig(**common_options(Options(words, COMMON)))


def hermes(words: Words) -> SchemeConfig:
    """Hermes has no words of its own."""
    return HermesConfig(**common_options(Options(words, COMMON)))


READERS: dict[str, Callable[[Words], SchemeConfig]] = {
    PrestoConfig.name: presto,
    LetflowConfig.name: letflow,
    DrillConfig.name: drill,
    HermesConfig.name: hermes,
}
"""Readers of the words of these schemes."""
