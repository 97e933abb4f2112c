# SPDX-License-Identifier: Apache-2.0
"""ECMP: a hash of the 5-tuple chooses a next hop in each switch, or a whole path in the NIC (FLOW_ECMP). In
the second case switches run the program `spritz` in the mode STEERED: they follow the path that a packet
names.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from tailrace.schemes.base import scheme
from tailrace.schemes.blocks.basic import ResolvedBasic
from tailrace.schemes.resolved import Resolved, SchemeContext
from tailrace.schemes.spritz.app import STEERED
from tailrace.schemes.spritz.bounded import FLOW_ECMP, SPRITZ_PROGRAM_KEYS, BoundedConfig
from tailrace.spec import Spec, keys
from tailrace.topology import Topology

OVER_MINIMAL, OVER_ALL = OVERS = ("minimal", "all")


@scheme
class EcmpConfig(BoundedConfig, frozen=True, kw_only=True):
    """A hash of the 5-tuple chooses the next hop in each switch. With over=all the NIC chooses a path."""

    name: ClassVar[str] = "ecmp"
    about: ClassVar[str] = "a hash of the 5-tuple chooses the next hop"
    by_source_port: ClassVar[bool] = True
    over: Annotated[
        str,
        keys.choice(
            "over",
            "paths: minimal ones, hop by hop, or all loop-free ones of bounded length, chosen by the NIC",
            OVERS,
            section="Spritz §V-A",
        ),
    ] = OVER_MINIMAL

    @property
    def always_runs_spritz(self) -> bool:
        return self.over == OVER_ALL

    def runs_spritz_on(self, topology: Topology) -> bool:  # noqa: ARG002
        return self.always_runs_spritz

    @property
    def steering(self) -> str:
        return FLOW_ECMP if self.always_runs_spritz else ""

    def checked(self, spec: Spec) -> EcmpConfig:
        # refuse(keys, option): the keys need the option, so they must not be given without it
        if not self.always_runs_spritz:
            spec.refuse(SPRITZ_PROGRAM_KEYS, f"over={OVER_ALL}")
        return self

    def resolve(self, topology: Topology, context: SchemeContext) -> Resolved:
        if self.always_runs_spritz:
            return self.resolve_on_spritz(topology, context, mode=STEERED)
        return self.resolved(ResolvedBasic, topology, context, program=self.name)
