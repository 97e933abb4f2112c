# SPDX-License-Identifier: Apache-2.0
"""Routing by switches (Flowcut §III-C4, Spritz §V-A): minimal, Valiant's and UGAL-L.

The key draw selects one of two programs:

group   `dragonfly` (app.py): the first switch chooses a minimal path, or a detour through a third group
hop     `spritz` (spritz.bounded): every switch draws a hop, on loop-free paths of bounded length

Defaults of keys:

draw    hop in a Slim Fly and in other graphs without tiers, else group
gap     one base RTT; used with per=flowlet only
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from tailrace.p4rt.entities import P4Entity
from tailrace.schemes.base import scheme
from tailrace.schemes.dragonfly import app
from tailrace.schemes.dragonfly.paths import GAP, GRAINS, UGAL_L, require_dragonfly
from tailrace.schemes.errors import IntentError
from tailrace.schemes.resolved import DragonflyPaths, EntryPlan, Resolved, SchemeContext
from tailrace.schemes.spritz.app import MINIMAL_MODE, RANDOM, UGAL_L_MODE
from tailrace.schemes.spritz.bounded import SPRITZ_PROGRAM_KEYS, BoundedConfig
from tailrace.spec import Spec, keys
from tailrace.topology import Topology
from tailrace.topology.kinds import DRAGONFLY
from tailrace.topology.paths.shapes import shape_of
from tailrace.topology.timing import base_rtt_ns

GROUP, HOP = DRAWS = ("group", "hop")
PACKET, FLOW, FLOWLET = GRAINS


def _grain(*grains: str) -> keys.Key:
    return keys.choice("per", "unit of traffic that stays on one path", grains, section="Flowcut §III-C4")


class RoutedConfig(BoundedConfig, frozen=True, kw_only=True):
    """Routing by switches. draw=hop permits also the keys of BoundedConfig: trim (full queues trim packets),
    repair (default routes avoid failed links) and frame (size of a full frame).

    hop_mode: mode of the program `spritz` with draw=hop
    usual_grain: default of `grain`, and the only value that draw=hop permits
    grain: unit of traffic that stays on one path; the key `per`
    """

    hop_mode: ClassVar[str]
    usual_grain: ClassVar[str]
    grain: str
    gap_ns: Annotated[int | None, GAP] = None
    draw: Annotated[
        str | None,
        keys.choice(
            "draw",
            "group: non-minimal paths pass a third group of a Dragonfly; hop: each switch draws a hop",
            DRAWS,
            section="Spritz §V-A",
        ),
    ] = None

    @property
    def always_runs_spritz(self) -> bool:
        return self.draw == HOP

    def runs_spritz_on(self, topology: Topology) -> bool:
        if self.draw is None:
            return topology.kind != DRAGONFLY and shape_of(topology).detours
        return self.draw == HOP

    def checked(self, spec: Spec) -> RoutedConfig:
        # refuse(keys, option) raises an error if one of the keys is given: they need the option, which is
        # not set here; refused(key, option) only returns this error
        if self.grain != self.usual_grain and self.draw == HOP:
            raise spec.refused("per", f"together with draw={GROUP}")
        if self.grain != FLOWLET:
            spec.refuse(("gap",), f"per={FLOWLET}")
        if self.draw == GROUP:
            spec.refuse(SPRITZ_PROGRAM_KEYS, f"draw={HOP}")
        return self

    def resolve(self, topology: Topology, context: SchemeContext) -> Resolved:
        if self.runs_spritz_on(topology):
            if self.grain != self.usual_grain:
                raise IntentError(f"scheme {self.name}: per={self.grain} needs draw=group")
            return self.resolve_on_spritz(topology, context, mode=self.hop_mode)
        gap_ns = base_rtt_ns(topology, context.frame_bytes) if self.gap_ns is None else self.gap_ns
        # `resolved` adds the keys of this struct, and the values that all schemes have
        resolved = self.resolved(ResolvedRouting, topology, context, program=app.PROGRAM, gap_ns=gap_ns)
        require_dragonfly(topology, self.name, resolved.dragonfly_paths)
        for key, value in (("trim", self.trim), ("repair", self.repair), ("frame", self.frame_bytes)):
            if value is not None:
                raise IntentError(f"scheme {self.name}: {key} needs draw=hop")
        return resolved


@scheme
class MinimalConfig(RoutedConfig, frozen=True, kw_only=True):
    """Packets take a minimal path, with at most one link between groups."""

    name: ClassVar[str] = "minimal"
    title: ClassVar[str] = "Minimal"
    about: ClassVar[str] = "routing on minimal paths"
    hop_mode: ClassVar[str] = MINIMAL_MODE
    usual_grain: ClassVar[str] = FLOW
    grain: Annotated[str, _grain(PACKET, FLOW, FLOWLET)] = FLOW


@scheme
class ValiantConfig(RoutedConfig, frozen=True, kw_only=True):
    """Every packet takes a path through a random third group, or in other graphs through a random switch."""

    name: ClassVar[str] = "valiant"
    title: ClassVar[str] = "Valiant"
    about: ClassVar[str] = "Valiant routing, through a random intermediate group or switch"
    hop_mode: ClassVar[str] = RANDOM
    usual_grain: ClassVar[str] = PACKET
    grain: Annotated[str, _grain(PACKET, FLOW, FLOWLET)] = PACKET


@scheme
class UgalLConfig(RoutedConfig, frozen=True, kw_only=True):
    """The first switch chooses a minimal or a Valiant path for each packet by its queue lengths."""

    name: ClassVar[str] = UGAL_L
    about: ClassVar[str] = "the first switch chooses a minimal or a Valiant path by its queue lengths"
    hop_mode: ClassVar[str] = UGAL_L_MODE
    usual_grain: ClassVar[str] = PACKET
    grain: Annotated[str, _grain(PACKET, FLOWLET)] = PACKET


class ResolvedRouting(app.MayDetour, frozen=True, kw_only=True):
    """Routing in a Dragonfly; non-minimal paths lead through another group (draw=group)."""

    draw: ClassVar[str] = GROUP
    grain: str
    gap_ns: int

    @property
    def flowlet_gap_ns(self) -> int | None:
        return self.gap_ns if self.grain == FLOWLET else None

    @property
    def dragonfly_paths(self) -> DragonflyPaths:
        return DragonflyPaths(rule=self.name, grain=self.grain, gap_ns=self.gap_ns)

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        return app.entities(plan, self.dragonfly_paths)
