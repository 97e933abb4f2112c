# SPDX-License-Identifier: Apache-2.0
"""ECMP: a hash of the 5-tuple chooses a next hop in each switch, or a whole path in the NIC."""

from __future__ import annotations

from typing import Annotated, ClassVar

from tailrace.schemes.base import scheme
from tailrace.schemes.blocks.basic import ResolvedBasic
from tailrace.schemes.resolved import Resolved, SchemeContext
from tailrace.schemes.spritz.app import STEERED
from tailrace.schemes.spritz.bounded import BOUNDED_KEYS, FLOW_ECMP, BoundedConfig
from tailrace.spec import Spec, keys
from tailrace.topology import Topology

OVER_MINIMAL, OVER_ALL = OVERS = ("minimal", "all")


@scheme
class EcmpConfig(BoundedConfig, frozen=True, kw_only=True):
    """A hash of the 5-tuple chooses a next hop, or with over=all in the NIC one of all paths."""

    name: ClassVar[str] = "ecmp"
    about: ClassVar[str] = "a hash of the 5-tuple chooses the next hop"
    over: Annotated[
        str,
        keys.choice(
            "over",
            "minimal paths, or all bounded simple paths, chosen by the NIC",
            OVERS,
            section="Spritz §V-A",
        ),
    ] = OVER_MINIMAL

    @property
    def steers(self) -> bool:
        return self.over == OVER_ALL

    def is_bounded_on(self, topology: Topology) -> bool:  # noqa: ARG002
        return self.steers

    @property
    def steering(self) -> str:
        return FLOW_ECMP if self.steers else ""

    def checked(self, spec: Spec) -> EcmpConfig:
        if not self.steers:
            spec.refuse(BOUNDED_KEYS, f"over={OVER_ALL}")
        return self

    def resolve(self, topology: Topology, context: SchemeContext) -> Resolved:
        if self.steers:
            return self.bounded(topology, context, mode=STEERED)
        return self.resolved(ResolvedBasic, topology, context, program=self.name)
