# SPDX-License-Identifier: Apache-2.0
"""MP-RDMA (NSDI'18): a multipath transport in the NICs, over switches with ECMP and ECN marking."""

from __future__ import annotations

from typing import ClassVar

from tailrace.schemes.base import SchemeConfig, scheme
from tailrace.schemes.blocks.basic import ResolvedBasic
from tailrace.schemes.ecmp import EcmpConfig
from tailrace.schemes.resolved import SchemeContext
from tailrace.topology import Topology


@scheme
class MpRdmaConfig(SchemeConfig, frozen=True, kw_only=True):
    """ECMP with ECN marking in the switches, and MP-RDMA in the NICs, which selects paths by UDP source
    ports.
    """

    name: ClassVar[str] = "mp-rdma"
    about: ClassVar[str] = "NICs spread a flow over many ECMP paths, according to ECN marks"

    @property
    def only_transport(self) -> str:
        """mp-rdma: with another transport the scheme would be plain ECMP."""
        return self.name

    @property
    def brings_transport(self) -> bool:
        return True

    @property
    def marks_queues(self) -> bool:
        return True

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedBasic:
        return self.resolved(ResolvedBasic, topology, context, program=EcmpConfig.name)
