# SPDX-License-Identifier: Apache-2.0
"""MP-RDMA (NSDI'18): many paths under one transport in the NICs, over switches that know ECMP and mark."""

from __future__ import annotations

from typing import ClassVar

from tailrace.schemes.base import SchemeConfig, scheme
from tailrace.schemes.blocks.basic import ResolvedBasic
from tailrace.schemes.ecmp import EcmpConfig
from tailrace.schemes.resolved import SchemeContext
from tailrace.topology import Topology


@scheme
class MpRdmaConfig(SchemeConfig, frozen=True, kw_only=True):
    """ECMP with ECN marking, under MP-RDMA in the NICs, whose paths are UDP source ports."""

    name: ClassVar[str] = "mp-rdma"
    about: ClassVar[str] = "NICs spread a flow over many paths of ECMP by ECN marks"

    @property
    def only_transport(self) -> str:
        """Its own: without it there is nothing but ECMP."""
        return self.name

    @property
    def brings_transport(self) -> bool:
        return True

    @property
    def marks_queues(self) -> bool:
        return True

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedBasic:
        return self.resolved(ResolvedBasic, topology, context, program=EcmpConfig.name)
