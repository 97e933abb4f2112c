# SPDX-License-Identifier: Apache-2.0
"""Presto, DRILL and Hermes, which RLB builds on (RLB §II-A.3, §VI-A)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from controller.scheme_common import COMMON, SchemeConfig, common_options
from spec import Options, Words

DEFAULT_CELL_BYTES = 64 * 1024
"""RLB §VI-A."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrestoConfig(SchemeConfig):
    """Cells of so many bytes of a flow go to the next hops in turn.

    cell_bytes: in bytes of frames as hosts send them
    """

    name: ClassVar[str] = "presto"
    cell_bytes: int = DEFAULT_CELL_BYTES


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


def drill(words: Words) -> SchemeConfig:
    """Drill has no words of its own."""
    return DrillConfig(**common_options(Options(words, COMMON)))


def hermes(words: Words) -> SchemeConfig:
    """Hermes has no words of its own."""
    return HermesConfig(**common_options(Options(words, COMMON)))


READERS: dict[str, Callable[[Words], SchemeConfig]] = {"presto": presto, "drill": drill, "hermes": hermes}
"""Readers of the words of these schemes."""
