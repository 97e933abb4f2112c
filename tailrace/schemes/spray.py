# SPDX-License-Identifier: Apache-2.0
"""Random packet spraying."""

from __future__ import annotations

from typing import ClassVar

from tailrace.schemes.base import SchemeConfig, scheme
from tailrace.schemes.blocks.basic import ResolvedBasic
from tailrace.schemes.resolved import SchemeContext
from tailrace.topology import Topology


@scheme
class SprayConfig(SchemeConfig, frozen=True, kw_only=True):
    """Every packet goes to a random next hop."""

    name: ClassVar[str] = "spray"
    title: ClassVar[str] = "Spray"
    about: ClassVar[str] = "every packet goes to a random next hop"
    made_for: ClassVar[tuple[str, ...]] = ("sr", "dctcp")

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedBasic:
        return self.resolved(ResolvedBasic, topology, context, program=self.name)
