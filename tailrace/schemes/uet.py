# SPDX-License-Identifier: Apache-2.0
"""How Ultra Ethernet's transport (UET) chooses paths: the modes of the consortium's simulator, uet-htsim
(hosts.steering.uet). `mixed` is its default.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from tailrace.hosts.options.nic import UET
from tailrace.schemes.base import scheme
from tailrace.schemes.resolved import SchemeContext
from tailrace.schemes.spritz.bounded import ResolvedBounded
from tailrace.schemes.spritz.entropy import EntropyConfig, ResolvedEntropy
from tailrace.spec import keys
from tailrace.topology import Topology

OBLIVIOUS, BITMAP, MIXED = MODES = ("oblivious", "bitmap", "mixed")


@scheme
class UetConfig(EntropyConfig, frozen=True, kw_only=True):
    """NICs spread packets over 64 entropy values."""

    name: ClassVar[str] = "uet"
    about: ClassVar[str] = "NICs spread packets over entropy values, as Ultra Ethernet's transport does"
    usual_evs: ClassVar[int] = 64
    mode: Annotated[
        str,
        keys.choice(
            "mode",
            "entropy values in turn; without those that have penalties; or reused, else without penalties",
            MODES,
        ),
    ] = MIXED

    @property
    def steering(self) -> str:
        return UET[MODES.index(self.mode)]

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedBounded:
        # `mode` is also a field of the program's configuration, which `resolve_entropy` sets
        return self.resolve_entropy(ResolvedEntropy, topology, context)
