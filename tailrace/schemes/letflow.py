# SPDX-License-Identifier: Apache-2.0
"""LetFlow: a flow takes a random next hop after it was idle for at least a gap (RLB §II-A.3, HF2T §2). With
HF2T (host-based flowlet fine-tuning), NICs stretch gaps to this length.

Defaults of keys:

gap     one base RTT (assumption: paths that differ by less than a round trip do not reorder)
tiers   all, so every switch detects flowlets
path    in a Dragonfly UGAL-L, as in Flowcut §II-A for flowcuts; elsewhere shortest paths
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec.structs import replace

from tailrace.hosts.options.hf2t_spec import HF2T
from tailrace.p4rt.entities import P4Entity
from tailrace.schemes.base import SchemeConfig, scheme
from tailrace.schemes.blocks.entries import common_entries, flowlet_config
from tailrace.schemes.dragonfly import app as dragonfly
from tailrace.schemes.dragonfly.paths import (
    DEFAULT_SHARE,
    GAP,
    PATH,
    SHARE,
    SHORTEST,
    UGAL_L,
    check_share,
    paths_on,
    require_dragonfly,
)
from tailrace.schemes.errors import IntentError
from tailrace.schemes.resolved import DragonflyPaths, EntryPlan, SchemeContext
from tailrace.spec import Spec, keys
from tailrace.topology import Topology
from tailrace.topology.timing import base_rtt_ns

BASE_VARIANT = "plain"
LETFLOW_VARIANTS = (BASE_VARIANT, HF2T)
"""LetFlow alone, or with HF2T, as with the key `hf2t`."""

ALL, TOR = LETFLOW_TIERS = ("all", "tor")
TIERS = keys.choice(
    "tiers",
    f"switches that detect flowlets: {ALL}, or {TOR} (those with hosts)",
    LETFLOW_TIERS,
    section="HF2T §4.2",
)


@scheme
class LetflowConfig(SchemeConfig, frozen=True, kw_only=True):
    """A flow takes a random next hop after it was idle for at least the gap."""

    name: ClassVar[str] = "letflow"
    title: ClassVar[str] = "LetFlow"
    about: ClassVar[str] = "a flow takes a random next hop after every idle gap"
    by_source_port: ClassVar[bool] = True
    variant: Annotated[
        str,
        keys.choice(
            "variant",
            f"LetFlow alone, or NICs also stretch gaps between packets (HF2T), as with {HF2T}=on",
            LETFLOW_VARIANTS,
            section="HF2T §4",
        ),
    ] = BASE_VARIANT
    gap_ns: Annotated[int | None, GAP] = None
    tiers: Annotated[str, TIERS] = ALL
    path: Annotated[str | None, PATH] = None
    minimal_share: Annotated[float, SHARE] = DEFAULT_SHARE

    def checked(self, spec: Spec) -> LetflowConfig:
        check_share(spec, self.path)
        variant = BASE_VARIANT if self.hf2t is None else HF2T
        if "variant" in spec.options and variant != self.variant:
            raise spec.error("variant", f"{variant} with {HF2T}={spec.options[HF2T]}")
        return replace(self, variant=variant)

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedLetflow:
        path = paths_on(topology, self.path, UGAL_L)  # the key, or the default of the topology
        if path != SHORTEST and self.tiers != ALL:
            raise IntentError(
                f"scheme letflow: tiers={self.tiers} needs path={SHORTEST}, found '{path}':"
                " all switches of a Dragonfly have hosts"
            )
        resolved = self.resolved(
            ResolvedLetflow,
            topology,
            context,
            program=self.name if path == SHORTEST else dragonfly.PROGRAM,
            gap_ns=base_rtt_ns(topology, context.frame_bytes) if self.gap_ns is None else self.gap_ns,
            tiers=self.tiers,
            path=path,
        )
        require_dragonfly(topology, self.name, resolved.dragonfly_paths)
        return resolved


class ResolvedLetflow(dragonfly.MayDetour, frozen=True, kw_only=True):
    """LetFlow in a network."""

    gap_ns: int
    tiers: str
    path: str
    minimal_share: float

    @property
    def flowlet_gap_ns(self) -> int:
        return self.gap_ns

    @property
    def dragonfly_paths(self) -> DragonflyPaths | None:
        if self.path == SHORTEST:
            return None
        return DragonflyPaths(
            rule=self.path, grain="flowlet", gap_ns=self.gap_ns, minimal_share=self.minimal_share
        )

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        paths = self.dragonfly_paths
        if paths is not None:
            return dragonfly.entities(plan, paths)
        return common_entries(plan, flowlet_config(plan, self.gap_ns, everywhere=self.tiers == ALL))
